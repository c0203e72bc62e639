// SPDX-License-Identifier: GPL-2.0
/* What is done about a bad page is an event of its own. */
#include <linux/mm.h>
#include <linux/tracepoint.h>

#ifndef KVT_CONTROL
#include <trace/events/memory-failure.h>

void kvt_probe(void);

static void kvt_probe_hear(void *data, unsigned long pfn, int type, int result)
{
}

void kvt_probe(void)
{
	check_trace_callback_type_memory_failure_event(kvt_probe_hear);
}
#endif
