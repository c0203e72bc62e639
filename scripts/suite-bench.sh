#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What GET and RELEASE of blocks in memory cost, in instructions as the machine's clock counts
# them; at full length among a million blocks, too. What is promised: selftests/bench/promises.py.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

exec "$KVT_ROOT/selftests/bench/run.sh" gets
