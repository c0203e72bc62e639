#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The bench's part inside the machine: a pool, a Redis server, a tmpfs and a file
# system on the second SSD, then the program that measures them all.
#
#   measure.sh NAME [OPTION]...   results in /host/NAME.jsonl
#   measure.sh scale              the pool holds BENCH_SCALE blocks
#   measure.sh gets               GET of blocks in memory alone, without peers
set -euo pipefail
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

BENCH=/tmp/bench
SOCKET=$BENCH/redis.sock
MEMORY=640M

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

# Not a byte of it is ever written to disk, and it does not fork.
start_redis()
{
	redis-server --port 0 --unixsocket "$SOCKET" --save '' --appendonly no \
		--dir "$BENCH" --daemonize no >"$BENCH/redis.log" 2>&1 &
	REDIS=$!
}

scale()
{
	kvtier pool create --tier "dram:name=dram0,size=$(((BENCH_SCALE / 256 + 512) * 11 / 10))M" \
		>"$BENCH/pool"
	kvtier-bench --out "$BENCH/results" --icount --samples 9 --scale "$BENCH_SCALE"
}

# In a pool as large as the one below: the figures are to be the same.
gets()
{
	kvtier pool create --tier "dram:name=dram0,size=$MEMORY" >"$BENCH/pool"
	kvtier-bench --out "$BENCH/results" --icount --samples 9 --gets
}

side_by_side()
{
	local name=$1 disk
	shift
	kvtier pool create --tier "dram:name=dram0,size=$MEMORY" \
		--tier "bdev:name=nvme0,path=$(nvme_by_serial kvtnvme0)" >"$BENCH/pool"
	disk=$(nvme_by_serial kvtnvme1)
	# No thread that initialises it later, while we measure.
	mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$disk"
	mkdir -p "$BENCH/ext4" "$BENCH/files"
	mount -t ext4 "$disk" "$BENCH/ext4"
	start_redis
	kvtier-bench --out "$BENCH/results" --redis "$SOCKET" --dir "$BENCH/files" \
		--sysfs /sys/class/kvtier/kvtier0 --direct "$BENCH/ext4/blocks" "$@"
	kill "$REDIS"
	wait "$REDIS" || true
	umount "$BENCH/ext4"
}

main()
{
	dmesg_mark
	mkdir -p "$BENCH"
	mount -t tmpfs -o size=1G tmpfs "$BENCH"
	modprobe kvtier
	case $1 in
	scale | gets) "$1" ;;
	*) side_by_side "$@" ;;
	esac
	cp "$BENCH/results" "/host/$1.jsonl"
	kvtier pool destroy 0
	rmmod kvtier
	dmesg_check "bench $1"
}

main "$@"
