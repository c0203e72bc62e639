/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's tracepoint of what it does about bad pages: where it is declared, if its probes
 * have the arguments that ours has.
 */
#ifndef KVT_FRAMES_COMPAT_H
#define KVT_FRAMES_COMPAT_H

#include <linux/tracepoint.h>

#include "kvt_config.h"

#if defined(KVT_HAVE_BAD_PAGE_EVENT)
#include <trace/events/memory-failure.h>
#define KVT_HAVE_FRAMES_TRACEPOINT
#elif defined(KVT_HAVE_BAD_PAGE_EVENT_RAS)
#include <ras/ras_event.h>
#define KVT_HAVE_FRAMES_TRACEPOINT
#endif

#endif /* KVT_FRAMES_COMPAT_H */
