#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The kvtier tool where things are rough: text that is after the terminal, output that
# nobody can have, traces that are none, pipes: cli_rough.sh TOP OUT
# shellcheck disable=SC2030,SC2031 # each test has a subshell and variables of its own
# shellcheck disable=SC2317 # functions are called by the names in the last lines
# shellcheck source=userspace/tests/cli_lib.sh
. "$1/userspace/tests/cli_lib.sh"

# trace IDS: of one request, in $work/trace.csv.
trace()
{
	printf 'ts_ms,input_len,output_len,session,ids\n0,512,1,-1,%b\n' "$1" >"$work/trace.csv"
}

# Nothing but what may be shown has come out.
harmless()
{
	! LC_ALL=C grep -P '[\x00-\x08\x0b-\x1f\x7f-\xff]' "$work/stdout" "$work/stderr" |
		cat -v | grep . || fail 'a terminal would do something'
}

# ends STATUS ARGS...: with nowhere for the output to go.
ends()
{
	local wanted=$1 status=0
	shift
	"$tool" "$@" >/dev/full 2>"$work/stderr" || status=$?
	[ "$status" -eq "$wanted" ] || fail "kvtier $*: status $status, not $wanted"
	complains 'writing the output'
}

# --- text ----------------------------------------------------------------------

test_trace_text()
{
	want 0 pool create --tier dram:size=16M
	trace '\x1b]0;owned\x07'
	want 1 replay "$work/trace.csv"
	complains '\x1b]0;owned\x07'
	harmless
	want 1 -j replay "$work/trace.csv"
	json 'chr(27) + "]0;owned" + chr(7) in j["error"]["message"]'
	json 'j["error"]["name"] == "EINVAL" and j["error"]["errno"] == 22'
	want 2 "$(printf 'p\x1b[2Jx')"
	harmless
}

# Names of files may have any bytes, those of images that others made, too.
test_names_text()
{
	local image name
	name=$(printf 'a\x1b[2J\xff\xc2\x9bb')
	image=$work/$name
	"$tests/damage.py" "$image" member 7 1 10 log0 1:10
	"$tests/damage.py" "$image" flip 100
	want 0 pool members "$image"
	says 'a\x1b[2J\xff\xc2\x9bb'
	harmless
	want 0 -j pool members "$image"
	json 'j["pools"][0]["members"][0]["device"].endswith(
		"/a" + chr(27) + "[2J" + chr(92) + "xff" + chr(0x9b) + "b")'
	want 0 -j dump --super "$image"
	json 'j["device"].endswith(chr(0x9b) + "b")'
	want 4 fsck "$image"
	says 'a\x1b[2J\xff\xc2\x9bb: has errors'
	harmless
	want 4 -j fsck "$image"
	json 'j[0]["device"].endswith(chr(0x9b) + "b")'
	truncate -s 0 "$image"
	want 8 fsck "$image"
	complains 'a\x1b[2J\xff\xc2\x9bb'
	harmless
	want 1 -j dump "$image"
	json '"is not a member" in j["error"]["message"]'
	want 0 pool members "$image"
	harmless
}

# --- output that is lost -------------------------------------------------------

test_full()
{
	ends 1 help
	ends 1 help pool
	ends 1 --version
	ends 1 -j version
	"$tests/damage.py" "$work/image" member 7 1 10 log0 1:10
	"$tests/damage.py" "$work/image" flip 100
	# "Errors were corrected" is what the status 1 would be.
	ends 12 fsck "$work/image"
	ends 12 -j fsck "$work/image"
	ends 8 fsck "$work/nothing"
}

test_replay_out()
{
	want 0 pool create --tier dram:size=16M
	trace 1-10
	want 1 replay --procs 1 --out "$work/none/result" "$work/trace.csv"
	complains "cannot write $work/none/result"
	want 1 ls --ns kvtier-replay
	complains 'opening the namespace'
	# What is found out in the end loses only that.
	want 1 replay --procs 1 --out /dev/full "$work/trace.csv"
	says 'Blocks stored'
	complains 'cannot write /dev/full: No space left'
	want 1 -j replay --procs 1 --out /dev/full "$work/trace.csv"
	json 'j["passed"] and j["error"]["name"] == "ENOSPC"'
	json 'j["error"]["message"].startswith("cannot write /dev/full")'
	printf '%1000s' old >"$work/result"
	trace nonsense
	want 1 replay --procs 1 --out "$work/result" "$work/trace.csv"
	grep -q old "$work/result" || fail 'the result of before is gone'
	trace 1-10
	want 0 replay --procs 1 --out "$work/result" "$work/trace.csv"
	cp "$work/result" "$work/stdout"
	json 'j["passed"]'
}

# --- replays that cannot be -----------------------------------------------------

test_replay_refused()
{
	trace 1-10
	want 2 replay --bogus "$work/trace.csv"
	complains "bad option '--bogus'"
	want 2 gen --bogus
	complains "bad option '--bogus'"
	want 0 pool create --tier dram:size=16M
	want 1 replay <(cat "$work/trace.csv")
	complains 'is no regular file'
	complains 'written to a file first'
	want 1 -j replay "$work"
	json 'j["error"]["name"] == "EINVAL"'
	want 1 -j replay "$work/none"
	json 'j["error"]["name"] == "ENOENT" and j["error"]["message"].endswith("No such file or directory")'
	want 1 -j replay --pool 9 "$work/trace.csv"
	json 'j["error"]["name"] == "ENOENT" and "kvtier pool list" in j["error"]["hint"]'
	unset KVTIER_MOCK
	want 1 -j replay --pool 0 "$work/trace.csv"
	json 'j["error"]["name"] == "ENOENT" and "modprobe" in j["error"]["hint"]'
}

# The line is drawn over the one before, which must be one.
test_replay_columns()
{
	want 0 pool create --tier dram:size=16M,name=somewhat-long --tier dram:size=16M,name=other
	trace 1-10
	COLUMNS=40 "$tests/on_tty.py" "$work/tty" "$tool" replay --procs 1 "$work/trace.csv" \
		>"$work/stdout"
	grep -aq 'requests' "$work/tty" || fail 'no progress'
	python3 -c 'import re, sys
lines = re.split(rb"\r|\n", open(sys.argv[1], "rb").read().replace(b"\x1b[K", b""))
sys.exit(max(map(len, lines)) > 39)' "$work/tty" || fail "$(cat -v "$work/tty")"
	COLUMNS=0 "$tests/on_tty.py" "$work/tty" "$tool" replay --procs 1 "$work/trace.csv" \
		>"$work/stdout"
	grep -aq 'somewhat-lon.*other' "$work/tty" || fail 'cut, and nobody knows where'
}

# What it could not do is not that the blocks are there still.
test_drop_errors()
{
	local key
	key=$(printf '%064d' 1)
	want 0 pool create --tier dram:size=16M
	want 0 put --ns x --block-bytes 4K "$key" --pad /dev/null
	export KVTIER_MOCK_FAIL_OP=12 KVTIER_MOCK_FAIL_ERRNO=4
	want 1 rm --ns x "$key"
	complains 'do it again'
	KVTIER_MOCK_FAIL_ERRNO=5
	want 1 rm --ns x --all
	complains 'takes no writes any more'
}

# --- input in pieces -------------------------------------------------------------

# pieces LENGTH...: so many bytes at a time.
pieces()
{
	local n
	for n in "$@"; do
		head -c "$n" /dev/zero | tr '\0' s
		sleep 0.1
	done
}

test_small_files()
{
	local put=(put --ns-file "$work/identity" --block-bytes 4K --key-text a --pad)
	want 0 pool create --tier dram:size=16M
	printf 'some\xff' >"$work/identity"
	head -c 32 /dev/zero | tr '\0' s >"$work/secret"
	want 0 "${put[@]}" --secret-file "$work/secret" "$work/secret"
	want 0 "${put[@]}" --secret-file <(pieces 1 20 11) "$work/secret"
	want 1 "${put[@]}" --secret-file <(pieces 20 11) "$work/secret"
	complains '32 bytes, not 31'
	want 1 "${put[@]}" --secret-file <(pieces 20 12 1) "$work/secret"
	complains 'at most 32 bytes'
	: >"$work/identity"
	want 1 "${put[@]}" "$work/secret"
	complains "$work/identity is empty"
}

for name in trace-text names-text full replay-out replay-refused replay-columns drop-errors small-files; do
	run_test "$name"
done
exit "$failed"
