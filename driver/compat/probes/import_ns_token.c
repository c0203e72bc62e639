// SPDX-License-Identifier: GPL-2.0
/* MODULE_IMPORT_NS() takes a bare word. Newer kernels take a string. */
#include <linux/module.h>

#ifndef KVT_CONTROL
MODULE_IMPORT_NS(KVT_PROBE);
#endif
