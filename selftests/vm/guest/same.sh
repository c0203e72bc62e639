#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs same and beside with the module and the traces of the payload, and generated ones: all
# of them with either if KVT_SAME_ALL is set, else one with each.
# shellcheck source=selftests/vm/guest/lib.sh
. /kvt/guest/lib.sh

FAILED=0
# There is nothing here that any of it could be skipped for.
export KVT_SKIPS=/dev/null
# It uses none: nobody need look for those that the machine does not have.
export KVT_DEVICES=none
[ -n "${KVT_SAME_REQUESTS:-}" ] || unset KVT_SAME_REQUESTS

declare -A FIXTURE=([same]=traces [beside]=beside)

# asks PROGRAM TRACE : the shortest trace for the one, for the other one with many hits.
asks()
{
	local other=agent
	[ ! -e /payload/traces/claudeA.csv.zst ] || other=claudeA
	[ -n "${KVT_SAME_ALL:-}" ] || [ "$1/$2" = same/chat ] || [ "$1/$2" = "beside/$other" ]
}

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
	for program in same beside; do
		if asks "$program" "${name%%.*}"; then
			run_ktap "$program.${name%%.*}" "/kvt/kselftest/$program" -f "${FIXTURE[$program]}" ||
				FAILED=1
		else
			echo "skip $program.${name%%.*} # at full length only: make check-long"
		fi
	done
done
# The policy that goes by the time between uses is asked where that can be set.
export KVT_SKIPS=/kvt/kselftest/skips.list
LEFT_OUT=()
if [ -z "${KVT_SAME_ALL:-}" ]; then
	for test in hits_beside_a_crowd weight_beside_a_scan; do
		LEFT_OUT+=(-T "$test")
		echo "skip isolate.isolate.reuse.$test # at full length only: make check-long"
	done
fi
run_ktap isolate /kvt/kselftest/isolate "${LEFT_OUT[@]}" -v reuse || FAILED=1
exit $FAILED
