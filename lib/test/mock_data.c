// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The stand-in kernel's data commands.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "mock_state.h"

#define PTR(u64)	((void *)(uintptr_t)(u64))

static const struct kvtier_key no_key;

static int file_fd(const struct mock_file *file)
{
	int fd = 0;

	while (mock_file(fd) != file)
		fd++;
	return fd;
}

static struct mock_ns *ns_of(const struct mock_file *file)
{
	return &mock_state->ns[file->ns];
}

static bool same_key(const struct kvtier_key *a, const struct kvtier_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static struct mock_block *find(const struct mock_file *file, uint32_t group,
			       const struct kvtier_key *key)
{
	struct mock_block *block = mock_state->blocks;
	struct mock_block *end = block + MOCK_BLOCKS;

	for (; block != end; block++)
		if (block->state && block->ns == file->ns &&
		    block->group == group && same_key(&block->key, key))
			return block;
	return NULL;
}

static int32_t state_of(const struct mock_block *block)
{
	return block ? block->state : KVTIER_ST_MISS;
}

static uint64_t new_handle(struct mock_file *file, struct mock_block *block,
			   bool filling)
{
	struct mock_handle *handle = mock_state->handles;

	while (handle->fd)
		handle++;
	handle->fd = file_fd(file);
	handle->pid = file->pid;
	handle->block = (uint32_t)(block - mock_state->blocks);
	handle->filling = filling;
	block->leases += !filling;
	return (uint64_t)(handle - mock_state->handles) + 1;
}

static bool is_of(const struct mock_handle *handle, const struct mock_file *file)
{
	return handle->fd == file_fd(file) && handle->pid == file->pid;
}

static struct mock_handle *get_handle(const struct mock_file *file, uint64_t id,
				      bool filling)
{
	struct mock_handle *handle;

	if (!id || id > MOCK_HANDLES)
		return NULL;
	handle = &mock_state->handles[id - 1];
	if (!is_of(handle, file) || handle->filling != filling)
		return NULL;
	return handle;
}

static void put_handle(struct mock_handle *handle)
{
	struct mock_block *block = &mock_state->blocks[handle->block];

	if (!handle->filling)
		block->leases--;
	else if (block->state == KVTIER_ST_FILLING)
		block->state = 0;
	handle->fd = 0;
}

void mock_data_close(const struct mock_file *file)
{
	int i;

	for (i = 0; i < MOCK_HANDLES; i++)
		if (is_of(&mock_state->handles[i], file))
			put_handle(&mock_state->handles[i]);
}

static unsigned int count_handles(bool filling)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < MOCK_HANDLES; i++)
		nr += mock_state->handles[i].fd &&
		      mock_state->handles[i].filling == filling;
	return nr;
}

unsigned int mock_leases(void)
{
	return count_handles(false);
}

unsigned int mock_reservations(void)
{
	return count_handles(true);
}

static int check(const struct mock_file *file, uint32_t group, uint32_t nr)
{
	if (group >= ns_of(file)->nr_groups)
		return -ENOENT;
	return nr && nr <= KVTIER_BATCH_MAX ? 0 : -EINVAL;
}

static int op_lookup(struct mock_file *file, void *arg)
{
	struct kvtier_lookup *cmd = arg;
	struct kvtier_lookup_result *results = PTR(cmd->results);
	const struct kvtier_key *keys = PTR(cmd->keys);
	int ret = check(file, cmd->group, cmd->nr);
	bool prefix = true;
	uint32_t i;

	if (ret)
		return ret;
	if (cmd->flags)
		return -EOPNOTSUPP;
	for (i = 0; i < cmd->nr; i++) {
		int32_t state = state_of(find(file, cmd->group, &keys[i]));

		prefix = prefix && state == KVTIER_ST_HIT;
		cmd->nr_prefix += prefix;
		if (results)
			results[i] = (struct kvtier_lookup_result){
				.status = state, .cost_ns = 100,
			};
	}
	cmd->cost_ns = 100ULL * cmd->nr_prefix;
	return 0;
}

static int op_get(struct mock_file *file, void *arg)
{
	struct kvtier_get *cmd = arg;
	struct kvtier_block_result *results = PTR(cmd->results);
	const struct kvtier_key *keys = PTR(cmd->keys);
	int ret = check(file, cmd->group, cmd->nr);
	struct mock_block *block;
	bool prefix = true;
	uint32_t i;

	if (ret)
		return ret;
	if (cmd->flags & ~KVTIER_GET_FLAGS)
		return -EOPNOTSUPP;
	for (i = 0; i < cmd->nr; i++) {
		block = find(file, cmd->group, &keys[i]);
		/* Junk where the interface promises nothing. */
		results[i] = (struct kvtier_block_result){ .offset = ~0ULL };
		results[i].status = prefix ? state_of(block) :
				    KVTIER_ST_SKIPPED;
		prefix = prefix && state_of(block) == KVTIER_ST_HIT;
		if (!prefix)
			continue;
		results[i].handle = new_handle(file, block, false);
		results[i].offset = block->offset;
		cmd->nr_prefix++;
	}
	ns_of(file)->stat.hits += cmd->nr_prefix;
	ns_of(file)->stat.misses += cmd->nr_prefix < cmd->nr;
	return 0;
}

static uint64_t new_slot(struct mock_file *file, uint32_t group, bool arena)
{
	uint64_t bytes = ns_of(file)->groups[group].block_bytes;
	uint64_t *next = arena ? &file->arena_next : &mock_state->next_offset;
	uint64_t offset;

	if (!arena && mock.next_offset) {
		mock_state->next_offset = mock.next_offset;
		mock.next_offset = 0;
	}
	offset = *next;
	bytes = (bytes + 4095) / 4096 * 4096;
	if (offset + bytes > (arena ? file->arena_end : mock.window_bytes))
		return ~0ULL;
	*next += bytes;
	return offset;
}

static int32_t new_block(struct mock_file *file, uint32_t group,
			 const struct kvtier_key *key,
			 const struct kvtier_key *parent, bool arena,
			 struct mock_block **out)
{
	struct mock_block *block = mock_state->blocks;
	uint64_t offset;

	if (!same_key(parent, &no_key) && !find(file, group, parent))
		return KVTIER_ST_NOPARENT;
	offset = new_slot(file, group, arena);
	if (offset == ~0ULL)
		return KVTIER_ST_NOSPACE;
	while (block->state)
		block++;
	*block = (struct mock_block){
		.state = KVTIER_ST_FILLING,
		.ns = file->ns,
		.group = group,
		.key = *key,
		.parent = *parent,
		.offset = offset,
	};
	*out = block;
	return KVTIER_ST_RESERVED;
}

static void reserve_one(struct mock_file *file, struct kvtier_reserve *cmd,
			const struct kvtier_key *key,
			const struct kvtier_key *parent,
			struct kvtier_block_result *result)
{
	struct mock_block *block = find(file, cmd->group, key);

	*result = (struct kvtier_block_result){ .offset = ~0ULL };
	if (block && block->state == KVTIER_ST_FILLING) {
		result->status = KVTIER_ST_FILLING;
		return;
	}
	if (block) {
		result->status = KVTIER_ST_EXISTS;
		ns_of(file)->stat.dedups++;
		if (!(cmd->flags & KVTIER_RESERVE_LEASE))
			return;
		result->handle = new_handle(file, block, false);
		result->offset = block->offset;
		return;
	}
	result->status = new_block(file, cmd->group, key, parent,
				   cmd->flags & KVTIER_RESERVE_ARENA, &block);
	if (result->status != KVTIER_ST_RESERVED)
		return;
	result->handle = new_handle(file, block, true);
	result->offset = block->offset + MOCK_FILL_OFFSET;
	cmd->nr_reserved++;
}

static const struct kvtier_key *parent_of(uint64_t parents, bool array,
					  const struct kvtier_key *keys,
					  uint32_t i)
{
	const struct kvtier_key *parent = PTR(parents);

	if (array)
		return &parent[i];
	if (i)
		return &keys[i - 1];
	return parent ? parent : &no_key;
}

static int op_reserve(struct mock_file *file, void *arg)
{
	struct kvtier_reserve *cmd = arg;
	struct kvtier_block_result *results = PTR(cmd->results);
	const struct kvtier_key *keys = PTR(cmd->keys);
	int ret = check(file, cmd->group, cmd->nr);
	uint32_t i;

	if (ret)
		return ret;
	if (cmd->flags & ~KVTIER_RESERVE_FLAGS)
		return -EOPNOTSUPP;
	for (i = 0; i < cmd->nr; i++)
		reserve_one(file, cmd, &keys[i],
			    parent_of(cmd->parent,
				      cmd->flags & KVTIER_RESERVE_PARENTS,
				      keys, i), &results[i]);
	return 0;
}

static int op_commit(struct mock_file *file, void *arg)
{
	struct kvtier_commit *cmd = arg;
	struct kvtier_block_result *results = PTR(cmd->results);
	const uint64_t *ids = PTR(cmd->handles);
	struct mock_handle *handle;
	struct mock_block *block;
	uint32_t i;

	if (!cmd->nr || cmd->nr > KVTIER_BATCH_MAX)
		return -EINVAL;
	for (i = 0; i < cmd->nr; i++) {
		handle = get_handle(file, ids[i], true);
		results[i] = (struct kvtier_block_result){ .offset = ~0ULL };
		results[i].status = KVTIER_ST_STALE;
		if (!handle)
			continue;
		results[i].status = KVTIER_ST_PINNED;
		if (mock.commit_pinned)
			continue;
		block = &mock_state->blocks[handle->block];
		block->state = KVTIER_ST_HIT;
		put_handle(handle);
		cmd->nr_done++;
		ns_of(file)->stat.puts++;
		results[i].status = KVTIER_ST_DONE;
		if (!(cmd->flags & KVTIER_COMMIT_LEASE))
			continue;
		results[i].status = KVTIER_ST_HIT;
		results[i].handle = new_handle(file, block, false);
		results[i].offset = block->offset;
	}
	return 0;
}

static int give_back(struct mock_file *file, struct kvtier_handles *cmd,
		     bool filling)
{
	const uint64_t *ids = PTR(cmd->handles);
	int32_t *results = PTR(cmd->results);
	struct mock_handle *handle;
	uint32_t i;

	if (!cmd->nr || cmd->nr > KVTIER_BATCH_MAX)
		return -EINVAL;
	for (i = 0; i < cmd->nr; i++) {
		handle = get_handle(file, ids[i], filling);
		if (results)
			results[i] = handle ? KVTIER_ST_DONE :
				     KVTIER_ST_STALE;
		if (!handle)
			continue;
		put_handle(handle);
		cmd->nr_done++;
	}
	return 0;
}

static int op_abort(struct mock_file *file, void *arg)
{
	return give_back(file, arg, true);
}

static int op_release(struct mock_file *file, void *arg)
{
	return give_back(file, arg, false);
}

static int op_read(struct mock_file *file, void *arg)
{
	struct kvtier_copy *cmd = arg;
	const struct kvtier_key *keys = PTR(cmd->keys);
	const struct kvtier_buf *bufs = PTR(cmd->bufs);
	int32_t *results = PTR(cmd->results);
	int ret = check(file, cmd->group, cmd->nr);
	uint64_t bytes;
	uint32_t i;

	if (ret)
		return ret;
	bytes = ns_of(file)->groups[cmd->group].block_bytes;
	for (i = 0; i < cmd->nr; i++) {
		struct mock_block *block = find(file, cmd->group, &keys[i]);

		results[i] = cmd->nr_done < i ? KVTIER_ST_SKIPPED :
			     state_of(block);
		if (results[i] != KVTIER_ST_HIT)
			continue;
		if (bufs[i].bytes < bytes)
			return -EINVAL;
		if (pread(file_fd(file), PTR(bufs[i].addr), bytes,
			  (off_t)(block->offset + MOCK_DATA)) != (ssize_t)bytes)
			return -EFAULT;
		cmd->nr_done++;
	}
	ns_of(file)->stat.hits += cmd->nr_done;
	return 0;
}

static int op_write(struct mock_file *file, void *arg)
{
	struct kvtier_copy *cmd = arg;
	const struct kvtier_key *keys = PTR(cmd->keys);
	const struct kvtier_buf *bufs = PTR(cmd->bufs);
	int32_t *results = PTR(cmd->results);
	int ret = check(file, cmd->group, cmd->nr);
	struct mock_block *block;
	uint32_t i;

	for (i = 0; !ret && i < cmd->nr; i++) {
		if (bufs[i].bytes !=
		    ns_of(file)->groups[cmd->group].block_bytes)
			return -EINVAL;
		block = find(file, cmd->group, &keys[i]);
		results[i] = KVTIER_ST_EXISTS;
		if (block)
			continue;
		results[i] = new_block(file, cmd->group, &keys[i],
				       parent_of(cmd->parent, false, keys, i),
				       false, &block);
		if (results[i] != KVTIER_ST_RESERVED)
			continue;
		if (pwrite(file_fd(file), PTR(bufs[i].addr), bufs[i].bytes,
			   (off_t)(block->offset + MOCK_DATA)) < 0)
			return -EFAULT;
		block->state = KVTIER_ST_HIT;
		results[i] = KVTIER_ST_DONE;
		cmd->nr_done++;
		ns_of(file)->stat.puts++;
	}
	return ret;
}

static int op_prefetch(struct mock_file *file, void *arg)
{
	struct kvtier_prefetch *cmd = arg;
	int ret = check(file, cmd->group, cmd->nr);

	if (ret)
		return ret;
	cmd->nr_started = cmd->nr;
	if (cmd->flags & KVTIER_PREFETCH_NOTIFY)
		file->done[file->nr_done++] = (struct kvtier_completion){
			.user_data = cmd->user_data, .nr_ready = cmd->nr,
		};
	return 0;
}

static int op_advise(struct mock_file *file, void *arg)
{
	struct kvtier_advise *cmd = arg;
	const struct kvtier_key *keys = PTR(cmd->keys);
	int32_t *results = PTR(cmd->results);
	int ret = check(file, cmd->group, cmd->nr);
	uint32_t i;

	if (!ret && (!cmd->advice || cmd->advice > KVTIER_ADV_TTL ||
		     (cmd->value && cmd->advice != KVTIER_ADV_TTL)))
		ret = -EINVAL;
	for (i = 0; !ret && i < cmd->nr; i++) {
		bool there = find(file, cmd->group, &keys[i]);

		cmd->nr_done += there;
		if (results)
			results[i] = there ? KVTIER_ST_DONE : KVTIER_ST_MISS;
	}
	return ret;
}

static int op_session(struct mock_file *file, void *arg)
{
	static const struct kvtier_key none;
	struct kvtier_session *cmd = arg;

	if (cmd->group >= ns_of(file)->nr_groups)
		return -ENOENT;
	if (cmd->state < KVTIER_SESSION_DECODING ||
	    cmd->state > KVTIER_SESSION_DONE || !cmd->session ||
	    (cmd->state == KVTIER_SESSION_DECODING && cmd->reuse_ns))
		return -EINVAL;
	if (!memcmp(cmd->tip, &none, sizeof(none)))
		return -EINVAL;
	return find(file, cmd->group, (const struct kvtier_key *)cmd->tip) ?
	       0 : -ENOENT;
}

static int32_t drop_one(struct mock_file *file, uint32_t group,
			const struct kvtier_key *key)
{
	struct mock_block *block = find(file, group, key);
	int i;

	if (!block)
		return KVTIER_ST_MISS;
	if (block->state == KVTIER_ST_FILLING)
		return KVTIER_ST_BUSY;
	for (i = 0; i < MOCK_BLOCKS; i++)
		if (mock_state->blocks[i].state &&
		    mock_state->blocks[i].ns == file->ns &&
		    same_key(&mock_state->blocks[i].parent, key))
			return KVTIER_ST_CHILDREN;
	block->state = 0;
	return KVTIER_ST_DONE;
}

static int op_drop(struct mock_file *file, void *arg)
{
	struct kvtier_drop *cmd = arg;
	const struct kvtier_key *keys = PTR(cmd->keys);
	int32_t status, *results = PTR(cmd->results);
	int ret = check(file, cmd->group, cmd->nr);
	uint32_t i;

	for (i = cmd->nr; !ret && i-- > 0;) {
		status = drop_one(file, cmd->group, &keys[i]);
		cmd->nr_done += status == KVTIER_ST_DONE;
		if (results)
			results[i] = status;
	}
	return ret;
}

static int op_iterate(struct mock_file *file, void *arg)
{
	struct kvtier_iterate *cmd = arg;
	struct kvtier_entry *out = PTR(cmd->entries);
	uint32_t nr = 0, room = cmd->nr;
	uint64_t i;

	if (!room || room > KVTIER_BATCH_MAX)
		return -EINVAL;
	/* Pages of at most seven, some of them empty, as a kernel may do. */
	for (i = cmd->cursor; i < MOCK_BLOCKS && nr < room && nr < 7; i++) {
		const struct mock_block *block = &mock_state->blocks[i];

		if (i % 1000 == 999 && i != cmd->cursor)
			break;
		if (!block->state || block->ns != file->ns)
			continue;
		memcpy(out[nr].key, &block->key, sizeof(block->key));
		memcpy(out[nr].parent, &block->parent, sizeof(block->parent));
		out[nr].status = block->state;
		out[nr].tier = 0;
		out[nr].group = block->group;
		out[nr].leases = block->leases;
		out[nr++].idle_ns = 1500000;
	}
	cmd->nr = nr;
	cmd->cursor = i < MOCK_BLOCKS ? i : 0;
	return 0;
}

static int op_stat(struct mock_file *file, void *arg)
{
	struct kvtier_stat *cmd = arg;
	struct kvtier_tier_stat *tiers = PTR(cmd->tiers);
	struct kvtier_stat all = { .meta_bytes_per_block = 120 };
	uint32_t i, nr = 0;

	if (!(cmd->flags & KVTIER_STAT_POOL) && file->ns < 0)
		return -EBADFD;
	for (i = 0; i < MOCK_NAMESPACES; i++) {
		const struct kvtier_stat *st = &mock_state->ns[i].stat;

		if (!mock_state->ns[i].used ||
		    mock_state->ns[i].pool != file->pool ||
		    (file->ns >= 0 && (int)i != file->ns))
			continue;
		all.hits += st->hits;
		all.misses += st->misses;
		all.puts += st->puts;
		all.dedups += st->dedups;
	}
	all.leases = mock_leases();
	for (i = 0; i < KVTIER_TIERS_MAX; i++) {
		const struct mock_tier *tier =
			&mock_state->pools[file->pool].tiers[i];

		if (!tier->used)
			continue;
		if (tiers && nr < cmd->nr_tiers)
			tiers[nr] = (struct kvtier_tier_stat){
				.id = tier->info.id,
				.rank = tier->info.rank,
				.capacity_bytes = tier->info.capacity_bytes,
			};
		nr++;
	}
	all.size = cmd->size;
	all.flags = cmd->flags;
	all.tiers = cmd->tiers;
	all.nr_tiers = nr;
	*cmd = all;
	return 0;
}

static int op_arena(struct mock_file *file, void *arg)
{
	struct kvtier_arena *cmd = arg;
	uint64_t bytes;

	if (cmd->group >= ns_of(file)->nr_groups)
		return -ENOENT;
	if (file->arena_end)
		return -EBUSY;
	bytes = ns_of(file)->groups[cmd->group].block_bytes;
	cmd->slot_bytes = (bytes + 4095) / 4096 * 4096;
	bytes = (cmd->slot_bytes * cmd->nr_slots + (2 << 20) - 1) >> 21 << 21;
	if (bytes > ns_of(file)->min_bytes)
		return -ENOSPC;
	cmd->nr_slots = (uint32_t)(bytes / cmd->slot_bytes);
	cmd->bytes = bytes;
	file->arena_next = (mock_state->next_offset + (2 << 20) - 1) >> 21 << 21;
	file->arena_end = file->arena_next + bytes;
	mock_state->next_offset = file->arena_end;
	cmd->offset = file->arena_next + MOCK_FILL_OFFSET;
	return 0;
}

/* A file as long as the buffer. */
static int op_export(struct mock_file *file, void *arg)
{
	struct kvtier_export *cmd = arg;
	const uint64_t *ids = PTR(cmd->handles);
	uint32_t i;

	if (!cmd->nr || cmd->nr > KVTIER_BATCH_MAX)
		return -EINVAL;
	for (i = 0; i < cmd->nr; i++)
		if (!get_handle(file, ids[i], false))
			return -EINVAL;
	cmd->bytes = (ns_of(file)->groups[0].block_bytes + 4095) / 4096 * 4096 * cmd->nr;
	cmd->fd = memfd_create("export", MFD_CLOEXEC);
	if (cmd->fd < 0 || ftruncate(cmd->fd, (off_t)cmd->bytes))
		return -ENOMEM;
	return 0;
}

static const struct mock_op ops[] = {
	{ KVTIER_OP_LOOKUP, sizeof(struct kvtier_lookup), 1, op_lookup },
	{ KVTIER_OP_GET, sizeof(struct kvtier_get), 1, op_get },
	{ KVTIER_OP_RESERVE, sizeof(struct kvtier_reserve), 1, op_reserve },
	{ KVTIER_OP_COMMIT, sizeof(struct kvtier_commit), 1, op_commit },
	{ KVTIER_OP_ABORT, sizeof(struct kvtier_handles), 1, op_abort },
	{ KVTIER_OP_RELEASE, sizeof(struct kvtier_handles), 1, op_release },
	{ KVTIER_OP_READ, sizeof(struct kvtier_copy), 1, op_read },
	{ KVTIER_OP_WRITE, sizeof(struct kvtier_copy), 1, op_write },
	{ KVTIER_OP_PREFETCH, sizeof(struct kvtier_prefetch), 1, op_prefetch },
	{ KVTIER_OP_ADVISE, sizeof(struct kvtier_advise), 1, op_advise },
	{ KVTIER_OP_DROP, sizeof(struct kvtier_drop), 1, op_drop },
	{ KVTIER_OP_ITERATE, sizeof(struct kvtier_iterate), 1, op_iterate },
	{ KVTIER_OP_STAT, sizeof(struct kvtier_stat), 0, op_stat },
	{ KVTIER_OP_ARENA, sizeof(struct kvtier_arena), 1, op_arena },
	{ KVTIER_OP_EXPORT, sizeof(struct kvtier_export), 1, op_export },
	{ KVTIER_OP_SESSION, sizeof(struct kvtier_session), 1, op_session },
};

const struct mock_op *mock_data_op(unsigned int nr)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].nr == nr)
			return &ops[i];
	return NULL;
}
