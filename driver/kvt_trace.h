/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: one for each thing that happens to a block.
 *
 * A block is shown as (pool, namespace id, group, first 8 bytes of its key).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kvtier

#if !defined(KVT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KVT_TRACE_H

#include <linux/tracepoint.h>
#include <linux/unaligned.h>

DECLARE_EVENT_CLASS(kvtier_block,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 tier),
	TP_ARGS(pool, ns, group, key, tier),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, tier)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->tier = tier;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx tier=%u", __entry->pool,
		  __entry->ns, __entry->group, __entry->key, __entry->tier)
);

/* A block was committed to @tier. */
DEFINE_EVENT(kvtier_block, kvtier_put,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 tier),
	TP_ARGS(pool, ns, group, key, tier));

/* A block was leased in @tier. */
DEFINE_EVENT(kvtier_block, kvtier_get,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 tier),
	TP_ARGS(pool, ns, group, key, tier));

DECLARE_EVENT_CLASS(kvtier_move,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 from, u32 to),
	TP_ARGS(pool, ns, group, key, from, to),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx from=%u to=%u", __entry->pool,
		  __entry->ns, __entry->group, __entry->key, __entry->from, __entry->to)
);

/* A block moved up from tier @from to tier @to. */
DEFINE_EVENT(kvtier_move, kvtier_promote,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 from, u32 to),
	TP_ARGS(pool, ns, group, key, from, to));

/*
 * A look ahead in the chain of a block, or of its descendants (@guess 1), on tier @from:
 * @wanted blocks may come to be asked for, @bytes were brought up.
 */
TRACE_EVENT(kvtier_prefetch,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 from, u32 guess, u32 wanted,
		 u64 bytes),
	TP_ARGS(pool, ns, group, key, from, guess, wanted, bytes),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, from)
		__field(u32, guess)
		__field(u32, wanted)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->from = from;
		__entry->guess = guess;
		__entry->wanted = wanted;
		__entry->bytes = bytes;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx from=%u guess=%u wanted=%u bytes=%llu",
		  __entry->pool, __entry->ns, __entry->group, __entry->key, __entry->from,
		  __entry->guess, __entry->wanted, __entry->bytes)
);

/*
 * A block moved down from tier @from to tier @to; @clean: nothing was written for that.
 * @cls and @worth: to the policy; @idle_ms since its last use.
 */
TRACE_EVENT(kvtier_demote,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 from, u32 to, bool clean,
		 u32 idle_ms, u32 cls, u32 worth),
	TP_ARGS(pool, ns, group, key, from, to, clean, idle_ms, cls, worth),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, from)
		__field(u32, to)
		__field(u32, clean)
		__field(u32, idle_ms)
		__field(u32, cls)
		__field(u32, worth)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->from = from;
		__entry->to = to;
		__entry->clean = clean;
		__entry->idle_ms = idle_ms;
		__entry->cls = cls;
		__entry->worth = worth;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx from=%u to=%u clean=%u idle_ms=%u class=%u worth=%u",
		  __entry->pool, __entry->ns, __entry->group, __entry->key, __entry->from,
		  __entry->to, __entry->clean, __entry->idle_ms, __entry->cls, __entry->worth)
);

/*
 * A block left the pool from @tier; @why is enum kvt_why; @idle_ms since its last use;
 * @cls and @worth: to the policy.
 */
TRACE_EVENT(kvtier_evict,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 tier, u32 why, u32 idle_ms,
		 u32 cls, u32 worth),
	TP_ARGS(pool, ns, group, key, tier, why, idle_ms, cls, worth),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, tier)
		__field(u32, why)
		__field(u32, idle_ms)
		__field(u32, cls)
		__field(u32, worth)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->tier = tier;
		__entry->why = why;
		__entry->idle_ms = idle_ms;
		__entry->cls = cls;
		__entry->worth = worth;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx tier=%u why=%u idle_ms=%u class=%u worth=%u",
		  __entry->pool, __entry->ns, __entry->group, __entry->key,
		  __entry->tier, __entry->why, __entry->idle_ms, __entry->cls, __entry->worth)
);

/*
 * A block could not be read on @tier at @addr (unit or page), or did not verify; @cause
 * is enum kvt_cause.
 */
TRACE_EVENT(kvtier_fault,
	TP_PROTO(u32 pool, u64 ns, u32 group, const u8 *key, u32 tier, u32 cause, u32 addr),
	TP_ARGS(pool, ns, group, key, tier, cause, addr),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, group)
		__field(u64, ns)
		__field(u64, key)
		__field(u32, tier)
		__field(u32, cause)
		__field(u32, addr)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->group = group;
		__entry->ns = ns;
		__entry->key = get_unaligned_be64(key);
		__entry->tier = tier;
		__entry->cause = cause;
		__entry->addr = addr;
	),
	TP_printk("pool=%u ns=%llu group=%u key=%016llx tier=%u cause=%u addr=%u",
		  __entry->pool, __entry->ns, __entry->group, __entry->key,
		  __entry->tier, __entry->cause, __entry->addr)
);

/* Segment @seg of @tier had too many faults: it is emptied, and not used any more. */
TRACE_EVENT(kvtier_segment_worn,
	TP_PROTO(u32 pool, u32 tier, u32 seg),
	TP_ARGS(pool, tier, seg),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, tier)
		__field(u32, seg)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->tier = tier;
		__entry->seg = seg;
	),
	TP_printk("pool=%u tier=%u seg=%u", __entry->pool, __entry->tier, __entry->seg)
);

#endif /* KVT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE kvt_trace
#include <trace/define_trace.h>
