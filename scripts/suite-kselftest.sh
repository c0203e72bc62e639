#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The in-VM tests on one kernel: suite-kselftest.sh stock|debug[:I/N] [TEST]...
# With I/N every Nth program from the Ith on. The tests' names get the kernel's as
# a suffix of the first part, so that both runs can be told apart. All of them on the debug
# kernel: the core's KUnit tests come first, in the same machine.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

kernel=${1:-stock}
part=
[ "$kernel" = "${kernel#*:}" ] || part=${kernel#*:}
kernel=${kernel%%:*}
[ $# -eq 0 ] || shift
# Emulated CXL memory is some fifty times slower than other memory. One kernel with it is enough, but
# for long runs; the debug kernel has no driver for memory that firmware sets aside.
soft_mib=0
[ "$kernel" != stock ] || [ "${KVT_LENGTH:-full}" = long ] || soft_mib=256
# On a node without processors, for tests that Debian's kernel runs: the instrumented one takes most of
# what comes last in memory for itself at boot.
far_mib=0
[ "$kernel" != stock ] || far_mib=96
# Seconds for a program, and for all of them: many times what is needed here, since they
# are for what hangs, and other machines are slower.
limit=600
timeout=3600
if [ "$kernel" != stock ]; then
	limit=800
	timeout=5000
fi
if [ "${KVT_LENGTH:-full}" = long ]; then
	limit=$((limit * 8))
	timeout=$((timeout * 8))
fi
run='bash /kvt/guest/kselftest.sh "$@"'
case $kernel:${part:-1/1}:$# in
debug:1/*:0) run="status=0; bash /kvt/guest/kunit.sh || status=1; $run || status=1; exit \$status" ;;
esac
{
	"$KVT_ROOT/scripts/build-modules.sh" "$kernel"
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest
} >&2
"$KVT_ROOT/selftests/vm/run.sh" --kernel "$kernel" --timeout "$timeout" --zns 2 --monitor \
	--soft "$soft_mib" --far "$far_mib" \
	--env KVT_LENGTH="${KVT_LENGTH:-full}" --env KVT_KERNEL="$kernel" \
	--env KVT_TEST_TIMEOUT_S=$limit --env KVT_PART="$part" \
	-- bash -c "$run" kselftest "$@" |
	sed -u -E "s/^(ok|not ok|skip) kselftest\./\1 kselftest-$kernel./"
