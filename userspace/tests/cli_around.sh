#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What is built around the kvtier tool: traces cut for the demo, help as programs read it,
# bash's completion, held against what the tool itself takes, and the service that runs it:
# cli_around.sh TOP OUT
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"

# --- traces ------------------------------------------------------------------

# jsonl_of CSV: the same requests in the other format.
jsonl_of()
{
	python3 -c 'import csv, json, sys
for row in csv.DictReader(open(sys.argv[1])):
    ids = []
    for part in row["ids"].split():
        first, _, last = part.partition("-")
        ids.extend(range(int(first), int(last or first) + 1))
    print(json.dumps({"timestamp": int(row["ts_ms"]), "hash_ids": ids,
                      "input_length": int(row["input_len"]),
                      "output_length": int(row["output_len"])}))' "$1"
}

# cut STATUS FOLDER OPTION...: cuts the traces in a folder, into FOLDER.out.
cut()
{
	local wanted=$1 folder=$2 status=0
	shift 2
	mkdir -p "$folder" "$folder.out"
	"$top/selftests/vm/cut_trace.py" --out "$folder.out" "$@" "$folder" \
		>"$work/stdout" 2>"$work/stderr" || status=$?
	[ "$status" -eq "$wanted" ] || {
		cat "$work/stderr"
		fail "cut_trace.py: status $status, not $wanted"
	}
}

# What the demo cuts out of real traces, whatever their format, replays.
test_trace_cut()
{
	local kind
	want 0 gen --seed 3 --blocks 500 --out "$work/trace.csv"
	jsonl_of "$work/trace.csv" >"$work/trace.jsonl"
	zstd -q "$work/trace.csv" "$work/trace.jsonl"
	for kind in csv jsonl csv.zst jsonl.zst; do
		mkdir "$work/$kind"
		cp "$work/trace.$kind" "$work/$kind"
		cut 0 "$work/$kind" --distinct 300 --most 700
		says "trace.${kind%.zst}"
		complains "one in 1 of the first 27 requests of trace.$kind"
	done
	same "$work/csv.out/trace.csv" "$work/csv.zst.out/trace.csv"
	same "$work/csv.out/trace.csv" <(head -n 28 "$work/trace.csv")
	same "$work/jsonl.out/trace.jsonl" "$work/jsonl.zst.out/trace.jsonl"
	same "$work/jsonl.out/trace.jsonl" <(jsonl_of "$work/csv.out/trace.csv")
	want 0 pool create --tier dram:size=16M
	for kind in csv jsonl; do
		want 0 -j replay --procs 1 --block-bytes 4K "$work/$kind.out/trace.$kind"
		json 'j["passed"] and j["trace"]["requests"] == 27'
	done
}

test_trace_cut_choice()
{
	want 0 gen --seed 3 --blocks 2000 --out "$work/trace.csv"
	jsonl_of "$work/trace.csv" >"$work/trace.jsonl"
	mkdir "$work/dense" "$work/empty" "$work/bad" "$work/short"
	# Asking too often to be read in full: some requests only, the same of both.
	cp "$work/trace.csv" "$work/dense"
	cut 0 "$work/dense" --distinct 300 --most 450
	complains 'one in 4 of the first 69 '
	sed -n '1p;2~4p' "$work/trace.csv" |
		head -n "$(wc -l <"$work/dense.out/trace.csv")" >"$work/half"
	same "$work/half" "$work/dense.out/trace.csv"
	rm "$work/dense/trace.csv"
	cp "$work/trace.jsonl" "$work/dense"
	cut 0 "$work/dense" --distinct 300 --most 450
	same <(jsonl_of "$work/half") "$work/dense.out/trace.jsonl"
	cut 1 "$work/dense" --distinct 100000 --most 1000000
	complains 'fills the pool'
	cut 1 "$work/empty" --distinct 1 --most 1
	complains '*.jsonl.zst'
	zstd -q "$work/trace.jsonl"
	head -c 500 "$work/trace.jsonl.zst" >"$work/short/trace.jsonl.zst"
	cut 1 "$work/short" --distinct 300 --most 2000
	complains 'cannot be inflated'
	echo '{"timestamp": 1}' >"$work/bad/trace.jsonl"
	cut 1 "$work/bad" --distinct 1 --most 1
	complains 'request 1'
}

# Several processes share the stand-in as they share the kernel.
test_replay_procs()
{
	local round
	want 0 gen --seed 1 --context-tokens 4096 --blocks 200 --out "$work/trace.csv"
	want 0 pool create --tier dram:size=64M
	for round in 1 2 3 4 5 6 7 8; do
		want 0 -j replay --procs 2 --ns "round $round" --block-bytes 4K "$work/trace.csv"
		json 'j["passed"]'
	done
}

# It finds what a replay has stored, and changes nothing itself.
test_replay_lookup()
{
	want 0 gen --seed 1 --context-tokens 4096 --blocks 200 --out "$work/trace.csv"
	want 0 pool create --tier dram:size=64M
	want 1 -j replay --lookup --block-bytes 4K "$work/trace.csv"
	# The first one has not made the namespace that it missed.
	want 1 -j replay --lookup --block-bytes 4K "$work/trace.csv"
	want 0 -j replay --procs 2 --max-requests 10 --block-bytes 4K "$work/trace.csv"
	json 'j["clients"]["stored"] > 0'
	want 0 -j replay --lookup --procs 2 --block-bytes 4K "$work/trace.csv"
	json 'j["passed"] and j["clients"]["hits"] > 0'
	json 'not j["clients"]["stored"] and not j["clients"]["verified_bytes"]'
	json 'sum(t["hits"] for t in j["tiers"]) == j["clients"]["hits"]'
}

# --- help --------------------------------------------------------------------

# With -j and -p whatever is printed can be parsed.
test_json_help()
{
	local line
	want 0 help pool
	sed -n 's/^  kvtier \(pool [a-z]*\).*/\1/p' "$work/stdout" | sort >"$work/verbs"
	for line in 'pool help' 'pool --help' 'help pool'; do
		# shellcheck disable=SC2086 # words on purpose
		want 0 -j $line
		json 'all("arguments" in c and c["help"] for c in j)'
		same "$work/verbs" <(python3 -c 'import json, sys
print(*sorted(c["command"] for c in json.load(sys.stdin)), sep="\n")' <"$work/stdout")
	done
	want 0 -p pool create --help
	json '[c["command"] for c in j] == ["pool create"] and "--tier" in j[0]["arguments"]'
	want 0 -j help
	json '{"pool create", "ns tiers", "put", "gen", "version"} <= {c["command"] for c in j}'
	for line in 'gen --help' 'help gen' 'gen --seed 2 -h'; do
		# shellcheck disable=SC2086
		want 0 -j $line
		json 'j[0]["command"] == "gen" and "--context-tokens" in j[0]["usage"]'
	done
	want 0 -j help --help
	json '[c["command"] for c in j] == ["help"]'
	want 0 -j replay -h
	json 'len(j) == 1 and "--procs" in j[0]["usage"]'
	want 2 -j help nonsense
	json 'j["error"]["name"] == "USAGE"'
	# CSV is none, so it goes to a file.
	want 2 -j gen --requests 3
	json 'j["error"]["name"] == "USAGE" and "--out FILE" in j["error"]["message"]'
	want 0 -p gen --requests 3 --out "$work/trace.csv"
	json 'j["requests"] == 3'
	[ "$(wc -l <"$work/trace.csv")" -eq 4 ] || fail 'not the trace'
}

# --- completion --------------------------------------------------------------

# complete_lines: for each line on stdin what bash offers at its end, separated by "|".
complete_lines()
{
	bash -c '
	. "$1"
	while IFS= read -r line; do
		read -ra COMP_WORDS <<<"$line"
		[[ $line != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		COMPREPLY=()
		_kvtier
		printf "%s|%s\n" "$line" "$(printf "%s\n" "${COMPREPLY[@]}" | sort | paste -sd " ")"
	done' _ "$top/userspace/completion/kvtier"
}

# offers LINE: what comes after it, one a line.
offers()
{
	complete_lines <<<"$1" | sed 's/.*|//' | tr ' ' '\n' | sed '/^$/d'
}

# commands: all that the tool has, an object and its verb or a single word a line.
commands()
{
	"$tool" -j help | python3 -c 'import json, sys
print(*(c["command"] for c in json.load(sys.stdin)), sep="\n")'
}

# What bash offers for a line is what the tool accepts.
test_completion()
{
	commands >"$work/commands"
	sed 's/ .*//' "$work/commands" | sort -u >"$work/objects"
	same "$work/objects" <(offers 'kvtier ')
	same <(grep -vx -e help -e version "$work/objects") <(offers 'kvtier help ')
	sed -n 's/ .*//p' "$work/commands" | sort -u >"$work/with_verbs"
	[ -s "$work/with_verbs" ] || fail 'no verbs'
	while read -r object; do
		sed -n "s/^$object //p" "$work/commands" | sort >"$work/verbs"
		same "$work/verbs" <(offers "kvtier $object ")
	done <"$work/with_verbs"
	[ "$(offers 'kvtier -j tier d' | paste -sd ' ')" = 'detach drain' ] || fail 'prefix d'
	[ "$(offers 'kvtier cxl create --me')" = '--memdev' ] || fail 'options'
	[ "$(offers 'kvtier pool create --tier d' | paste -sd ' ')" = 'dax: dram:' ] ||
		fail 'specs'
	[ "$(offers 'kvtier gen --kind a')" = agent ] || fail 'kinds'
	want 0 pool create
	want 2 pool set 0 nothing=1
	offers 'kvtier pool set 0 ' | sed -n 's/=$//p' >"$work/keys"
	complains "($(sed -n '/^policy$/p' "$work/keys"), watermark"
	same <(sed -n 's/.*(\(.*\)).*/\1/p' "$work/stderr" | tr -d , | tr ' ' '\n' | sort) \
		"$work/keys"
}

# globals: the options that every command takes.
globals()
{
	"$tool" help | sed -n '/^Options/,/^$/s/.*\(--[a-z]*\) .*/\1/p'
}

# Options of the tool itself come wherever they may stand, --help where it is taken.
test_completion_globals()
{
	local line
	globals >"$work/globals"
	[ "$(wc -l <"$work/globals")" -eq 3 ] || fail 'not three options'
	{ cat "$work/globals"; echo --help; } | sort >"$work/common"
	{ echo; commands; } >"$work/commands"
	while read -r line; do
		# shellcheck disable=SC2086 # an object and a verb
		want 0 $line --help
		same "$work/common" <(offers "kvtier $line --" | grep -xf "$work/common")
	done <"$work/commands"
	for line in 'pool create --force' 'pool show 0' 'put --ns x' 'help pool'; do
		same "$work/globals" <(offers "kvtier $line --" | grep -xf "$work/common")
	done
	[ "$(offers 'kvtier -j pool -p --h')" = --help ] || fail '--help of an object'
	[ "$(offers 'kvtier gen --seed 2 --h')" = --help ] || fail '--help of gen'
}

# said OPTION WORD...: what the tool says of words with that option, whatever its name is.
# The value is one that none of them can mean, so nothing is done.
said()
{
	local option=$1 text
	shift
	text=$("$out/bin/kvtier" "$@" "$option" / 2>&1 </dev/null) || true
	echo "${text//"$option"/OPTION}"
}

# accepted SAID OPTION WORD...: the tool knows that option there, since it does not say what
# it does of one that there is nowhere.
accepted()
{
	local unknown=$1 said
	shift
	said=$(said "$@")
	[ "$said" != "$unknown" ] &&
		[[ ! $said =~ bad\ option|see\ \'kvtier|takes\ no\ |keeps\ blocks ]]
}

# For every command bash offers the options the tool has, all of them and no others.
test_completion_options()
{
	local options verb option unknown
	mkdir "$KVTIER_SYSFS"
	mapfile -t options < <(sed -nE \
		's/^\t+\{ "([a-z-]+)", (no|required)_argument,.*/--\1/p' \
		"$top"/userspace/kvtier/*.c | grep -vx -e --help | sort -u)
	[ ${#options[@]} -gt 30 ] || fail 'too few options found'
	{ globals; echo --help; } >"$work/common"
	commands >"$work/commands"
	[ "$(wc -l <"$work/commands")" -gt 25 ] || fail 'too few commands found'
	while read -r verb; do
		# shellcheck disable=SC2086 # an object and a verb
		unknown=$(said --made-up $verb)
		for option in "${options[@]}"; do
			# Short for --output.
			[ "$verb$option" != get--out ] || continue
			# shellcheck disable=SC2086
			! accepted "$unknown" "$option" $verb || echo "$option"
		done >"$work/has"
		echo "$verb: $(paste -sd ' ' <"$work/has")"
		same "$work/has" <(offers "kvtier $verb --" | grep -vxf "$work/common")
	done <"$work/commands"
}

# --- the service ---------------------------------------------------------------

unit=$top/userspace/install/kvtier-assemble@.service

setting()
{
	sed -n "s/^$1=//p" "$unit"
}

# It is started again and again, and by every member that appears: a start too many and
# systemd gives it up, just when the last member comes.
test_unit_goes_on()
{
	local tries members
	tries=$(($(setting StartLimitIntervalSec) / $(setting RestartSec)))
	members=$(sed -n 's/^#define KVTIER_TIERS_MAX\t*\([0-9]*\).*/\1/p' "$top/uapi/linux/kvtier.h")
	if [ "$tries" -le 0 ] || [ "$members" -le 0 ]; then
		fail "$tries tries, $members members"
	fi
	[ "$(setting StartLimitBurst)" -gt $((tries + members)) ] ||
		fail "$tries tries and $members members reach StartLimitBurst"
	[ "$(setting Restart)" = on-failure ] || fail 'it is tried once'
}

# As installed, but for the tool's place: the command must be there. What it complains of
# other units is not ours.
test_unit_verify()
{
	local installed=$work/${unit##*/}
	command -v systemd-analyze >/dev/null || skip 'no systemd-analyze'
	sed "s,@SBINDIR@,$out/bin," "$unit" >"$installed"
	systemd-analyze verify --man=no "$installed" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
	! grep -F kvtier-assemble@ "$work/said" || fail 'systemd does not like it'
}

# Its commands are ones that the tool takes, with the name of the instance for the pool.
test_unit_commands()
{
	local pool=07070707-0707-0707-0707-070707070707 command
	export KVTIER_DEV=$work/dev
	mkdir -p "$KVTIER_DEV" "$KVTIER_SYSFS/class/block/sda" "$KVTIER_SYSFS/class/kvtier/kvtier0"
	echo 4096 >"$KVTIER_SYSFS/class/block/sda/size"
	echo "$pool" >"$KVTIER_SYSFS/class/kvtier/kvtier0/uuid"
	"$tests/damage.py" "$KVTIER_DEV/sda" member 7 1 10 log0 1:10
	for command in ExecStart ExecStop; do
		command=$(setting "$command")
		command=${command#@SBINDIR@/kvtier }
		command=${command//%i/$pool}
		# shellcheck disable=SC2016,SC2086 # another language's variable; words
		want 0 ${command/'$KVTIER_ASSEMBLE'/--tier dram:size=64M}
	done
	want 0 -j pool list
	json 'j == []'
}

for name in trace-cut trace-cut-choice replay-procs replay-lookup json-help completion \
	completion-globals completion-options unit-goes-on unit-verify unit-commands; do
	run_test "$name"
done
exit "$failed"
