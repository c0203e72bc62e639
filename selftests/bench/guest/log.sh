#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The log's part of the bench inside the machine. Results: one JSON object a line in
# /host/log-NAME.jsonl.
#
#   log.sh stream NAME [OPTION]...  sequential throughput, and the device's own before and
#                                   after; the options are kvtier-bench's
#   log.sh churn                    pools serve traces; what was written to the device, and
#                                   how much of that was payload. The memory of the last one
#                                   is drained, its blocks are listed in /host/log-kept, a
#                                   trace asks for what is there, and it is shut down
#   log.sh again                    the next boot: what of that is still served, one by one
#                                   and to the same trace; then the machine resets in the
#                                   middle of a replay
#   log.sh crashed                  the boot after that: what of what was durable is served
#
# LOG_MIB, LOG_DRAM_MIB: sizes of the tiers, but for stream. Lists have only blocks that
# were on the device, durable, and not in memory.
set -euo pipefail
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

POOL=/sys/class/kvtier/kvtier0
TIER=$POOL/tiers/nvme0
SECTOR_BYTES=512
CRASH_SEED=2

nvme_by_serial()
{
	local path
	for path in /sys/class/block/nvme*n1; do
		[ -b "/dev/${path##*/}" ] || continue
		if [ "$(tr -d ' ' <"$path/device/serial")" = "$1" ]; then
			echo "/dev/${path##*/}"
			return 0
		fi
	done
	echo "no NVMe namespace of serial $1" >&2
	return 1
}

stream()
{
	local name=$1
	shift
	kvtier-bench --out /tmp/raw0 --raw "$DISK" "$@"
	kvtier pool create --tier dram:name=dram0,size=640M --tier "bdev:name=nvme0,path=$DISK"
	# By age alone, so that what was used last is what stays in memory.
	kvtier pool set 0 policy=lru
	kvtier-bench --out /tmp/log --log "$POOL" "$@"
	kvtier pool destroy 0
	kvtier-bench --out /tmp/raw1 --raw "$DISK" "$@"
	cat /tmp/raw0 /tmp/log /tmp/raw1 >"/host/log-$name.jsonl"
}

# written : bytes that were written to the device since it appeared.
written()
{
	local stat
	read -ra stat <"/sys/class/block/${DISK##*/}/stat"
	echo $((stat[6] * SECTOR_BYTES))
}

# counter NAME [DEFAULT] : of the block tier; there is a default for what it may not have.
counter()
{
	if [ -e "$TIER/$1" ] || [ $# -eq 1 ]; then
		cat "$TIER/$1"
	else
		echo "$2"
	fi
}

segment_bytes()
{
	kvtier dump --json "$DISK" | grep -m 1 -o '"segment_bytes": *[0-9]*' | head -n 1 |
		grep -o '[0-9]*$'
}

replay()
{
	kvtier replay --procs 2 "$@" >/tmp/replay.txt 2>&1 && return 0
	cat /tmp/replay.txt
	return 1
}

# churn_one TRACE BLOCK_BYTES [TIER_OPTION] : leaves the pool up.
churn_one()
{
	local trace=$1 block=$2 before clean
	kvtier pool create --force --tier "dram:name=dram0,size=${LOG_DRAM_MIB}M" \
		--tier "bdev:name=nvme0,path=$DISK${3:+,$3}" >/tmp/pool.txt
	before=$(written)
	replay --block-bytes "$block" --verify sample "/host/$trace"
	clean=$(counter clean_demotions 0)
	cat <<-END | tr -d '\n' >>/host/log-churn.jsonl
	{"op": "churn", "block_bytes": $block, "dram_bytes": $((LOG_DRAM_MIB << 20)),
	 "capacity_bytes": $(counter capacity_bytes), "segment_bytes": $(segment_bytes),
	 "device_bytes": $(($(written) - before)), "moved_bytes": $(counter write_bytes),
	 "log_bytes": $(counter log_bytes),
	 "demoted_bytes": $(counter demoted_bytes $(($(counter demotions_in) * block))),
	 "clean_demotions": $clean, "promotions": $(counter promotions_out),
	 "evictions": $(counter evictions)}
	END
	echo >>/host/log-churn.jsonl
}

churn()
{
	rm -f /host/log-churn.jsonl
	churn_one churn-1M.csv 1048576
	kvtier pool destroy 0
	churn_one churn-64K.csv 65536
	kvtier pool destroy 0
	churn_one churn-64K.csv 65536 "segment=$((LOG_MIB < 256 ? 2 : LOG_MIB / 128))M"
	kvtier tier drain 0 dram0
	kvtier-bench --save /host/log-kept
	ask
	kvtier pool destroy 0
}

# Hits of a trace in what is on the device, a line for before and one for after.
ask()
{
	kvtier -j replay --lookup --procs 1 /host/tail.csv >>/host/log-ask.jsonl
}

assemble()
{
	kvtier pool assemble "$DISK" --tier "dram:name=dram0,size=${LOG_DRAM_MIB}M" >/tmp/pool.txt
}

# still_there LIST NAME : what of that is served.
still_there()
{
	kvtier-bench --out "/host/log-$2.jsonl" --check "/host/$1"
}

# Stopped, so that nothing of what was listed leaves before the machine does.
reset_in_replay()
{
	local before
	before=$(counter demotions_in)
	setsid kvtier replay --procs 2 --seed "$CRASH_SEED" /host/crash.csv &>/dev/null &
	while [ $(($(counter demotions_in) - before)) -lt $((LOG_MIB * 6)) ]; do
		kill -0 $! || return 1
		sleep 0.1
	done
	pkill -STOP -s $!
	sleep 1
	kvtier-bench --save /host/log-crash-kept
	sync
	echo b >/proc/sysrq-trigger
	sleep 60
}

again()
{
	assemble
	ask
	still_there log-kept survive-clean
	replay --verify full /host/tail.csv
	reset_in_replay
}

crashed()
{
	assemble
	still_there log-crash-kept survive-crash
	replay --verify full --seed "$CRASH_SEED" /host/crash.csv
	kvtier pool destroy 0
}

main()
{
	local what=$1
	shift
	dmesg_mark
	modprobe kvtier
	DISK=$(nvme_by_serial kvtnvme0)
	"$what" "$@"
	rmmod kvtier
	dmesg_check "bench log $what"
}

main "$@"
