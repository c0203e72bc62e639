// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's log during one test: what a healthy kernel never says fails the
 * test that made it say so. The list of expressions is the rig's; outside of it a
 * short one of our own is used.
 */
#include "kvt_test.h"
#include <regex.h>

#define LINES_SHOWN	40

static int kmsg = -1;

void kvt_klog_start(void)
{
	if (kmsg >= 0)
		close(kmsg);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
}

static int load_regex(regex_t *re)
{
	char expr[1024] = "WARNING:|BUG:|KASAN|UBSAN:|INFO: |Oops|general protection";
	FILE *f = fopen("/kvt/guest/splat.regex", "r");

	if (f) {
		if (fgets(expr, sizeof(expr), f))
			expr[strcspn(expr, "\n")] = 0;
		fclose(f);
	}
	return regcomp(re, expr, REG_EXTENDED | REG_NOSUB);
}

/* The text of the next record in @buf; false at the end. */
static bool next_record(char *buf, size_t len, char **text)
{
	ssize_t n;

	do {
		n = read(kmsg, buf, len - 1);
		/* EPIPE: records were overwritten before we came to read them. */
	} while (n < 0 && errno == EPIPE);
	if (n <= 0)
		return false;
	buf[n] = 0;
	*text = strchr(buf, ';');
	*text = *text ? *text + 1 : buf;
	(*text)[strcspn(*text, "\n")] = 0;
	return true;
}

int kvt_klog_complaints(void)
{
	char buf[4096], *text;
	int nr = 0, show = 0;
	regex_t re;

	if (kmsg < 0)
		return 0;
	if (load_regex(&re)) {
		fprintf(stderr, "# the expression for kernel complaints is broken\n");
		return 1;
	}
	while (next_record(buf, sizeof(buf), &text)) {
		if (!regexec(&re, text, 0, NULL, 0)) {
			if (!nr++)
				fprintf(stderr, "# the kernel complained:\n");
			show = LINES_SHOWN;
		}
		if (show > 0) {
			fprintf(stderr, "#   %s\n", text);
			show--;
		}
	}
	regfree(&re);
	return nr;
}
