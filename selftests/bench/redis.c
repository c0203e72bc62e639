// SPDX-License-Identifier: GPL-2.0
/*
 * Redis over a unix socket: GET and SET, as many in a pipeline as a batch has
 * blocks.
 *
 * The client is as cheap as one can be, in Redis' favour: what is sent goes from
 * where it lies, what comes is read to where it is wanted, by sizes known
 * beforehand, and nothing is allocated.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "bench.h"

#define HEAD_MAX	128
#define CONNECT_TRIES	200

static char head[HEAD_MAX];
static size_t head_len;

/**
 * redis_open() - connect to a server that may still be starting
 * @e:    gets @sock
 * @path: its socket
 */
void redis_open(struct env *e, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int i;

	if (strlen(path) >= sizeof(addr.sun_path))
		die("%s: too long", path);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	e->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (e->sock < 0)
		die("socket: %s", strerror(errno));
	for (i = 0; connect(e->sock, (struct sockaddr *)&addr, sizeof(addr)); i++) {
		if (i == CONNECT_TRIES)
			die("%s: %s", path, strerror(errno));
		usleep(50000);
	}
}

static void send_all(int fd, struct iovec *iov, int n)
{
	while (n) {
		ssize_t done = writev(fd, iov, n);

		if (done < 0)
			die("redis, writing: %s", strerror(errno));
		for (; n && (size_t)done >= iov->iov_len; iov++, n--)
			done -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
}

static void receive_all(int fd, struct iovec *iov, int n)
{
	while (n) {
		ssize_t done = readv(fd, iov, n);

		if (done <= 0)
			die("redis, reading: %s", done ? strerror(errno) : "closed");
		for (; n && (size_t)done >= iov->iov_len; iov++, n--)
			done -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
}

static void expect_reply(struct env *e, const char *want, size_t len)
{
	char got[HEAD_MAX];
	struct iovec iov = { got, len };

	receive_all(e->sock, &iov, 1);
	if (memcmp(got, want, len))
		die("redis answered '%.*s'", (int)len, got);
}

/* All commands of a batch are written at once. */
static void send_names(struct env *e, unsigned int at)
{
	struct iovec iov[3 * BLOCKS_MAX];
	unsigned int i, n = 0;

	for (i = 0; i < e->batch; i++) {
		iov[n++] = (struct iovec){ head, head_len };
		iov[n++] = (struct iovec){ e->keys[at + i].b, KVTIER_KEY_BYTES };
		iov[n++] = (struct iovec){ "\r\n", 2 };
	}
	send_all(e->sock, iov, (int)n);
}

static void get(struct env *e)
{
	static char got[HEAD_MAX], end[2];
	char want[HEAD_MAX];
	unsigned int at, i;
	size_t len;

	len = (size_t)snprintf(want, sizeof(want), "$%zu\r\n", e->block_bytes);
	head_len = (size_t)snprintf(head, sizeof(head), "*2\r\n$3\r\nGET\r\n$%d\r\n",
				    KVTIER_KEY_BYTES);
	for (at = 0; at < e->blocks; at += e->batch) {
		send_names(e, at);
		for (i = 0; i < e->batch; i++) {
			struct iovec iov[3] = { { got, len }, { e->dst, e->block_bytes },
						{ end, 2 } };

			receive_all(e->sock, iov, 3);
			if (memcmp(got, want, len))
				die("redis answered '%.*s'", (int)len, got);
			check_stamp(e, e->dst, at + i);
		}
	}
}

static void set(struct env *e)
{
	char size[HEAD_MAX];
	unsigned int at, i;
	size_t len;

	len = (size_t)snprintf(size, sizeof(size), "\r\n$%zu\r\n", e->block_bytes);
	head_len = (size_t)snprintf(head, sizeof(head), "*3\r\n$3\r\nSET\r\n$%d\r\n",
				    KVTIER_KEY_BYTES);
	for (at = 0; at < e->blocks; at += e->batch) {
		for (i = 0; i < e->batch; i++) {
			struct iovec iov[5] = { { head, head_len },
						{ e->keys[at + i].b, KVTIER_KEY_BYTES },
						{ size, len }, { e->src, e->block_bytes },
						{ "\r\n", 2 } };

			stamp(e, e->src, at + i);
			send_all(e->sock, iov, 5);
		}
		for (i = 0; i < e->batch; i++)
			expect_reply(e, "+OK\r\n", 5);
	}
}

static void flush(struct env *e)
{
	static const char all[] = "*2\r\n$8\r\nFLUSHALL\r\n$4\r\nSYNC\r\n";
	struct iovec iov = { (void *)all, sizeof(all) - 1 };

	send_all(e->sock, &iov, 1);
	expect_reply(e, "+OK\r\n", 5);
}

/**
 * redis_works() - GET and SET
 * @e: sizes and keys set; nothing is left in the server
 */
void redis_works(struct env *e)
{
	static const struct work writes = { "redis", "put_copy", flush, set, NULL };
	static const struct work reads = { "redis", "get_copy", NULL, get, NULL };

	measure(e, &writes);
	measure(e, &reads);
	flush(e);
}
