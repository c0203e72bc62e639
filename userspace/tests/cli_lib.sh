# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What scripts that test the tool share, for sourcing with TOP OUT as arguments: the
# tool over a stand-in for the kernel, and a folder, a store and a sysfs for each test.
# shellcheck disable=SC2034 # used by those who source it
set -euo pipefail

top=$1
out=$2
tests=$top/userspace/tests
tool=$out/userspace/tests/kvtier-mock

failed=0
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
export ASAN_OPTIONS=detect_leaks=1

fail()
{
	echo "  $*"
	exit 1
}

# skip REASON: this test cannot be run here.
skip()
{
	echo "$*"
	exit 77
}

# kv ARGS...: runs the tool; status, stdout and stderr are left in files.
kv()
{
	local status=0
	"$tool" "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
	echo "$status" >"$work/status"
}

# want STATUS ARGS...: the tool must end so, and never in a sanitizer's arms.
want()
{
	local status=$1
	shift
	kv "$@"
	if grep -q -e Sanitizer -e 'runtime error' "$work/stderr"; then
		cat "$work/stderr"
		fail "sanitizer: kvtier $*"
	fi
	if [ "$(cat "$work/status")" != "$status" ]; then
		cat "$work/stdout" "$work/stderr"
		fail "kvtier $*: status $(cat "$work/status"), not $status"
	fi
}

says()
{
	grep -qF -e "$1" "$work/stdout" || {
		cat "$work/stdout"
		fail "stdout does not say: $1"
	}
}

complains()
{
	grep -qF -e "$1" "$work/stderr" || {
		cat "$work/stderr"
		fail "stderr does not say: $1"
	}
}

# json EXPRESSION: python over the last output, parsed as "j"; must be true.
json()
{
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
if not eval("(%s)" % sys.argv[2]):
    print("  not so:", sys.argv[2], "in", json.dumps(j))
    sys.exit(1)' "$work/stdout" "$1" || exit 1
}

same()
{
	diff "$1" "$2" || fail "$1 and $2 differ"
}

# Runs test_NAME in a subshell of its own, with a fresh folder, store and sysfs.
run_test()
{
	local name=$1 log=$base/log status=0
	work=$base/$name
	mkdir "$work"
	(
		export KVTIER_SYSFS=$work/sys KVTIER_MOCK=$work/store
		"test_${name//-/_}"
	) >"$log" 2>&1 &
	wait $! || status=$?
	case $status in
	0) echo "ok tool/$name" ;;
	77) echo "skip tool/$name # $(tail -n 1 "$log")" ;;
	*)
		cat "$log"
		echo "not ok tool/$name"
		failed=1
		;;
	esac
	rm -rf "$work"
}
