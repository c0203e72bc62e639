#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a CXL device knows to be bad is not used: poison is injected into the device, the
# tool reads its list when it attaches a tier, and the pieces of 2 MiB they are in are retired before anything is
# put there. Status 4: the kernel or the device cannot do that.
set -euo pipefail

DAX=
REGION=
MEM=
DECODER=
INJECTED=()

skip()
{
	echo "# $*"
	exit 4
}

fail()
{
	echo "# $*"
	exit 1
}

clean_up()
{
	local dpa
	for dpa in "${INJECTED[@]}"; do
		echo "$dpa" >"/sys/kernel/debug/cxl/$MEM/clear_poison" || echo "# poison stays at $dpa"
	done
	# The instance forgets what is bad.
	kvtier cxl unbind "$DAX" || :
}

# find_device : the region, and the memory device of its first target.
find_device()
{
	local path
	path=$(readlink -f "/sys/bus/dax/devices/$DAX")
	REGION=$(sed -n 's,.*/\(region[0-9]*\)/.*,\1,p' <<<"$path")
	[ -n "$REGION" ] || skip "$DAX is not of a CXL region"
	path=$(readlink -f "/sys/bus/cxl/devices/$(cat "/sys/bus/cxl/devices/$REGION/target0")")
	MEM=$(basename "$(readlink -f "$(dirname "$path")/uport")")
	DECODER=$path
}

inject()
{
	echo "$1" >"/sys/kernel/debug/cxl/$MEM/inject_poison" || fail "cannot inject poison at $1"
	INJECTED+=("$1")
}

# attach_and_see BYTES : so much is retired when the tier has been attached.
attach_and_see()
{
	local retired pool
	kvtier pool create --tier "dax:dev=$DAX,size=8M,name=cxl" >/tmp/poison_list.out 2>&1 ||
		fail "$(cat /tmp/poison_list.out)"
	pool=$(echo /sys/class/kvtier/kvtier*/tiers/cxl)
	retired=$(cat "$pool/retired_bytes")
	pool=${pool#*/kvtier/kvtier}
	kvtier pool destroy "${pool%%/*}" >/dev/null
	[ "$retired" = "$1" ] || fail "$retired bytes are retired, not $1: $(cat /tmp/poison_list.out)"
}

unset KVT_DAX
# shellcheck disable=SC2046
export $(./devices cxl)
DAX=${KVT_DAX:-}
[ -n "$DAX" ] || skip "no device-dax instance to use (KVT_DAX)"
kvtier cxl bind "$DAX" >/dev/null
find_device
[ -w "/sys/kernel/debug/cxl/$MEM/inject_poison" ] || skip "poison cannot be injected into $MEM"
trap clean_up EXIT
base=$(($(cat "$DECODER/dpa_resource")))

attach_and_see 0
# Two lines of one page, one of another: two pieces of 2 MiB; and one that the tier has not.
inject $((base + 4096 * 3))
inject $((base + 4096 * 3 + 64))
inject $((base + 4096 * 700 + 128))
inject $((base + (16 << 20)))
attach_and_see $((4 << 20))
grep -q "are left out" /tmp/poison_list.out || fail "nothing was said: $(cat /tmp/poison_list.out)"
! find /sys/kernel/tracing/instances -name "kvtier-*" | grep -q . || fail "an instance of tracefs is left"
