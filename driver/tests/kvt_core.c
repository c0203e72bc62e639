// SPDX-License-Identifier: GPL-2.0
/*
 * The core, compiled once more for kvtier_kunit.ko: an object cannot be part of
 * two modules, and the module proper exports nothing.
 */
#include <linux/module.h>

#include "../core/kvt_ahead.c"
#include "../core/kvt_block.c"
#include "../core/kvt_chain.c"
#include "../core/kvt_cost.c"
#include "../core/kvt_format.c"
#include "../core/kvt_hint.c"
#include "../core/kvt_hold.c"
#include "../core/kvt_index.c"
#include "../core/kvt_life.c"
#include "../core/kvt_log.c"
#include "../core/kvt_mem.c"
#include "../core/kvt_merge.c"
#include "../core/kvt_piece.c"
#include "../core/kvt_policy.c"
#include "../core/kvt_policy_ask.c"
#include "../core/kvt_policy_gate.c"
#include "../core/kvt_policy_learn.c"
#include "../core/kvt_policy_request.c"
#include "../core/kvt_policy_reuse.c"
#include "../core/kvt_policy_turn.c"
#include "../core/kvt_recover.c"
#include "../core/kvt_share.c"
#include "../core/kvt_wlog.c"
#include "../core/kvt_wlog_end.c"
#include "../core/kvt_wlog_seg.c"
#include "../core/kvt_zone.c"

MODULE_DESCRIPTION("Tests of kvtier's core");
MODULE_LICENSE("GPL");
