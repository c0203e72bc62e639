// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoint bodies.
 */
#define CREATE_TRACE_POINTS
#include "kvt_trace.h"
