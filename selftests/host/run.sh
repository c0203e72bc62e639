#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the programs that the Makefile here has built: run.sh check|quick|long|crash|teeth|fuzz|bench
#
#   unit    driver/tests, the tests that KUnit runs in a kernel; ASan and UBSan
#   model   random operations on a small store against a reference; ASan, UBSan
#   race    leases against moves, and what leases fix, with real threads; TSan
#   crash   the log on a simulated device that loses power again and again, and
#           the same with each protection switched off, which must be noticed
#   fsck_zoned  repair of zoned members, which loses power at each of its writes
#   sim     the trace simulator against a naive one, on small random traces; sim_answers: what
#           kvtier-sim prints
#   policy_report  the default policy keeps what is promised of it
#   fuzz    the model test driven by libFuzzer; recovery, check and repair of hostile
#           media
#   bench   cost of GET and RELEASE and of the policy, metadata of a block, recovery
#
# One line for each test: "ok NAME", "not ok NAME", "skip NAME # reason".
set -euo pipefail

MODE=${1:?check, quick, long, crash, teeth, fuzz or bench}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-$ROOT/out}
HOST=$OUT/host
FAILED=0
export ASAN_OPTIONS=abort_on_error=0:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

# suite NAME PROGRAM ARG... : its result lines with NAME in front. A program that
# fails without saying which test it was is a failure of its own.
suite()
{
	local name=$1 program=${2##*/} log status=0
	shift
	if [ ! -x "$1" ]; then
		echo "skip $name/${program%.*}/all # $program is not built: no such compiler here"
		return 0
	fi
	log=$HOST/$program.log
	"$@" 2>&1 | sed -E "s,^(ok|not ok|skip) ,\\1 $name/," | tee "$log" || status=$?
	[ "$status" -ne 0 ] || return 0
	FAILED=1
	echo "# $program ended with status $status"
	if ! grep -q '^not ok ' "$log"; then
		echo "not ok $name/${program%.*}/ends_well"
	fi
}

# fuzz TARGET SECONDS : finds nothing. The corpus stays in out/host for the next time.
fuzz()
{
	local target=$1 corpus=$HOST/corpus.$1 log=$HOST/$1.log
	if [ ! -x "$HOST/$target" ]; then
		echo "skip host/$target # needs clang and its runtime (libFuzzer)"
		return 0
	fi
	mkdir -p "$corpus"
	if "$HOST/$target" -max_total_time="$2" -max_len=8448 -len_control=0 -timeout=10 \
		-artifact_prefix="$HOST/" "$corpus" >"$log" 2>&1; then
		echo "# $(tail -n 1 "$log")"
		echo "ok host/$target"
	else
		FAILED=1
		tail -n 60 "$log" | sed 's/^/# /'
		echo "not ok host/$target"
	fi
}

instructions()
{
	local out=$HOST/callgrind.$1 ops all
	ops=$(valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$out" \
		"$HOST/bench_core" --count "$1" 2>/dev/null) || return 1
	all=$(sed -n 's/^totals: \([0-9]*\).*/\1/p' "$out")
	[ "${all:-0}" -gt 0 ] || return 1
	echo "$((all * 10 / ops))"
}

# grown NAME WHAT FEW MANY : no more than is promised, among a million blocks against a thousand.
grown()
{
	if PYTHONPATH=$ROOT/selftests/bench python3 - "$2" "$3" "$4" <<-'END'
	import sys
	from promises import SCALE_MAX, grown
	what, few, many = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
	ratio, good = grown((few, many))
	print(f"# GET+RELEASE in the core: {few:g} {what} among 1,000 blocks, {many:g} among 1,000,000: "
	      f"{ratio:.3f} times, at most {SCALE_MAX:g}")
	sys.exit(not good)
	END
	then
		echo "ok host/bench/$1"
	else
		FAILED=1
		echo "not ok host/bench/$1"
	fi
}

# What was counted is left in the file for make bench.
bench_instructions()
{
	local few many json=$1
	if ! command -v valgrind >/dev/null; then
		echo "skip host/bench/instructions # needs valgrind"
		return 0
	fi
	if ! few=$(instructions 1000) || ! many=$(instructions 1000000); then
		FAILED=1
		echo "# counting with callgrind failed"
		echo "not ok host/bench/instructions"
		return 0
	fi
	python3 - "$json" "$few" "$many" <<-'END'
	import json, sys
	path, few, many = sys.argv[1], int(sys.argv[2]) / 10, int(sys.argv[3]) / 10
	with open(path) as f:
	    d = json.load(f)
	d["get_release_instructions"] = [few, many]
	d["ratio_instructions"] = round(many / few, 3)
	with open(path, "w") as f:
	    json.dump(d, f, indent=2)
	END
	grown instructions instructions "$((few / 10)).$((few % 10))" "$((many / 10)).$((many % 10))"
}

# Of those bench_core has written down. Without valgrind these are all there is.
bench_lines()
{
	local few=0 many=0
	read -r few many < <(python3 -c 'import json, sys
print(*json.load(open(sys.argv[1]))["cache_lines_per_get"])' "$1") || true
	grown cache_lines 'cache lines' "${few:-0}" "${many:-0}"
}

# The policy's own work for each block asked for, all functions of sim_core.c whose name
# begins with "policy_": on average at most so many instructions.
POLICY_COST_MAX=400

# policy_instructions ARG... : for each block, in that replay.
policy_instructions()
{
	local out=$HOST/callgrind.policy accesses all
	rm -f "$out"
	accesses=$(valgrind --tool=callgrind --toggle-collect='policy_*' \
		--callgrind-out-file="$out" "$HOST/kvtier-sim" --policy default "$@" \
		2>/dev/null | sed -n 's/.*"accesses": \([0-9]*\).*/\1/p')
	all=$(sed -n 's/^totals: \([0-9]*\).*/\1/p' "$out")
	echo "$((${all:-0} / ${accesses:-1}))"
}

# policy_cost NAME MOST ARG... : no more than that.
policy_cost()
{
	local name=$1 most=$2 cost
	shift 2
	if ! command -v valgrind >/dev/null; then
		echo "skip host/bench/$name # needs valgrind"
		return 0
	fi
	cost=$(policy_instructions "$@")
	echo "# the policy: $cost instructions for each block asked for: $*"
	python3 - "$OUT/bench/host.json" "$name" "$cost" <<-'END'
	import json, sys
	path, name, cost = sys.argv[1], sys.argv[2], int(sys.argv[3])
	with open(path) as f:
	    d = json.load(f)
	key = "policy_instructions_per_access" + name.removeprefix("policy_cost").replace("/", "_")
	d[key] = cost
	with open(path, "w") as f:
	    json.dump(d, f, indent=2)
	END
	# A count of none is no good one.
	if [ "$cost" -gt 20 ] && [ "$cost" -le "$most" ]; then
		echo "ok host/bench/$name"
	else
		FAILED=1
		echo "not ok host/bench/$name"
	fi
}

# As a whole, and in the parts in which an engine stores what it works out. Of claudeA, if that is
# there, with two tiers, too: that is what is promised.
policy_costs()
{
	local trace=${TRACES:-}/claudeA.csv.zst
	timed policy_cost policy_cost $POLICY_COST_MAX --tier one=20% gen:agent
	timed policy_cost policy_cost/chunks $((POLICY_COST_MAX * 5 / 4)) --tier one=20% \
		--chunk 16 --numbered gen:agent
	timed policy_cost policy_cost/single $((POLICY_COST_MAX * 4)) --tier one=5% \
		--chunk 1 --numbered gen:agent:20:600
	if [ "$MODE" != long ] || [ ! -e "$trace" ]; then
		echo "skip host/bench/policy_cost/claudeA # at full length only, of that trace in TRACES=DIR"
		return 0
	fi
	timed policy_cost policy_cost/claudeA $POLICY_COST_MAX --tier one=20% "$trace"
	timed policy_cost policy_cost/claudeA_tiers $POLICY_COST_MAX --tier fast=2% \
		--tier slow=8% "$trace"
	timed policy_cost policy_cost/claudeA_chunks $POLICY_COST_MAX --tier fast=2% \
		--tier slow=8% --chunk 16 --numbered "$trace"
}

# policy_kept [DIR] : the default policy keeps what is promised of it, on traces that are
# generated or on those in DIR.
policy_kept()
{
	local log=$HOST/policy_report.log
	if OUT=$OUT "$ROOT/selftests/host/policy_report.sh" "$@" >"$log" 2>&1; then
		sed 's/^/# /' "$log"
		echo "ok host/policy_report${1:+/traces}"
	else
		FAILED=1
		sed 's/^/# /' "$log"
		echo "not ok host/policy_report${1:+/traces}"
	fi
}

# What replays long traces does so without sanitizers, but at full length.
sim_tests()
{
	suite host "$HOST/sim_test" -tenants
	if [ "$MODE" = quick ]; then
		echo "skip host/sim/tenants_are_isolated # not in make check-quick"
	else
		suite host "$HOST/sim_test.plain" tenants
	fi
}

# What kvtier-sim prints is JSON with all that is promised of it, whichever way the trace comes.
sim_answers()
{
	if python3 - "$HOST/kvtier-sim" "$HOST" <<-'END'
	import json, subprocess, sys
	sim, where = sys.argv[1:3]
	KEYS = ("requests accesses hits hits_by_tier hit_ratio promotions demotions slow_writes evictions "
	        "ns_per_access metadata_bytes_per_block").split()
	TIERS = ("fast=2%", "mid=10", "slow=8%")

	def run(policy, nr_tiers, trace, stdin=None):
	    args = [arg for tier in TIERS[:nr_tiers] for arg in ("--tier", tier)]
	    done = subprocess.run([sim, "--policy", policy, *args, trace], input=stdin, check=True,
	                          capture_output=True)
	    got = json.loads(done.stdout)
	    missing = [key for key in KEYS if key not in got]
	    if missing or got["requests"] != 300 or sum(got["hits_by_tier"]) != got["hits"] or \
	            len(got["hits_by_tier"]) != nr_tiers or not 0 < got["hits"] < got["accesses"] or \
	            got["hit_ratio"] != round(got["hits"] / got["accesses"], 6):
	        sys.exit(f"# {policy}, {nr_tiers} tiers: {missing or got}")
	    return {key: got[key] for key in KEYS if key != "ns_per_access"}

	# Of 60 sessions, one after the other, each of which goes on with all that it has had.
	lines = ["ts_ms,input_len,output_len,session,ids"]
	for i in range(300):
	    who, turn = i // 5, i % 5
	    lines.append(f"{i * 1000},4096,16,{who},{who * 100}-{who * 100 + 8 + 2 * turn}")
	text = ("\n".join(lines) + "\n").encode()
	with open(f"{where}/answers.csv", "wb") as f:
	    f.write(text)
	subprocess.run(["zstd", "-qf", f"{where}/answers.csv"], check=True)
	for policy in ("default", "lru"):
	    for nr in (1, 2, 3):
	        plain = run(policy, nr, f"{where}/answers.csv")
	        packed = run(policy, nr, f"{where}/answers.csv.zst")
	        piped = run(policy, nr, "-", text)
	        if not plain == packed == piped:
	            sys.exit(f"# {policy}, {nr} tiers: {plain}, {packed}, {piped}")
	for policy in ("lru-head", "arc", "s3fifo", "slru", "lirs", "min"):
	    run(policy, 1, f"{where}/answers.csv")
	# What is no number is told, and not taken for one.
	for option in "segment", "chunk", "scan", "feign", "seed", "lie":
	    for bad in "", "abc", "12x", "-1", "4294967296":
	        done = subprocess.run([sim, "--policy", "lru", "--tier", "a=9", "--tier", "b=90", f"--{option}",
	                               bad, f"{where}/answers.csv"], capture_output=True, text=True)
	        if done.returncode != 2 or not done.stderr.startswith("usage:") or done.stdout:
	            sys.exit(f"# --{option} '{bad}': {done}")
	END
	then
		echo "ok host/sim_answers"
	else
		FAILED=1
		echo "not ok host/sim_answers"
	fi
}

# bench [--any-rate] : with that no figure that takes time is asked for.
bench()
{
	mkdir -p "$OUT/bench"
	timed suite host "$HOST/bench_core" "$OUT/bench/host.json"
	timed bench_instructions "$OUT/bench/host.json"
	bench_lines "$OUT/bench/host.json"
	policy_costs
	timed suite host "$HOST/bench_recover" "$OUT/bench/recovery.json" "$@"
	[ ! -e "$OUT/bench/host.json" ] || sed 's/^/# /' "$OUT/bench/host.json"
}

# tests STEPS ROUNDS COMPILER... : with each of them.
tests()
{
	local cc steps=$1 rounds=$2
	shift 2
	for cc in "$@"; do
		timed suite "host-$cc" "$HOST/unit.$cc"
		timed suite "host-$cc" "$HOST/model.$cc" "$steps"
		timed suite "host-$cc" "$HOST/race.$cc" "$rounds"
	done
}

# timed COMMAND... : says how long it took, if that is worth knowing.
timed()
{
	local since=$SECONDS
	"$@"
	[ $((SECONDS - since)) -lt 5 ] || echo "# that took $((SECONDS - since)) s"
}

case $MODE in
check)
	tests 1000000 20000 gcc
	echo "skip host-clang/all # at full length only: make check-long"
	timed sim_tests
	timed sim_answers
	timed policy_kept
	echo "skip host/policy_report/traces # at full length only: make check-long"
	timed suite host "$HOST/crash.asan" 1500
	timed suite host "$HOST/crash" --teeth 10000
	timed suite host "$HOST/fsck_zoned" 6
	timed fuzz fuzz 4
	timed fuzz fuzz_media 5
	timed fuzz fuzz_fsck 5
	bench --any-rate
	;;
quick)
	tests 400000 10000 gcc
	echo "skip host-clang/all # at full length only: make check-long"
	timed sim_tests
	timed sim_answers
	echo "skip host/policy_report # not in make check-quick"
	timed suite host "$HOST/crash.asan" 1000
	timed suite host "$HOST/crash" --teeth 10000
	timed suite host "$HOST/fsck_zoned" 6
	timed fuzz fuzz 3
	timed fuzz fuzz_media 3
	timed fuzz fuzz_fsck 3
	bench --any-rate
	;;
long)
	tests 100000000 3000000 gcc clang
	timed suite host "$HOST/sim_test"
	timed sim_answers
	timed policy_kept
	if [ -n "${TRACES:-}" ]; then
		timed policy_kept "$TRACES"
	else
		echo "skip host/policy_report/traces # no TRACES=DIR given (real traces are not part of the tree)"
	fi
	timed suite host "$HOST/crash.asan" 20000
	timed suite host "$HOST/crash" 100000
	timed suite host "$HOST/crash" --teeth 20000
	timed suite host "$HOST/fsck_zoned" 100
	timed fuzz fuzz 300
	timed fuzz fuzz_media 300
	timed fuzz fuzz_fsck 300
	bench --any-rate
	;;
crash) suite host "$HOST/crash" "${CRASH_POINTS:-100000}" ;;
teeth) suite host "$HOST/crash" --teeth 10000 ;;
fuzz)
	fuzz fuzz "${FUZZ_SECONDS:-300}"
	fuzz fuzz_media "${FUZZ_SECONDS:-300}"
	fuzz fuzz_fsck "${FUZZ_SECONDS:-300}"
	;;
bench) bench ;;
*) sed -n '4,17s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
exit "$FAILED"
