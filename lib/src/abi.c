// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The interface's structs, pinned: sizes and offsets are ABI and the same on all
 * architectures. A line here changes only when a struct grows at its end.
 */
#include <stddef.h>
#include <linux/kvtier.h>

#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, member, bytes) \
	_Static_assert(offsetof(struct type, member) == (bytes), #type "." #member)

SIZE(kvtier_tier_info, 88);
AT(kvtier_tier_info, id, 0);
AT(kvtier_tier_info, type, 4);
AT(kvtier_tier_info, rank, 8);
AT(kvtier_tier_info, state, 12);
AT(kvtier_tier_info, capacity_bytes, 16);
AT(kvtier_tier_info, used_bytes, 24);
AT(kvtier_tier_info, nr_blocks, 32);
AT(kvtier_tier_info, window_offset, 40);
AT(kvtier_tier_info, window_bytes, 48);
AT(kvtier_tier_info, name, 56);

SIZE(kvtier_query, 72);
AT(kvtier_query, size, 0);
AT(kvtier_query, flags, 4);
AT(kvtier_query, abi_revision, 8);
AT(kvtier_query, pool_id, 12);
AT(kvtier_query, features, 16);
AT(kvtier_query, ops, 24);
AT(kvtier_query, batch_max, 32);
AT(kvtier_query, leases_max, 36);
AT(kvtier_query, block_bytes_max, 40);
AT(kvtier_query, window_bytes, 48);
AT(kvtier_query, tiers, 56);
AT(kvtier_query, nr_tiers, 64);
AT(kvtier_query, sessions_max, 68);

SIZE(kvtier_group, 16);
AT(kvtier_group, block_bytes, 0);
AT(kvtier_group, flags, 8);
AT(kvtier_group, __reserved, 12);

SIZE(kvtier_ns_open, 88);
AT(kvtier_ns_open, size, 0);
AT(kvtier_ns_open, flags, 4);
AT(kvtier_ns_open, identity_len, 8);
AT(kvtier_ns_open, nr_groups, 12);
AT(kvtier_ns_open, identity, 16);
AT(kvtier_ns_open, secret, 24);
AT(kvtier_ns_open, groups, 32);
AT(kvtier_ns_open, mode, 40);
AT(kvtier_ns_open, owner_uid, 44);
AT(kvtier_ns_open, quota_bytes, 48);
AT(kvtier_ns_open, min_bytes, 56);
AT(kvtier_ns_open, ns_id, 64);
AT(kvtier_ns_open, fill_offset, 72);
AT(kvtier_ns_open, fill_bytes, 80);

SIZE(kvtier_lookup_result, 16);
AT(kvtier_lookup_result, status, 0);
AT(kvtier_lookup_result, tier, 4);
AT(kvtier_lookup_result, cost_ns, 8);

SIZE(kvtier_lookup, 56);
AT(kvtier_lookup, size, 0);
AT(kvtier_lookup, flags, 4);
AT(kvtier_lookup, group, 8);
AT(kvtier_lookup, nr, 12);
AT(kvtier_lookup, keys, 16);
AT(kvtier_lookup, results, 24);
AT(kvtier_lookup, request, 32);
AT(kvtier_lookup, nr_prefix, 40);
AT(kvtier_lookup, __reserved, 44);
AT(kvtier_lookup, cost_ns, 48);

SIZE(kvtier_block_result, 24);
AT(kvtier_block_result, status, 0);
AT(kvtier_block_result, tier, 4);
AT(kvtier_block_result, handle, 8);
AT(kvtier_block_result, offset, 16);

SIZE(kvtier_completion, 16);
AT(kvtier_completion, user_data, 0);
AT(kvtier_completion, result, 8);
AT(kvtier_completion, nr_ready, 12);

SIZE(kvtier_get, 64);
AT(kvtier_get, size, 0);
AT(kvtier_get, flags, 4);
AT(kvtier_get, group, 8);
AT(kvtier_get, nr, 12);
AT(kvtier_get, keys, 16);
AT(kvtier_get, results, 24);
AT(kvtier_get, request, 32);
AT(kvtier_get, timeout_ns, 40);
AT(kvtier_get, user_data, 48);
AT(kvtier_get, eventfd, 56);
AT(kvtier_get, nr_prefix, 60);

SIZE(kvtier_reserve, 72);
AT(kvtier_reserve, size, 0);
AT(kvtier_reserve, flags, 4);
AT(kvtier_reserve, group, 8);
AT(kvtier_reserve, nr, 12);
AT(kvtier_reserve, keys, 16);
AT(kvtier_reserve, parent, 24);
AT(kvtier_reserve, results, 32);
AT(kvtier_reserve, request, 40);
AT(kvtier_reserve, timeout_ns, 48);
AT(kvtier_reserve, user_data, 56);
AT(kvtier_reserve, eventfd, 64);
AT(kvtier_reserve, nr_reserved, 68);

SIZE(kvtier_commit, 32);
AT(kvtier_commit, size, 0);
AT(kvtier_commit, flags, 4);
AT(kvtier_commit, nr, 8);
AT(kvtier_commit, nr_done, 12);
AT(kvtier_commit, handles, 16);
AT(kvtier_commit, results, 24);

SIZE(kvtier_handles, 32);
AT(kvtier_handles, size, 0);
AT(kvtier_handles, flags, 4);
AT(kvtier_handles, nr, 8);
AT(kvtier_handles, nr_done, 12);
AT(kvtier_handles, handles, 16);
AT(kvtier_handles, results, 24);

SIZE(kvtier_buf, 16);
AT(kvtier_buf, addr, 0);
AT(kvtier_buf, bytes, 8);

SIZE(kvtier_copy, 72);
AT(kvtier_copy, size, 0);
AT(kvtier_copy, flags, 4);
AT(kvtier_copy, group, 8);
AT(kvtier_copy, nr, 12);
AT(kvtier_copy, keys, 16);
AT(kvtier_copy, parent, 24);
AT(kvtier_copy, bufs, 32);
AT(kvtier_copy, results, 40);
AT(kvtier_copy, request, 48);
AT(kvtier_copy, timeout_ns, 56);
AT(kvtier_copy, nr_done, 64);
AT(kvtier_copy, __reserved, 68);

SIZE(kvtier_prefetch, 48);
AT(kvtier_prefetch, size, 0);
AT(kvtier_prefetch, flags, 4);
AT(kvtier_prefetch, group, 8);
AT(kvtier_prefetch, nr, 12);
AT(kvtier_prefetch, keys, 16);
AT(kvtier_prefetch, request, 24);
AT(kvtier_prefetch, user_data, 32);
AT(kvtier_prefetch, eventfd, 40);
AT(kvtier_prefetch, nr_started, 44);

SIZE(kvtier_advise, 48);
AT(kvtier_advise, size, 0);
AT(kvtier_advise, flags, 4);
AT(kvtier_advise, group, 8);
AT(kvtier_advise, nr, 12);
AT(kvtier_advise, keys, 16);
AT(kvtier_advise, results, 24);
AT(kvtier_advise, advice, 32);
AT(kvtier_advise, nr_done, 36);
AT(kvtier_advise, value, 40);

SIZE(kvtier_drop, 40);
AT(kvtier_drop, size, 0);
AT(kvtier_drop, flags, 4);
AT(kvtier_drop, group, 8);
AT(kvtier_drop, nr, 12);
AT(kvtier_drop, keys, 16);
AT(kvtier_drop, results, 24);
AT(kvtier_drop, nr_done, 32);
AT(kvtier_drop, __reserved, 36);

SIZE(kvtier_session, 64);
AT(kvtier_session, size, 0);
AT(kvtier_session, flags, 4);
AT(kvtier_session, group, 8);
AT(kvtier_session, state, 12);
AT(kvtier_session, session, 16);
AT(kvtier_session, tip, 24);
AT(kvtier_session, reuse_ns, 56);

SIZE(kvtier_entry, 88);
AT(kvtier_entry, key, 0);
AT(kvtier_entry, parent, 32);
AT(kvtier_entry, status, 64);
AT(kvtier_entry, tier, 68);
AT(kvtier_entry, group, 72);
AT(kvtier_entry, flags, 74);
AT(kvtier_entry, leases, 76);
AT(kvtier_entry, idle_ns, 80);

SIZE(kvtier_iterate, 32);
AT(kvtier_iterate, size, 0);
AT(kvtier_iterate, flags, 4);
AT(kvtier_iterate, nr, 8);
AT(kvtier_iterate, __reserved, 12);
AT(kvtier_iterate, cursor, 16);
AT(kvtier_iterate, entries, 24);

SIZE(kvtier_tier_stat, 160);
AT(kvtier_tier_stat, id, 0);
AT(kvtier_tier_stat, rank, 4);
AT(kvtier_tier_stat, hits, 8);
AT(kvtier_tier_stat, promotions_in, 16);
AT(kvtier_tier_stat, promotions_out, 24);
AT(kvtier_tier_stat, demotions_in, 32);
AT(kvtier_tier_stat, demotions_out, 40);
AT(kvtier_tier_stat, evictions, 48);
AT(kvtier_tier_stat, read_bytes, 56);
AT(kvtier_tier_stat, write_bytes, 64);
AT(kvtier_tier_stat, dma_bytes, 72);
AT(kvtier_tier_stat, io_errors, 80);
AT(kvtier_tier_stat, quarantined_bytes, 88);
AT(kvtier_tier_stat, nr_blocks, 96);
AT(kvtier_tier_stat, used_bytes, 104);
AT(kvtier_tier_stat, capacity_bytes, 112);
AT(kvtier_tier_stat, read_errors, 120);
AT(kvtier_tier_stat, checksum_errors, 128);
AT(kvtier_tier_stat, write_errors, 136);
AT(kvtier_tier_stat, memory_errors, 144);
AT(kvtier_tier_stat, retired_bytes, 152);

SIZE(kvtier_stat, 184);
AT(kvtier_stat, size, 0);
AT(kvtier_stat, flags, 4);
AT(kvtier_stat, nr_blocks, 8);
AT(kvtier_stat, used_bytes, 16);
AT(kvtier_stat, hits, 24);
AT(kvtier_stat, misses, 32);
AT(kvtier_stat, unreached, 40);
AT(kvtier_stat, puts, 48);
AT(kvtier_stat, dedups, 56);
AT(kvtier_stat, dedup_waits, 64);
AT(kvtier_stat, aborts, 72);
AT(kvtier_stat, evictions, 80);
AT(kvtier_stat, drops, 88);
AT(kvtier_stat, promotions, 96);
AT(kvtier_stat, demotions, 104);
AT(kvtier_stat, leases, 112);
AT(kvtier_stat, meta_bytes, 120);
AT(kvtier_stat, meta_bytes_per_block, 128);
AT(kvtier_stat, lost_touches, 136);
AT(kvtier_stat, regions_quarantined, 144);
AT(kvtier_stat, moves_dmaengine, 152);
AT(kvtier_stat, moves_cpu, 160);
AT(kvtier_stat, tiers, 168);
AT(kvtier_stat, nr_tiers, 176);
AT(kvtier_stat, __reserved, 180);

SIZE(kvtier_arena, 40);
AT(kvtier_arena, size, 0);
AT(kvtier_arena, flags, 4);
AT(kvtier_arena, group, 8);
AT(kvtier_arena, nr_slots, 12);
AT(kvtier_arena, offset, 16);
AT(kvtier_arena, bytes, 24);
AT(kvtier_arena, slot_bytes, 32);

SIZE(kvtier_export, 32);
AT(kvtier_export, size, 0);
AT(kvtier_export, flags, 4);
AT(kvtier_export, nr, 8);
AT(kvtier_export, fd, 12);
AT(kvtier_export, handles, 16);
AT(kvtier_export, bytes, 24);

SIZE(kvtier_ctl_query, 40);
AT(kvtier_ctl_query, size, 0);
AT(kvtier_ctl_query, flags, 4);
AT(kvtier_ctl_query, abi_revision, 8);
AT(kvtier_ctl_query, nr_pools, 12);
AT(kvtier_ctl_query, features, 16);
AT(kvtier_ctl_query, ops, 24);
AT(kvtier_ctl_query, pools, 32);

SIZE(kvtier_pool_create, 16);
AT(kvtier_pool_create, size, 0);
AT(kvtier_pool_create, flags, 4);
AT(kvtier_pool_create, pool_id, 8);
AT(kvtier_pool_create, __reserved, 12);

SIZE(kvtier_pool_destroy, 16);
AT(kvtier_pool_destroy, size, 0);
AT(kvtier_pool_destroy, flags, 4);
AT(kvtier_pool_destroy, pool_id, 8);
AT(kvtier_pool_destroy, __reserved, 12);

SIZE(kvtier_assemble_device, 328);
AT(kvtier_assemble_device, path, 0);
AT(kvtier_assemble_device, error, 256);
AT(kvtier_assemble_device, state, 260);
AT(kvtier_assemble_device, rank, 264);
AT(kvtier_assemble_device, tier_id, 268);
AT(kvtier_assemble_device, generation, 272);
AT(kvtier_assemble_device, member, 280);
AT(kvtier_assemble_device, name, 296);

SIZE(kvtier_pool_assemble, 160);
AT(kvtier_pool_assemble, size, 0);
AT(kvtier_pool_assemble, flags, 4);
AT(kvtier_pool_assemble, pool_id, 8);
AT(kvtier_pool_assemble, nr_devices, 12);
AT(kvtier_pool_assemble, devices, 16);
AT(kvtier_pool_assemble, nr_members, 24);
AT(kvtier_pool_assemble, nr_found, 28);
AT(kvtier_pool_assemble, pool, 32);
AT(kvtier_pool_assemble, nr_blocks, 48);
AT(kvtier_pool_assemble, nr_namespaces, 56);
AT(kvtier_pool_assemble, nr_unclaimed, 64);
AT(kvtier_pool_assemble, nr_dead, 72);
AT(kvtier_pool_assemble, nr_superseded, 80);
AT(kvtier_pool_assemble, nr_orphans, 88);
AT(kvtier_pool_assemble, nr_expired, 96);
AT(kvtier_pool_assemble, nr_bad_records, 104);
AT(kvtier_pool_assemble, nr_bad_bytes, 112);
AT(kvtier_pool_assemble, nr_bad_reads, 120);
AT(kvtier_pool_assemble, nr_cycles, 128);
AT(kvtier_pool_assemble, nr_segments, 136);
AT(kvtier_pool_assemble, nr_unsealed, 144);
AT(kvtier_pool_assemble, time_ns, 152);

SIZE(kvtier_ns_claim, 32);
AT(kvtier_ns_claim, size, 0);
AT(kvtier_ns_claim, flags, 4);
AT(kvtier_ns_claim, pool_id, 8);
AT(kvtier_ns_claim, __reserved, 12);
AT(kvtier_ns_claim, ns_id, 16);
AT(kvtier_ns_claim, uid, 24);
AT(kvtier_ns_claim, gid, 28);

SIZE(kvtier_pool_scrub, 24);
AT(kvtier_pool_scrub, size, 0);
AT(kvtier_pool_scrub, flags, 4);
AT(kvtier_pool_scrub, pool_id, 8);
AT(kvtier_pool_scrub, __reserved, 12);
AT(kvtier_pool_scrub, rate_bytes, 16);

SIZE(kvtier_range, 16);
AT(kvtier_range, start, 0);
AT(kvtier_range, bytes, 8);
SIZE(kvtier_tier_attach, 344);
AT(kvtier_tier_attach, size, 0);
AT(kvtier_tier_attach, flags, 4);
AT(kvtier_tier_attach, pool_id, 8);
AT(kvtier_tier_attach, type, 12);
AT(kvtier_tier_attach, rank, 16);
AT(kvtier_tier_attach, node, 20);
AT(kvtier_tier_attach, capacity_bytes, 24);
AT(kvtier_tier_attach, segment_bytes, 32);
AT(kvtier_tier_attach, name, 40);
AT(kvtier_tier_attach, path, 72);
AT(kvtier_tier_attach, tier_id, 328);
AT(kvtier_tier_attach, nr_bad, 332);
AT(kvtier_tier_attach, bad, 336);

SIZE(kvtier_tier_op, 24);
AT(kvtier_tier_op, size, 0);
AT(kvtier_tier_op, flags, 4);
AT(kvtier_tier_op, pool_id, 8);
AT(kvtier_tier_op, tier_id, 12);
AT(kvtier_tier_op, timeout_ns, 16);

_Static_assert(KVTIER_IOC(KVTIER_OP_QUERY) == 0xEB00, "command encoding");
_Static_assert(KVTIER_IOC(KVTIER_OP_CTL_QUERY) == 0xEB20, "command encoding");
