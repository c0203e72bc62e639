/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The red team: named attacks of one tenant on another.
 *
 * Each attack is a test. It runs in a process that has given up all privileges for
 * good: as user BOB, or as BOB in a container of his own (user, mount and cgroup
 * namespaces, where he is uid 0 in his own eyes). The victim is ALICE, who in every second
 * attack has opened her file in such a container, too (at full length each attack is made
 * as two users, and as two containers, but for what needs one: KVT_RT_HOW): she has leased
 * blocks, a reservation that is half written, and a file that may only read, which BOB
 * was given. The attacker has her files, because fork left them to him; only what an
 * attack says it was given may it use as an attacker, the rest is there to let her act.
 *
 * An attack returns 0 when it was repelled. After it the fixture looks at ALICE's
 * namespace: every byte, every count and the reservation are what they were.
 *
 * There are many attacks, and a pool takes long to make and to end. So there is one for
 * each program, and for each attack memory of its own, and namespaces of names that were
 * not used before.
 */
#ifndef KVT_REDTEAM_H
#define KVT_REDTEAM_H

#include "kvt_test.h"

#define RT_ALICE	1001
#define RT_BOB		1002
#define RT_USERS	1000u
#define RT_NR_USERS	2000u
#define RT_BLOCKS	8
#define RT_BLOCK	(128 * KVT_KIB)
#define RT_TIER		(8 * KVT_MIB)
#define RT_SLOTS	((int)(RT_TIER / RT_BLOCK))
#define RT_SET		31	/* ALICE's keys */
#define RT_SET_BOB	32

enum rt_how {
	RT_UID,		/* as BOB */
	RT_BOX,		/* as BOB in a container */
	RT_BOX_ALWAYS,	/* the same, without which it would be no attack */
};

/**
 * struct rt_pool - a program's pool
 * @maker:  the process that destroys it
 * @nr:     attacks so far
 */
struct rt_pool {
	struct kvt_pool pool;
	pid_t maker;
	unsigned int nr;
};

/**
 * struct rt - one attack
 * @tier:   its memory
 * @identity: of ALICE's namespace, and of BOB's
 * @alice:  her file, that may write, with both views mapped
 * @key:    of her blocks, a chain
 * @lease:  her handles, one for each
 * @offset: where they lie in the read view
 * @fill:   her reservation: RT_BLOCKS in the set
 * @reader: her file that may only read; mapped in @rd
 * @bob:    the attacker's own file, bound to a namespace of the same identity
 * @before: her counters
 */
struct rt {
	struct kvt_pool pool;
	int tier;
	char identity[16];
	struct kvt_client alice;
	struct kvt_key key[RT_BLOCKS];
	__u64 lease[RT_BLOCKS];
	__u64 offset[RT_BLOCKS];
	struct kvtier_block_result fill;
	int reader;
	struct kvt_view rd;
	struct kvt_client bob;
	struct kvtier_stat before;
};

typedef int (*rt_fn)(struct rt *t);

struct rt_pool *rt_pool_make(void);
void rt_pool_end(struct rt_pool *p);
/* NULL when that fails; the attacker's process shares it. */
struct rt *rt_setup(struct rt_pool *p);
int rt_teardown(struct rt *t);
/* In a container? KVT_RT_HOW=uid or box: nobody is, or all are, whatever an attack is else. */
bool rt_boxed(bool usually);
/* Become @uid for good, in a container or not. 0 or -errno */
int rt_become(uid_t uid, enum rt_how how);
/* A file that @uid of group @gid has opened, in a container of his own or not; or -errno */
int rt_file(const struct rt *t, uid_t uid, gid_t gid, bool boxed);
/* Root enters a container of all users: RT_USERS is uid 0 there, and the others follow. */
int rt_enter_users(void);
/* Run @fn as the attacker, then look at the victim. 0: repelled, and nothing touched. */
int rt_attack(struct rt *t, enum rt_how how, rt_fn fn);
/* 0, or what of the victim's was touched, said aloud. */
int rt_intact(struct rt *t);
/* Open and bind a file of the process's user; to be closed with kvt_client_close(). */
int rt_open(const struct rt *t, struct kvt_client *c, struct kvtier_ns_open *a);
int rt_open_own(const struct rt *t, struct kvt_client *c, const char *identity);
/* ALICE has done something herself: it is to be as it is now. */
int rt_expect(struct rt *t);
bool rt_same_bytes(const void *p, const struct kvt_key *key);
bool rt_zero(const void *p, size_t bytes);
/* Slots the file can reserve at once; given up again. @offset: in the window */
int rt_free_slots(const struct kvt_client *c, __u32 set, __u64 *offset);
/* A block of ALICE's through the reader's mapping. */
static inline char *rt_read_view(const struct rt *t, int i)
{
	return t->rd.base + (t->offset[i] - t->rd.start);
}

/* In an attack: it worked if this does not hold. */
#define RT_CHECK(cond)								\
	do {									\
		if (!(cond)) {							\
			fprintf(stderr, "# %s:%d: %s: does not hold: %s (errno %d)\n",	\
				__FILE__, __LINE__, __func__, #cond, errno);	\
			return 1;						\
		}								\
	} while (0)

/* Not possible on this kernel: nothing to be shown. */
#define RT_SKIP		77

#ifdef KVT_HARNESS
static struct rt_pool *rt_pool;

static void __attribute__((constructor)) rt_begin(void)
{
	rt_pool = rt_pool_make();
}

static void __attribute__((destructor)) rt_end(void)
{
	rt_pool_end(rt_pool);
}

FIXTURE(redteam)
{
	struct rt *t;
};

FIXTURE_SETUP(redteam)
{
	ASSERT_NE(NULL, rt_pool);
	self->t = rt_setup(rt_pool);
	ASSERT_NE(NULL, self->t);
}

FIXTURE_TEARDOWN(redteam)
{
	EXPECT_EQ(0, rt_teardown(self->t));
}

#define ATTACK(name, how)							\
	static int attack_##name(struct rt *t);					\
	TEST_F(redteam, name)							\
	{									\
		int ret = rt_attack(self->t, how, attack_##name);		\
										\
		if (ret == RT_SKIP)						\
			SKIP(return, "not with this kernel");			\
		EXPECT_EQ(0, ret);						\
	}									\
	static int attack_##name(struct rt *t)
#endif

#endif /* KVT_REDTEAM_H */
