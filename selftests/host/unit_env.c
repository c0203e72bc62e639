// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the harness itself: a wrong gateway would make every other test lie.
 */
#include <kunit/test.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The vector printed in the SipHash paper: key 00..0f, message 00..0e. */
static void siphash_paper_vector(struct kunit *test)
{
	struct kvt_siphash_key key = {
		{ 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull },
	};
	u8 message[15];
	u32 i;

	for (i = 0; i < sizeof(message); i++)
		message[i] = (u8)i;
	KUNIT_EXPECT_EQ(test, kvt_siphash(message, sizeof(message), &key, 2, 4),
			0xa129ca6149be45e5ull);
}

/* The two ways to compute it agree, at every alignment and length. */
static void crc32c_by_hand(struct kunit *test)
{
	u8 buf[64];
	u32 i, at, len;

	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (u8)(i * 37 + 5);
	for (at = 0; at < 9; at++) {
		for (len = 0; len <= sizeof(buf) - at; len++)
			KUNIT_ASSERT_EQ(test, kvt_crc32c_soft(~at, buf + at, len),
					crc32c(~at, buf + at, len));
	}
	KUNIT_EXPECT_EQ(test, ~kvt_crc32c_soft(~0u, (const u8 *)"123456789", 9), 0xe3069283u);
}

static bool dies(void (*fn)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* The message is expected; keep it off the log. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		fn();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static void assert_unheld(void)
{
	spinlock_t l;

	spin_lock_init(&l);
	lockdep_assert_held(&l);
}

static void lock_twice(void)
{
	spinlock_t l;

	spin_lock_init(&l);
	spin_lock(&l);
	spin_lock(&l);
}

static void unlock_unheld(void)
{
	spinlock_t l;

	spin_lock_init(&l);
	spin_unlock(&l);
}

static void held_is_fine(void)
{
	spinlock_t l;

	spin_lock_init(&l);
	spin_lock(&l);
	lockdep_assert_held(&l);
	spin_unlock(&l);
}

/* lockdep_assert_held() really checks here. */
static void lock_checks_bite(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, dies(assert_unheld));
	KUNIT_EXPECT_TRUE(test, dies(lock_twice));
	KUNIT_EXPECT_TRUE(test, dies(unlock_unheld));
	KUNIT_EXPECT_FALSE(test, dies(held_is_fine));
}

static struct kunit_case env_cases[] = {
	KUNIT_CASE(siphash_paper_vector),
	KUNIT_CASE(crc32c_by_hand),
	KUNIT_CASE(lock_checks_bite),
	{ }
};

static struct kunit_suite env_suite = {
	.name = "harness",
	.test_cases = env_cases,
};

kunit_test_suite(env_suite);
