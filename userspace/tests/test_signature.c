// SPDX-License-Identifier: GPL-2.0
/*
 * What signature_find() says of devices; files stand in for them.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "media.h"
#include "spec.h"
#include "unit.h"

#define BYTES	(8u << 20)

static char path[32];
static int fd;
static char what[SIGNATURE_MAX];

static void blank(void)
{
	if (ftruncate(fd, 0) || ftruncate(fd, BYTES))
		abort();
	what[0] = 0;
}

static void put(u64 byte, const void *data, size_t len)
{
	if (pwrite(fd, data, len, (off_t)byte) != (ssize_t)len)
		abort();
}

static bool says(const char *part)
{
	if (strstr(what, part))
		return true;
	printf("  '%s' lacks '%s'\n", what, part);
	return false;
}

static void test_blank(void)
{
	blank();
	CHECK(signature_find(path, what) == 0);
	CHECK(signature_find("/nonexistent", what) == -ENOENT);
}

/* An ext4 superblock as far as libblkid looks: magic, revision, label. */
static void test_filesystem(void)
{
	u8 sb[256] = { [0x38] = 0x53, [0x39] = 0xef, [0x4c] = 1 };

	blank();
	sb[0x5c] = 4;		/* has a journal */
	sb[0x60] = 0x42;	/* filetype, extents */
	memcpy(sb + 0x78, "precious", 8);
	put(1024, sb, sizeof(sb));
	CHECK(signature_find(path, what) == 1);
	CHECK(says("'ext4' filesystem") && says("'precious'"));
}

static void test_raid(void)
{
	static const char label[] = "LABELONE", type[] = "LVM2 001";
	u8 sector[512] = { 0 };
	u32 crc = 0xf597a6cfu, i, k;

	blank();
	memcpy(sector, label, 8);
	sector[8] = 1;
	sector[20] = 32;
	memcpy(sector + 24, type, 8);
	memset(sector + 32, 'a', 32);
	for (i = 20; i < 512; i++) {
		crc ^= sector[i];
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	memcpy(sector + 16, &crc, sizeof(crc));
	put(512, sector, sizeof(sector));
	CHECK(signature_find(path, what) == 1);
	CHECK(says("'LVM2_member' RAID or volume group member"));
}

static void test_partitions(void)
{
	u8 mbr[512] = {
		[446 + 4] = 0x83, [446 + 8] = 8, [446 + 13] = 16, [510] = 0x55, [511] = 0xaa,
	};

	blank();
	put(0, mbr, sizeof(mbr));
	CHECK(signature_find(path, what) == 1);
	CHECK(says("a 'dos' partition table"));
}

static void test_member(void)
{
	static u64 block[KVT_SUPER_BYTES / 8];
	struct kvt_super s = {
		.geo.first_byte = KVT_HEAD_BYTES_MIN,
		.geo.unit_bytes = 4096,
		.geo.seg_bytes = 65536,
		.geo.nr_segs = 8,
		.device_bytes = BYTES,
		.state = KVT_STATE_CLEAN,
		.life_limit = 1,
		.pool = { 0xab, 0xcd },
		.name = "fast\033[2J",
	};

	blank();
	kvt_super_encode(block, &s);
	put(0, block, sizeof(block));
	CHECK(signature_find(path, what) == SIGNATURE_MEMBER);
	CHECK(says("pool abcd0000-0000") && says("'fast?"));
	/* As sysfs shows a pool's uuid. */
	CHECK(signature_of_pool(path, "abcd0000-0000-0000-0000-000000000000"));
	CHECK(!signature_of_pool(path, "abcd0000-0000-0000-0000-000000000001"));
	CHECK(!signature_of_pool("/nonexistent", "abcd0000-0000-0000-0000-000000000000"));
	CHECK(signature_find_other(path, what) == 0);
	/* Too damaged to be used, but still nobody else's. */
	put(100, "x", 1);
	CHECK(signature_find(path, what) == SIGNATURE_MEMBER);
	CHECK(says("both damaged"));
	CHECK(!signature_of_pool(path, "abcd0000-0000-0000-0000-000000000000"));
	s.incompat = 1ull << 40;
	kvt_super_encode(block, &s);
	put(0, block, sizeof(block));
	CHECK(signature_find(path, what) == SIGNATURE_MEMBER);
	CHECK(says("later version"));
}

static const struct unit_test tests[] = {
	{ "tool/signature-blank", test_blank },
	{ "tool/signature-filesystem", test_filesystem },
	{ "tool/signature-raid", test_raid },
	{ "tool/signature-partitions", test_partitions },
	{ "tool/signature-member", test_member },
};

int main(void)
{
	int status;

	strcpy(path, "/tmp/kvtier-signature.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	status = unit_main(tests, ARRAY_SIZE(tests));
	close(fd);
	unlink(path);
	return status;
}
