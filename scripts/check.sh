#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the test suites and adds their results up: check.sh quick|full|long
# [SUITE]...   Naming suites runs only those.
#
# A suite is an executable scripts/suite-NAME.sh (arguments after a colon) that
# prints one line per test, "ok NAME", "not ok NAME" or "skip NAME # reason",
# and anything else as detail.  A suite that ends badly or reports nothing
# counts as a failure, whatever it printed.  The last line is always
# "N passed, N failed, N skipped"; the exit status is 1 when something failed.
#
# TRACES=DIR (real request traces) and KVT_LENGTH (quick, full, long: how long
# randomized tests run) are handed on in the environment.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

QUICK=(host kselftest:stock)
FULL=(static newest host rig dkms kunit kselftest:stock kselftest:debug demo)

PASSED=0
FAILED=0
SKIPPED=0
SUMMARY=()
SKIPS=()
FAILURES=()

count()
{
	grep -c "$1" "$2" || true
}

run_suite()
{
	local suite=$1 name arg status=0 log start seconds passed failed skipped
	name=${suite%%:*}
	arg=
	[ "$name" = "$suite" ] || arg=${suite#*:}
	log="$KVT_OUT/check/${suite/:/-}.log"
	echo "=== $suite"
	start=$SECONDS
	# shellcheck disable=SC2086 # no argument when it is empty
	"$KVT_ROOT/scripts/suite-$name.sh" $arg 2>&1 </dev/null | tee "$log" || status=$?
	seconds=$((SECONDS - start))
	passed=$(count '^ok ' "$log")
	failed=$(count '^not ok ' "$log")
	skipped=$(count '^skip ' "$log")
	if [ "$failed" -eq 0 ] && [ $((passed + skipped)) -eq 0 ]; then
		echo "# the suite reported nothing (exit status $status)"
		echo "not ok $suite" | tee -a "$log"
		failed=1
	elif [ "$failed" -eq 0 ] && [ "$status" -ne 0 ]; then
		echo "# the suite ended with status $status"
		echo "not ok $suite.exit" | tee -a "$log"
		failed=1
	fi
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
	SKIPPED=$((SKIPPED + skipped))
	SUMMARY+=("$(printf '%-18s %5d s  %4d passed  %3d failed  %3d skipped' \
		"$suite" "$seconds" "$passed" "$failed" "$skipped")")
	mapfile -t -O "${#SKIPS[@]}" SKIPS < <(grep '^skip ' "$log" || true)
	mapfile -t -O "${#FAILURES[@]}" FAILURES < <(grep '^not ok ' "$log" || true)
}

report()
{
	echo
	printf '%s\n' "${SUMMARY[@]}"
	if [ ${#SKIPS[@]} -gt 0 ]; then
		printf '%s\n' '' 'Skipped:' "${SKIPS[@]/#/  }"
	fi
	if [ ${#FAILURES[@]} -gt 0 ]; then
		printf '%s\n' '' 'Failed (logs in out/check):' "${FAILURES[@]/#/  }"
	fi
	echo
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
}

main()
{
	local suites suite mode=${1:-full}
	[ $# -eq 0 ] || shift
	case $mode in
	quick) suites=("${QUICK[@]}") ;;
	full | long) suites=("${FULL[@]}") ;;
	*) die "usage: check.sh quick|full|long [SUITE]..." ;;
	esac
	[ $# -eq 0 ] || suites=("$@")
	export KVT_LENGTH=$mode
	rm -rf "$KVT_OUT/check"
	mkdir -p "$KVT_OUT/check"
	if ! "$KVT_ROOT/scripts/setup.sh" all; then
		echo 'not ok setup'
		echo '0 passed, 1 failed, 0 skipped'
		exit 1
	fi
	for suite in "${suites[@]}"; do
		run_suite "$suite"
	done
	report
	[ "$FAILED" -eq 0 ]
}

main "$@"
