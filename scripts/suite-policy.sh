#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What the default policy takes for each block asked for, in instructions as the machine's clock
# counts them: on claudeA where TRACES has it, else on the generator's agents.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

exec "$KVT_ROOT/selftests/bench/run.sh" policy
