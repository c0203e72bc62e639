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

# Suites that run one after the other; A+B: a machine keeps one processor busy, so B
# runs beside it.
QUICK=(kselftest:stock+host)
FULL=(static newest rig dkms kunit kselftest:stock+host kselftest:debug crash demo)
LONG=(static newest host rig dkms kunit kselftest:stock kselftest:debug crash demo)

PASSED=0
FAILED=0
SKIPPED=0
SUMMARY=()
SKIPS=()
FAILURES=()
BESIDE=()	# process groups of suites in the background

count()
{
	grep -c "$1" "$2" || true
}

log_of()
{
	echo "$KVT_OUT/check/${1/:/-}.log"
}

# suite_command SUITE : the suite's script and its argument, in the array COMMAND.
suite_command()
{
	local name=${1%%:*}
	COMMAND=("$KVT_ROOT/scripts/suite-$name.sh")
	[ "$name" = "$1" ] || COMMAND+=("${1#*:}")
}

run_suite()
{
	local suite=$1 status=0 start=$SECONDS
	echo "=== $suite"
	suite_command "$suite"
	"${COMMAND[@]}" 2>&1 </dev/null | tee "$(log_of "$suite")" || status=$?
	judge_suite "$suite" "$status" $((SECONDS - start))
}

# In a process group of its own, which can be ended as one.
start_beside()
{
	suite_command "$1"
	# shellcheck disable=SC2016 # for the shell that is started
	setsid bash -c 'status=0
		log=$1
		shift
		"$@" >"$log" 2>&1 </dev/null || status=$?
		echo "$status $SECONDS" >"$log.end"' suite "$(log_of "$1")" "${COMMAND[@]}" &
	BESIDE+=("$!")
}

# Waits for it and shows what it has said.
finish_beside()
{
	local suite=$1 pid=$2 log status=255 seconds=0
	log=$(log_of "$suite")
	wait "$pid" || true
	[ ! -e "$log.end" ] || read -r status seconds <"$log.end"
	echo "=== $suite"
	cat "$log"
	judge_suite "$suite" "$status" "$seconds"
}

end_beside()
{
	local pid
	for pid in "${BESIDE[@]}"; do
		kill -- "-$pid" 2>/dev/null || true
	done
}

# judge_suite SUITE STATUS SECONDS : adds what its log says to the totals.
judge_suite()
{
	local suite=$1 status=$2 seconds=$3 log passed failed skipped
	log=$(log_of "$suite")
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

# The first one here, the other beside it.  What they all use is built before,
# so that they do not build it at the same time; one that cannot be built is for
# the suites to report.
run_together()
{
	local suite i=0
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest \
		>"$KVT_OUT/check/build.log" 2>&1 || true
	trap end_beside EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	for suite in "${@:2}"; do
		start_beside "$suite"
	done
	run_suite "$1"
	for suite in "${@:2}"; do
		finish_beside "$suite" "${BESIDE[i++]}"
	done
	BESIDE=()
}

main()
{
	local suites suite mode=${1:-full}
	[ $# -eq 0 ] || shift
	case $mode in
	quick) suites=("${QUICK[@]}") ;;
	full) suites=("${FULL[@]}") ;;
	long) suites=("${LONG[@]}") ;;
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
		case $suite in
		*+*) run_together "${suite%%+*}" "${suite#*+}" ;;
		*) run_suite "$suite" ;;
		esac
	done
	report
	[ "$FAILED" -eq 0 ]
}

main "$@"
