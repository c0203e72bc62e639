// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Data commands that give pointers: GET, RESERVE, COMMIT and what ends them.
 *
 * struct kvtier_slot has the layout of struct kvtier_block_result, so the kernel
 * writes its results into the caller's array and the library only turns offsets
 * into pointers, in place. Either all slots of a call get their pointers or the
 * call is undone.
 */
#include <errno.h>
#include <string.h>
#include "internal.h"

/* Handles given to the kernel at once by the *_slots() calls. */
#define SLOTS_BATCH	256

_Static_assert(sizeof(struct kvtier_slot) ==
	       sizeof(struct kvtier_block_result), "slot and result differ");
_Static_assert(offsetof(struct kvtier_slot, handle) ==
	       offsetof(struct kvtier_block_result, handle), "handle");
_Static_assert(offsetof(struct kvtier_slot, ptr) ==
	       offsetof(struct kvtier_block_result, offset), "ptr and offset");

static bool is_lease(const struct kvtier_slot *slot)
{
	return slot->handle && (slot->status == KVTIER_ST_HIT ||
				slot->status == KVTIER_ST_EXISTS);
}

/* A reservation that COMMIT refused stands, with the reason in its status. */
static bool is_reservation(const struct kvtier_slot *slot)
{
	return slot->handle && (slot->status == KVTIER_ST_RESERVED ||
				slot->status < 0);
}

static void forget(struct kvtier_slot *slot)
{
	slot->handle = 0;
	slot->reserved = 0;
}

static int resolve(struct kvti_views *views, struct kvti_view *view,
		   const struct kvti_map **hint, struct kvtier_slot *slot)
{
	uint64_t offset = slot->reserved;

	slot->reserved = 0;
	return kvti_view_ptr(views, view, offset, hint, &slot->ptr);
}

/* Turns the offsets of @slots into pointers; on an error some stay NULL. */
static int resolve_all(struct kvtier_ns *ns, struct kvtier_slot *slots,
		       uint32_t nr)
{
	struct kvti_views *views = &ns->views;
	const struct kvti_map *read = NULL, *fill = NULL;
	int ret, err = 0;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		ret = 0;
		if (is_lease(&slots[i]))
			ret = resolve(views, &views->read, &read, &slots[i]);
		else if (is_reservation(&slots[i]))
			ret = resolve(views, &views->fill, &fill, &slots[i]);
		else
			forget(&slots[i]);
		if (ret)
			err = ret;
	}
	return err;
}

static int finish(struct kvtier_ns *ns, struct kvtier_slot *slots, uint32_t nr,
		  uint32_t count)
{
	int err = resolve_all(ns, slots, nr);

	if (!err)
		return (int)count;
	kvtier_abort_slots(ns, slots, nr);
	kvtier_release_slots(ns, slots, nr);
	return err;
}

KVTI_EXPORT int kvtier_get(struct kvtier_ns *ns,
			   const struct kvtier_opts *opts,
			   const struct kvtier_key *keys, uint32_t nr,
			   struct kvtier_slot *slots)
{
	struct kvtier_get cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.results = kvti_addr(slots);
	cmd.request = o.request;
	cmd.timeout_ns = o.timeout_ns;
	cmd.user_data = o.user_data;
	cmd.eventfd = o.eventfd;
	ret = kvti_ioctl(ns->fd, KVTIER_OP_GET, &cmd);
	return ret ? ret : finish(ns, slots, nr, cmd.nr_prefix);
}

KVTI_EXPORT int kvtier_reserve(struct kvtier_ns *ns,
			       const struct kvtier_opts *opts,
			       const struct kvtier_key *keys,
			       const struct kvtier_key *parents, uint32_t nr,
			       struct kvtier_slot *slots)
{
	struct kvtier_reserve cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.parent = kvti_addr(parents);
	cmd.results = kvti_addr(slots);
	cmd.request = o.request;
	cmd.timeout_ns = o.timeout_ns;
	cmd.user_data = o.user_data;
	cmd.eventfd = o.eventfd;
	ret = kvti_ioctl(ns->fd, KVTIER_OP_RESERVE, &cmd);
	return ret ? ret : finish(ns, slots, nr, cmd.nr_reserved);
}

KVTI_EXPORT int kvtier_commit(struct kvtier_ns *ns, uint32_t flags,
			      const uint64_t *handles, uint32_t nr,
			      struct kvtier_slot *results)
{
	struct kvtier_commit cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.nr = nr,
		.handles = kvti_addr(handles),
		.results = kvti_addr(results),
	};
	const struct kvti_map *hint = NULL;
	uint32_t i;
	int ret;

	ret = kvti_ioctl(ns->fd, KVTIER_OP_COMMIT, &cmd);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		struct kvtier_slot *slot = &results[i];

		if (!is_lease(slot)) {
			slot->reserved = 0;
			continue;
		}
		if (!resolve(&ns->views, &ns->views.read, &hint, slot))
			continue;
		/* Published, which cannot be taken back; the lease can. */
		kvtier_release(ns, &slot->handle, 1, NULL);
		forget(slot);
		slot->status = KVTIER_ST_DONE;
	}
	return (int)cmd.nr_done;
}

static int handles_cmd(struct kvtier_ns *ns, unsigned int op,
		       const uint64_t *handles, uint32_t nr, int32_t *results)
{
	struct kvtier_handles cmd = {
		.size = sizeof(cmd),
		.nr = nr,
		.handles = kvti_addr(handles),
		.results = kvti_addr(results),
	};
	int ret = kvti_ioctl(ns->fd, op, &cmd);

	return ret ? ret : (int)cmd.nr_done;
}

KVTI_EXPORT int kvtier_abort(struct kvtier_ns *ns, const uint64_t *handles,
			     uint32_t nr, int32_t *results)
{
	return handles_cmd(ns, KVTIER_OP_ABORT, handles, nr, results);
}

KVTI_EXPORT int kvtier_release(struct kvtier_ns *ns, const uint64_t *handles,
			       uint32_t nr, int32_t *results)
{
	return handles_cmd(ns, KVTIER_OP_RELEASE, handles, nr, results);
}

/* Up to SLOTS_BATCH entries that @wanted picks, gathered from an array. */
struct gathered {
	uint32_t nr;
	struct kvtier_slot *slots[SLOTS_BATCH];
	uint64_t handles[SLOTS_BATCH];
};

/* Returns where to go on, @end when there is no more. */
static struct kvtier_slot *gather(struct gathered *g, struct kvtier_slot *slot,
				  const struct kvtier_slot *end,
				  bool (*wanted)(const struct kvtier_slot *))
{
	for (g->nr = 0; slot != end && g->nr < SLOTS_BATCH; slot++) {
		if (!wanted(slot))
			continue;
		g->slots[g->nr] = slot;
		g->handles[g->nr++] = slot->handle;
	}
	return slot;
}

static int give_back(struct kvtier_ns *ns, unsigned int op,
		     struct kvtier_slot *slot, uint32_t nr,
		     bool (*wanted)(const struct kvtier_slot *))
{
	const struct kvtier_slot *end = slot + nr;
	struct gathered g;
	int ret, done = 0;
	uint32_t i;

	while (slot != end) {
		slot = gather(&g, slot, end, wanted);
		if (!g.nr)
			break;
		ret = handles_cmd(ns, op, g.handles, g.nr, NULL);
		if (ret < 0)
			return ret;
		done += ret;
		for (i = 0; i < g.nr; i++)
			forget(g.slots[i]);
	}
	return done;
}

KVTI_EXPORT int kvtier_abort_slots(struct kvtier_ns *ns,
				   struct kvtier_slot *slots, uint32_t nr)
{
	return give_back(ns, KVTIER_OP_ABORT, slots, nr, is_reservation);
}

KVTI_EXPORT int kvtier_release_slots(struct kvtier_ns *ns,
				     struct kvtier_slot *slots, uint32_t nr)
{
	return give_back(ns, KVTIER_OP_RELEASE, slots, nr, is_lease);
}

static bool is_fresh(const struct kvtier_slot *slot)
{
	return slot->handle && slot->status == KVTIER_ST_RESERVED;
}

static void take_result(struct kvtier_slot *slot,
			const struct kvtier_slot *result)
{
	switch (result->status) {
	case KVTIER_ST_HIT:
		*slot = *result;
		return;
	case KVTIER_ST_DONE:
	case KVTIER_ST_STALE:
		forget(slot);
		break;
	}
	slot->status = result->status;
}

KVTI_EXPORT int kvtier_commit_slots(struct kvtier_ns *ns, uint32_t flags,
				    struct kvtier_slot *slots, uint32_t nr)
{
	struct kvtier_slot *slot = slots, *end = slots + nr;
	struct kvtier_slot results[SLOTS_BATCH];
	struct gathered g;
	int ret, done = 0;
	uint32_t i;

	while (slot != end) {
		slot = gather(&g, slot, end, is_fresh);
		if (!g.nr)
			break;
		ret = kvtier_commit(ns, flags, g.handles, g.nr, results);
		if (ret < 0)
			return ret;
		done += ret;
		for (i = 0; i < g.nr; i++)
			take_result(g.slots[i], &results[i]);
	}
	return done;
}
