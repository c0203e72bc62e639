// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The stand-in kernel: files, pools, namespaces. Blocks are in mock_data.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "mock_state.h"

struct mock_knobs mock = { .window_bytes = 1ULL << 30 };
struct mock_state *mock_state;
static struct mock_file files[MOCK_FILES];
static int state_fd = -1;

/*
 * One process at a time has the state. A lock that a child does not inherit; it goes when any
 * descriptor of the file is closed, so nothing is closed under it.
 */
static void lock_state(short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	while (fcntl(state_fd, F_SETLKW, &lock) && errno == EINTR)
		;
}

struct mock_file *mock_file(int fd)
{
	if (fd < 0 || fd >= MOCK_FILES || !files[fd].open)
		return NULL;
	return &files[fd];
}

static int open_fd(const char *path, unsigned int pool, bool ctl)
{
	char link[64];
	int fd;

	if (!ctl && (pool >= MOCK_POOLS || !mock_state->pools[pool].used)) {
		errno = ENOENT;
		return -1;
	}
	(void)path;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", state_fd);
	fd = open(link, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fd >= MOCK_FILES)
		abort();
	files[fd] = (struct mock_file){
		.open = true, .pid = getpid(), .ctl = ctl, .pool = pool, .ns = -1,
	};
	mock.nr_open++;
	return fd;
}

static int mock_open(const char *path, int flags)
{
	const char *name = path;
	unsigned int pool;
	char tail;

	if (!(flags & O_CLOEXEC))
		abort();
	if (mock.deny_write && (flags & O_ACCMODE) != O_RDONLY) {
		mock.failures++;
		errno = EACCES;
		return -1;
	}
	if (!strcmp(path, "/dev/kvtier"))
		return open_fd(path, 0, true);
	/* Elsewhere, any file of such a name. */
	if (!strncmp(path, "/dev/", strlen("/dev/")))
		name = path + strlen("/dev/");
	else if (!access(path, F_OK))
		name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (sscanf(name, "kvtier%u%c", &pool, &tail) == 1)
		return open_fd(path, pool, false);
	errno = ENOENT;
	return -1;
}

static int mock_close(int fd)
{
	struct mock_file *file = mock_file(fd);

	if (!file)
		abort();
	lock_state(F_WRLCK);
	mock_data_close(file);
	lock_state(F_UNLCK);
	file->open = false;
	mock.nr_open--;
	return close(fd);
}

/* Anonymous memory at an address that is not a multiple of 2 MiB, as it may well
 * be, but seldom is.
 */
static void *map_askew(size_t bytes, int prot, int flags)
{
	char *addr = mmap(NULL, bytes + 4096, prot, flags, -1, 0);

	if (addr == MAP_FAILED)
		return addr;
	munmap((uintptr_t)addr % (2 << 20) ? addr + bytes : addr, 4096);
	return (uintptr_t)addr % (2 << 20) ? addr : addr + 4096;
}

static void *mock_mmap(void *addr, size_t bytes, int prot, int flags, int fd,
		       off_t offset)
{
	uint64_t at = (uint64_t)offset;

	if (fd < 0)
		return map_askew(bytes, prot, flags);
	if (mock.fail_maps) {
		mock.fail_maps--;
		mock.failures++;
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (at >= MOCK_FILL_OFFSET) {
		at -= MOCK_FILL_OFFSET;
	} else if (prot & PROT_WRITE) {
		errno = EACCES;
		return MAP_FAILED;
	}
	if (!(flags & MAP_SHARED) || at % 4096 ||
	    at + bytes > KVTI_VIEW_BYTES) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	mock.nr_maps++;
	return mmap(addr, bytes, prot, flags, fd, (off_t)(at + MOCK_DATA));
}

static int mock_munmap(void *addr, size_t bytes)
{
	mock.nr_unmaps++;
	return munmap(addr, bytes);
}

static ssize_t mock_read(int fd, void *buf, size_t bytes)
{
	struct mock_file *file = mock_file(fd);
	size_t nr = bytes / sizeof(file->done[0]);

	if (!nr) {
		errno = EINVAL;
		return -1;
	}
	if (!file->nr_done) {
		errno = EAGAIN;
		return -1;
	}
	if (nr > file->nr_done)
		nr = file->nr_done;
	memcpy(buf, file->done, nr * sizeof(file->done[0]));
	file->nr_done -= nr;
	memmove(file->done, file->done + nr,
		file->nr_done * sizeof(file->done[0]));
	return (ssize_t)(nr * sizeof(file->done[0]));
}

static int mock_poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	struct mock_file *file = mock_file(fds[0].fd);

	(void)nr;
	fds[0].revents = file->nr_done ? POLLIN : 0;
	if (file->nr_done)
		return 1;
	if (timeout_ms < 0)
		abort();
	usleep((useconds_t)timeout_ms * 1000);
	return 0;
}

static int op_query(struct mock_file *file, void *arg)
{
	struct mock_pool *pool = &mock_state->pools[file->pool];
	struct kvtier_query *q = arg;
	struct kvtier_tier_info *out = (void *)(uintptr_t)q->tiers;
	uint32_t i, room = q->nr_tiers, nr = 0;

	q->abi_revision = KVTIER_ABI_REVISION;
	q->pool_id = file->pool;
	q->features = KVTIER_FEAT_ASYNC | KVTIER_FEAT_ARENA;
	q->ops = 0xffff;
	q->batch_max = KVTIER_BATCH_MAX;
	q->leases_max = MOCK_HANDLES;
	q->block_bytes_max = KVTIER_BLOCK_BYTES_MAX;
	q->window_bytes = mock.window_bytes;
	for (i = 0; i < KVTIER_TIERS_MAX; i++) {
		const struct mock_tier *tier = &pool->tiers[i];

		if (!tier->used)
			continue;
		if (out && nr < room)
			out[nr] = tier->info;
		nr++;
	}
	q->nr_tiers = nr;
	return out && nr > room ? -EMSGSIZE : 0;
}

static struct mock_ns *find_ns(const struct mock_file *file,
			       const struct kvtier_ns_open *cmd)
{
	const void *secret = (void *)(uintptr_t)cmd->secret;
	struct mock_ns *ns;
	int i;

	for (i = 0; i < MOCK_NAMESPACES; i++) {
		ns = &mock_state->ns[i];
		if (ns->used && ns->pool == file->pool &&
		    ns->identity_len == cmd->identity_len &&
		    !memcmp(ns->identity, (void *)(uintptr_t)cmd->identity,
			    cmd->identity_len) &&
		    ns->has_secret == !!secret &&
		    (!secret || !memcmp(ns->secret, secret,
					KVTIER_SECRET_BYTES)))
			return ns;
	}
	return NULL;
}

static struct mock_ns *create_ns(const struct mock_file *file,
				 const struct kvtier_ns_open *cmd)
{
	struct mock_ns *ns = mock_state->ns;

	while (ns->used)
		ns++;
	if (ns == mock_state->ns + MOCK_NAMESPACES - 1)
		return NULL;
	ns->used = 1;
	ns->pool = file->pool;
	ns->identity_len = cmd->identity_len;
	memcpy(ns->identity, (void *)(uintptr_t)cmd->identity,
	       cmd->identity_len);
	ns->has_secret = !!cmd->secret;
	if (cmd->secret)
		memcpy(ns->secret, (void *)(uintptr_t)cmd->secret,
		       KVTIER_SECRET_BYTES);
	ns->nr_groups = cmd->nr_groups;
	memcpy(ns->groups, (void *)(uintptr_t)cmd->groups,
	       cmd->nr_groups * sizeof(ns->groups[0]));
	ns->mode = cmd->mode;
	ns->quota_bytes = cmd->quota_bytes;
	ns->min_bytes = cmd->min_bytes;
	return ns;
}

static int op_ns_open(struct mock_file *file, void *arg)
{
	struct kvtier_ns_open *cmd = arg;
	struct mock_ns *ns;

	if (file->ns >= 0)
		return -EBUSY;
	if (!cmd->identity_len || cmd->identity_len > KVTIER_IDENTITY_MAX ||
	    cmd->nr_groups > KVTIER_GROUPS_MAX)
		return -EINVAL;
	if ((cmd->flags & KVTIER_NS_OWNER) && (cmd->flags & KVTIER_NS_CREATE))
		return -EINVAL;
	/* All of them are the caller's. */
	if ((cmd->flags & KVTIER_NS_OWNER) && cmd->owner_uid != getuid())
		return -ENOENT;
	ns = find_ns(file, cmd);
	if (!ns && !(cmd->flags & KVTIER_NS_CREATE))
		return -ENOENT;
	if (ns && (cmd->flags & KVTIER_NS_EXCL))
		return -EEXIST;
	if (!ns && !cmd->nr_groups)
		return -EINVAL;
	if (ns && cmd->nr_groups &&
	    (ns->nr_groups != cmd->nr_groups ||
	     memcmp(ns->groups, (void *)(uintptr_t)cmd->groups,
		    ns->nr_groups * sizeof(ns->groups[0]))))
		return -EINVAL;
	if (!ns)
		ns = create_ns(file, cmd);
	if (!ns)
		return -ENOSPC;
	file->ns = (int)(ns - mock_state->ns);
	cmd->ns_id = (uint64_t)file->ns + 1;
	cmd->fill_offset = MOCK_FILL_OFFSET;
	cmd->fill_bytes = mock.window_bytes;
	return 0;
}

static int op_ctl_query(struct mock_file *file, void *arg)
{
	struct kvtier_ctl_query *q = arg;
	uint32_t *ids = (void *)(uintptr_t)q->pools;
	uint32_t i, room = q->nr_pools, nr = 0;

	(void)file;
	q->abi_revision = KVTIER_ABI_REVISION;
	for (i = 0; i < MOCK_POOLS; i++) {
		if (!mock_state->pools[i].used)
			continue;
		if (ids && nr < room)
			ids[nr] = i;
		nr++;
	}
	q->nr_pools = nr;
	return ids && nr > room ? -EMSGSIZE : 0;
}

static int op_pool_create(struct mock_file *file, void *arg)
{
	struct kvtier_pool_create *cmd = arg;
	uint32_t id = cmd->pool_id;

	(void)file;
	if (id == KVTIER_POOL_ANY_ID)
		for (id = 0; id < MOCK_POOLS && mock_state->pools[id].used;)
			id++;
	if (id >= MOCK_POOLS)
		return -EINVAL;
	if (mock_state->pools[id].used)
		return -EEXIST;
	memset(&mock_state->pools[id], 0, sizeof(mock_state->pools[id]));
	mock_state->pools[id].used = 1;
	cmd->pool_id = id;
	return 0;
}

static struct mock_pool *pool_of(uint32_t id)
{
	if (id >= MOCK_POOLS || !mock_state->pools[id].used)
		return NULL;
	return &mock_state->pools[id];
}

static int op_pool_destroy(struct mock_file *file, void *arg)
{
	struct kvtier_pool_destroy *cmd = arg;
	struct mock_pool *pool = pool_of(cmd->pool_id);
	int fd;

	(void)file;
	if (!pool)
		return -ENOENT;
	for (fd = 0; fd < MOCK_FILES; fd++)
		if (files[fd].open && !files[fd].ctl &&
		    files[fd].pool == cmd->pool_id)
			return -EBUSY;
	pool->used = 0;
	return 0;
}

static int op_tier_attach(struct mock_file *file, void *arg)
{
	struct kvtier_tier_attach *cmd = arg;
	struct mock_pool *pool = pool_of(cmd->pool_id);
	uint32_t i, at = KVTIER_TIERS_MAX;

	(void)file;
	if (!pool)
		return -ENOENT;
	if (!cmd->name[0] || cmd->rank > 255 ||
	    cmd->flags & ~KVTIER_ATTACH_FLAGS)
		return -EINVAL;
	for (i = KVTIER_TIERS_MAX; i-- > 0;) {
		struct mock_tier *tier = &pool->tiers[i];

		if (!tier->used)
			at = i;
		else if (tier->info.rank == cmd->rank ||
			 !strcmp(tier->info.name, cmd->name))
			return -EEXIST;
	}
	if (at == KVTIER_TIERS_MAX)
		return -ENOSPC;
	/* What the matter is with a device is in its path. */
	if (strstr(cmd->path, "member") && !(cmd->flags & KVTIER_ATTACH_FORCE))
		return -EEXIST;
	/* A device that is not there, for the sake of unwinding. */
	if (strstr(cmd->path, "missing"))
		return -ENOENT;
	pool->tiers[at].used = 1;
	pool->tiers[at].info = (struct kvtier_tier_info){
		.id = at,
		.type = cmd->type,
		.rank = cmd->rank,
		.state = KVTIER_TIER_ONLINE,
		.capacity_bytes = cmd->capacity_bytes ? cmd->capacity_bytes :
				  1ULL << 28,
	};
	memcpy(pool->tiers[at].info.name, cmd->name, sizeof(cmd->name));
	cmd->tier_id = at;
	return 0;
}

/*
 * What is the matter with a device is in its path: by name, or as "fails-ERRNO". Somebody looks
 * at "looked-at" the first three times.
 */
static int assemble_one(struct kvtier_assemble_device *d)
{
	const char *fails = strstr(d->path, "fails-");
	static int looks;

	if (strstr(d->path, "looked-at"))
		d->error = looks++ < 3 ? -EBUSY : 0;
	else if (fails)
		d->error = -atoi(fails + strlen("fails-"));
	else if (strstr(d->path, "missing"))
		d->error = -ENOENT;
	else if (strstr(d->path, "stale"))
		d->error = -ESTALE;
	else
		d->error = 0;
	if (!d->error)
		d->state = KVTIER_MEMBER_CLEAN;
	return d->error;
}

static int op_pool_assemble(struct mock_file *file, void *arg)
{
	struct kvtier_pool_assemble *cmd = arg;
	struct kvtier_assemble_device *d = (void *)(uintptr_t)cmd->devices;
	struct kvtier_pool_create make = { .pool_id = cmd->pool_id };
	int ret = 0, err;
	uint32_t i;

	if (!cmd->nr_devices || cmd->nr_devices > KVTIER_TIERS_MAX)
		return -EINVAL;
	for (i = 0; i < cmd->nr_devices; i++) {
		err = assemble_one(&d[i]);
		cmd->nr_found += !err;
		if (!ret)
			ret = err;
	}
	cmd->nr_members = cmd->nr_devices + mock.missing;
	if (!ret && mock.missing && !(cmd->flags & KVTIER_ASSEMBLE_DEGRADED))
		ret = -ENOMEDIUM;
	if (!ret)
		ret = op_pool_create(file, &make);
	cmd->pool_id = make.pool_id;
	return ret;
}

/* One is running as soon as it was begun, until it is stopped. */
static int op_pool_scrub(struct mock_file *file, void *arg)
{
	struct kvtier_pool_scrub *cmd = arg;
	static bool running;

	(void)file;
	if (!pool_of(cmd->pool_id))
		return -ENOENT;
	if (cmd->flags & KVTIER_SCRUB_STOP) {
		running = false;
		return cmd->rate_bytes ? -EINVAL : 0;
	}
	if (running)
		return -EBUSY;
	running = true;
	return 0;
}

static int op_ns_claim(struct mock_file *file, void *arg)
{
	struct kvtier_ns_claim *cmd = arg;

	(void)file;
	return pool_of(cmd->pool_id) && cmd->ns_id == 1 ? 0 : -ENOENT;
}

static int op_tier(struct kvtier_tier_op *cmd, bool detach)
{
	struct mock_pool *pool = pool_of(cmd->pool_id);

	if (!pool || cmd->tier_id >= KVTIER_TIERS_MAX ||
	    !pool->tiers[cmd->tier_id].used)
		return -ENOENT;
	if (detach)
		pool->tiers[cmd->tier_id].used = 0;
	else
		pool->tiers[cmd->tier_id].info.state = KVTIER_TIER_DRAINING;
	return 0;
}

static int op_tier_detach(struct mock_file *file, void *arg)
{
	(void)file;
	return op_tier(arg, true);
}

static int op_tier_drain(struct mock_file *file, void *arg)
{
	(void)file;
	return op_tier(arg, false);
}

static const struct mock_op ops[] = {
	{ KVTIER_OP_QUERY, sizeof(struct kvtier_query), 0, op_query },
	{ KVTIER_OP_NS_OPEN, sizeof(struct kvtier_ns_open), 0, op_ns_open },
	{ KVTIER_OP_CTL_QUERY, sizeof(struct kvtier_ctl_query), 0,
	  op_ctl_query },
	{ KVTIER_OP_POOL_CREATE, sizeof(struct kvtier_pool_create), 0,
	  op_pool_create },
	{ KVTIER_OP_POOL_DESTROY, sizeof(struct kvtier_pool_destroy), 0,
	  op_pool_destroy },
	{ KVTIER_OP_POOL_ASSEMBLE, sizeof(struct kvtier_pool_assemble), 0,
	  op_pool_assemble },
	{ KVTIER_OP_POOL_SCRUB, sizeof(struct kvtier_pool_scrub), 0,
	  op_pool_scrub },
	{ KVTIER_OP_NS_CLAIM, sizeof(struct kvtier_ns_claim), 0, op_ns_claim },
	{ KVTIER_OP_TIER_ATTACH, sizeof(struct kvtier_tier_attach), 0,
	  op_tier_attach },
	{ KVTIER_OP_TIER_DETACH, sizeof(struct kvtier_tier_op), 0,
	  op_tier_detach },
	{ KVTIER_OP_TIER_DRAIN, sizeof(struct kvtier_tier_op), 0,
	  op_tier_drain },
};

static int dispatch(struct mock_file *file, unsigned int nr, void *arg)
{
	const struct mock_op *op = mock_data_op(nr);
	size_t i;

	for (i = 0; !op && i < ARRAY_SIZE(ops); i++)
		if (ops[i].nr == nr)
			op = &ops[i];
	if (!op)
		return -ENOTTY;
	if (*(uint32_t *)arg != op->size)
		return -EINVAL;
	if (op->bound && file->ns < 0)
		return -EBADFD;
	return op->run(file, arg);
}

/* It is at work as long as somebody wants to watch it. */
static void hold(void)
{
	int fd = open(mock.hold, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		abort();
	close(fd);
	while (!access(mock.hold, F_OK))
		usleep(1000);
}

static int mock_ioctl(int fd, unsigned long request, void *arg)
{
	struct mock_file *file = mock_file(fd);
	unsigned int nr = request & 0xff;
	int ret;

	if (!file || request != KVTIER_IOC(nr))
		abort();
	if (mock.fail_errno && (int)nr == mock.fail_op) {
		mock.failures++;
		errno = mock.fail_errno;
		return -1;
	}
	if (mock.hold && nr == KVTIER_OP_POOL_ASSEMBLE)
		hold();
	lock_state(F_WRLCK);
	ret = dispatch(file, nr, arg);
	lock_state(F_UNLCK);
	errno = -ret;
	return ret < 0 ? -1 : 0;
}

void mock_install(const char *path)
{
	state_fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) :
		   memfd_create("kvtier-mock", MFD_CLOEXEC);
	if (state_fd < 0 ||
	    ftruncate(state_fd, (off_t)(MOCK_DATA + (1ULL << 40)))) {
		perror("mock");
		exit(1);
	}
	mock_state = mmap(NULL, MOCK_DATA, PROT_READ | PROT_WRITE, MAP_SHARED,
			  state_fd, 0);
	if (mock_state == MAP_FAILED) {
		perror("mock");
		exit(1);
	}
	kvti_sys = (struct kvti_sys){
		.open = mock_open,
		.close = mock_close,
		.ioctl = mock_ioctl,
		.mmap = mock_mmap,
		.munmap = mock_munmap,
		.read = mock_read,
		.poll = mock_poll,
	};
}
