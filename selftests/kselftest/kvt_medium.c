// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a member device the way a restart would: superblocks, then every segment, then
 * kills. Nothing is taken from the running driver; the decoder is its own.
 */
#include "kvt_format.c"
#include "kvt_recover.c"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kvt_medium.h"

struct reader {
	int fd;
	off_t bytes;
	const char *map;
	struct kvt_medium *m;
	struct kvt_super super;
	struct kvt_seg_found *seg;
	bool *ended;
	struct kvt_kill *kills;
	u64 *ns;
	u32 nr_kills;
	u32 nr_ns;
	u32 max_blocks;
	void *io;
};

#define IO_BYTES	(1u << 20)

/* O_DIRECT: past what the page cache may remember. Summaries are of any length. */
static int read_at(void *ctx, u64 byte, void *buf, u32 len)
{
	struct reader *r = ctx;
	u32 run, skip, whole;

	if (r->map) {
		if (byte + len > (u64)r->bytes)
			return -EIO;
		memcpy(buf, r->map + byte, len);
		return 0;
	}
	for (; len; len -= run, byte += run, buf = (char *)buf + run) {
		skip = (u32)(byte % 4096);
		run = min(len, IO_BYTES - skip);
		whole = (skip + run + 4095) / 4096 * 4096;
		if (pread(r->fd, r->io, whole, (off_t)(byte - skip)) != (ssize_t)whole)
			return -EIO;
		memcpy(buf, (char *)r->io + skip, run);
	}
	return 0;
}

static void *grown(void *array, u32 nr, size_t size)
{
	/* Powers of two only. */
	if (nr & (nr - 1))
		return array;
	array = realloc(array, (nr ? 2 * (size_t)nr : 1) * size);
	if (!array)
		abort();
	return array;
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *rec)
{
	struct reader *r = ctx;
	struct kvt_medium_block *b;

	r->m->blocks = grown(r->m->blocks, r->m->nr_blocks, sizeof(*b));
	b = &r->m->blocks[r->m->nr_blocks++];
	memset(b, 0, sizeof(*b));
	memcpy(b->key, rec->key, sizeof(b->key));
	memcpy(b->parent, rec->parent, sizeof(b->parent));
	b->ns = rec->ns;
	b->seq = rec->seq;
	b->life = life;
	b->byte = kvt_geo_byte(&r->super.geo, seg, rec->unit);
	b->bytes = rec->bytes;
	b->stored = rec->stored;
	b->sum = rec->sum;
	b->unit = rec->unit;
	b->seg = seg;
}

static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct reader *r = ctx;
	u32 i;

	(void)seg;
	for (i = 0; i < r->nr_ns && r->ns[i] != d->id; i++)
		;
	if (i < r->nr_ns || (d->flags & KVT_NSF_GONE))
		return;
	r->ns = grown(r->ns, r->nr_ns, sizeof(*r->ns));
	r->ns[r->nr_ns++] = d->id;
}

static void on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct reader *r = ctx;

	(void)seg;
	r->kills = grown(r->kills, r->nr_kills, sizeof(*k));
	r->kills[r->nr_kills++] = *k;
}

static void on_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct reader *r = ctx;

	(void)seg;
	(void)life;
	(void)unit;
	(void)why;
	r->m->nr_bad++;
}

static const struct kvt_recover_sink sink = {
	.block = on_block,
	.ns = on_ns,
	.kill = on_kill,
	.bad = on_bad,
};

static int read_super(struct reader *r)
{
	struct kvt_super_pick pick;
	u8 block[KVT_SUPER_BYTES];
	u32 i;

	kvt_super_pick_start(&pick);
	for (i = 0; i < KVT_SUPER_SLOTS; i++) {
		if (read_at(r, (u64)i * KVT_SUPER_TWIN_BYTE, block, sizeof(block)))
			return -EIO;
		kvt_super_pick_add(&pick, i, block);
	}
	if (pick.err)
		return pick.err;
	r->super = pick.super;
	r->m->clean = pick.super.state == KVT_STATE_CLEAN;
	r->m->generation = pick.super.generation;
	for (i = 0; i < pick.super.nr_members; i++)
		r->m->nr_members += !kvt_member_past(&pick.super.members[i]);
	return kvt_super_check(&r->super, (u64)r->bytes, true);
}

int kvt_medium_raise(const char *path, uint32_t by)
{
	/* Not by way of the page cache, which need not know what the pool has written. */
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC), err;
	u8 block[KVT_SUPER_BYTES] __attribute__((aligned(KVT_SUPER_BYTES)));
	struct kvt_super_pick pick;
	off_t at;
	u32 i;

	if (fd < 0)
		return -errno;
	kvt_super_pick_start(&pick);
	for (i = 0; i < KVT_SUPER_SLOTS; i++) {
		at = (off_t)i * KVT_SUPER_TWIN_BYTE;
		if (pread(fd, block, sizeof(block), at) == sizeof(block))
			kvt_super_pick_add(&pick, i, block);
	}
	err = pick.err;
	if (!err) {
		pick.super.generation += by;
		kvt_super_encode(block, &pick.super);
		at = (off_t)(pick.super.generation % KVT_SUPER_SLOTS) * KVT_SUPER_TWIN_BYTE;
		err = pwrite(fd, block, sizeof(block), at) == sizeof(block) && !fsync(fd) ? 0 : -EIO;
	}
	close(fd);
	return err;
}

static int read_segments(struct reader *r)
{
	u32 nr = r->super.geo.nr_segs, seg;
	struct kvt_recover rec = {
		.geo = &r->super.geo,
		.read = read_at,
		.sink = &sink,
		.ctx = r,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
	};

	r->seg = calloc(nr, sizeof(*r->seg));
	r->ended = calloc(nr, sizeof(*r->ended));
	rec.buf = malloc(rec.buf_bytes);
	if (!r->seg || !r->ended || !rec.buf)
		return -ENOMEM;
	for (seg = 0; seg < nr; seg++) {
		kvt_recover_segment(&rec, seg, &r->seg[seg]);
		r->m->nr_bad += r->seg[seg].nr_io;
	}
	free(rec.buf);
	r->m->nr_segs = nr;
	return 0;
}

static void apply_kills(struct reader *r)
{
	struct kvt_medium *m = r->m;
	u32 i, k;

	for (k = 0; k < r->nr_kills; k++) {
		const struct kvt_kill *kill = &r->kills[k];

		if (kill->seg >= m->nr_segs || r->seg[kill->seg].life != kill->life)
			continue;
		r->ended[kill->seg] |= kill->unit == KVT_KILL_ALL;
		for (i = 0; i < m->nr_blocks; i++) {
			if (m->blocks[i].seg == kill->seg && m->blocks[i].unit == kill->unit)
				m->blocks[i].dead = true;
		}
	}
	for (k = 0; k < m->nr_segs; k++) {
		m->nr_sealed += r->seg[k].state == KVT_RC_SEALED && !r->ended[k];
		m->nr_unsealed += r->seg[k].state == KVT_RC_UNSEALED && !r->ended[k];
	}
	for (i = 0; i < m->nr_blocks; i++)
		m->blocks[i].dead |= r->ended[m->blocks[i].seg];
}

static int by_name(const void *a, const void *b)
{
	const struct kvt_medium_block *x = a, *y = b;
	int c = memcmp(x->key, y->key, sizeof(x->key));

	if (c)
		return c;
	return x->seq < y->seq ? 1 : x->seq > y->seq ? -1 : 0;
}

static bool payload_good(struct reader *r, const struct kvt_medium_block *b, u8 *buf)
{
	struct kvt_payload_sum sum;

	if (read_at(r, b->byte, buf, b->stored))
		return false;
	kvt_payload_sum_start(&sum);
	kvt_payload_sum_add(&sum, buf, b->stored);
	return kvt_payload_sum_end(&sum) == b->sum;
}

/* The newest of each name that lives, in order of their names. */
static void keep_living(struct reader *r)
{
	struct kvt_medium *m = r->m;
	u32 i, n = 0;
	u8 *buf;

	for (i = 0; i < m->nr_blocks; i++) {
		if (!m->blocks[i].dead)
			m->blocks[n++] = m->blocks[i];
	}
	m->nr_blocks = n;
	qsort(m->blocks, n, sizeof(*m->blocks), by_name);
	for (i = 0, n = 0; i < m->nr_blocks; i++) {
		struct kvt_medium_block *b = &m->blocks[i];

		if (n && !memcmp(m->blocks[n - 1].key, b->key, sizeof(b->key)) &&
		    m->blocks[n - 1].ns == b->ns)
			continue;
		buf = malloc(b->stored);
		b->good = buf && payload_good(r, b, buf);
		free(buf);
		m->blocks[n++] = *b;
	}
	m->nr_blocks = n;
}

/* A dax device cannot be read, only mapped. */
static int open_dax(struct reader *r, const char *path)
{
	unsigned long long bytes;
	char size[128];
	void *map;
	FILE *f;
	int n;

	snprintf(size, sizeof(size), "/sys/bus/dax/devices/%s/size", strrchr(path, '/') + 1);
	f = fopen(size, "r");
	n = f ? fscanf(f, "%llu", &bytes) : 0;
	if (f)
		fclose(f);
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (n != 1 || r->fd < 0)
		return -ENODEV;
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, r->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r->map = map;
	r->bytes = (off_t)bytes;
	return 0;
}

static int open_device(struct reader *r, const char *path)
{
	bool direct;

	if (!strncmp(path, "/dev/dax", 8))
		return open_dax(r, path);
	/* Nobody writes to an image behind the page cache. */
	direct = !strncmp(path, "/dev/", 5);
	r->fd = open(path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	if (r->fd < 0)
		return -errno;
	r->bytes = lseek(r->fd, 0, SEEK_END);
	return r->bytes < 0 ? -errno : 0;
}

int kvt_medium_read(const char *path, struct kvt_medium *m)
{
	struct reader r = { .fd = -1, .m = m };
	int err = open_device(&r, path);

	memset(m, 0, sizeof(*m));
	r.io = aligned_alloc(4096, IO_BYTES);
	if (!err && !r.io)
		err = -ENOMEM;
	if (!err)
		err = read_super(&r);
	if (!err)
		err = read_segments(&r);
	if (!err) {
		apply_kills(&r);
		keep_living(&r);
		m->nr_ns = r.nr_ns;
	}
	if (r.map)
		munmap((void *)r.map, (size_t)r.bytes);
	if (r.fd >= 0)
		close(r.fd);
	free(r.io);
	free(r.seg);
	free(r.ended);
	free(r.kills);
	free(r.ns);
	return err;
}

void kvt_medium_free(struct kvt_medium *m)
{
	free(m->blocks);
	m->blocks = NULL;
}

int kvt_medium_members(const char *path)
{
	struct kvt_medium m;
	int err = kvt_medium_read(path, &m);

	kvt_medium_free(&m);
	return err ? err : (int)m.nr_members;
}

const struct kvt_medium_block *kvt_medium_find(const struct kvt_medium *m, const void *key)
{
	u32 i;

	for (i = 0; i < m->nr_blocks; i++) {
		if (!memcmp(m->blocks[i].key, key, sizeof(m->blocks[i].key)))
			return &m->blocks[i];
	}
	return NULL;
}
