// SPDX-License-Identifier: GPL-2.0
/*
 * A page, by way of a pipe and a connection, in a mapping of a socket: the kernel puts the page
 * itself there, not a copy, and nothing but that mapping refers to it afterwards.
 */
#include "kvt_test.h"
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
/* After the C library's: both have an enumeration of states. */
#include <linux/tcp.h>

/* Two ends of a connection of this machine with itself; -1: there is none. */
static int connect_ends(int end[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	end[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	end[1] = -1;
	if (!bind(listener, (struct sockaddr *)&at, len) && !listen(listener, 1) &&
	    !getsockname(listener, (struct sockaddr *)&at, &len) &&
	    !connect(end[0], (struct sockaddr *)&at, len))
		end[1] = accept(listener, NULL, NULL);
	close(listener);
	return end[1];
}

static bool send_page(int to, const void *page, size_t bytes)
{
	struct iovec iov = { (void *)page, bytes };
	bool sent;
	int pipes[2];

	if (pipe(pipes))
		return false;
	sent = vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)bytes &&
	       splice(pipes[0], NULL, to, NULL, bytes, 0) == (ssize_t)bytes;
	close(pipes[0]);
	close(pipes[1]);
	return sent;
}

static const char *have_page(const void *page)
{
	struct tcp_zerocopy_receive got = { .length = getpagesize() };
	struct pollfd ready = { .events = POLLIN };
	socklen_t len = sizeof(got);
	void *view = MAP_FAILED;
	bool there = false;
	int end[2];

	ready.fd = connect_ends(end);
	if (ready.fd >= 0)
		view = mmap(NULL, got.length, PROT_READ, MAP_SHARED, ready.fd, 0);
	if (view != MAP_FAILED && send_page(end[0], page, got.length) &&
	    poll(&ready, 1, 10000) == 1) {
		got.address = KVT_U64(view);
		there = !getsockopt(ready.fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &got, &len) &&
			got.length == (__u32)getpagesize();
	}
	close(end[0]);
	if (ready.fd >= 0)
		close(ready.fd);
	if (!there && view != MAP_FAILED)
		munmap(view, getpagesize());
	return there ? view : NULL;
}

const char *kvt_socket_view(const void *page)
{
	cpu_set_t before, one;
	const char *view;

	/* What is received by another processor than it was sent by is freed some time. */
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	view = have_page(page);
	sched_setaffinity(0, sizeof(before), &before);
	return view;
}
