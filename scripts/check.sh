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

# In the order in which they start. Long ones first: the machine is kept busy to
# the end then.
QUICK=(kselftest:stock host)
FULL=(kselftest:debug kselftest:stock host crash static dkms demo rig same teeth:core pmem cxl newest removal bench)
LONG=(kselftest:debug:1/2 kselftest:debug:2/2 host kselftest:stock crash kcsan demo pmem cxl removal
	cxl:debug removal:debug rig same policy bench static dkms newest teeth)

# Suites that boot machines, at a time.  Such a machine has two processors.  Three of them on two
# real ones would wait for locks whose holders do not run.
LANES=$(($(nproc) < 2 ? 1 : 2))
# Of the others one at a time goes beside them, and takes what they leave: a machine whose tests
# wait, for timers and for devices, needs no processor.
BESIDE=(host static dkms newest)

PASSED=0
FAILED=0
SKIPPED=0
YARDSTICK_MS=0
SUMMARY=()
SKIPS=()
FAILURES=()
declare -A RUNNING=()	# process group of a suite -> its name

count()
{
	grep -c "$1" "$2" || true
}

log_of()
{
	local name=${1//:/-}
	echo "$KVT_OUT/check/${name//\//of}.log"
}

# suite_command SUITE : the suite's script and its argument, in the array COMMAND.
suite_command()
{
	local name=${1%%:*}
	COMMAND=("$KVT_ROOT/scripts/suite-$name.sh")
	[ "$name" = "$1" ] || COMMAND+=("${1#*:}")
}

# cpu_seconds FILE : the sum of the second line there, which is what the shell builtin times
# says of processes that were waited for.
cpu_seconds()
{
	tail -n 1 "$1" | awk -F '[ms ]+' '{ printf "%d\n", ($1 + $3) * 60 + $2 + $4 }'
}

# How long a fixed piece of work takes on all processors at once, in ms: suites take twice
# as long on a machine that is half as fast, which the same one may be an hour later.
yardstick_ms()
{
	local start i
	start=$(date +%s%N)
	for ((i = 0; i < $(nproc); i++)); do
		awk 'BEGIN { for (i = 0; i < 10000000; i++) sum += i % 7 }' &
	done
	wait
	echo $((($(date +%s%N) - start) / 1000000))
}

# is_beside SUITE : does it boot no machine?
is_beside()
{
	[[ " ${BESIDE[*]} " == *" ${1%%:*} "* ]]
}

# In a process group of its own, which can be ended as one. A scheduler that groups by session
# (autogroup) looks at the group's nice value only.
start_suite()
{
	local log nice=0
	log=$(log_of "$1")
	! is_beside "$1" || nice=5
	suite_command "$1"
	# shellcheck disable=SC2016 # for the shell that is started
	setsid bash -c 'status=0
		log=$1
		nice=$2
		shift 2
		if [ "$nice" -gt 0 ]; then
			renice -n "$nice" -p $$ >/dev/null 2>&1 || true
			{ echo "$nice" >/proc/self/autogroup; } 2>/dev/null || true
		fi
		"$@" >"$log" 2>&1 </dev/null || status=$?
		times >"$log.times"
		echo "$status $SECONDS" >"$log.end"' suite "$log" "$nice" "${COMMAND[@]}" &
	RUNNING[$!]=$1
	echo "=== $1: started"
}

# has_room SUITE : may it start now?
has_room()
{
	local suite machines=0 beside=0
	for suite in "${RUNNING[@]}"; do
		if is_beside "$suite"; then
			beside=$((beside + 1))
		else
			machines=$((machines + 1))
		fi
	done
	if is_beside "$1"; then
		[ "$beside" -eq 0 ]
	else
		[ "$machines" -lt "$LANES" ]
	fi
}

# Waits for one to end and shows what it has said.
finish_suite()
{
	local pid='' suite log status=255 seconds=0 cpu=0
	wait -n -p pid "${!RUNNING[@]}" || true
	suite=${RUNNING[$pid]}
	unset "RUNNING[$pid]"
	log=$(log_of "$suite")
	if [ -e "$log.end" ]; then
		read -r status seconds <"$log.end"
		cpu=$(cpu_seconds "$log.times")
	fi
	echo "=== $suite"
	[ ! -e "$log" ] || cat "$log"
	judge_suite "$suite" "$status" "$seconds" "$cpu"
}

end_suites()
{
	local pid
	for pid in "${!RUNNING[@]}"; do
		kill -- "-$pid" 2>/dev/null || true
	done
}

# failures LOG : what failed, and after each the last that was said of it. Who has only the report,
# as of a machine that is gone, is to know what was expected.
failures()
{
	awk '/^not ok / { print; for (i = n > 6 ? n - 6 : 0; i < n; i++) print "    " said[i] }
		/^(ok|not ok|skip) / || /^# *# *RUN / { n = 0; next }
		{ said[n++] = substr($0, 1, 200) }' "$1"
}

# judge_suite SUITE STATUS SECONDS CPU-SECONDS : adds what its log says to the totals.
judge_suite()
{
	local suite=$1 status=$2 seconds=$3 cpu=$4 log passed failed skipped
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
	SUMMARY+=("$(printf '%-19s %5d s (%5d s of a processor)  %4d passed  %3d failed  %3d skipped' \
		"$suite" "$seconds" "$cpu" "$passed" "$failed" "$skipped")")
	mapfile -t -O "${#SKIPS[@]}" SKIPS < <(grep '^skip ' "$log" || true)
	mapfile -t -O "${#FAILURES[@]}" FAILURES < <(failures "$log")
}

# skipped_on KERNEL [REASON] : tests that it has skipped, for that or for any reason.
skipped_on()
{
	printf '%s\n' ${SKIPS[@]+"${SKIPS[@]}"} |
		sed -n "s/^skip kselftest-$1\.\([^ ]*\) # ${2:-}.*/\1/p" | sort -u
}

# Tests that one kernel leaves to the other, which cannot run them: no kernel has.
judge_lost()
{
	local lost later='at full length only'
	lost=$(comm -23 <(skipped_on stock) <(skipped_on stock "$later") |
		comm -12 - <(skipped_on debug "$later"))
	[ -n "$lost" ] || return 0
	while IFS= read -r lost; do
		FAILURES+=("not ok kselftest.$lost is in long.list, and Debian's kernel cannot run it")
		FAILED=$((FAILED + 1))
	done <<<"$lost"
}

report()
{
	echo
	printf '%s\n' "${SUMMARY[@]}"
	echo "yardstick: $YARDSTICK_MS ms before, $(yardstick_ms) ms after"
	if [ ${#SKIPS[@]} -gt 0 ]; then
		printf '%s\n' '' 'Skipped:' "${SKIPS[@]/#/  }"
	fi
	if [ ${#FAILURES[@]} -gt 0 ]; then
		printf '%s\n' '' 'Failed (logs in out/check):' "${FAILURES[@]/#/  }"
	fi
	echo
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
}

# What nearly all of them use is built before, so that they do not build it at the
# same time; what cannot be built is for the suites to report. Modules they build themselves:
# who is first does, while others go on.
build_shared()
{
	make -s --no-print-directory "-j$(nproc)" -C "$KVT_ROOT" tools kselftest \
		>"$KVT_OUT/check/build.log" 2>&1 || true
}

run_suites()
{
	local suite left
	trap end_suites EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	while [ $# -gt 0 ]; do
		left=()
		for suite in "$@"; do
			if has_room "$suite"; then
				start_suite "$suite"
			else
				left+=("$suite")
			fi
		done
		set -- ${left[@]+"${left[@]}"}
		[ $# -eq 0 ] || finish_suite
	done
	while [ ${#RUNNING[@]} -gt 0 ]; do
		finish_suite
	done
}

main()
{
	local suites mode=${1:-full}
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
	build_shared
	YARDSTICK_MS=$(yardstick_ms)
	run_suites "${suites[@]}"
	judge_lost
	report
	[ "$FAILED" -eq 0 ]
}

main "$@"
