# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Helpers for shell tests inside the guest (sourced).
#
# Result protocol, on stdout: one line per test, "ok NAME", "not ok NAME"
# (its details come before it) or "skip NAME # reason".  The kernel log is
# part of every result: a test during which the kernel complained has failed.
#
# The log is read from a file that /init copies /dev/kmsg into, through one
# file descriptor whose position is "checked up to here".  A mark written to
# /dev/kmsg and awaited in the file makes sure that nothing is still on its
# way.  No process is started for it: a fork is expensive in this machine.

# What a healthy kernel never says.  The host greps with the same list.
KVT_SPLAT=$(</kvt/guest/splat.regex)
KVT_LOG_FILE=/run/kmsg.log
KVT_MARK=0
KVT_LOG_FD=
KVT_NAP_FD=
KVT_STRETCH=()

# nap SECONDS : as sleep does, but without a process: nothing ever comes out of this pipe.
nap()
{
	[ -n "$KVT_NAP_FD" ] || exec {KVT_NAP_FD}<> <(:)
	read -r -t "$1" <&"$KVT_NAP_FD" || true
}

# Reads the log up to now into KVT_STRETCH; 1 when there is a splat in it.
dmesg_read()
{
	local mark line='' part waited=0 splat=0
	[ -n "$KVT_LOG_FD" ] || exec {KVT_LOG_FD}<"$KVT_LOG_FILE"
	KVT_MARK=$((KVT_MARK + 1))
	mark="kvt-mark $BASHPID-$KVT_MARK"
	echo "<6>$mark" >/dev/kmsg
	KVT_STRETCH=()
	while :; do
		if ! IFS= read -r part <&"$KVT_LOG_FD"; then
			# The end of the file for now, perhaps inside a line.
			line+=$part
			if [ $((waited++)) -gt 3000 ]; then
				KVT_STRETCH+=("the kernel log stopped coming")
				return 1
			fi
			nap 0.02
			continue
		fi
		line+=$part
		case $line in
		*"$mark"*) return $splat ;;
		esac
		KVT_STRETCH+=("$line")
		[[ ! $line =~ $KVT_SPLAT ]] || splat=1
		line=
	done
}

# Starts a new stretch: what the kernel said before is nobody's fault now.
dmesg_mark()
{
	dmesg_read || true
}

# dmesg_check NAME : judges the stretch since the last check or mark; 1, and
# the splat with what surrounds it, when there was one.
dmesg_check()
{
	dmesg_read && return 0
	echo "# $1: the kernel complained:"
	printf '%s\n' "${KVT_STRETCH[@]}" | cut -d';' -f2- |
		grep -E -B 5 -A 40 "$KVT_SPLAT" | head -n 80 | sed 's/^/#   /'
	return 1
}

# skip_is_known NAME REASON : may the test be skipped for that, as far as KVT_SKIPS, if there
# is such a list, knows?
skip_is_known()
{
	local kernel program known name=${1#*.}
	[ -n "${KVT_SKIPS:-}" ] || return 0
	while read -r kernel program known; do
		if [[ $kernel == any || $kernel == "${KVT_KERNEL:-stock}" ]] &&
			[ "$program" = "${name%%.*}" ] && [ "$known" = "$2" ]; then
			return 0
		fi
	done <"$KVT_SKIPS"
	return 1
}

# skip_result NAME REASON : in our protocol; 1 when it is no reason to skip a test in this
# machine, which is to have what the test has not found.
skip_result()
{
	local reason=${2#'# '}
	reason=${reason# }
	if skip_is_known "$1" "$reason"; then
		echo "skip $1 # $reason"
		return 0
	fi
	echo "# skipped: $reason"
	echo "# Here that is no reason (${KVT_SKIPS##*/}): something is missing in the machine"
	echo "not ok $1"
	return 1
}

# run_test NAME COMMAND... : exit status 0 is ok; 4 (kselftest) and 77
# (automake) mean skipped, the last line of output being the reason.  A command
# (not a shell function) has KVT_TEST_TIMEOUT_S seconds.
run_test()
{
	local name=$1 status=0 output
	shift
	dmesg_mark
	output=$(mktemp)
	# Not in a pipe: the status is the command's own.
	if declare -F "$1" >/dev/null; then
		"$@" >"$output" 2>&1 || status=$?
	else
		timeout -k 5 "${KVT_TEST_TIMEOUT_S:-120}" "$@" >"$output" 2>&1 || status=$?
	fi
	dmesg_check "$name" || status=1
	case $status in
	0)
		sed 's/^/# /' "$output"
		echo "ok $name"
		;;
	4 | 77)
		status=0
		skip_result "$name" "$(tail -n 1 "$output")" || status=1
		;;
	*)
		sed 's/^/# /' "$output"
		echo "# exit status $status"
		echo "not ok $name"
		status=1
		;;
	esac
	rm -f "$output"
	return $status
}

# ktap_result NAME NUMBERED-LINE : one line of the kselftest harness, such as
# "ok 3 global.open # SKIP no device", in our protocol; the kernel may object.
# 1 when the test failed, or had no reason to be skipped.
ktap_result()
{
	local name=$1 line=$2 verdict=ok test
	[[ $line == ok* ]] || verdict='not ok'
	test=${line#"$verdict" }
	test=${test#* }
	test=${test#- }
	dmesg_check "$name.${test%% *}" || verdict='not ok'
	if [ "$verdict" = ok ] && [[ $test == *'# SKIP'* ]]; then
		skip_result "$name.${test%% *}" "${test##*'# SKIP'}"
		return
	fi
	echo "$verdict $name.${test%% *}"
	[ "$verdict" = ok ]
}

# show_stacks SESSION : where the processes of a session are in the kernel.
show_stacks()
{
	local pid
	for pid in $(pgrep -s "$1"); do
		echo "# pid $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline")): $(cat "/proc/$pid/wchan")"
		sed 's/^/#   /' "/proc/$pid/stack"
	done
}

# read_line FD SECONDS : the next line into REPLY; 1 at the end of the file, 2
# when the time is up (what was read of a line is kept for the next call). If that
# happens just when the line ends, bash has taken its end and does not tell: what comes
# next begins as lines of the protocol do, then.
READ_PART=
READ_NEXT=
read_line()
{
	local status=0
	if [ -n "$READ_NEXT" ]; then
		REPLY=$READ_NEXT
		READ_NEXT=
		return 0
	fi
	IFS= read -r -t "$2" REPLY <&"$1" || status=$?
	if [ -n "$READ_PART" ]; then
		case $REPLY in
		'ok '[0-9]* | 'not ok '[0-9]* | '# '* | 'TAP version '* | 1..[0-9]*)
			[ $status -eq 0 ] && READ_NEXT=$REPLY && REPLY=
			;;
		esac
	fi
	REPLY=$READ_PART$REPLY
	READ_PART=
	[ $status -ne 0 ] || return 0
	if [ $status -gt 128 ]; then
		READ_PART=$REPLY
		return 2
	fi
	[ -n "$REPLY" ] || return 1
}

# How long the machine's processors were not idle since boot, in hundredths of seconds, into
# KVT_BUSY_CS; their time is the host's. What something has left in the background counts as the
# next one's.
read_busy()
{
	local user nice system irq softirq steal
	read -r _ user nice system _ _ irq softirq steal _ </proc/stat
	KVT_BUSY_CS=$((user + nice + system + irq + softirq + steal))
}

# say_time : what a test took since the caller's clocks were read, if that is much; reads them anew.
say_time()
{
	local took=$((SECONDS - since)) spent
	read_busy
	spent=$((KVT_BUSY_CS - busy))
	if [ $took -ge 5 ] || [ $spent -ge 100 ]; then
		printf '# that took %d s, busy for %d.%d s\n' $took $((spent / 100)) $((spent % 100 / 10))
	fi
	since=$SECONDS
	busy=$KVT_BUSY_CS
}

# ktap_line NAME LINE : updates the caller's counters.
ktap_line()
{
	case $2 in
	1..*)
		plan=${2#1..}
		plan=${plan%% *}
		;;
	'# left out: '*)
		if [ "${KVT_LENGTH:-full}" = quick ]; then
			echo "skip $1.${2#'# left out: '} # not in make check-quick"
		else
			echo "skip $1.${2#'# left out: '} # at full length only on this kernel: make check-long"
		fi
		;;
	'ok '[0-9]* | 'not ok '[0-9]*)
		seen=$((seen + 1))
		ktap_result "$1" "$2" || failed=1
		say_time
		;;
	*)
		last=$2
		printf '# %s\n' "$2"
		;;
	esac
}

# run_ktap NAME COMMAND... : runs a program of the kselftest harness and turns
# each of its results into a protocol line.  A program that dies, hangs
# (KVT_TEST_TIMEOUT_S), or reports fewer tests than it announced, fails.
run_ktap()
{
	local name=$1 last='' plan=0 seen=0 failed=0 status=0 pid out got deadline killed=0
	local since=$SECONDS busy
	shift
	read_busy
	busy=$KVT_BUSY_CS
	dmesg_mark
	# A process substitution leaves the loop in this shell, which owns the
	# position in the kernel log; a session of its own, to be killed as one.
	exec {out}< <(exec setsid "$@" 2>&1)
	pid=$!
	deadline=$((SECONDS + ${KVT_TEST_TIMEOUT_S:-120}))
	while :; do
		got=0
		read_line "$out" 1 || got=$?
		[ $got -ne 1 ] || break
		[ $got -ne 0 ] || ktap_line "$name" "$REPLY"
		[ $SECONDS -gt $deadline ] || continue
		echo "# timeout"
		show_stacks "$pid"
		pkill -KILL -s "$pid"
		# One that cannot even be killed is left behind.
		[ $killed -eq 0 ] || break
		killed=1
		deadline=$((SECONDS + 60))
	done
	exec {out}<&-
	READ_PART=
	READ_NEXT=
	if [ $killed -eq 0 ]; then
		wait "$pid" || status=$?
	fi
	if [ $seen -eq 0 ] && [ $killed -eq 0 ] && { [ $status -eq 4 ] || [ $status -eq 77 ]; }; then
		skip_result "$name" "$last"
		return
	fi
	if [ $seen -ne "$plan" ] || [ $killed -ne 0 ] || { [ $status -ne 0 ] && [ $failed -eq 0 ]; }; then
		echo "# $seen of $plan results, exit status $status"
		echo "not ok $name.complete"
		return 1
	fi
	return $failed
}

# Prints something when the kernel can check its use of locks but has stopped
# doing so, as it does after its first complaint.  KVT_LOCKDEP_STATS is for the
# rig's own test.
lockdep_report()
{
	local file=${KVT_LOCKDEP_STATS:-/proc/lockdep_stats}
	[ -r "$file" ] || return 0
	grep -qE '^ *debug_locks: +1$' "$file" && return 0
	echo "$file: $(grep debug_locks "$file" || echo 'no debug_locks')"
}

# Prints what kmemleak has found since the last call, once for the whole run: a
# scan takes many seconds.  It only reports objects older than five, and what it
# sees once may still be a pointer on its way through a register, hence the wait
# and the second scan. 1, and a line that says so, when it searches no more: it gives up
# for good when it finds no memory for its own records. The debug kernel has it.
kmemleak_report()
{
	local file=/sys/kernel/debug/kmemleak
	if [ ! -w "$file" ] && [ "${KVT_KERNEL:-stock}" != debug ]; then
		return 0
	fi
	sleep 6
	if ! { echo scan >"$file" && sleep 1 && echo scan >"$file"; } 2>/dev/null; then
		echo "kmemleak is off: what has leaked is not known"
		return 1
	fi
	kmemleak_known_out <"$file"
	echo clear >"$file"
}

# kmemleak_known_out : leaves out of a report what is the kernel's own. When a slab
# cache is created and the allocation of its sysfs entry fails (mm/slub.c,
# sysfs_slab_add), the entry's name stays behind; tests make allocations fail, and
# the block layer creates caches on behalf of tiers.
kmemleak_known_out()
{
	awk '
	function put() { if (object != "" && object !~ / sysfs_slab_add\+/) printf "%s", object; object = "" }
	/^unreferenced object / { put() }
	{ object = object $0 "\n" }
	END { put() }'
}

# The clock that kmemleak notes for each allocation.
jiffies_now()
{
	sed -n '/^jiffies: /{s///p;q}' /proc/timer_list
}

# kmemleak_blame NAME=JIFFIES... : the names (of those in order, each with the time
# it began) during which something was allocated that kmemleak's report, on stdin,
# has; "?" for what is older or has no time.
kmemleak_blame()
{
	awk -v starts="$*" '
	BEGIN { nr = split(starts, start, " ") }
	/^unreferenced object / { leaks++ }
	match($0, /, jiffies [0-9]+/) {
		at = substr($0, RSTART + 10, RLENGTH - 10) + 0
		name = "?"
		for (i = 1; i <= nr; i++) {
			split(start[i], pair, "=")
			if (pair[2] + 0 <= at)
				name = pair[1]
		}
		blamed[name]++
		timed++
	}
	END {
		if (leaks > timed)
			blamed["?"]++
		for (name in blamed)
			print name
	}'
}
