#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The core's KUnit tests, in the instrumented kernel.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

"$KVT_ROOT/scripts/build-modules.sh" debug >&2
exec "$KVT_ROOT/selftests/vm/run.sh" --kernel debug --timeout 1200 -- bash /kvt/guest/kunit.sh
