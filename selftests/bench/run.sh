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
#   stream   the log beside its device: sequential throughput of a device that is throttled
#            to LOG_BPS, and instructions
#   churn    what the log writes for ten times its capacity of payload, and what is still
#            served after a restart and after a reset: three boots of one disk, of
#            BENCH_CHURN_MIB (512)
#   policy   what the default policy does for each block that is asked for, in instructions:
#            of TRACES=DIR/claudeA.csv.zst, if that is there, or generated agents
#   gets     GET of blocks in memory alone, counting instructions, and scale at full length
#            (KVT_LENGTH=long): what suite bench asks for, judged at once, in out/bench/gets
#   report   tables, chart and checks, from what is in out/bench
#   readme   put the report's tables into README.md
#
# Without arguments all but gets and readme.  Results: out/bench/bench.{json,txt,md,html}.
# The exit status is 1 when a figure that is promised was not reached.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

BENCH="$KVT_OUT/bench"
RESULTS=$BENCH
TIMEOUT_S=${BENCH_TIMEOUT_S:-1200}
SCALE_BLOCKS=1000000
SCALE_MEM_MIB=7168
SCALE_HOST_KIB=$((9 << 20))
LOG_BPS=40000000
CHURN_MIB=${BENCH_CHURN_MIB:-512}
CHURN_DRAM_MIB=$((CHURN_MIB / 4))
CHURN_TIMES=20	# about half of it is not found worth a write
MKFS=

build()
{
	make --no-print-directory -C "$KVT_ROOT" modules tools >&2
	make --no-print-directory -C "$HERE" >&2
	MKFS=$(PATH=$PATH:/usr/sbin:/sbin command -v mkfs.ext4) ||
		die "mkfs.ext4 is missing (package e2fsprogs)"
}

vm_failed()
{
	cat "$RESULTS/vm.log" >&2
	die "measuring in the machine failed"
}

# vm OPTION... -- COMMAND : a machine with what measure.sh needs. The disks (sparse files)
# are so large that watermarks which empty the memory tier do not concern the block tier.
vm()
{
	"$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --nvme-size 32768 --timeout "$TIMEOUT_S" --redis --append mitigations=auto \
		--bin "$BENCH/kvtier-bench" --bin "$MKFS" --payload "$HERE/guest" \
		--share "$RESULTS" "$@" >"$RESULTS/vm.log" 2>&1 || vm_failed
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
	rm -f "$RESULTS/scale.jsonl"
	free_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
	if [ "$free_kib" -lt "$SCALE_HOST_KIB" ]; then
		echo "skip bench/scale # needs 9 GiB of free memory, the host harness stands in"
		return 0
	fi
	log "counting instructions among $SCALE_BLOCKS blocks"
	vm --icount --nvme 0 --mem "$SCALE_MEM_MIB" --env BENCH_SCALE="$SCALE_BLOCKS" \
		-- "/payload/measure.sh scale"
}

# log_vm OPTION... -- COMMAND : without what the peers need. The disk of step_stream is as
# large as those above, for the same reason.
log_vm()
{
	"$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --timeout "$TIMEOUT_S" --append mitigations=auto \
		--payload "$HERE/guest" --bin "$BENCH/kvtier-bench" --share "$RESULTS" "$@" \
		>"$RESULTS/vm.log" 2>&1
}

# In a folder of its own: other suites run meanwhile, and what make bench has measured is to stay.
step_gets()
{
	local RESULTS=$BENCH/gets
	rm -rf "$RESULTS"
	mkdir -p "$RESULTS"
	log "counting instructions of GET"
	log_vm --icount --nvme 0 --mem 1536 -- "/payload/measure.sh gets" || vm_failed
	[ "${KVT_LENGTH:-full}" != long ] || step_scale
	"$HERE/report.py" "$RESULTS" --gets
}

step_stream()
{
	log "the log beside its device, throttled to $LOG_BPS bytes a second"
	rm -f "$BENCH"/log-{throttled,icount}.jsonl
	log_vm --nvme 1 --nvme-size 32768 --nvme-bps "$LOG_BPS" --mem 2048 \
		-- "/payload/log.sh stream throttled --samples 3" || vm_failed
	log "the log beside its device, counting instructions"
	log_vm --nvme 1 --nvme-size 32768 --icount --mem 2048 \
		-- "/payload/log.sh stream icount --icount --samples 3" || vm_failed
}

tool()
{
	LD_LIBRARY_PATH="$KVT_OUT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$KVT_OUT/bin/kvtier" "$@"
}

churn_vm()
{
	log_vm --nvme 0 --qemu "$DISK_ARGS" --mem 1024 --env LOG_MIB="$CHURN_MIB" \
		--env LOG_DRAM_MIB="$CHURN_DRAM_MIB" -- "/payload/log.sh $1"
}

# Each block that is asked for first is demoted at least once, unless it is still in memory
# at the end.
churn_traces()
{
	local mib=$((CHURN_MIB * CHURN_TIMES + 2 * CHURN_DRAM_MIB))
	tool gen --seed 1 --context-tokens 32768 --blocks $((mib * 16)) --out "$BENCH/churn-64K.csv"
	tool gen --seed 1 --context-tokens 16384 --blocks "$mib" --out "$BENCH/churn-1M.csv"
	tool gen --seed 2 --context-tokens 32768 --blocks $((CHURN_MIB * 12)) --out "$BENCH/crash.csv"
	(head -n 1 "$BENCH/churn-64K.csv"; tail -n 200 "$BENCH/churn-64K.csv") >"$BENCH/tail.csv"
}

# One disk that outlives the machine. The second boot ends in a reset.
step_churn()
{
	local disk="$BENCH/log-disk.img"
	log "what the log writes, and what is left of it after a restart (some minutes)"
	rm -f "$BENCH"/log-{churn,survive-clean,survive-crash}.jsonl "$BENCH"/log-{kept,crash-kept} \
		"$BENCH"/log-ask.jsonl
	churn_traces >&2
	rm -f "$disk"
	truncate -s "$((CHURN_MIB + 1))M" "$disk"
	DISK_ARGS="-drive file=$disk,format=raw,if=none,id=kept,cache=unsafe,discard=unmap"
	DISK_ARGS+=" -device nvme,serial=kvtnvme0,drive=kept,bus=pcie.0"
	churn_vm churn || vm_failed
	churn_vm again || true
	[ -s "$BENCH/log-crash-kept" ] || vm_failed
	churn_vm crashed || vm_failed
	rm -f "$disk"
}

POLICY_MOST=400

# policy_result FILE NAME : no more than that. A count of next to none is no good one.
policy_result()
{
	python3 - "$1" "$2" "$POLICY_MOST" <<-'END'
	import json, sys
	with open(sys.argv[1]) as f:
	    run = json.load(f)
	cost = run["policy_ns_per_access"]
	print(f"# the policy: {cost:.0f} instructions for each of {run['accesses']} blocks, of "
	      f"{run['ns_per_access']:.0f} with index, chains and looks at the clock")
	good = 20 < cost <= int(sys.argv[3])
	print(("ok" if good else "not ok") + f" bench/policy/{sys.argv[2]}")
	sys.exit(not good)
	END
}

# A nanosecond is an instruction there.
step_policy()
{
	local dir=$BENCH/policy trace=${TRACES:-}/claudeA.csv.zst name=gen:agent status=0
	[ -e "$trace" ] || echo "skip bench/policy/claudeA # it is in no TRACES=DIR: agents are generated"
	log "counting the policy's instructions"
	rm -rf "$dir"
	mkdir -p "$dir"
	make --no-print-directory -C "$KVT_ROOT/selftests/host" OUT="$KVT_OUT" \
		"$KVT_OUT/host/kvtier-sim" >&2
	cp "$HERE/guest/policy.sh" "$dir"
	if [ -e "$trace" ]; then
		cp "$trace" "$dir"
		name=/payload/${trace##*/}
	fi
	"$KVT_ROOT/selftests/vm/run.sh" --icount --cxl 0 --nvme 0 --mem 4096 --timeout "$TIMEOUT_S" \
		--bin "$KVT_OUT/host/kvtier-sim" --payload "$dir" --share "$dir" \
		-- "/payload/policy.sh $name" >"$BENCH/vm.log" 2>&1 || vm_failed
	policy_result "$dir/one.json" one_tier || status=1
	policy_result "$dir/two.json" two_tiers || status=1
	policy_result "$dir/parts.json" two_tiers_in_parts || status=1
	return $status
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
	[ ${#steps[@]} -gt 0 ] || steps=(host icount plain scale stream churn policy report)
	mkdir -p "$BENCH"
	for step in "${steps[@]}"; do
		case $step in
		gets | icount | plain | scale | stream | churn) [ -n "$MKFS" ] || build ;;
		host | policy | report | readme) ;;
		*)
			sed -n '4,25s/^# \{0,1\}//p' "$0"
			exit 2
			;;
		esac
		"step_$step"
	done
}

main "$@"
