#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Measures the store and its peers: run.sh [STEP...]
#
#   host     the core alone, in user space: instructions, cache lines, metadata
#   icount   in the test machine, which counts instructions as time
#   plain    the same in plain emulated time (one CPU too: waking another one takes
#            the emulator so long that nothing else would be measured)
#   scale    GET among a thousand and among a million blocks, counting instructions
#            (needs 9 GiB of free memory; the host step stands in for it)
#   report   tables, chart and checks, from what is in out/bench
#   readme   put the report's tables into README.md
#
# Without arguments all but readme.  Results: out/bench/bench.{json,txt,md,html}.
# The exit status is 1 when a figure that is promised was not reached.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

BENCH="$KVT_OUT/bench"
TIMEOUT_S=${BENCH_TIMEOUT_S:-1200}
SCALE_BLOCKS=1000000
SCALE_MEM_MIB=7168
SCALE_HOST_KIB=$((9 << 20))
MKFS=

build()
{
	make --no-print-directory -C "$KVT_ROOT" modules tools >&2
	make --no-print-directory -C "$HERE" >&2
	MKFS=$(PATH=$PATH:/usr/sbin:/sbin command -v mkfs.ext4) ||
		die "mkfs.ext4 is missing (package e2fsprogs)"
}

# vm OPTION... -- COMMAND : a machine with what measure.sh needs. The disks (sparse files)
# are so large that watermarks which empty the memory tier do not concern the block tier.
vm()
{
	"$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --nvme-size 32768 --timeout "$TIMEOUT_S" --redis \
		--bin "$BENCH/kvtier-bench" --bin "$MKFS" --payload "$HERE/guest" \
		--share "$BENCH" "$@" >"$BENCH/vm.log" 2>&1 && return 0
	cat "$BENCH/vm.log" >&2
	die "measuring in the machine failed"
}

step_host()
{
	rm -f "$BENCH/host.json"
	make --no-print-directory -C "$KVT_ROOT/selftests/host" bench >&2
}

step_icount()
{
	log "counting instructions in the machine (some minutes)"
	rm -f "$BENCH/icount.jsonl"
	vm --icount --mem 4096 -- "/payload/measure.sh icount --icount --samples 3"
}

step_plain()
{
	log "measuring emulated time"
	rm -f "$BENCH/plain.jsonl"
	vm --smp 1 --mem 4096 -- "/payload/measure.sh plain --samples 5"
}

step_scale()
{
	local free_kib
	rm -f "$BENCH/scale.jsonl"
	free_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
	if [ "$free_kib" -lt "$SCALE_HOST_KIB" ]; then
		echo "skip bench/scale # needs 9 GiB of free memory, the host harness stands in"
		return 0
	fi
	log "counting instructions among $SCALE_BLOCKS blocks"
	vm --icount --nvme 0 --mem "$SCALE_MEM_MIB" --env BENCH_SCALE="$SCALE_BLOCKS" \
		-- "/payload/measure.sh scale"
}

step_report()
{
	"$HERE/report.py" "$BENCH"
}

step_readme()
{
	"$HERE/report.py" "$BENCH" --readme "$KVT_ROOT/README.md"
}

main()
{
	local step steps=("$@")
	[ ${#steps[@]} -gt 0 ] || steps=(host icount plain scale report)
	mkdir -p "$BENCH"
	for step in "${steps[@]}"; do
		case $step in
		icount | plain | scale) [ -n "$MKFS" ] || build ;;
		host | report | readme) ;;
		*)
			sed -n '4,18s/^# \{0,1\}//p' "$0"
			exit 2
			;;
		esac
		"step_$step"
	done
}

main "$@"
