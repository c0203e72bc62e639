#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The main job from start to end, in a virtual machine: a pool of DRAM, two CXL
# memory devices and two NVMe namespaces serves a request trace to several
# processes.  Called by "make demo".
#
#   TRACES=DIR   replay a cut of a real trace (DIR/*.csv.zst) instead of a
#                generated workload
#   SEED=N       another generated workload
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
TIMEOUT_S=${DEMO_TIMEOUT_S:-400}
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
	tool gen --seed "${SEED:-1}" --context-tokens 32768 \
		--blocks $((POOL_BYTES * 14 / 10 / BLOCK_BYTES)) --out "$DEMO/trace.csv"
}

# measure_cut FILE STRIDE : how many lines of the file it takes, every STRIDEth
# used, to ask for enough distinct blocks, and how often each is asked for then (in
# 1/1000); nothing if there are not enough, or only with more reading than slow
# memory allows.
measure_cut()
{
	zstd -dcq -- "$1" | awk -F, -v stride="$2" -v most=$((READ_BYTES_MAX / BLOCK_BYTES)) \
		-v enough=$((POOL_BYTES * 14 / 10 / BLOCK_BYTES)) '
		NR == 1 || (NR - 2) % stride { next }
		{
			nr = split($5, parts, " ")
			for (i = 1; i <= nr; i++) {
				last = split(parts[i], run, "-") > 1 ? run[2] : run[1]
				for (id = run[1] + 0; id <= last + 0; id++) {
					accesses++
					if (!(id in seen)) {
						seen[id] = 1
						distinct++
					}
				}
			}
			if (accesses > most)
				exit
			if (distinct >= enough) {
				print NR, int(1000 * accesses / distinct)
				exit
			}
		}'
}

# Of the traces that fill all tiers, the start of the one that reuses most.  Of
# traces that reuse too much to get there, only every second, fourth... request.
cut_trace()
{
	local file stride lines reuse best=0 best_lines best_file=
	BLOCK_BYTES=$CUT_BLOCK_BYTES
	for stride in 1 2 4 8 16 32; do
		for file in "$TRACES"/*.csv.zst; do
			[ -e "$file" ] || die "no *.csv.zst in $TRACES"
			lines=
			# Ends early, so what zstd says about the pipe is of no interest.
			read -r lines reuse < <(measure_cut "$file" $stride 2>/dev/null) || true
			if [ -n "$lines" ] && [ "$reuse" -gt "$best" ]; then
				best=$reuse
				best_lines=$lines
				best_file=$file
			fi
		done
		[ -z "$best_file" ] || break
	done
	[ -n "$best_file" ] || die "no trace in $TRACES fills the demo's pool"
	log "trace: one in $stride of the first $((best_lines - 1)) requests of ${best_file##*/}"
	# Reads to the end: zstd would die of a closed pipe.
	zstd -dcq -- "$best_file" | awk -v last="$best_lines" -v stride=$stride '
		NR == 1 || (NR <= last && (NR - 2) % stride == 0)' >"$DEMO/trace.csv"
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
