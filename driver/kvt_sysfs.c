// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs: /sys/class/kvtier/kvtierN/, its tiers/<name>/ and namespaces/<id>/.
 *
 * One value per file. Everything is read-only but tunables and limits. What
 * concerns one namespace is for root's eyes only, which of them there are included,
 * and so is what counts: from it one tenant could follow what others do. An object's
 * directory is removed, and its open files waited for, before the object goes.
 */
#include <linux/kernfs.h>

#include "kvt_internal.h"

struct kvt_tier_attr {
	struct attribute attr;
	ssize_t (*show)(struct kvt_tier *t, char *buf);
};

struct kvt_ns_attr {
	struct attribute attr;
	ssize_t (*show)(struct kvt_ns *ns, char *buf);
	int (*store)(struct kvt_ns *ns, const char *buf);
};

static struct kvt_pool *to_pool(struct device *dev)
{
	return container_of(dev, struct kvt_pool, dev);
}

static u64 kvt_pool_sum(struct kvt_pool *p, u64 (*of)(struct kvt_tier *t))
{
	struct kvt_tier *t[KVT_TIERS];
	int idx = srcu_read_lock(&p->srcu);
	u32 nr = kvt_tier_snapshot(p, t, false);
	u64 sum = 0;

	while (nr--)
		sum += of(t[nr]);
	srcu_read_unlock(&p->srcu, idx);
	return sum;
}

/*
 * Who is uid 0 may be in a container, and anybody there: files of root's ask for the capability,
 * too.
 */
#define KVT_ADMIN_SHOW(_name)								\
static ssize_t _name##_admin_show(struct device *dev, struct device_attribute *attr,	\
				  char *buf)						\
{											\
	return capable(CAP_SYS_ADMIN) ? _name##_show(dev, attr, buf) : -EPERM;		\
}

#define KVT_ADMIN_STORE(_name)								\
static ssize_t _name##_admin_store(struct device *dev, struct device_attribute *attr,	\
				   const char *buf, size_t len)				\
{											\
	return capable(CAP_SYS_ADMIN) ? _name##_store(dev, attr, buf, len) : -EPERM;	\
}

#define KVT_ADMIN_RO(_name)								\
KVT_ADMIN_SHOW(_name)									\
static struct device_attribute dev_attr_##_name = __ATTR(_name, 0400, _name##_admin_show, NULL)

#define KVT_ADMIN_RW(_name)								\
KVT_ADMIN_SHOW(_name)									\
KVT_ADMIN_STORE(_name)									\
static struct device_attribute dev_attr_##_name =					\
	__ATTR(_name, 0600, _name##_admin_show, _name##_admin_store)

/* Anybody may read it. */
#define KVT_ADMIN_WRITES(_name)								\
KVT_ADMIN_STORE(_name)									\
static struct device_attribute dev_attr_##_name =					\
	__ATTR(_name, 0644, _name##_show, _name##_admin_store)

static u64 kvt_tier_capacity(struct kvt_tier *t)
{
	return t->capacity_bytes;
}

static ssize_t capacity_bytes_show(struct device *dev, struct device_attribute *attr,
				   char *buf)
{
	return sysfs_emit(buf, "%llu\n", kvt_pool_sum(to_pool(dev), kvt_tier_capacity));
}
static DEVICE_ATTR_RO(capacity_bytes);

static ssize_t used_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", kvt_pool_sum(to_pool(dev), kvt_tier_used_bytes));
}
KVT_ADMIN_RO(used_bytes);

static ssize_t blocks_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_pool(dev)->table.nr_used));
}
KVT_ADMIN_RO(blocks);

#define KVT_POOL_COUNT(name, what)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)\
{											\
	kvt_touch_flush(to_pool(dev));							\
	return sysfs_emit(buf, "%llu\n", kvt_count_read(to_pool(dev)->counts, what));	\
}											\
KVT_ADMIN_RO(name)

KVT_POOL_COUNT(hits, KVT_CNT_HITS);
KVT_POOL_COUNT(misses, KVT_CNT_MISSES);
KVT_POOL_COUNT(promotions, KVT_CNT_PROMOTIONS);
KVT_POOL_COUNT(demotions, KVT_CNT_DEMOTIONS);
KVT_POOL_COUNT(evictions, KVT_CNT_EVICTIONS);
KVT_POOL_COUNT(prefetches, KVT_CNT_PREFETCHES);
KVT_POOL_COUNT(prefetches_used, KVT_CNT_PREFETCHES_USED);
KVT_POOL_COUNT(prefetches_unread, KVT_CNT_PREFETCHES_UNREAD);

static ssize_t meta_bytes_per_block_show(struct device *dev, struct device_attribute *attr,
					 char *buf)
{
	struct kvt_pool *p = to_pool(dev);
	u64 bytes, entries;

	spin_lock(&p->meta_lock);
	bytes = kvt_meta_bytes(p);
	entries = (u64)p->table.nr_chunks << KVT_CHUNK_SHIFT;
	spin_unlock(&p->meta_lock);
	return sysfs_emit(buf, "%llu\n", entries ? DIV64_U64_ROUND_UP(bytes, entries) : 0);
}
KVT_ADMIN_RO(meta_bytes_per_block);

static ssize_t lease_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", (u64)atomic64_read(&to_pool(dev)->lease_bytes));
}
KVT_ADMIN_RO(lease_bytes);

static u64 kvt_tier_frame_bytes(struct kvt_tier *t)
{
	return t->frame_bytes;
}

static ssize_t page_struct_bytes_show(struct device *dev, struct device_attribute *attr,
				      char *buf)
{
	return sysfs_emit(buf, "%llu\n", kvt_pool_sum(to_pool(dev), kvt_tier_frame_bytes));
}
static DEVICE_ATTR_RO(page_struct_bytes);

static ssize_t policy_bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%zu\n",
			  READ_ONCE(to_pool(dev)->nr_ns) * sizeof(struct kvt_mind));
}
KVT_ADMIN_RO(policy_bytes);

static ssize_t policies_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	ssize_t len = 0;
	u32 i;

	for (i = 0; kvt_policy_at(i); i++)
		len += sysfs_emit_at(buf, len, "%s%s", i ? " " : "", kvt_policy_at(i)->name);
	len += sysfs_emit_at(buf, len, "\n");
	return len;
}
static DEVICE_ATTR_RO(policies);

static ssize_t degraded_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_pool(dev)->nr_missing);
}
static DEVICE_ATTR_RO(degraded);

static ssize_t unwiped_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_pool(dev)->leavers.nr));
}

/* They were wiped elsewhere, or will not come back: only an administrator can know. */
static ssize_t unwiped_store(struct device *dev, struct device_attribute *attr, const char *buf,
			     size_t len)
{
	u32 val;
	int err = kstrtou32(buf, 0, &val);

	if (err)
		return err;
	if (val)
		return -EINVAL;
	kvt_leavers_forget(to_pool(dev));
	return len;
}
KVT_ADMIN_WRITES(unwiped);

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%pUb\n", to_pool(dev)->uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t scrub_state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	static const char *const names[] = {
		[KVT_SCRUB_NEVER] = "never",
		[KVT_SCRUB_RUNNING] = "running",
		[KVT_SCRUB_DONE] = "done",
		[KVT_SCRUB_STOPPED] = "stopped",
		[KVT_SCRUB_FAILED] = "failed",
	};

	/* Pairs with kvt_scrub_work(): what is read after this is not older. */
	return sysfs_emit(buf, "%s\n", names[smp_load_acquire(&to_pool(dev)->scrub.state)]);
}
static DEVICE_ATTR_RO(scrub_state);

#define KVT_POOL_SCRUB(name)								\
static ssize_t scrub_##name##_show(struct device *dev, struct device_attribute *attr,	\
				   char *buf)						\
{											\
	return sysfs_emit(buf, "%llu\n", READ_ONCE(to_pool(dev)->scrub.name));		\
}											\
KVT_ADMIN_RO(scrub_##name)

KVT_POOL_SCRUB(rate_bytes);
KVT_POOL_SCRUB(total_bytes);
KVT_POOL_SCRUB(bytes);
KVT_POOL_SCRUB(blocks);
KVT_POOL_SCRUB(read_errors);
KVT_POOL_SCRUB(checksum_errors);

static ssize_t policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(to_pool(dev)->policy.ops)->name);
}

static ssize_t policy_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t len)
{
	struct kvt_pool *p = to_pool(dev);
	size_t n = len && buf[len - 1] == '\n' ? len - 1 : len;
	const struct kvt_policy_ops *ops = kvt_policy_find(buf, n);

	if (!ops)
		return -EINVAL;
	spin_lock(&p->meta_lock);
	kvt_policy_switch(&p->policy, ops);
	spin_unlock(&p->meta_lock);
	return len;
}
KVT_ADMIN_WRITES(policy);

/* Percentages; low stays below high. */
static ssize_t kvt_watermark_store(struct kvt_pool *p, u32 *mark, const char *buf, size_t len)
{
	u32 val, low, high;
	int err = kstrtou32(buf, 0, &val);

	if (err)
		return err;
	/* Who has it may be waiting for a disk. */
	if (mutex_lock_killable(&p->conf_lock))
		return -EINTR;
	low = mark == &p->watermark_low_percent ? val : p->watermark_low_percent;
	high = mark == &p->watermark_high_percent ? val : p->watermark_high_percent;
	if (low < 1 || high > 100 || low >= high)
		err = -EINVAL;
	else
		WRITE_ONCE(*mark, val);
	mutex_unlock(&p->conf_lock);
	if (err)
		return err;
	kvt_reclaim_kick(p);
	return len;
}

#define KVT_WATERMARK(name)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)\
{											\
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_pool(dev)->name));			\
}											\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,		\
			    const char *buf, size_t len)				\
{											\
	return kvt_watermark_store(to_pool(dev), &to_pool(dev)->name, buf, len);	\
}											\
KVT_ADMIN_WRITES(name)

KVT_WATERMARK(watermark_low_percent);
KVT_WATERMARK(watermark_high_percent);

static ssize_t kvt_setting_store(struct kvt_pool *p, u32 *setting, u32 least, u32 most,
				 const char *buf, size_t len)
{
	u32 val;
	int err = kstrtou32(buf, 0, &val);

	if (err)
		return err;
	if (val < least || val > most)
		return -EINVAL;
	WRITE_ONCE(*setting, val);
	kvt_reclaim_kick(p);
	return len;
}

/* A number that has nothing to do with others. */
#define KVT_SETTING(name, least, most)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)\
{											\
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_pool(dev)->name));			\
}											\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,		\
			    const char *buf, size_t len)				\
{											\
	struct kvt_pool *p = to_pool(dev);						\
											\
	return kvt_setting_store(p, &p->name, least, most, buf, len);			\
}											\
KVT_ADMIN_WRITES(name)

KVT_SETTING(reserve_percent, 1, 100);
KVT_SETTING(copies_percent, 0, 100);
KVT_SETTING(reservation_timeout_ms, 10, 3600000);

static ssize_t cgroup_limits_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return kvt_budget_show(to_pool(dev), buf);
}

static ssize_t cgroup_limits_store(struct device *dev, struct device_attribute *attr,
				   const char *buf, size_t len)
{
	return kvt_budget_store(to_pool(dev), buf) ?: len;
}
KVT_ADMIN_RW(cgroup_limits);

static ssize_t prefetch_max_bytes_show(struct device *dev, struct device_attribute *attr,
				       char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(to_pool(dev)->looks.max_bytes));
}

static ssize_t prefetch_max_bytes_store(struct device *dev, struct device_attribute *attr,
					const char *buf, size_t len)
{
	u64 val;
	int err = kstrtou64(buf, 0, &val);

	if (err)
		return err;
	if (val > KVT_WINDOW_BYTES)
		return -EINVAL;
	WRITE_ONCE(to_pool(dev)->looks.max_bytes, val);
	return len;
}
KVT_ADMIN_WRITES(prefetch_max_bytes);

static ssize_t discard_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(to_pool(dev)->discard));
}

static ssize_t discard_store(struct device *dev, struct device_attribute *attr, const char *buf,
			     size_t len)
{
	bool val;
	int err = kstrtobool(buf, &val);

	if (err)
		return err;
	WRITE_ONCE(to_pool(dev)->discard, val);
	return len;
}
KVT_ADMIN_WRITES(discard);

static struct attribute *kvt_pool_attrs[] = {
	&dev_attr_cgroup_limits.attr,
	&dev_attr_capacity_bytes.attr,
	&dev_attr_used_bytes.attr,
	&dev_attr_blocks.attr,
	&dev_attr_hits.attr,
	&dev_attr_misses.attr,
	&dev_attr_promotions.attr,
	&dev_attr_demotions.attr,
	&dev_attr_evictions.attr,
	&dev_attr_prefetches.attr,
	&dev_attr_prefetches_used.attr,
	&dev_attr_prefetches_unread.attr,
	&dev_attr_meta_bytes_per_block.attr,
	&dev_attr_lease_bytes.attr,
	&dev_attr_page_struct_bytes.attr,
	&dev_attr_policy_bytes.attr,
	&dev_attr_degraded.attr,
	&dev_attr_unwiped.attr,
	&dev_attr_uuid.attr,
	&dev_attr_scrub_state.attr,
	&dev_attr_scrub_rate_bytes.attr,
	&dev_attr_scrub_total_bytes.attr,
	&dev_attr_scrub_bytes.attr,
	&dev_attr_scrub_blocks.attr,
	&dev_attr_scrub_read_errors.attr,
	&dev_attr_scrub_checksum_errors.attr,
	&dev_attr_policies.attr,
	&dev_attr_policy.attr,
	&dev_attr_watermark_low_percent.attr,
	&dev_attr_watermark_high_percent.attr,
	&dev_attr_reserve_percent.attr,
	&dev_attr_copies_percent.attr,
	&dev_attr_reservation_timeout_ms.attr,
	&dev_attr_prefetch_max_bytes.attr,
	&dev_attr_discard.attr,
	NULL
};

static const struct attribute_group kvt_pool_group = { .attrs = kvt_pool_attrs };

const struct attribute_group *kvt_pool_groups[] = { &kvt_pool_group, NULL };

static ssize_t assembling_show(const struct class *class, const struct class_attribute *attr,
			       char *buf)
{
	return kvt_assemble_show(buf);
}
static CLASS_ATTR_RO(assembling);

static struct attribute *kvt_class_attrs[] = { &class_attr_assembling.attr, NULL };

static const struct attribute_group kvt_class_group = { .attrs = kvt_class_attrs };

const struct attribute_group *kvt_class_groups[] = { &kvt_class_group, NULL };

static const char *kvt_tier_state_name(u32 state)
{
	static const char *const names[] = {
		[KVTIER_TIER_ATTACHING] = "attaching",
		[KVTIER_TIER_ONLINE] = "online",
		[KVTIER_TIER_DRAINING] = "draining",
		[KVTIER_TIER_FAILED] = "failed",
	};

	return state < ARRAY_SIZE(names) && names[state] ? names[state] : "unknown";
}

/*
 * What was asked for and came neither from here nor from a faster tier: hits of a slower one, or
 * the pool's misses. Each is counted where it is counted anyhow, so GET has nothing more to do.
 */
static u64 kvt_tier_misses(struct kvt_tier *t)
{
	struct kvt_pool *p = t->pool;
	u64 misses;
	u32 i;

	kvt_touch_flush(p);
	misses = kvt_count_read(p->counts, KVT_CNT_MISSES);
	spin_lock(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *o = p->tiers[p->order[i]];

		if (o->rank > t->rank)
			misses += atomic64_read(&o->count.hits);
	}
	spin_unlock(&p->meta_lock);
	return misses;
}

static ssize_t tier_device_show(struct kvt_tier *t, char *buf)
{
	if (t->args.type == KVTIER_TIER_NODE)
		return sysfs_emit(buf, "node%d\n", t->args.node);
	return sysfs_emit(buf, "%s\n", t->args.path[0] ? t->args.path : "-");
}

#define __KVT_ATTR(_name, _mode, _show) { .attr = { .name = #_name, .mode = _mode }, .show = _show }
#define __KVT_TIER_ATTR(name, mode, fmt, expr)				\
static ssize_t tier_##name##_show(struct kvt_tier *t, char *buf)	\
{									\
	return sysfs_emit(buf, fmt "\n", expr);				\
}									\
static struct kvt_tier_attr tier_attr_##name =				\
	__KVT_ATTR(name, mode, tier_##name##_show)
#define KVT_TIER_ATTR(name, fmt, expr) __KVT_TIER_ATTR(name, 0444, fmt, expr)
#define KVT_TIER_LOAD(name, fmt, expr) __KVT_TIER_ATTR(name, 0400, fmt, expr)
#define KVT_TIER_COUNT(name) KVT_TIER_LOAD(name, "%lld", atomic64_read(&t->count.name))
#define KVT_TIER_FAULTS(name, cause) \
	KVT_TIER_LOAD(name, "%lld", atomic64_read(&t->count.faults[cause]))

KVT_TIER_ATTR(id, "%u", t->id);
KVT_TIER_ATTR(type, "%s", t->ops->name);
KVT_TIER_ATTR(rank, "%u", t->rank);
KVT_TIER_ATTR(state, "%s", kvt_tier_state_name(READ_ONCE(t->state)));
KVT_TIER_ATTR(capacity_bytes, "%llu", t->capacity_bytes);
KVT_TIER_LOAD(used_bytes, "%llu", kvt_tier_used_bytes(t));
KVT_TIER_LOAD(blocks, "%u", READ_ONCE(t->nr_blocks));
KVT_TIER_COUNT(hits);
KVT_TIER_LOAD(misses, "%llu", kvt_tier_misses(t));
KVT_TIER_COUNT(promotions_in);
KVT_TIER_COUNT(promotions_out);
KVT_TIER_COUNT(demotions_in);
KVT_TIER_COUNT(demotions_out);
KVT_TIER_COUNT(clean_demotions);
KVT_TIER_COUNT(demoted_bytes);
KVT_TIER_LOAD(copy_bytes, "%llu", READ_ONCE(t->log.copy_units) * t->unit_bytes);
KVT_TIER_COUNT(evictions);
KVT_TIER_LOAD(promotions_unread, "%lld", atomic64_read(&t->count.unread));
KVT_TIER_COUNT(prefetches);
KVT_TIER_COUNT(prefetches_used);
KVT_TIER_COUNT(prefetches_unread);
#define KVT_TIER_LEFT(name, why) KVT_TIER_LOAD(name, "%llu", READ_ONCE(t->left[why]))
KVT_TIER_LEFT(evicted_room, KVT_WHY_ROOM);
KVT_TIER_LEFT(evicted_quota, KVT_WHY_QUOTA);
KVT_TIER_LEFT(evicted_ttl, KVT_WHY_TTL);
KVT_TIER_LEFT(evicted_worth, KVT_WHY_WORTH);
KVT_TIER_LEFT(evicted_io, KVT_WHY_IO);
KVT_TIER_LEFT(evicted_lost, KVT_WHY_LOST);
KVT_TIER_LEFT(evicted_detach, KVT_WHY_DETACH);
KVT_TIER_LEFT(dropped, KVT_WHY_DROP);
KVT_TIER_COUNT(read_bytes);
KVT_TIER_COUNT(write_bytes);
KVT_TIER_COUNT(log_bytes);
KVT_TIER_COUNT(discarded_bytes);
KVT_TIER_COUNT(dma_bytes);
KVT_TIER_COUNT(io_errors);
KVT_TIER_COUNT(quarantined_bytes);
KVT_TIER_COUNT(compactions);
KVT_TIER_FAULTS(read_errors, KVT_CAUSE_READ);
KVT_TIER_FAULTS(checksum_errors, KVT_CAUSE_SUM);
KVT_TIER_FAULTS(write_errors, KVT_CAUSE_WRITE);
KVT_TIER_FAULTS(memory_errors, KVT_CAUSE_MEMORY);
KVT_TIER_LOAD(retired_bytes, "%llu", kvt_tier_retired_bytes(t));
KVT_TIER_LOAD(absent_bytes, "%llu",
	      (u64)(t->charges ? READ_ONCE(t->mem.nr_free) : READ_ONCE(t->mem.nr_absent)) <<
	      KVT_PIECE_SHIFT);
static struct kvt_tier_attr tier_attr_device = __KVT_ATTR(device, 0444, tier_device_show);

static struct attribute *kvt_tier_attrs[] = {
	&tier_attr_id.attr, &tier_attr_type.attr, &tier_attr_rank.attr,
	&tier_attr_state.attr, &tier_attr_device.attr, &tier_attr_capacity_bytes.attr,
	&tier_attr_used_bytes.attr, &tier_attr_blocks.attr, &tier_attr_hits.attr,
	&tier_attr_misses.attr, &tier_attr_promotions_in.attr, &tier_attr_promotions_out.attr,
	&tier_attr_demotions_in.attr, &tier_attr_demotions_out.attr,
	&tier_attr_clean_demotions.attr, &tier_attr_demoted_bytes.attr,
	&tier_attr_copy_bytes.attr,
	&tier_attr_prefetches.attr, &tier_attr_prefetches_used.attr,
	&tier_attr_prefetches_unread.attr,
	&tier_attr_promotions_unread.attr, &tier_attr_evicted_room.attr,
	&tier_attr_evicted_quota.attr, &tier_attr_evicted_ttl.attr,
	&tier_attr_evicted_worth.attr, &tier_attr_evicted_io.attr,
	&tier_attr_evicted_lost.attr, &tier_attr_evicted_detach.attr,
	&tier_attr_dropped.attr,
	&tier_attr_evictions.attr, &tier_attr_read_bytes.attr, &tier_attr_write_bytes.attr,
	&tier_attr_log_bytes.attr, &tier_attr_discarded_bytes.attr,
	&tier_attr_dma_bytes.attr, &tier_attr_io_errors.attr,
	&tier_attr_quarantined_bytes.attr, &tier_attr_retired_bytes.attr,
	&tier_attr_absent_bytes.attr, &tier_attr_compactions.attr,
	&tier_attr_read_errors.attr, &tier_attr_checksum_errors.attr,
	&tier_attr_write_errors.attr, &tier_attr_memory_errors.attr, NULL
};
ATTRIBUTE_GROUPS(kvt_tier);

#define KVT_NS_ATTR(name, fmt, expr)					\
static ssize_t ns_##name##_show(struct kvt_ns *ns, char *buf)		\
{									\
	return sysfs_emit(buf, fmt "\n", expr);				\
}									\
static struct kvt_ns_attr ns_attr_##name = __KVT_ATTR(name, 0400, ns_##name##_show)
#define KVT_NS_COUNT(name, what) KVT_NS_ATTR(name, "%llu", kvt_count_read(ns->counts, what))

KVT_NS_ATTR(owner_uid, "%u", from_kuid_munged(&init_user_ns, ns->uid));
KVT_NS_ATTR(unclaimed, "%u", READ_ONCE(ns->unclaimed));
KVT_NS_ATTR(mode, "%04o", ns->mode);
KVT_NS_ATTR(quota_bytes, "%llu", ns->quota_bytes);
KVT_NS_ATTR(min_bytes, "%llu", ns->min_bytes);
KVT_NS_ATTR(used_bytes, "%llu", READ_ONCE(ns->used_bytes));
KVT_NS_ATTR(blocks, "%llu", READ_ONCE(ns->nr_live));
KVT_NS_COUNT(hits, KVT_CNT_HITS);
KVT_NS_COUNT(misses, KVT_CNT_MISSES);
KVT_NS_COUNT(puts, KVT_CNT_PUTS);
KVT_NS_COUNT(evictions, KVT_CNT_EVICTIONS);
KVT_NS_COUNT(promotions, KVT_CNT_PROMOTIONS);
KVT_NS_COUNT(demotions, KVT_CNT_DEMOTIONS);
KVT_NS_COUNT(prefetches, KVT_CNT_PREFETCHES);
KVT_NS_COUNT(prefetches_used, KVT_CNT_PREFETCHES_USED);
KVT_NS_COUNT(prefetches_unread, KVT_CNT_PREFETCHES_UNREAD);

KVT_NS_ATTR(cgroup, "%llu", ns->nr_cgroups ? ns->cgroup[ns->nr_cgroups - 1] : 0);

KVT_NS_ATTR(policy_bytes, "%zu", sizeof(*ns->mind));

/* A line for each tier that any left: its id, and how many. */
static ssize_t kvt_ns_left_show(struct kvt_ns *ns, enum kvt_why why, char *buf)
{
	ssize_t len = 0;
	u32 i;

	for (i = 0; i < KVT_TIERS; i++) {
		if (READ_ONCE(ns->left[i][why]))
			len += sysfs_emit_at(buf, len, "%u %llu\n", i,
					     READ_ONCE(ns->left[i][why]));
	}
	return len;
}

#define KVT_NS_LEFT(name, why)						\
static ssize_t ns_##name##_show(struct kvt_ns *ns, char *buf)		\
{									\
	return kvt_ns_left_show(ns, why, buf);				\
}									\
static struct kvt_ns_attr ns_attr_##name = __KVT_ATTR(name, 0400, ns_##name##_show)

KVT_NS_LEFT(evicted_room, KVT_WHY_ROOM);
KVT_NS_LEFT(evicted_quota, KVT_WHY_QUOTA);
KVT_NS_LEFT(evicted_ttl, KVT_WHY_TTL);
KVT_NS_LEFT(evicted_worth, KVT_WHY_WORTH);
KVT_NS_LEFT(evicted_io, KVT_WHY_IO);
KVT_NS_LEFT(evicted_lost, KVT_WHY_LOST);
KVT_NS_LEFT(evicted_detach, KVT_WHY_DETACH);
KVT_NS_LEFT(dropped, KVT_WHY_DROP);

#define KVT_NS_LIMIT(_name, of)						\
static struct kvt_ns_attr ns_attr_##_name = {				\
	.attr = { .name = #_name, .mode = 0600 },			\
	.show = of##_show, .store = of##_store }

KVT_NS_LIMIT(fixed_limit_bytes, kvt_fixed_limit);
KVT_NS_LIMIT(weight, kvt_weight);
KVT_NS_ATTR(fixed_bytes, "%llu", kvt_fixed_bytes(ns));
KVT_NS_COUNT(fixed_refused, KVT_CNT_FIXED_REFUSED);

static ssize_t ns_groups_show(struct kvt_ns *ns, char *buf)
{
	ssize_t len = 0;
	u32 i;

	for (i = 0; i < ns->nr_groups; i++)
		len += sysfs_emit_at(buf, len, "%s%llu", i ? " " : "",
				     ns->group[i].block_bytes);
	len += sysfs_emit_at(buf, len, "\n");
	return len;
}
static struct kvt_ns_attr ns_attr_groups = __KVT_ATTR(groups, 0400, ns_groups_show);

static int ns_tier_limits_store(struct kvt_ns *ns, const char *buf)
{
	return kvt_limits_store(ns, buf, false);
}

static int ns_tier_mins_store(struct kvt_ns *ns, const char *buf)
{
	return kvt_limits_store(ns, buf, true);
}

static struct kvt_ns_attr ns_attr_tier_used_bytes = __KVT_ATTR(tier_used_bytes, 0400,
							       kvt_shares_show);
static struct kvt_ns_attr ns_attr_tier_limits = {
	.attr = { .name = "tier_limits", .mode = 0600 },
	.show = kvt_limits_show,
	.store = ns_tier_limits_store,
};
static struct kvt_ns_attr ns_attr_tier_mins = {
	.attr = { .name = "tier_mins", .mode = 0600 },
	.show = kvt_mins_show,
	.store = ns_tier_mins_store,
};

static struct attribute *kvt_ns_sysfs_attrs[] = {
	&ns_attr_owner_uid.attr, &ns_attr_unclaimed.attr, &ns_attr_mode.attr,
	&ns_attr_quota_bytes.attr, &ns_attr_cgroup.attr,
	&ns_attr_min_bytes.attr, &ns_attr_used_bytes.attr, &ns_attr_blocks.attr,
	&ns_attr_groups.attr, &ns_attr_hits.attr, &ns_attr_misses.attr,
	&ns_attr_puts.attr, &ns_attr_evictions.attr, &ns_attr_promotions.attr,
	&ns_attr_demotions.attr, &ns_attr_prefetches.attr, &ns_attr_prefetches_used.attr,
	&ns_attr_prefetches_unread.attr, &ns_attr_policy_bytes.attr, &ns_attr_evicted_room.attr,
	&ns_attr_evicted_quota.attr, &ns_attr_evicted_ttl.attr, &ns_attr_evicted_worth.attr,
	&ns_attr_evicted_io.attr, &ns_attr_evicted_lost.attr, &ns_attr_evicted_detach.attr,
	&ns_attr_dropped.attr, &ns_attr_tier_used_bytes.attr, &ns_attr_tier_limits.attr,
	&ns_attr_tier_mins.attr, &ns_attr_fixed_bytes.attr,
	&ns_attr_fixed_limit_bytes.attr, &ns_attr_fixed_refused.attr,
	&ns_attr_weight.attr, NULL
};
ATTRIBUTE_GROUPS(kvt_ns_sysfs);

static ssize_t kvt_tier_sysfs_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct kvt_tier_attr *a = container_of(attr, struct kvt_tier_attr, attr);
	struct kvt_tier *t = container_of(kobj, struct kvt_tier, kobj);

	if (!(attr->mode & 0004) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	kvt_touch_flush(t->pool);
	return a->show(t, buf);
}

static ssize_t kvt_ns_sysfs_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct kvt_ns_attr *a = container_of(attr, struct kvt_ns_attr, attr);
	struct kvt_ns *ns = container_of(kobj, struct kvt_ns, kobj);

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	kvt_touch_flush(ns->pool);
	return a->show(ns, buf);
}

static ssize_t kvt_ns_sysfs_store(struct kobject *kobj, struct attribute *attr, const char *buf,
				  size_t len)
{
	struct kvt_ns_attr *a = container_of(attr, struct kvt_ns_attr, attr);

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return a->store ? a->store(container_of(kobj, struct kvt_ns, kobj), buf) ?: len : -EIO;
}

static void kvt_tier_kobj_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct kvt_tier, kobj)->kobj_gone);
}

static void kvt_ns_kobj_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct kvt_ns, kobj)->kobj_gone);
}

static const struct sysfs_ops kvt_tier_sysfs_ops = { .show = kvt_tier_sysfs_show };
static const struct sysfs_ops kvt_ns_sysfs_ops = {
	.show = kvt_ns_sysfs_show,
	.store = kvt_ns_sysfs_store,
};

static const struct kobj_type kvt_tier_ktype = {
	.release = kvt_tier_kobj_release,
	.sysfs_ops = &kvt_tier_sysfs_ops,
	.default_groups = kvt_tier_groups,
};

static const struct kobj_type kvt_ns_ktype = {
	.release = kvt_ns_kobj_release,
	.sysfs_ops = &kvt_ns_sysfs_ops,
	.default_groups = kvt_ns_sysfs_groups,
};

/* The directory is the object's: wait until nobody looks at it any more. */
static void kvt_kobj_put(struct kobject *kobj, struct completion *gone)
{
	kobject_put(kobj);
	wait_for_completion(gone);
}

static void kvt_kobj_del(struct kobject *kobj, struct completion *gone)
{
	kobject_del(kobj);
	kvt_kobj_put(kobj, gone);
}

/**
 * kvt_sysfs_hide() - only root may look into a directory
 * @kobj: just made, and still empty
 *
 * The kernel gives all of them 0755, and offers no other way.
 */
void kvt_sysfs_hide(struct kobject *kobj)
{
	WRITE_ONCE(kobj->sd->mode, S_IFDIR | 0500);
}

int kvt_sysfs_tier_add(struct kvt_tier *t)
{
	int err;

	init_completion(&t->kobj_gone);
	err = kobject_init_and_add(&t->kobj, &kvt_tier_ktype, t->pool->tiers_kobj, "%s",
				   t->args.name);
	if (err)
		kvt_kobj_put(&t->kobj, &t->kobj_gone);
	return err;
}

void kvt_sysfs_tier_del(struct kvt_tier *t)
{
	if (!t->kobj.state_in_sysfs)
		return;
	kvt_kobj_del(&t->kobj, &t->kobj_gone);
}

int kvt_sysfs_ns_add(struct kvt_ns *ns)
{
	int err;

	init_completion(&ns->kobj_gone);
	err = kobject_init_and_add(&ns->kobj, &kvt_ns_ktype, ns->pool->ns_kobj, "%llu", ns->id);
	if (err)
		kvt_kobj_put(&ns->kobj, &ns->kobj_gone);
	return err;
}

void kvt_sysfs_ns_del(struct kvt_ns *ns)
{
	if (!ns->kobj.state_in_sysfs)
		return;
	kvt_kobj_del(&ns->kobj, &ns->kobj_gone);
}
