// SPDX-License-Identifier: GPL-2.0
/*
 * A data race on purpose: two threads count in one variable without a lock for a second.
 * Suite kcsan loads it to see that the kernel it runs on, and those who read its log,
 * notice.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

static struct task_struct *threads[2];
static unsigned long counter;

static noinline void kvt_testrace_step(void)
{
	counter = counter * 3 + 1;
}

static int kvt_testrace_run(void *unused)
{
	while (!kthread_should_stop()) {
		kvt_testrace_step();
		cond_resched();
	}
	return 0;
}

static void kvt_testrace_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		if (!IS_ERR_OR_NULL(threads[i]))
			kthread_stop(threads[i]);
}
module_exit(kvt_testrace_exit);

static int __init kvt_testrace_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = kthread_run(kvt_testrace_run, NULL, "kvt_testrace/%d", i);
		if (IS_ERR(threads[i])) {
			kvt_testrace_exit();
			return PTR_ERR(threads[i]);
		}
	}
	schedule_timeout_uninterruptible(2 * HZ);
	return 0;
}
module_init(kvt_testrace_init);

MODULE_DESCRIPTION("A data race for the tests of kvtier");
MODULE_LICENSE("GPL");
