#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Readers, fillers, evictor, drainer, poisoner and killer at once, for long:
# torture.sh [SECONDS [stock|debug|kcsan]] (an hour on the stock kernel).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=${1:-3600}
kernel=${2:-stock}
{
	"$KVT_ROOT/scripts/build-modules.sh" "$kernel"
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
exec "$KVT_ROOT/selftests/vm/run.sh" --kernel "$kernel" --timeout $((seconds + 1800)) \
	--env KVT_KERNEL="$kernel" --env KVT_TEST_TIMEOUT_S=$((seconds + 1200)) \
	--env KVT_TORTURE_SECONDS="$seconds" -- bash /kvt/guest/kselftest.sh torture
