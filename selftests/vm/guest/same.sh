#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs same and beside with the module and the traces of the payload, and generated ones.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

FAILED=0
# There is nothing here that any of it could be skipped for.
export KVT_SKIPS=/dev/null
# It uses none: nobody need look for those that the machine does not have.
export KVT_DEVICES=none
[ -n "${KVT_SAME_REQUESTS:-}" ] || unset KVT_SAME_REQUESTS

# What it depends on is loaded as well.
if ! modprobe kvtier || ! rmmod kvtier || ! insmod /payload/kvtier.ko; then
	echo "not ok same.module"
	exit 1
fi
run_ktap same /kvt/kselftest/same -f same || FAILED=1
for trace in gen:chat gen:agent gen:rag /payload/traces/*; do
	[ "${trace#gen:}" != "$trace" ] || [ -e "$trace" ] || continue
	name=${trace##*/}
	name=${name#gen:}
	export KVT_SAME_TRACE=$trace
	run_ktap "same.${name%%.*}" /kvt/kselftest/same -f traces || FAILED=1
	run_ktap "beside.${name%%.*}" /kvt/kselftest/beside || FAILED=1
done
# The policy that goes by the time between uses is asked where that can be set.
export KVT_SKIPS=/kvt/kselftest/skips.list
run_ktap isolate /kvt/kselftest/isolate -v reuse || FAILED=1
exit $FAILED
