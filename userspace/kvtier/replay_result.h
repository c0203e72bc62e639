/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The result of a replay as one JSON object, and as tables.
 */
#ifndef KVTIER_REPLAY_RESULT_H
#define KVTIER_REPLAY_RESULT_H

#include <stdbool.h>
#include <stdio.h>

#include "replay.h"
#include "replay_watch.h"

/**
 * replay_result - everything there is to tell
 * @watch:       finished
 * @failed:      processes that gave up or were killed
 * @interrupted: ended early by a signal
 *
 * Member names are an interface: see Documentation. Never NULL.
 */
struct json_object *replay_result(const struct replay_watch *watch,
				  const struct replay_seen *seen,
				  unsigned int failed, bool interrupted);

#endif
