#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the crash tests do in the machine: crash.sh STEP...
#
#   record OPS BLOCKS SEED   a load on a device of dm-log-writes: disk 2, its log is disk 3
#   create                   a pool on disks 0 and 1
#   assemble                 ... which is there already, compared with the journals
#   load BLOCKS SEED         until somebody ends the machine
#   states NR EVERY BYTES SEED   that the device, so long, of the log on disk 2 may be in after a
#                            crash: the driver assembles every so manieth, one after the other
#   end                      the pool on disks 0 and 1 goes in order, and comes again
#
# Journals are in the host's folder.
set -euo pipefail
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

WORKERS=4
LIARS=5	# runs of a disk that lies, before it has to be noticed
JOURNALS=(/host/journal.{0,1,2,3})

disk()
{
	local path
	for path in /sys/class/block/nvme*n1; do
		if [ -b "/dev/${path##*/}" ] &&
			[ "$(tr -d ' ' <"$path/device/serial")" = "kvtnvme$1" ]; then
			echo "/dev/${path##*/}"
			return 0
		fi
	done
	echo "# no disk $1"
	return 1
}

# compare POOL JOURNAL... : assembles it of the devices in DISKS and looks at all it has.
compare()
{
	local pool=$1 said
	shift
	said=$(kvtier -j pool assemble --id "$pool" --tier dram:size=16M "${DISKS[@]}")
	BLOCKS=$(sed -E 's/.*"blocks": ?([0-9]+).*/\1/' <<<"$said")
	echo "# assembled: $said"
	kvt-crash verify "$pool" "$BLOCKS" "$@"
}

# evicted POOL : blocks have left it for want of room, and by quota.
evicted()
{
	local tier why sum
	for why in room quota; do
		sum=0
		for tier in /sys/class/kvtier/kvtier"$1"/tiers/*; do
			sum=$((sum + $(<"$tier/evicted_$why")))
		done
		echo "# evicted by $why: $sum"
		[ "$sum" -gt 0 ]
	done
}

step_record()
{
	local device
	modprobe dm_log_writes
	device=$(kvt-crash log writes "$(disk 2)" "$(disk 3)")
	kvtier -j pool create --id 1 --tier dram:size=16M --tier "bdev:path=$device,segment=2M" >/dev/null
	kvt-crash mark writes start
	# It makes room before it has to, so that who assembles it later does not begin with that.
	echo 65 >/sys/class/kvtier/kvtier1/watermark_low_percent
	echo 75 >/sys/class/kvtier/kvtier1/watermark_high_percent
	kvt-crash load 1 "$WORKERS" "$2" "$1" "$3" dm:writes
	evicted 1
	kvtier -j pool destroy 1 >/dev/null
	kvt-crash unlog writes
	echo "# recorded"
}

step_create()
{
	kvtier -j pool create --id 0 --tier dram:size=16M --tier "bdev:path=$(disk 0)" \
		--tier "bdev:path=$(disk 1)" >/dev/null
}

step_assemble()
{
	DISKS=("$(disk 0)" "$(disk 1)")
	compare 0 "${JOURNALS[@]}"
}

step_load()
{
	echo "# load runs"
	kvt-crash load 0 "$WORKERS" "$1" 0 "$2" /host/journal
	echo "# load ended"
	return 1
}

# states SEED BYTES STATES EVERY [flush] : some of them by the driver.
states()
{
	local seed=$1 bytes=$2 nr=$3
	shift 3
	kvt-crash assemble "$(disk 2)" "$bytes" "$nr" "$seed" /tmp/state /dev/loop0 "$@"
}

# lies SEED BYTES STATES : something is missing, or wrong, when flushes are not done; or a block
# is listed that was not written. What is found first may be that both superblocks are missing:
# that says nothing of blocks.
lies()
{
	local said status=0
	said=$(states "$@" 1 flush) || status=$?
	tail -n 4 <<<"$said"
	[ "$status" -eq 1 ] &&
		grep -qE 'is lost$|wrong bytes$|comes back|is listed and cannot be had' <<<"$said"
}

# The device is a file in memory: the driver has it through a loop device, and what it
# writes is taken back from the file.
step_states()
{
	local status=0 seed noticed=1
	modprobe loop
	truncate -s "$3" /tmp/state
	losetup /dev/loop0 /tmp/state
	states "$4" "$3" "$1" "$2" || status=$?
	for ((seed = $4; noticed && seed < $4 + LIARS; seed++)); do
		noticed=0
		lies "$seed" "$3" "$1" || noticed=1
	done
	losetup -d /dev/loop0
	[ "$status" -eq 0 ]
	echo "# all states are right"
	[ "$noticed" -eq 0 ]
	echo "# a disk that lies is noticed"
}

# A journal that promises more than there is, and one that drops what there is.
notices()
{
	local said
	cp "${JOURNALS[@]}" /tmp
	printf '%s\n' 'O 65532 0' 'P 65532 0 1 1' 'S 65532 0' >>/tmp/journal.0
	said=$(! kvt-crash verify 0 "$BLOCKS" /tmp/journal.{0,1,2,3})
	grep -q '^# block 65532.0: version 1 was durable and is lost$' <<<"$said"
	cp "${JOURNALS[0]}" /tmp
	awk '{ print } $1 == "P" { print "d", $2, $3, $4 }' "${JOURNALS[1]}" >/tmp/journal.1
	said=$(! kvt-crash verify 0 "$BLOCKS" /tmp/journal.{0,1,2,3})
	grep -q 'was dropped and comes back$' <<<"$said"
	cp "${JOURNALS[1]}" /tmp
	echo 'O 1 4096' >>/tmp/journal.1
	said=$(! kvt-crash verify 0 "$BLOCKS" /tmp/journal.{0,1,2,3})
	grep -q '^# namespace 1 has a quota of [0-9]* instead of 4096$' <<<"$said"
	echo "# wrong journals are noticed"
}

step_end()
{
	kvtier -j pool destroy 0 >/dev/null
	step_assemble
	notices
	kvtier -j pool destroy 0 >/dev/null
	echo "# ended"
}

# Without a cache: a line that has been written is with the host, and outlives the machine.
share_at_once()
{
	umount /host
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none kvthost /host
}

main()
{
	dmesg_mark
	share_at_once
	modprobe kvtier
	while [ $# -gt 0 ]; do
		case $1 in
		record) step_record "$2" "$3" "$4"; shift 4 ;;
		load) step_load "$2" "$3"; shift 3 ;;
		states) step_states "$2" "$3" "$4" "$5"; shift 5 ;;
		create | assemble | end) "step_$1"; shift ;;
		*) echo "# no step $1"; return 2 ;;
		esac
	done
	dmesg_check crash
}

main "$@"
