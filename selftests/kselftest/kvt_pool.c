// SPDX-License-Identifier: GPL-2.0
/*
 * Pools, tiers and open files, as an operator and as a client would make them.
 *
 * Which devices may be used is told by the environment or, on the test machine, by
 * the script "devices" beside the program; never guessed: the tests overwrite them.
 */
#include "kvt_test.h"
#include <grp.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SYSFS_CLASS	"/sys/class/kvtier"
#define DAX_BUS		"/sys/bus/dax"

static int live_pools;	/* of this test */

static const char *env_or_null(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/*
 * Ask the script, once for each program, what has not been said. KVT_DEVICES: whoever
 * starts the program has asked.
 */
static void __attribute__((constructor)) find_devices(void)
{
	char dir[256], line[256], *value;
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 32);
	FILE *f;

	if (n <= 0 || getenv("KVT_DEVICES"))
		return;
	dir[n] = 0;
	*strrchr(dir, '/') = 0;
	strcat(dir, "/devices");
	f = access(dir, X_OK) ? NULL : popen(dir, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = 0;
		setenv(line, value, 0);
	}
	if (f)
		pclose(f);
}

const char *kvt_env_dax(void)
{
	return env_or_null("KVT_DAX");
}

const char *kvt_env_bdev(void)
{
	return env_or_null("KVT_BDEV");
}

const char *kvt_env_scratch(void)
{
	return env_or_null("KVT_SCRATCH");
}

static bool length_is(const char *wanted)
{
	const char *length = env_or_null("KVT_LENGTH");

	return length && !strcmp(length, wanted);
}

bool kvt_env_long(void)
{
	return env_or_null("KVT_LONG") || length_is("long");
}

bool kvt_env_quick(void)
{
	return length_is("quick");
}

static bool on_debug(void)
{
	const char *kernel = env_or_null("KVT_KERNEL");

	return kernel && strcmp(kernel, "stock");
}

bool kvt_env_brief(void)
{
	return on_debug() && !kvt_env_long();
}

int kvt_env_many(int quick, int full_length)
{
	bool debug = on_debug();

	if (kvt_env_long())
		return debug ? full_length / 10 + 1 : full_length;
	return debug ? quick / 5 + 1 : quick;
}

int kvt_env_rounds(int normal, int full_length)
{
	if (!kvt_env_long())
		return normal;
	full_length = on_debug() ? full_length / 10 : full_length;
	return full_length > normal ? full_length : normal;
}

static int write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int kvt_pool_destroy(int ctl, __u32 id)
{
	struct kvtier_pool_destroy a = { .size = sizeof(a), .pool_id = id };

	return kvt_ioctl(ctl, KVTIER_OP_POOL_DESTROY, &a);
}

/* A test that was killed leaves its pool behind; the next one clears it away. */
static void destroy_leftovers(int ctl)
{
	__u32 ids[64], i;
	struct kvtier_ctl_query q = {
		.size = sizeof(q),
		.pools = KVT_U64(ids),
		.nr_pools = KVT_ARRAY(ids),
	};

	if (kvt_ioctl(ctl, KVTIER_OP_CTL_QUERY, &q))
		return;
	for (i = 0; i < q.nr_pools && i < KVT_ARRAY(ids); i++)
		if (!KVT_UNTIL(5000, kvt_pool_destroy(ctl, ids[i]) != -EBUSY))
			fprintf(stderr, "# pool %u of an earlier test cannot be destroyed\n",
				ids[i]);
}

/* Access to data devices must not be a matter of what udev has done so far. */
static int make_open_node(struct kvt_pool *p)
{
	struct stat st;

	if (stat(p->node, &st))
		return -errno;
	snprintf(p->open_node, sizeof(p->open_node), "/tmp/kvtier%u-%d", p->id, getpid());
	unlink(p->open_node);
	if (mknod(p->open_node, S_IFCHR | 0666, st.st_rdev) || chmod(p->open_node, 0666))
		return -errno;
	return 0;
}

int kvt_setup(struct kvt_pool *p)
{
	struct kvtier_pool_create a = { .size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID };
	int err;

	memset(p, 0, sizeof(*p));
	if (access("/dev/kvtier", F_OK))
		kvt_sh("modprobe kvtier");
	p->ctl = open("/dev/kvtier", O_RDWR | O_CLOEXEC);
	if (p->ctl < 0) {
		err = -errno;
		fprintf(stderr, "# /dev/kvtier: %s\n", strerror(-err));
		return err;
	}
	if (!live_pools) {
		destroy_leftovers(p->ctl);
		kvt_klog_start();
	}
	err = kvt_ioctl(p->ctl, KVTIER_OP_POOL_CREATE, &a);
	if (err)
		return err;
	live_pools++;
	p->id = a.pool_id;
	snprintf(p->node, sizeof(p->node), "/dev/kvtier%u", p->id);
	return make_open_node(p);
}

int kvt_pool_assemble(struct kvt_pool *p, struct kvtier_pool_assemble *a)
{
	int err = kvt_ioctl(p->ctl, KVTIER_OP_POOL_ASSEMBLE, a);

	if (err)
		return err;
	p->id = a->pool_id;
	snprintf(p->node, sizeof(p->node), "/dev/kvtier%u", p->id);
	return make_open_node(p);
}

int kvt_teardown(struct kvt_pool *p)
{
	int err;

	kvt_kill_all();
	if (p->open_node[0])
		unlink(p->open_node);
	err = kvt_pool_destroy(p->ctl, p->id);
	if (err)
		fprintf(stderr, "# destroying pool %u: %s\n", p->id, strerror(-err));
	close(p->ctl);
	live_pools--;
	if (kvt_klog_complaints() && !err)
		err = -EPROTO;
	return err;
}

int kvt_tier_args(const struct kvt_pool *p, struct kvtier_tier_attach *a, __u32 type, __u32 rank)
{
	static const char *const names[] = { "none", "dram", "node", "dax", "bdev", "pmem" };

	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->pool_id = p->id;
	a->type = type;
	a->rank = rank;
	a->node = -1;
	snprintf(a->name, sizeof(a->name), "%s%u", names[type], rank);
	return 0;
}

/*
 * A device whose pages the test before held by a ring or a pipe is busy until these
 * have really gone, which the kernel does in its own time.
 */
static int attach(const struct kvt_pool *p, struct kvtier_tier_attach *a)
{
	int err;

	KVT_UNTIL(5000, (err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, a)) != -EBUSY);
	if (err)
		fprintf(stderr, "# attaching %s %s: %s\n", a->name, a->path, strerror(-err));
	return err ? err : (int)a->tier_id;
}

int kvt_tier_dram(const struct kvt_pool *p, __u32 rank, __u64 bytes)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(p, &a, KVTIER_TIER_DRAM, rank);
	a.capacity_bytes = bytes;
	return attach(p, &a);
}

int kvt_tier_node(const struct kvt_pool *p, __u32 rank, int node, __u64 bytes)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(p, &a, KVTIER_TIER_NODE, rank);
	a.node = node;
	a.capacity_bytes = bytes;
	return attach(p, &a);
}

int kvt_tier_dax(const struct kvt_pool *p, __u32 rank, __u64 bytes)
{
	struct kvtier_tier_attach a;
	int err = kvt_dax_bind(kvt_env_dax(), "kvtier");

	if (err)
		return err;
	kvt_tier_args(p, &a, KVTIER_TIER_DAX, rank);
	a.capacity_bytes = bytes;
	snprintf(a.path, sizeof(a.path), "%s", kvt_env_dax());
	/* Busy while pages of its last use are pinned; rings end in the background. */
	KVT_UNTIL(10000, (err = attach(p, &a)) != -EBUSY);
	return err;
}

int kvt_tier_bdev(const struct kvt_pool *p, __u32 rank, __u64 bytes)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(p, &a, KVTIER_TIER_BDEV, rank);
	/* The device is the tests', and the one before has left its blocks there. */
	a.flags = KVTIER_ATTACH_FORCE;
	a.capacity_bytes = bytes;
	snprintf(a.path, sizeof(a.path), "%s", kvt_env_bdev());
	return attach(p, &a);
}

int kvt_tier_disk(const struct kvt_pool *p, __u32 rank, const struct kvt_disk *d)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(p, &a, KVTIER_TIER_BDEV, rank);
	snprintf(a.path, sizeof(a.path), "%s", d->dev);
	return attach(p, &a);
}

int kvt_tier_dm(const struct kvt_pool *p, __u32 rank, const struct kvt_dm *d, __u64 segment_bytes)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(p, &a, KVTIER_TIER_BDEV, rank);
	a.segment_bytes = segment_bytes;
	snprintf(a.path, sizeof(a.path), "%s", d->disk.dev);
	KVT_UNTIL(5000, (err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, &a)) != -EBUSY);
	return err ? err : (int)a.tier_id;
}

int kvt_tier_detach(const struct kvt_pool *p, __u32 tier, __u32 flags, __u64 timeout_ns)
{
	struct kvtier_tier_op a = {
		.size = sizeof(a),
		.flags = flags,
		.pool_id = p->id,
		.tier_id = tier,
		.timeout_ns = KVT_PATIENCE_NS(timeout_ns),
	};

	return kvt_ioctl(p->ctl, KVTIER_OP_TIER_DETACH, &a);
}

static bool dax_driven_by(const char *name, const char *driver)
{
	char path[128], link[256];
	ssize_t n;

	snprintf(path, sizeof(path), DAX_BUS "/devices/%s/driver", name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return !driver;
	link[n] = 0;
	return driver && !strcmp(strrchr(link, '/') + 1, driver);
}

int kvt_dax_bind(const char *name, const char *driver)
{
	char path[128];

	if (!name)
		return -ENODEV;
	if (dax_driven_by(name, driver))
		return 0;
	if (!dax_driven_by(name, NULL)) {
		snprintf(path, sizeof(path), DAX_BUS "/devices/%s/driver/unbind", name);
		write_file(path, name);
	}
	/* Success of the write says nothing about the probe; look at the link. */
	snprintf(path, sizeof(path), DAX_BUS "/drivers/%s/new_id", driver);
	write_file(path, name);
	if (dax_driven_by(name, driver))
		return 0;
	snprintf(path, sizeof(path), DAX_BUS "/drivers/%s/bind", driver);
	write_file(path, name);
	if (dax_driven_by(name, driver))
		return 0;
	fprintf(stderr, "# %s cannot be bound to driver %s\n", name, driver);
	return -ENODEV;
}

int kvt_become(uid_t uid)
{
	if (!uid) {
		if (setresuid(0, 0, 0) || setresgid(0, 0, 0))
			return -errno;
		return 0;
	}
	if (setgroups(0, NULL) || setresgid(uid, uid, 0) || setresuid(uid, uid, 0))
		return -errno;
	return 0;
}

int kvt_open(const struct kvt_pool *p)
{
	int fd = open(p->node, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kvt_open_as(const struct kvt_pool *p, uid_t uid)
{
	int fd, err = kvt_become(uid);

	if (err)
		return err;
	fd = open(p->open_node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	err = kvt_become(0);
	return err ? err : fd;
}

int kvt_client_bind(struct kvt_client *c, int fd, struct kvtier_ns_open *a)
{
	const struct kvtier_group *groups = (void *)(uintptr_t)a->groups;
	struct kvtier_query q;
	__u32 i;
	int err;

	memset(c, 0, sizeof(*c));
	c->fd = fd;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, a);
	if (err)
		return err;
	c->ns_id = a->ns_id;
	for (i = 0; i < a->nr_groups; i++)
		c->block_bytes[i] = groups[i].block_bytes;
	err = kvt_query(fd, &q, NULL);
	if (err < 0 || !q.window_bytes)
		return err < 0 ? err : 0;
	err = kvt_map(fd, PROT_READ, 0, q.window_bytes, &c->rd);
	if (!err && !(a->flags & KVTIER_NS_RDONLY))
		err = kvt_map(fd, PROT_READ | PROT_WRITE, a->fill_offset, q.window_bytes, &c->wr);
	return err;
}

int kvt_client_open(const struct kvt_pool *p, struct kvt_client *c, const char *identity,
		    __u64 block_bytes)
{
	struct kvtier_group group = { .block_bytes = block_bytes };
	struct kvtier_ns_open a;
	int fd = kvt_open(p), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, identity, &group, 1);
	err = kvt_client_bind(c, fd, &a);
	if (err)
		kvt_client_close(c);
	return err;
}

void kvt_client_close(struct kvt_client *c)
{
	kvt_unmap(&c->rd);
	kvt_unmap(&c->wr);
	if (c->fd > 0)
		close(c->fd);
	c->fd = -1;
}

int kvt_sysfs_write(const struct kvt_pool *p, const char *name, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), SYSFS_CLASS "/kvtier%u/%s", p->id, name);
	return write_file(path, value);
}

static void hook_path(const char *name, char *path, size_t len)
{
	snprintf(path, len, "/sys/module/kvtier/parameters/test_%s", name);
}

bool kvt_hook(const char *name)
{
	char path[128];

	hook_path(name, path, sizeof(path));
	return !access(path, F_OK);
}

int kvt_hook_set(const char *name, const char *value)
{
	char path[128];

	hook_path(name, path, sizeof(path));
	return write_file(path, value);
}

int kvt_hook_number(const char *name, unsigned long long value)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", value);
	return kvt_hook_set(name, buf);
}

int kvt_sysfs_read(const struct kvt_pool *p, const char *name, char *buf, size_t len)
{
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), SYSFS_CLASS "/kvtier%u/%s", p->id, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	if (n < 0)
		n = -errno;
	else
		buf[n] = 0;
	close(fd);
	return (int)n;
}

#define NS_NAME_MAX	80

static void ns_name(const struct kvt_client *c, const char *name, char *path)
{
	snprintf(path, NS_NAME_MAX, "namespaces/%llu/%s", (unsigned long long)c->ns_id, name);
}

int kvt_ns_set(const struct kvt_pool *p, const struct kvt_client *c, const char *name,
	       const char *value)
{
	char path[NS_NAME_MAX];

	ns_name(c, name, path);
	return kvt_sysfs_write(p, path, value);
}

int kvt_ns_set_number(const struct kvt_pool *p, const struct kvt_client *c, const char *name,
		      unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	return kvt_ns_set(p, c, name, text);
}

long long kvt_ns_number(const struct kvt_pool *p, const struct kvt_client *c, const char *name)
{
	char path[NS_NAME_MAX], text[32];
	int n;

	ns_name(c, name, path);
	n = kvt_sysfs_read(p, path, text, sizeof(text));
	return n < 0 ? n : strtoll(text, NULL, 10);
}
