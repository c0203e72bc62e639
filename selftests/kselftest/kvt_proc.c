// SPDX-License-Identifier: GPL-2.0
/*
 * Other processes: a child runs a function and talks to its parent by single
 * numbers over a socket pair. Children die with the test and are remembered, so
 * that a failed test leaves none behind.
 */
#include "kvt_test.h"
#include <poll.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define CHILDREN_MAX	256

static pid_t children[CHILDREN_MAX];

static void remember(pid_t pid)
{
	int i;

	for (i = 0; i < CHILDREN_MAX; i++)
		if (!children[i]) {
			children[i] = pid;
			return;
		}
}

static void forget(pid_t pid)
{
	int i;

	for (i = 0; i < CHILDREN_MAX; i++)
		if (children[i] == pid)
			children[i] = 0;
}

int kvt_spawn(struct kvt_child *c, kvt_child_fn fn, void *arg)
{
	struct kvt_child me = { 0 };
	int line[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line))
		return -errno;
	fflush(NULL);
	c->pid = fork();
	if (c->pid < 0) {
		close(line[0]);
		close(line[1]);
		return -EAGAIN;
	}
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(children, 0, sizeof(children));
		close(line[0]);
		me.line = line[1];
		_exit(fn(&me, arg));
	}
	close(line[1]);
	c->line = line[0];
	remember(c->pid);
	return 0;
}

int kvt_say(const struct kvt_child *c, int word)
{
	ssize_t n = send(c->line, &word, sizeof(word), MSG_NOSIGNAL);

	return n == sizeof(word) ? 0 : -EPIPE;
}

int kvt_hear(const struct kvt_child *c, int timeout_ms)
{
	struct pollfd pfd = { .fd = c->line, .events = POLLIN };
	int word;

	if (poll(&pfd, 1, KVT_PATIENCE_MS(timeout_ms)) != 1)
		return -ETIMEDOUT;
	return recv(c->line, &word, sizeof(word), MSG_WAITALL) == sizeof(word) ? word : -EPIPE;
}

static int ended(struct kvt_child *c, int status)
{
	forget(c->pid);
	close(c->line);
	c->pid = 0;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int kvt_join(struct kvt_child *c, int timeout_ms)
{
	int status = 0;

	if (!KVT_UNTIL(timeout_ms, waitpid(c->pid, &status, WNOHANG) == c->pid))
		return -ETIMEDOUT;
	return ended(c, status);
}

void kvt_kill(struct kvt_child *c, int sig)
{
	if (c->pid > 0)
		kill(c->pid, sig);
}

void kvt_kill_all(void)
{
	int i;

	for (i = 0; i < CHILDREN_MAX; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
}

char kvt_proc_state(pid_t pid)
{
	char path[64], buf[256], *paren;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	paren = strrchr(buf, ')');
	return paren ? paren[2] : 0;
}

/* Number of the call that it sleeps in; -1: it runs, or is gone. */
static int sleeps_in(pid_t pid)
{
	char path[64], buf[256] = "", *end;
	int fd, nr = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (read(fd, buf, sizeof(buf) - 1) > 0)
		nr = (int)strtol(buf, &end, 10);
	if (nr >= 0 && end == buf)
		nr = -1;	/* "running" */
	close(fd);
	return nr;
}

bool kvt_in_ioctl(pid_t pid)
{
	int looks = 0;

	/* Not one that it only sleeps in for a moment. */
	return KVT_UNTIL(20000, ({
		looks = sleeps_in(pid) == SYS_ioctl ? looks + 1 : 0;
		looks == 10;
	}));
}

__u64 kvt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * KVT_SEC + ts.tv_nsec;
}

void kvt_sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static FILE *start_shell(const char *fmt, va_list ap)
{
	char cmd[512];

	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	fflush(NULL);
	return popen(cmd, "r");
}

static int end_shell(FILE *f)
{
	char rest[256];
	int status;

	while (fgets(rest, sizeof(rest), f))
		;
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int kvt_sh(const char *fmt, ...)
{
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	f = start_shell(fmt, ap);
	va_end(ap);
	return f ? end_shell(f) : 127;
}

int kvt_sh_line(char *line, size_t len, const char *fmt, ...)
{
	va_list ap;
	FILE *f;

	line[0] = 0;
	va_start(ap, fmt);
	f = start_shell(fmt, ap);
	va_end(ap);
	if (!f)
		return 127;
	if (fgets(line, (int)len, f))
		line[strcspn(line, "\n")] = 0;
	return end_shell(f);
}

bool kvt_cgroups_have(const char *controller)
{
	return !kvt_sh("cd /sys/fs/cgroup && grep -qw %s cgroup.controllers 2>&1 && echo +%s >cgroup.subtree_control",
		       controller, controller);
}
