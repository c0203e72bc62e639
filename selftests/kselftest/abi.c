// SPDX-License-Identifier: GPL-2.0
/*
 * The errno contract, command by command.
 *
 * Each test takes a valid argument of every command in the table, spoils one thing,
 * and expects the documented errno and an unchanged pool. What is refused leaves the
 * argument valid, so it is spoilt again in other ways. A command that the kernel has and
 * that is not in the table fails the last test.
 */
#include "abi_rows.h"
#include <sys/stat.h>

#define NONE		ABI_NONE
#define ALICE		1001
#define BAD_END(a)	((a)->page + 2 * ABI_PAGE)

FIXTURE(abi)
{
	struct abi a;
	char arg[ABI_ARG_MAX];
	char bad[ABI_ARG_MAX];	/* the same, spoilt */
};

FIXTURE_SETUP(abi)
{
	ASSERT_EQ(0, abi_open(&self->a));
}

/* Whatever was tried: nothing is held by files that are closed. */
FIXTURE_TEARDOWN(abi)
{
	EXPECT_EQ(0, abi_close(&self->a));
}

TEST_F(abi, valid_arguments_work)
{
	const struct abi_row *row;

	EACH_ABI_ROW(row) {
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true)) TH_LOG("%s", row->name);
		EXPECT_EQ(0, abi_call(&self->a, row, self->arg)) TH_LOG("%s", row->name);
		abi_end(&self->a, row);
	}
}

static int try_size(struct abi *a, const struct abi_row *row, char *arg, __u32 size, int tail_at)
{
	int ret = abi_begin(a, row, arg, true);

	if (ret)
		return ret - 1000;
	*abi_word(arg, 0) = size;
	if (tail_at >= 0)
		arg[tail_at] = 1;
	ret = abi_call_refused(a, row, arg);
	abi_end(a, row);
	return ret;
}

/* Of a prepared argument. */
static int bad_size(FIXTURE_DATA(abi) *self, const struct abi_row *row, __u32 size, int tail_at)
{
	memcpy(self->bad, self->arg, sizeof(self->bad));
	*abi_word(self->bad, 0) = size;
	if (tail_at >= 0)
		self->bad[tail_at] = 1;
	return abi_call_refused(&self->a, row, self->bad);
}

TEST_F(abi, sizes)
{
	const struct abi_row *row;
	__u32 n;

	EACH_ABI_ROW(row) {
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (n = 0; n < 8; n++)
			EXPECT_EQ(-EINVAL, bad_size(self, row, n, NONE))
				TH_LOG("%s size %u", row->name, n);
		EXPECT_EQ(-E2BIG, bad_size(self, row, row->size + 8, row->size))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, bad_size(self, row, row->size + 8, row->size + 7))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, bad_size(self, row, row->size + 1, row->size))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, bad_size(self, row, ABI_ARG_MAX, ABI_ARG_MAX - 1))
			TH_LOG("%s", row->name);
		abi_end(&self->a, row);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, row->size, NONE))
			TH_LOG("%s", row->name);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, row->size + 8, NONE))
			TH_LOG("%s", row->name);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, ABI_ARG_MAX, NONE))
			TH_LOG("%s", row->name);
	}
}

/*
 * The least that is accepted: what is missing counts as zero, and the kernel writes
 * no further than the caller's struct goes.
 */
TEST_F(abi, short_structs)
{
	const struct abi_row *row;
	__u32 i;

	EACH_ABI_ROW(row) {
		EXPECT_EQ(-EINVAL, try_size(&self->a, row, self->arg, row->min - 1, NONE))
			TH_LOG("%s", row->name);
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		*abi_word(self->arg, 0) = row->min;
		memset(self->arg + row->min, 0x5a, 64);
		EXPECT_EQ(0, abi_call(&self->a, row, self->arg)) TH_LOG("%s", row->name);
		for (i = row->min; i < row->min + 64; i++)
			EXPECT_EQ(0x5a, self->arg[i]) TH_LOG("%s wrote to byte %u", row->name, i);
		abi_end(&self->a, row);
	}
}

/* A size that reaches into memory that is not there is an error of some kind. */
TEST_F(abi, absurd_sizes)
{
	static const __u32 sizes[] = { 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	const struct abi_row *row;
	size_t n;
	int ret;

	EACH_ABI_ROW(row) {
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (n = 0; n < KVT_ARRAY(sizes); n++) {
			ret = bad_size(self, row, sizes[n], row->size);
			EXPECT_TRUE(ret == -E2BIG || ret == -EFAULT || ret == -EINVAL)
				TH_LOG("%s size %#x: %d", row->name, sizes[n], ret);
		}
		abi_end(&self->a, row);
	}
}

/* Of a prepared argument. */
static int bad_word(FIXTURE_DATA(abi) *self, const struct abi_row *row, int offset, __u32 set)
{
	memcpy(self->bad, self->arg, sizeof(self->bad));
	*abi_word(self->bad, offset) |= set;
	return abi_call_refused(&self->a, row, self->bad);
}

TEST_F(abi, unknown_flags)
{
	int bit, step = kvt_env_brief() ? 5 : 1;
	const struct abi_row *row;

	EACH_ABI_ROW(row) {
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (bit = row->op % step; bit < 32; bit += step) {
			if (row->flags & (1u << bit))
				continue;
			EXPECT_EQ(-EOPNOTSUPP, bad_word(self, row, 4, 1u << bit))
				TH_LOG("%s flag bit %d", row->name, bit);
		}
		abi_end(&self->a, row);
	}
}

TEST_F(abi, reserved_words)
{
	const struct abi_row *row;

	EACH_ABI_ROW(row) {
		if (row->reserved == NONE)
			continue;
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		EXPECT_EQ(-EOPNOTSUPP, bad_word(self, row, row->reserved, 1))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-EOPNOTSUPP, bad_word(self, row, row->reserved, 1u << 31))
			TH_LOG("%s", row->name);
		abi_end(&self->a, row);
	}
}

/* To be written to: some of the work may be done. */
static int try_pointer(struct abi *a, const struct abi_row *row, char *arg, int offset, __u64 to)
{
	int ret = abi_begin(a, row, arg, true);

	if (ret)
		return ret - 1000;
	*abi_pointer(arg, offset) = to;
	ret = abi_call(a, row, arg);
	abi_end(a, row);
	return ret;
}

/* To be read from, of a prepared argument. */
static int bad_input(FIXTURE_DATA(abi) *self, const struct abi_row *row, int offset, __u64 to)
{
	memcpy(self->bad, self->arg, sizeof(self->bad));
	*abi_pointer(self->bad, offset) = to;
	return abi_call_refused(&self->a, row, self->bad);
}

#define BAD_POINTERS	4

static __u64 bad_pointer(const struct abi *a, int i)
{
	const __u64 bad[BAD_POINTERS] = {
		8, KVT_U64(BAD_END(a)), KVT_U64(BAD_END(a)) - 2, 0xffff888000000000ull,
	};

	return bad[i];
}

TEST_F(abi, bad_input_pointers)
{
	const struct abi_row *row;
	int i, k;

	EACH_ABI_ROW(row) {
		const int at[] = { row->in, row->in2 };

		if (row->in == NONE && row->in2 == NONE)
			continue;
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (k = 0; k < 2; k++) {
			for (i = 0; i < BAD_POINTERS && at[k] != NONE; i++)
				EXPECT_EQ(-EFAULT, bad_input(self, row, at[k],
							     bad_pointer(&self->a, i)))
					TH_LOG("%s pointer at %d, kind %d", row->name, at[k], i);
		}
		if (row->in != NONE)
			EXPECT_EQ(-EFAULT, bad_input(self, row, row->in, 0))
				TH_LOG("%s", row->name);
		abi_end(&self->a, row);
	}
}

/* Work done before the fault may stand; the teardown sees that closing undoes it. */
TEST_F(abi, bad_output_pointers)
{
	const struct abi_row *row;
	int i;

	EACH_ABI_ROW(row) {
		if (row->out == NONE)
			continue;
		for (i = 0; i < BAD_POINTERS; i++)
			EXPECT_EQ(-EFAULT, try_pointer(&self->a, row, self->arg, row->out,
						       bad_pointer(&self->a, i)))
				TH_LOG("%s kind %d", row->name, i);
		EXPECT_EQ(row->out_optional ? 0 : -EFAULT,
			  try_pointer(&self->a, row, self->arg, row->out, 0))
			TH_LOG("%s", row->name);
	}
}

/* The argument itself: not there, not all there, or not writable. */
TEST_F(abi, bad_argument_pointer)
{
	const struct abi_row *row;
	char *ro = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	ASSERT_NE(MAP_FAILED, ro);
	EACH_ABI_ROW(row) {
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (i = 0; i < BAD_POINTERS; i++)
			EXPECT_EQ(-EFAULT, abi_call_refused(&self->a, row,
							(void *)bad_pointer(&self->a, i)))
				TH_LOG("%s kind %d", row->name, i);
		memcpy(ro, self->arg, row->size);
		mprotect(ro, ABI_PAGE, PROT_READ);
		i = abi_call(&self->a, row, ro);
		EXPECT_TRUE(i == -EFAULT || i == 0) TH_LOG("%s: %d", row->name, i);
		mprotect(ro, ABI_PAGE, PROT_READ | PROT_WRITE);
		abi_end(&self->a, row);
	}
	munmap(ro, ABI_PAGE);
}

TEST_F(abi, counts)
{
	const struct abi_row *row;
	__u32 bad[] = { 0, 0, ~0u };
	size_t n;
	int ret;

	EACH_ABI_ROW(row) {
		if (row->nr == NONE)
			continue;
		bad[1] = row->nr_max + 1;
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (n = 0; n < KVT_ARRAY(bad); n++) {
			*abi_word(self->arg, row->nr) = bad[n];
			ret = abi_call_refused(&self->a, row, self->arg);
			EXPECT_EQ(-EINVAL, ret) TH_LOG("%s count %u", row->name, bad[n]);
		}
		abi_end(&self->a, row);
	}
}

TEST_F(abi, wrong_group)
{
	static const __u32 bad[] = { 1, KVTIER_GROUPS_MAX - 1, KVTIER_GROUPS_MAX, 1u << 28, ~0u };
	const struct abi_row *row;
	size_t n;
	int ret;

	EACH_ABI_ROW(row) {
		if (row->group == NONE)
			continue;
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		for (n = 0; n < KVT_ARRAY(bad); n++) {
			*abi_word(self->arg, row->group) = bad[n];
			ret = abi_call_refused(&self->a, row, self->arg);
			EXPECT_EQ(-ENOENT, ret) TH_LOG("%s group %u", row->name, bad[n]);
		}
		abi_end(&self->a, row);
	}
}

TEST_F(abi, unbound_file)
{
	struct kvtier_stat st;
	const struct abi_row *row;
	int ret;

	EACH_ABI_ROW(row) {
		if (row->ctl || row->op == KVTIER_OP_NS_OPEN)
			continue;
		/* Preparation may fail for the same reason: the argument is formed by then. */
		abi_begin(&self->a, row, self->arg, false);
		ret = abi_call_refused(&self->a, row, self->arg);
		EXPECT_EQ(row->unbound ? 0 : -EBADFD, ret) TH_LOG("%s", row->name);
		abi_end(&self->a, row);
	}
	ret = kvt_open(&self->a.pool);
	EXPECT_EQ(-EBADFD, kvt_stat(ret, 0, &st));
	close(ret);
}

static const struct abi_row *row_of(unsigned int op, bool ctl)
{
	const struct abi_row *row;

	EACH_ABI_ROW(row)
		if (row->op == op && row->ctl == ctl)
			return row;
	return NULL;
}

static bool reserved_op(unsigned int op, bool ctl)
{
	if (ctl)
		return false;
	return op == KVTIER_OP_EVENTS;
}

/* All other numbers are unknown, those of the other device included. */
TEST_F(abi, command_numbers)
{
	int fd[2] = { self->a.main.fd, self->a.pool.ctl };
	unsigned int op;
	int ctl, want, ret;

	for (ctl = 0; ctl < 2; ctl++) {
		for (op = 0; op < 256; op++) {
			if (row_of(op, ctl))
				continue;
			memset(self->arg, 0, sizeof(self->arg));
			*abi_word(self->arg, 0) = 64;
			want = reserved_op(op, ctl) ? -EOPNOTSUPP : -ENOTTY;
			ret = kvt_ioctl(fd[ctl], op, self->arg);
			EXPECT_EQ(want, ret) TH_LOG("op %u on the %s device", op,
						    ctl ? "control" : "data");
		}
	}
}

/* Encodings that are not _IO(KVTIER_IOC_TYPE, op). */
TEST_F(abi, foreign_encodings)
{
	static const unsigned long cmd[] = {
		_IO(KVTIER_IOC_TYPE + 1, KVTIER_OP_QUERY),
		_IO(0, KVTIER_OP_QUERY),
		_IOW(KVTIER_IOC_TYPE, KVTIER_OP_QUERY, __u32),
		_IOWR(KVTIER_IOC_TYPE, KVTIER_OP_CTL_QUERY, struct kvtier_ctl_query),
		0x5401, /* TCGETS */
	};
	size_t n;

	for (n = 0; n < KVT_ARRAY(cmd); n++) {
		memset(self->arg, 0, sizeof(self->arg));
		*abi_word(self->arg, 0) = 64;
		EXPECT_EQ(-1, ioctl(self->a.main.fd, cmd[n], self->arg));
		EXPECT_EQ(ENOTTY, errno) TH_LOG("%#lx", cmd[n]);
		EXPECT_EQ(-1, ioctl(self->a.pool.ctl, cmd[n], self->arg));
		EXPECT_EQ(ENOTTY, errno) TH_LOG("%#lx", cmd[n]);
	}
}

/* The control device opened by a user who is let in by the file mode alone. */
TEST_F(abi, control_needs_privilege)
{
	const char *node = "/tmp/kvtier-ctl-open";
	const struct abi_row *row;
	struct stat st;
	int fd, ret;

	ASSERT_EQ(0, stat("/dev/kvtier", &st));
	unlink(node);
	ASSERT_EQ(0, mknod(node, S_IFCHR | 0666, st.st_rdev));
	ASSERT_EQ(0, chmod(node, 0666));
	EACH_ABI_ROW(row) {
		if (!row->ctl)
			continue;
		ASSERT_EQ(0, abi_begin(&self->a, row, self->arg, true));
		ASSERT_EQ(0, kvt_become(ALICE));
		fd = open(node, O_RDWR | O_CLOEXEC);
		ret = kvt_ioctl(fd, row->op, self->arg);
		ASSERT_EQ(0, kvt_become(0));
		ASSERT_LE(0, fd);
		close(fd);
		EXPECT_EQ(row->op == KVTIER_OP_CTL_QUERY ? 0 : -EPERM, ret)
			TH_LOG("%s", row->name);
		abi_end(&self->a, row);
	}
	unlink(node);
}

TEST_F(abi, pool_stat_needs_privilege)
{
	struct kvtier_stat st;
	int fd = kvt_open_as(&self->a.pool, ALICE), ret;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kvt_become(ALICE));
	ret = kvt_stat(fd, KVTIER_STAT_POOL, &st);
	ASSERT_EQ(0, kvt_become(0));
	EXPECT_EQ(-EPERM, ret);
	close(fd);
}

/*
 * The table above is complete: what the kernel says it has is what is tested here,
 * on each device.
 */
TEST_F(abi, every_command_has_a_row)
{
	struct kvtier_ctl_query cq = { .size = sizeof(cq) };
	__u64 data = 0, ctl = 0;
	const struct abi_row *row;
	struct kvtier_query q;

	EACH_ABI_ROW(row) {
		if (row->ctl)
			ctl |= 1ull << row->op;
		else
			data |= 1ull << row->op;
	}
	ASSERT_LE(0, kvt_query(self->a.main.fd, &q, NULL));
	ASSERT_EQ(0, kvt_ioctl(self->a.pool.ctl, KVTIER_OP_CTL_QUERY, &cq));
	EXPECT_EQ(data, q.ops);
	EXPECT_EQ(ctl, cq.ops);
}

TEST_HARNESS_MAIN
