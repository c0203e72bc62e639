#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The main job from start to end, in a virtual machine: a pool of DRAM, two CXL
# memory devices and two NVMe namespaces serves a request trace to several
# processes.  Called by "make demo".
#
#   TRACES=DIR   replay a cut of a real trace (DIR/*.csv, *.jsonl, *.csv.zst,
#                *.jsonl.zst) instead of a generated workload
#   SEED=N       another generated workload
#   DEMO_LIMIT_S=N   fail when the part inside takes longer (it is always said how
#                    long; a busy host takes any time, so nothing sets this by itself)
#
# Results: out/demo/{table.txt,demo.json,demo.html}.  Fails on any wrong byte,
# and when a tier was left without hits, promotions or demotions (see
# demo_check.py).
#
# Emulated CXL memory is slow, so everything is small: the tiers hold 88 MiB
# together and the trace asks for somewhat more distinct blocks than that.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

DEMO="$KVT_OUT/demo"
PROCS=4
TIMEOUT_S=${DEMO_TIMEOUT_S:-1000}
POOL_BYTES=$(((8 + 8 + 8 + 32 + 32) << 20))
READ_BYTES_MAX=$((300 << 20))

# A block of a real trace stands for 512 tokens as well, but its sessions lie
# further apart: smaller blocks let more of them meet.
GEN_BLOCK_BYTES=$((64 << 10))
CUT_BLOCK_BYTES=$((16 << 10))

tool()
{
	LD_LIBRARY_PATH="$KVT_OUT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$KVT_OUT/bin/kvtier" "$@"
}

generate_trace()
{
	BLOCK_BYTES=$GEN_BLOCK_BYTES
	TRACE=trace.csv
	tool gen --seed "${SEED:-1}" --context-tokens 32768 \
		--blocks $((POOL_BYTES * 14 / 10 / BLOCK_BYTES)) --out "$DEMO/$TRACE"
}

# Of the traces that fill all tiers without asking for more than slow memory can
# read, the start of the one that reuses most.
cut_trace()
{
	BLOCK_BYTES=$CUT_BLOCK_BYTES
	TRACE=$("$HERE/cut_trace.py" --out "$DEMO" --most $((READ_BYTES_MAX / BLOCK_BYTES)) \
		--distinct $((POOL_BYTES * 14 / 10 / BLOCK_BYTES)) "$TRACES")
}

main()
{
	local status=0 tty=no
	make --no-print-directory -C "$KVT_ROOT" modules tools >&2
	rm -rf "$DEMO"
	mkdir -p "$DEMO"
	if [ -n "${TRACES:-}" ]; then
		cut_trace
	else
		generate_trace
	fi
	[ ! -t 1 ] || tty=yes
	"$HERE/run.sh" --timeout "$TIMEOUT_S" --log "$DEMO/kernel.log" --share "$DEMO" \
		--env DEMO_TTY=$tty --env DEMO_PROCS=$PROCS --env DEMO_BLOCK_BYTES="$BLOCK_BYTES" \
		--env DEMO_TRACE="$TRACE" --env DEMO_LIMIT_S="${DEMO_LIMIT_S:-}" \
		-- /kvt/guest/demo.sh || status=$?
	if [ -s "$DEMO/demo.json" ]; then
		"$KVT_ROOT/userspace/kvtier/report.py" "$DEMO/demo.json" -o "$DEMO/demo.html" \
			--title "kvtier demo: DRAM, CXL and NVMe as one store" || status=1
		"$HERE/demo_check.py" "$DEMO/demo.json" || status=1
		log "results: $DEMO/table.txt, demo.json, demo.html"
	fi
	[ "$status" -eq 0 ] || die "the demo failed"
}

main "$@"
