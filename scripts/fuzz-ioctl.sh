#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The fuzzer of the commands, for long: fuzz-ioctl.sh [SECONDS [SEED]] (an hour, any seed).
#
# out/fuzz-ioctl/sequences has the last sequences that were run, also when the machine has
# died; fuzz-ioctl.sh replay FILE runs such a file again.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

WORK="$KVT_OUT/fuzz-ioctl"
{
	"$KVT_ROOT/scripts/build-modules.sh" debug
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
mkdir -p "$WORK"
if [ "${1:-}" = replay ]; then
	cp "${2:?file}" "$WORK/replay"
	seconds=3600
	what=(--env KVT_FUZZ_REPLAY=/host/replay)
else
	seconds=${1:-3600}
	what=(--env KVT_FUZZ_SECONDS="$seconds" --env KVT_FUZZ_SEED="${2:-$RANDOM$RANDOM}"
		--env KVT_FUZZ_TRACE=/host/sequences)
fi
exec "$KVT_ROOT/selftests/vm/run.sh" --kernel debug --timeout $((seconds + 1800)) \
	--share "$WORK" --log "$WORK/kernel.log" --env KVT_KERNEL=debug \
	--env KVT_TEST_TIMEOUT_S=$((seconds + 1200)) "${what[@]}" -- bash /kvt/guest/kselftest.sh fuzz
