#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The demo's part inside the machine: what an operator would type, each command
# shown before it runs.  Results go to the host's folder, mounted at /host.  How long it
# took is said, and judged only where DEMO_LIMIT_S says what it may take.
set -euo pipefail
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh
# shellcheck source=selftests/vm/guest/cxl.sh
. /kvt/guest/cxl.sh

run()
{
	printf '\n# %s\n' "$*"
	"$@"
}

# dax_devices : those of the regions that the kvtier driver has, in order.
dax_devices()
{
	local path
	for path in /sys/bus/dax/drivers/kvtier/dax*; do
		[ ! -e "$path" ] || basename "$path"
	done | sort -V
}

# nvme_by_serial SERIAL : path of the first namespace of that controller.
nvme_by_serial()
{
	local path
	for path in /sys/class/block/nvme*n1; do
		# With multipath each path is there as well, without a node.
		[ -b "/dev/${path##*/}" ] || continue
		if [ "$(tr -d ' ' <"$path/device/serial")" = "$1" ]; then
			echo "/dev/${path##*/}"
			return 0
		fi
	done
	echo "no NVMe namespace of serial $1" >&2
	return 1
}

replay()
{
	local command=(kvtier replay --procs "$DEMO_PROCS" --block-bytes "$DEMO_BLOCK_BYTES"
		--progress --out /host/demo.json "/host/$DEMO_TRACE")
	printf '\n# %s\n' "${command[*]}"
	# Redrawn in place on the user's terminal, line by line into a file.
	if [ "$DEMO_TTY" = yes ]; then
		"${command[@]}" >/host/table.txt || return $?
	else
		"${command[@]}" >/host/table.txt 2> >(exec cat >&2) || return $?
	fi
}

# Regions are made as on a host where the kmem driver is there first: it takes each new one
# for system RAM, for good, unless it is kept from that.
make_regions()
{
	run modprobe kmem
	if [ ! -d /sys/bus/dax/drivers/kmem ]; then
		echo "there is no kmem driver that would take new regions"
		return 1
	fi
	run modprobe kvtier
	run kvtier cxl create
	mapfile -t DAX < <(dax_devices)
	if [ "${#DAX[@]}" -ne 2 ]; then
		echo "2 dax devices wanted, these are bound to kvtier: ${DAX[*]:-none}"
		return 1
	fi
}

# report_time SECONDS : 1 if that is more than what is allowed.
report_time()
{
	printf '\nthat took %d s in the machine\n' "$1"
	[ -n "${DEMO_LIMIT_S:-}" ] || return 0
	[ "$1" -gt "$DEMO_LIMIT_S" ] || return 0
	echo "more than the $DEMO_LIMIT_S s of DEMO_LIMIT_S"
	return 1
}

main()
{
	local nvme0 nvme1 status=0 began=$SECONDS
	dmesg_mark
	cxl_wait_endpoints 2
	make_regions
	nvme0=$(nvme_by_serial kvtnvme0)
	nvme1=$(nvme_by_serial kvtnvme1)
	run kvtier pool create --tier dram:size=8M,name=dram \
		--tier "dax:dev=${DAX[0]},size=8M,name=cxl0" \
		--tier "dax:dev=${DAX[1]},size=8M,name=cxl1" \
		--tier "bdev:path=$nvme0,size=32M,name=nvme0" \
		--tier "bdev:path=$nvme1,size=32M,name=nvme1"
	replay || status=$?
	cat /host/table.txt
	run kvtier stat
	run kvtier pool destroy 0
	run kvtier cxl destroy all
	run rmmod kvtier
	if [ -e /dev/kvtier ] || [ -e /sys/module/kvtier ]; then
		echo "kvtier is still there"
		status=1
	fi
	dmesg_check demo || status=1
	report_time $((SECONDS - began)) || status=1
	return "$status"
}

main "$@"
