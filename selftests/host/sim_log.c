// SPDX-License-Identifier: GPL-2.0
/*
 * The slowest tier's space; see sim_log.h.
 */
#include "sim.h"
#include "sim_log.h"

struct sim_log *sim_log_new(u32 blocks, u32 seg_blocks)
{
	struct sim_log *l = sim_alloc(1, sizeof(*l));
	u32 nr_segs = DIV_ROUND_UP(blocks, seg_blocks) + SIM_LOG_OWN;

	l->segs = sim_alloc(nr_segs, sizeof(*l->segs));
	kvt_log_init(&l->log, l->segs, nr_segs, seg_blocks);
	return l;
}

void sim_log_delete(struct sim_log *l)
{
	u32 i;

	for (i = 0; l && i < l->log.nr_segs; i++)
		free(l->segs[i].ids);
	if (l)
		free(l->segs);
	free(l);
}

void sim_log_drop(struct sim_log *l, struct kvt_table *t, u32 id)
{
	free(kvt_log_free(&l->log, kvt_hot(t, id)->log_unit, 1));
}

/* False: no segment can be opened. */
static bool log_place(struct sim_log *l, struct kvt_table *t, enum kvt_log_head head, u32 id)
{
	u32 unit, *ids, *back;

	if (kvt_log_needs_segment(&l->log, head, 1)) {
		ids = sim_alloc(l->log.seg_units, sizeof(*ids));
		back = kvt_log_open(&l->log, head, ids, l->log.seg_units);
		free(back);
		if (back == ids)
			return false;
	}
	unit = kvt_log_alloc(&l->log, head, 1, id);
	free(kvt_log_write_done(&l->log, unit));
	kvt_hot(t, id)->log_unit = unit;
	return true;
}

static void log_empty_one(struct sim_log *l, struct kvt_table *t, u32 seg, u32 id)
{
	struct kvt_hot *h = kvt_hot(t, id);
	u32 ctl = kvt_ctl(h);

	if (!(ctl & KVT_CTL_LOG) || kvt_log_seg_of(&l->log, h->log_unit) != seg)
		return;
	if (!(ctl & KVT_CTL_MEM) && l->let_go && l->let_go(l->ctx, id))
		return;
	sim_log_drop(l, t, id);
	if (ctl & KVT_CTL_MEM) {
		kvt_ctl_update(h, 0, 0, KVT_CTL_LOG, 0);
		l->nr_dropped++;
		return;
	}
	if (!log_place(l, t, KVT_HEAD_CARRY, id))
		kvt_env_die(__FILE__, __LINE__, "nowhere to carry a block to");
	l->nr_carried++;
}

static void log_clean(struct sim_log *l, struct kvt_table *t)
{
	u32 seg = kvt_log_victim(&l->log), i;

	if (seg == KVT_NO_SEG)
		kvt_env_die(__FILE__, __LINE__, "no segment can be emptied");
	for (i = 0; i < l->segs[seg].nr_ids; i++)
		log_empty_one(l, t, seg, l->segs[seg].ids[i]);
	free(kvt_log_clean_end(&l->log, seg));
}

bool sim_log_dense(struct sim_log *l)
{
	return kvt_log_needs_segment(&l->log, KVT_HEAD_DEMOTE, 1) &&
	       l->log.nr_free <= l->log.keep[KVT_HEAD_DEMOTE] && kvt_log_dense(&l->log);
}

void sim_log_put(struct sim_log *l, struct kvt_table *t, u32 id)
{
	while (!log_place(l, t, KVT_HEAD_DEMOTE, id))
		log_clean(l, t);
}
