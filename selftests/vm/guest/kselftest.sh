#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the in-VM tests: kselftest.sh [NAME]... (all without arguments).
#
# A test is a shell script of selftests/kselftest, or a command line of its
# tests.list (every program that was built when there is no such file).  Tests of
# long.list are for long runs.  A test that is skipped for a reason that
# skips.list has not has failed: the machine lacks something.  Results
# go to stdout in the protocol of lib.sh, prefixed with "kselftest."; the exit
# status is 1 when one failed.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh
cd /kvt/kselftest || exit 1

FAILED=0
NR_WANTED=0
STARTS=()	# NAME=JIFFIES of each program, where kmemleak is there

# too_long NAME : does a run of this length on this kernel go without the program? Says so,
# once if there are several parts.
too_long()
{
	local why=
	case ${KVT_LENGTH:-full}/$1 in
	quick/log | quick/assemble | quick/damaged | quick/fabric | quick/faults | quick/zoned | \
		quick/many | quick/limits | quick/shrink | quick/dma | quick/isolate | \
		quick/charge | quick/copies | quick/poison_copy | quick/progress | quick/leavers)
		why='not in make check-quick'
		;;
	full/redteam_* | full/udev_block | full/signature | full/device_nodes | full/tool)
		[ "${KVT_KERNEL:-stock}" = stock ] ||
			why='at full length only on this kernel: make check-long'
		;;
	quick/crowd | full/crowd)
		why='a quarter of a million namespaces, in make check-long only'
		;;
	quick/ahead | full/ahead)
		why='its tests depend on how fast the machine is, in make check-long only'
		;;
	esac
	[ -n "$why" ] || return 1
	case ${KVT_PART:-1/1} in
	1/*) echo "skip kselftest.$1 # $why" ;;
	esac
}

# Without names all of them, but those that take long when there is little time, and
# those that leave another machine behind.
# KVT_PART=I/N: of those every Nth, from the Ith on.
wanted()
{
	local name=$1 pick
	shift
	if [ $# -eq 0 ]; then
		# In a machine of its own: what comes back may have another name.
		[ "$name" != removal ] || return 1
		! too_long "$name" || return 1
		[ -n "${KVT_PART:-}" ] || return 0
		[ $((NR_WANTED++ % ${KVT_PART#*/} + 1)) -eq "${KVT_PART%/*}" ]
		return
	fi
	for pick in "$@"; do
		[ "$pick" != "$name" ] || return 0
	done
	return 1
}

program_lines()
{
	local file
	if [ -e tests.list ]; then
		sed -e 's/#.*//' -e '/^[[:space:]]*$/d' tests.list
		return
	fi
	for file in *; do
		[ ! -x "$file" ] || [ "${file%.sh}" != "$file" ] || echo "$file"
	done
}

# left_out NAME : patterns of its tests that only long runs have on this kernel, into
# KVT_LEFT_OUT.
left_out()
{
	local program pattern where all=yes
	KVT_LEFT_OUT=
	[ "${KVT_LENGTH:-full}" != long ] || return 0
	[ "${KVT_KERNEL:-stock}/${KVT_LENGTH:-full}" != stock/full ] || all=no
	while read -r program pattern where; do
		[ "$program" = "$1" ] || continue
		[ "$all" = yes ] || [ "$where" = everywhere ] || continue
		KVT_LEFT_OUT+="$pattern "
	done <long.list
}

# What the programs may overwrite, into their environment. Each of them would ask for itself, and
# take a second: asked again only when devices have come, gone or changed places.
find_devices()
{
	local dev serial seen='' line
	for dev in /sys/block/nvme*n* /sys/bus/dax/devices/dax*; do
		serial=
		[ ! -e "$dev/device/serial" ] || read -r serial <"$dev/device/serial"
		seen+="${dev##*/}=$serial "
	done
	[ "$seen" != "${KVT_DEVICES:-}" ] || return 0
	unset KVT_DEVICES KVT_DAX KVT_BDEV KVT_SCRATCH KVT_ZONED KVT_ZONED_COPY
	while IFS= read -r line; do
		export "${line?}"
	done < <(./devices)
	# What is not there yet each program looks for itself.
	[ -z "${KVT_DAX:-}" ] || [ -z "${KVT_BDEV:-}" ] || export KVT_DEVICES=$seen
}

starts()
{
	[ ! -w /sys/kernel/debug/kmemleak ] || STARTS+=("$1=$(jiffies_now)")
}

# Memory is searched once, at the end, and each leak is put down to the program
# that ran when it was allocated.
judge_leaks()
{
	local report name searched=yes
	report=$(kmemleak_report) || searched=no
	# /init need not look once more.
	touch /run/kvt-leaks-judged
	[ -n "$report" ] || return 0
	printf '%s\n' "$report" | head -n 100 | sed 's/^/# /'
	[ $searched = yes ] || echo "not ok kselftest.kmemleak"
	while IFS= read -r name; do
		[ "$name" != '?' ] || name=elsewhere
		echo "not ok kselftest.$name.leaks"
	done < <(kmemleak_blame "${STARTS[@]}" <<<"$report")
	FAILED=1
}

# run_program NAME COMMAND... : the red team's at full length as two users, and as two containers.
run_program()
{
	local name=$1 how status=0
	shift
	case ${KVT_LENGTH:-full}/$name in
	long/redteam_*)
		for how in uid box; do
			KVT_RT_HOW=$how run_ktap "kselftest.$name.$how" "$@" || status=1
		done
		return $status
		;;
	esac
	run_ktap "kselftest.$name" "$@"
}

main()
{
	local script line name began busy
	modprobe kvtier || { echo "not ok kselftest.modprobe"; exit 1; }
	PATH=/kvt/kselftest:$PATH
	KVT_SKIPS=/kvt/kselftest/skips.list
	export KVT_LEFT_OUT
	while IFS= read -r line <&3; do
		read -r name _ <<<"$line"
		name=${name##*/}
		wanted "$name" "$@" || continue
		# The line is a command with arguments, split as the shell does.
		starts "$name"
		find_devices
		KVT_LEFT_OUT=
		[ $# -gt 0 ] || left_out "$name"
		began=$SECONDS
		read_busy
		busy=$KVT_BUSY_CS
		# shellcheck disable=SC2086
		run_program "$name" $line || FAILED=1
		read_busy
		busy=$((KVT_BUSY_CS - busy))
		echo "# $name: $((SECONDS - began)) s, busy for $((busy / 100)) s"
	done 3< <(program_lines)
	for script in *.sh; do
		[ -e "$script" ] || continue
		name=${script%.sh}
		wanted "$name" "$@" || continue
		starts "$name"
		run_test "kselftest.$name" bash "$script" || FAILED=1
	done
	judge_leaks
	exit $FAILED
}

main "$@"
