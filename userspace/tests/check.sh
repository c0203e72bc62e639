#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# All tests of the kvtier tool that need no kernel module: check.sh TOP OUT
# One line per test: "ok NAME", "not ok NAME" (details before it) or
# "skip NAME # reason".
set -euo pipefail

top=$1
out=$2
tests=$top/userspace/tests
failed=0

for program in "$out"/userspace/tests/test_*; do
	"$program" || failed=1
done
for program in "$tests"/test_*.py; do
	python3 "$program" || failed=1
done
# Any bytes as a trace, for a moment; needs a compiler with a fuzzer in it.
fuzz=$out/userspace/tests/fuzz_trace
if [ -x "$fuzz" ]; then
	if "$fuzz" -max_total_time="${FUZZ_SECONDS:-5}" -max_len=65536 -verbosity=0 \
		-artifact_prefix="$out/userspace/" >"$fuzz.log" 2>&1; then
		echo "ok tool/fuzz-trace"
	else
		tail -n 40 "$fuzz.log"
		echo "not ok tool/fuzz-trace"
		failed=1
	fi
else
	echo "skip tool/fuzz-trace # no clang with libFuzzer"
fi
for script in cli cli_cxl cli_media cli_pools cli_around cli_rough; do
	"$tests/$script.sh" "$top" "$out" || failed=1
done
exit "$failed"
