// SPDX-License-Identifier: GPL-2.0
/*
 * A leak on purpose: what is allocated when it is loaded is forgotten at once. Suite rig
 * loads it to see that kmemleak, and those who read what it says, notice.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

/* Several, because a stale register may still point to the last one. */
#define KVT_TESTLEAK_OBJECTS	8

static noinline void kvt_testleak_lose(void)
{
	char *object = kmalloc(64, GFP_KERNEL);

	if (object)
		memset(object, 0x5a, 64);
}

static int __init kvt_testleak_init(void)
{
	int i;

	for (i = 0; i < KVT_TESTLEAK_OBJECTS; i++)
		kvt_testleak_lose();
	return 0;
}
module_init(kvt_testleak_init);

static void __exit kvt_testleak_exit(void)
{
}
module_exit(kvt_testleak_exit);

MODULE_DESCRIPTION("A leak for the tests of kvtier");
MODULE_LICENSE("GPL");
