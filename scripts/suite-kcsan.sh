#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The concurrency tests on the kernel that looks for data races: suite-kcsan.sh [TEST]...
#
# KCSAN names in the first line of a report the two functions that raced, and the module
# each is of. Those of which at least one is in a module of ours fail the test that ran
# then; the kernel's own do not count (guest/splat.regex). Before that, a module with a data
# race in it must be reported, or nothing is known.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

STATUS=0
OUTPUT=$(mktemp)
trap 'rm -f "$OUTPUT"' EXIT

# machine ARG... : of run.sh. Watchpoints are set more often than by default: there are few
# processors, and tests are short.
machine()
{
	"$KVT_ROOT/selftests/vm/run.sh" --kernel kcsan --append kcsan.skip_watch=1500 "$@"
}

notices()
{
	local status=0
	machine --timeout 300 -- 'modprobe kvt_testrace && rmmod kvt_testrace
		grep -E "^(enabled|setup_watchpoints|data_races)" /sys/kernel/debug/kcsan' \
		>"$OUTPUT" 2>&1 || status=$?
	sed 's/^/# /' "$OUTPUT"
	if [ "$status" -eq 1 ] && grep -q 'BUG: KCSAN: data-race in .*\[kvt_testrace' "$OUTPUT"; then
		echo "ok kcsan.notices"
	else
		echo "not ok kcsan.notices"
		STATUS=1
	fi
}

programs()
{
	machine --timeout 7200 --zns 2 --env KVT_LENGTH=full --env KVT_KERNEL=kcsan \
		--env KVT_TEST_TIMEOUT_S=1600 --env KVT_TORTURE_SECONDS="${KVT_TORTURE_SECONDS:-60}" \
		-- bash /kvt/guest/kselftest.sh "$@" | sed -u -E 's/^(ok|not ok|skip) kselftest\./\1 kcsan./'
}

{
	"$KVT_ROOT/scripts/build-modules.sh" kcsan
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
if [ $# -eq 0 ]; then
	notices
	set -- dedup async handover pressure tier session copies killed fixed charge shrink poison poison_copy \
		sweep redteam_ops torture teardown
fi
programs "$@" || STATUS=1
exit $STATUS
