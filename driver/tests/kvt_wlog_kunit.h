/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A writer on a member in memory, for tests of what it says is to be done and of what
 * recovery finds then.
 */
#ifndef KVT_WLOG_KUNIT_H
#define KVT_WLOG_KUNIT_H

#include "kvt_media.h"
#include "../core/kvt_wlog.h"

#define DEMOTE	KVT_HEAD_DEMOTE
#define CARRY	KVT_HEAD_CARRY

struct wf {
	struct media *m;
	struct kvt_log log;
	struct kvt_seg segs[TM_SEGS];
	struct kvt_wlog w;
	struct kvt_super super;
	u64 seq;
	u32 ids[2 * TM_SEGS][TM_IDS];
	u32 nr_ids;
	struct kvt_ns_home home[20];
};

static inline void flush(struct wf *f)
{
	struct kvt_wlog_done d;

	kvt_wlog_flush_done(&f->w, kvt_wlog_flush_start(&f->w));
	while (kvt_wlog_advance(&f->w, &d))
		;
}

static inline struct wf *wf_new(struct kunit *test)
{
	struct wf *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct kvt_wlog_cfg cfg;
	void *mem;
	u32 slot;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->m = tm_new(test);
	cfg = (struct kvt_wlog_cfg) {
		.geo = &f->m->geo, .log = &f->log, .seq = &f->seq, .batch_blocks = 4,
		.batch_bytes = 8 * TM_UNIT, .max_blocks = 16, .max_ns = 4, .max_kills = 20,
		.ring = 8, .free_aim = 3, .member = 1,
	};
	kvt_log_init(&f->log, f->segs, TM_SEGS, TM_SEG_UNITS);
	mem = kunit_kzalloc(test, kvt_wlog_mem_bytes(&cfg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	KUNIT_ASSERT_EQ(test, kvt_wlog_init(&f->w, &cfg, mem), 0);
	f->super.geo = f->m->geo;
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot), 0u);
	kvt_wlog_super_written(&f->w, 0);
	flush(f);
	return f;
}

static inline enum kvt_wlog_status open_seg(struct wf *f, enum kvt_log_head head, bool urgent)
{
	enum kvt_wlog_status st;

	st = kvt_wlog_open(&f->w, head, f->ids[f->nr_ids], TM_IDS, urgent);
	f->nr_ids += !st;
	while (kvt_log_stale_ids(&f->log))
		;
	return st;
}

/* Header and payload reach the media. */
static inline u32 close_batch(struct kunit *test, struct wf *f, enum kvt_log_head head)
{
	struct kvt_wlog_io io;

	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_close(&f->w, head, &io), (u32)KVT_W_OK);
	kvt_wlog_build(&f->w, io.batch, tm_at(f->m, io.seg, io.unit));
	return io.batch;
}

static inline enum kvt_wlog_status define(struct wf *f, enum kvt_log_head head, u64 id)
{
	struct kvt_nsdef d = { .id = id };

	return kvt_wlog_ns(&f->w, head, &d, id < ARRAY_SIZE(f->home) ? &f->home[id] : NULL, TM_UNIT);
}

/* Puts block @n, opening and defining what is needed; from @src of @from. Returns its address. */
static inline u32 put_from(struct kunit *test, struct wf *f, enum kvt_log_head head, u32 n,
			   u32 units, struct wf *from, u32 src)
{
	struct kvt_rec r = tm_rec(n, units);
	struct kvt_wlog_put p = { .rec = &r, .id = n };
	u32 tries, unit = 0;
	u8 *at;

	if (from) {
		p.src_log = &from->w;
		p.src_unit = src;
		p.src_units = units;
	}
	for (tries = 0; tries < 8; tries++) {
		switch (kvt_wlog_put(&f->w, head, &p, &unit)) {
		case KVT_W_OK:
			at = tm_at(f->m, unit / TM_SEG_UNITS, unit % TM_SEG_UNITS);
			memset(at, (int)n, r.stored);
			kvt_wlog_set_sum(&f->w, unit, tm_sum(at, r.stored));
			return unit;
		case KVT_W_SEGMENT:
			KUNIT_ASSERT_EQ(test, (u32)open_seg(f, head, false), (u32)KVT_W_OK);
			break;
		case KVT_W_NS:
			define(f, head, r.ns);
			break;
		case KVT_W_CLOSE:
			kvt_wlog_written(&f->w, close_batch(test, f, head), 0);
			break;
		default:
			KUNIT_ASSERT_TRUE(test, false);
		}
	}
	KUNIT_ASSERT_TRUE(test, false);
	return 0;
}

/* The same, carried within the member if @src is not 0. */
static inline u32 put(struct kunit *test, struct wf *f, enum kvt_log_head head, u32 n, u32 units,
		      u32 src)
{
	return put_from(test, f, head, n, units, src ? f : NULL, src);
}

/* One block in a batch that is durable. */
static inline u32 put_durable(struct kunit *test, struct wf *f, enum kvt_log_head head, u32 n)
{
	u32 unit = put(test, f, head, n, 1, 0);

	kvt_wlog_written(&f->w, close_batch(test, f, head), 0);
	flush(f);
	return unit;
}

static inline bool write_footer(struct kunit *test, struct wf *f)
{
	u32 bytes = kvt_wlog_footer_bytes(&f->w);
	struct kvt_wlog_footer io;
	u8 *buf;

	if (!bytes)
		return false;
	buf = kunit_kzalloc(test, bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_footer(&f->w, buf, &io), (u32)KVT_W_OK);
	KUNIT_ASSERT_TRUE(test, io.unit >= io.fill);
	memcpy(tm_at(f->m, io.seg, io.unit), buf, (TM_SEG_UNITS - io.unit) * TM_UNIT);
	kvt_wlog_footer_written(&f->w, io.handle, 0);
	return true;
}

static inline void seal(struct kunit *test, struct wf *f, enum kvt_log_head head)
{
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_seal(&f->w, head), (u32)KVT_W_OK);
	KUNIT_ASSERT_TRUE(test, write_footer(test, f));
	flush(f);
}

#endif /* KVT_WLOG_KUNIT_H */
