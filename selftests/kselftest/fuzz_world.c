// SPDX-License-Identifier: GPL-2.0
/*
 * What sequences run against: a pool with two tiers of memory and one on a disk, so that
 * blocks move and leave; two namespaces in it; and a disk with a pool that has ended.
 */
#include "fuzz.h"
#include <dirent.h>

#define FAST_BYTES	(6 * KVT_MIB)
#define SLOW_BYTES	(4 * KVT_MIB)
#define DISK_BYTES	(24 * KVT_MIB)
#define SMALL_BYTES	4096
#define LARGE_BYTES	40960
#define MIN_BYTES	(2 * KVT_MIB)
#define NR_TIERS	3
#define PINS_MAX	512
#define FZ_NAMESPACES	3

struct fz_world fz;

void fz_bind_args(struct kvtier_ns_open *o, struct kvtier_group *groups, __u32 which)
{
	static const char *const names[] = { "fuzz0", "fuzz1", "fuzz2" };

	memset(groups, 0, FZ_GROUPS * sizeof(*groups));
	groups[0].block_bytes = SMALL_BYTES;
	groups[1].block_bytes = LARGE_BYTES;
	kvt_ns_args(o, names[which], groups, FZ_GROUPS);
	o->min_bytes = which < 2 ? MIN_BYTES : 0;
}

int fz_bind(int fd, __u32 which, struct fz_slot *slot)
{
	struct kvtier_group groups[FZ_GROUPS];
	struct kvtier_ns_open o;
	int err;

	fz_bind_args(&o, groups, which);
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &o);
	if (!err && slot)
		slot->fill_offset = o.fill_offset;
	return err;
}

/* A disk with an ended pool, one of whose namespaces nobody owns. */
static int make_member(void)
{
	struct kvtier_pool_create c = { .size = sizeof(c), .pool_id = KVTIER_POOL_ANY_ID };
	struct kvt_pool p = fz.pool;
	struct kvt_client client;
	int err, dram, n;

	err = kvt_disk_make(&fz.member, "member", DISK_BYTES);
	if (!err)
		err = kvt_ioctl(p.ctl, KVTIER_OP_POOL_CREATE, &c);
	if (err)
		return err;
	p.id = c.pool_id;
	snprintf(p.node, sizeof(p.node), "/dev/kvtier%u", p.id);
	dram = kvt_tier_dram(&p, 0, 4 * KVT_MIB);
	if (dram < 0 || kvt_tier_disk(&p, 1, &fz.member) < 0)
		return -EIO;
	err = kvt_client_open(&p, &client, "claimed", SMALL_BYTES);
	if (err)
		return err;
	n = kvt_put(&client, 0, 0, fz.keys[0], NULL, 4);
	err = n == 4 ? kvt_tier_detach(&p, dram, 0, 10 * KVT_SEC) : -EIO;
	kvt_client_close(&client);
	return err ? err : kvt_pool_destroy(p.ctl, p.id);
}

static int attach(int i)
{
	return i == 0 ? kvt_tier_dram(&fz.pool, 0, FAST_BYTES) :
	       i == 1 ? kvt_tier_dram(&fz.pool, 1, SLOW_BYTES) :
			kvt_tier_disk(&fz.pool, 50, &fz.disk);
}

int fz_world_open(void)
{
	int i, k, err = kvt_setup(&fz.pool);

	fz.ctl = fz.pool.ctl;
	for (i = 0; i < FZ_CHAINS; i++)
		for (k = 0; k < FZ_CHAIN; k++)
			fz.keys[i][k] = kvt_key(77 + i, k);
	if (!err)
		err = kvt_disk_make(&fz.disk, "fuzz", DISK_BYTES);
	if (!err)
		err = kvt_disk_make(&fz.spare, "spare", DISK_BYTES);
	if (!err)
		err = make_member();
	for (i = 0; i < NR_TIERS && !err; i++) {
		k = attach(i);
		err = k < 0 ? k : 0;
	}
	fz.keeper = err ? -1 : kvt_open(&fz.pool);
	for (i = 0; i < 2 && !err; i++) {
		fz.holder[i] = kvt_open(&fz.pool);
		err = fz_bind(fz.holder[i], i, NULL);
	}
	return err ? err : fz.keeper < 0 ? fz.keeper : 0;
}

static int destroy_others(void)
{
	__u32 ids[256], i;
	struct kvtier_ctl_query q = {
		.size = sizeof(q), .pools = KVT_U64(ids), .nr_pools = KVT_ARRAY(ids),
	};
	int err = kvt_ioctl(fz.ctl, KVTIER_OP_CTL_QUERY, &q), ret = 0;

	for (i = 0; i < q.nr_pools && !err; i++) {
		if (ids[i] == fz.pool.id)
			continue;
		ret = kvt_pool_destroy(fz.ctl, ids[i]);
		if (ret)
			fprintf(stderr, "# pool %u cannot be destroyed: %d\n", ids[i], ret);
		err = ret;
	}
	return err;
}

static int detach(__u32 id)
{
	struct kvtier_tier_op t = {
		.size = sizeof(t), .flags = KVTIER_DETACH_DISCARD, .pool_id = fz.pool.id,
		.tier_id = id, .timeout_ns = 20 * KVT_SEC,
	};
	int err = kvt_ioctl(fz.ctl, KVTIER_OP_TIER_DETACH, &t);

	if (err)
		fprintf(stderr, "# tier %u cannot be detached: %d\n", id, err);
	return err;
}

/* Tiers that were there at first, and are what they were. */
static int mend_tiers(void)
{
	static const __u32 ranks[NR_TIERS] = { 0, 1, 50 };
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int nr = kvt_query(fz.keeper, &q, tiers), i, k, err = nr < 0 ? nr : 0;
	bool there[NR_TIERS] = { false };

	for (i = 0; i < nr && !err; i++) {
		for (k = 0; k < NR_TIERS && tiers[i].rank != ranks[k]; k++)
			;
		if (k < NR_TIERS && tiers[i].state == KVTIER_TIER_ONLINE)
			there[k] = true;
		else
			err = detach(tiers[i].id);
	}
	for (k = 0; k < NR_TIERS && !err; k++) {
		i = there[k] ? 0 : attach(k);
		err = i < 0 ? i : 0;
	}
	return err;
}

int fz_world_mend(void)
{
	struct kvtier_pool_scrub scrub = {
		.size = sizeof(scrub), .flags = KVTIER_SCRUB_STOP, .pool_id = fz.pool.id,
	};
	int err;

	if (!fz.dirty)
		return 0;
	fz.dirty = false;
	fz.pools.nr = 0;
	fz.tiers.nr = 0;
	err = destroy_others();
	if (!err)
		err = kvt_ioctl(fz.ctl, KVTIER_OP_POOL_SCRUB, &scrub);
	return err ? err : mend_tiers();
}

/* --- what is left -------------------------------------------------------------------- */

/* Blocks that are held or being filled, and their number. */
static int held(int fd, int *nr)
{
	struct kvtier_entry *all;
	int i, bad = 0;

	*nr = kvt_iterate_all(fd, 512, &all);
	for (i = 0; i < *nr; i++)
		bad += all[i].status != KVTIER_ST_HIT || all[i].leases;
	if (*nr >= 0)
		free(all);
	return *nr < 0 ? *nr : bad;
}

/* Drop every block of a namespace: those without children first, again and again. */
static int drop_all(int fd)
{
	struct kvtier_entry *all;
	struct kvt_key key;
	int nr, i, rounds = 0;

	while ((nr = kvt_iterate_all(fd, 512, &all)) > 0 && rounds++ < 64) {
		for (i = 0; i < nr; i++) {
			memcpy(&key, all[i].key, sizeof(key));
			kvt_drop(fd, all[i].group, &key, 1, NULL);
		}
		free(all);
	}
	return nr < 0 ? nr : nr ? -EBUSY : 0;
}

/* How many large blocks can be pinned in a namespace that has none. */
static int pinnable(int fd)
{
	static char buf[LARGE_BYTES];
	struct kvt_key key;
	int i, pinned = 0;
	__s32 res = KVTIER_ST_DONE;

	for (i = 0; i < PINS_MAX && res == KVTIER_ST_DONE; i++) {
		key = kvt_key(7777, i);
		if (kvt_write1(fd, 1, &key, NULL, buf, sizeof(buf), KVT_SEC) != KVTIER_ST_DONE)
			break;
		if (kvt_advise(fd, 1, &key, 1, KVTIER_ADV_PIN, 0, &res) < 0)
			break;
		pinned += res == KVTIER_ST_DONE;
	}
	return drop_all(fd) ? -EBUSY : pinned;
}

/* Nothing of it is held, and when all is dropped nothing is charged. */
static int empty_ns(__u32 which)
{
	struct kvtier_stat st = { 0 };
	int fd = kvt_open(&fz.pool), err, nr, bad = 0;

	err = fd < 0 ? fd : fz_bind(fd, which, NULL);
	if (!err)
		bad = held(fd, &nr);
	if (!err)
		err = drop_all(fd);
	if (!err)
		err = kvt_stat(fd, 0, &st);
	if (err || bad || st.leases || st.nr_blocks || st.used_bytes) {
		fprintf(stderr, "# fuzz%u: error %d, %d held, %llu leases, %llu blocks, "
			"%llu bytes\n", which, err, bad, st.leases, st.nr_blocks, st.used_bytes);
		err = -EUCLEAN;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* How many blocks it can pin, or -errno. */
static int pins_of(__u32 which)
{
	int fd = kvt_open(&fz.pool), pins;

	pins = fd < 0 ? fd : fz_bind(fd, which, NULL);
	if (!pins)
		pins = pinnable(fd);
	if (fd >= 0)
		close(fd);
	return pins;
}

static __u64 number(const char *name)
{
	char buf[32] = "";

	return kvt_sysfs_read(&fz.pool, name, buf, sizeof(buf)) < 0 ? ~0ull :
	       strtoull(buf, NULL, 10);
}

/* What namespaces say that they have, together. */
static __u64 sum_of_ns(const char *what)
{
	char path[64], name[300];
	__u64 sum = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces", fz.pool.id);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		snprintf(name, sizeof(name), "namespaces/%s/%s", e->d_name, what);
		if (e->d_name[0] != '.')
			sum += number(name);
	}
	if (d)
		closedir(d);
	return sum;
}

/* Entries of blocks that were lost stay for their children, so blocks add up when all are gone. */
static bool adds_up(const struct kvtier_stat *st, bool empty)
{
	__u64 blocks = sum_of_ns("blocks");

	return (blocks == st->nr_blocks || (!empty && blocks < st->nr_blocks)) &&
	       sum_of_ns("used_bytes") == st->used_bytes;
}

static int check_pool(bool empty)
{
	struct kvtier_stat st;
	bool still;

	still = KVT_UNTIL(20000, !kvt_stat(fz.keeper, KVTIER_STAT_POOL, &st) && !st.leases &&
				 !st.regions_quarantined && !number("lease_bytes") &&
				 adds_up(&st, empty));
	if (still)
		return 0;
	fprintf(stderr, "# pool: %llu leases, %llu quarantined, %llu lease bytes, blocks %llu of "
		"%llu, bytes %llu of %llu\n", st.leases, st.regions_quarantined,
		number("lease_bytes"), sum_of_ns("blocks"), st.nr_blocks, sum_of_ns("used_bytes"),
		st.used_bytes);
	return -EUCLEAN;
}

/* All that it says of itself, for who has to find out why. */
static void show_pool(void)
{
	kvt_sh("grep -rs . /sys/class/kvtier/kvtier%u/ | sed 's/^/# /' >&2", fz.pool.id);
}

/* Each namespace may pin as much as the last, which nothing was ever stored in. */
static int check_pins(void)
{
	int fresh = pins_of(FZ_NAMESPACES - 1), err = fresh > 0 ? 0 : -EUCLEAN, pins, i;

	for (i = 0; i < FZ_NAMESPACES - 1 && !err; i++) {
		pins = pins_of(i);
		if (pins == fresh)
			continue;
		fprintf(stderr, "# fuzz%d can pin %d blocks\n", i, pins);
		err = -EUCLEAN;
	}
	if (err) {
		fprintf(stderr, "# a fresh namespace can pin %d blocks\n", fresh);
		show_pool();
	}
	return err;
}

int fz_world_check(void)
{
	__u32 i;
	int err;

	fz.dirty = true;
	err = fz_world_mend();
	kvt_sysfs_write(&fz.pool, "policy", "lru");
	kvt_sysfs_write(&fz.pool, "reservation_timeout_ms", "30000");
	if (!err)
		err = check_pool(false);
	/* All of them before the first one pins: what is guaranteed keeps its piece of memory. */
	for (i = 0; i < FZ_NAMESPACES && !err; i++)
		err = empty_ns(i);
	if (!err)
		err = check_pins();
	return err ? err : check_pool(true);
}

int fz_world_close(void)
{
	int err;

	close(fz.keeper);
	close(fz.holder[0]);
	close(fz.holder[1]);
	err = kvt_teardown(&fz.pool);
	kvt_disk_remove(&fz.disk);
	kvt_disk_remove(&fz.spare);
	kvt_disk_remove(&fz.member);
	return err;
}
