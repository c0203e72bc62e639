#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the crash tests do in the machine: crash.sh STEP...
#
#   record OPS BLOCKS SEED   a load on a device of dm-log-writes: disk 2, its log is disk 3
#   create                   a pool on disks 0 and 1
#   assemble                 ... which is there already, compared with the journals
#   load BLOCKS SEED         until somebody ends the machine
#   points NR                pools on disks 2 and on, each with a journal of its own
#   end                      the pool on disks 0 and 1 goes in order, and comes again
#
# Journals are in the host's folder.
set -euo pipefail
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

WORKERS=4
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

step_record()
{
	local device
	modprobe dm_log_writes
	device=$(kvt-crash log writes "$(disk 2)" "$(disk 3)")
	kvtier -j pool create --id 1 --tier dram:size=16M --tier "bdev:path=$device,segment=2M" >/dev/null
	kvt-crash mark writes start
	kvt-crash load 1 "$WORKERS" "$2" "$1" "$3" dm:writes
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

step_points()
{
	local i
	for ((i = 0; i < $1; i++)); do
		DISKS=("$(disk $((i + 2)))")
		compare 2 "/host/point.$i.journal"
		kvtier -j pool destroy 2 >/dev/null
		echo "# point $i is right"
	done
}

# A journal that promises more than there is, and one that drops what there is.
notices()
{
	local said
	cp "${JOURNALS[@]}" /tmp
	printf '%s\n' 'O 65532' 'P 65532 0 1 1' 'S 65532 0' >>/tmp/journal.0
	said=$(! kvt-crash verify 0 "$BLOCKS" /tmp/journal.{0,1,2,3})
	grep -q '^# block 65532.0: version 1 was durable and is lost$' <<<"$said"
	cp "${JOURNALS[0]}" /tmp
	awk '{ print } $1 == "P" { print "d", $2, $3, $4 }' "${JOURNALS[1]}" >/tmp/journal.1
	said=$(! kvt-crash verify 0 "$BLOCKS" /tmp/journal.{0,1,2,3})
	grep -q 'was dropped and comes back$' <<<"$said"
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
		points) step_points "$2"; shift 2 ;;
		create | assemble | end) "step_$1"; shift ;;
		*) echo "# no step $1"; return 2 ;;
		esac
	done
	dmesg_check crash
}

main "$@"
