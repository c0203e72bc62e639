// SPDX-License-Identifier: GPL-2.0
/*
 * Canary: must not compile, or every other probe would seem to succeed. It fails
 * the way the others do: a function without a declaration.
 */
#include <linux/mm.h>

int kvt_probe(void);

int kvt_probe(void)
{
	return kvt_no_kernel_has_this_function(0);
}
