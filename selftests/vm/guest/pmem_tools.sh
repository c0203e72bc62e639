#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The tool on members in persistent memory, KVT_PMEM0 and KVT_PMEM1, which no pool
# uses: who has which device when, and what can be seen of it then.
set -euo pipefail

driver_is()
{
	[ "$(basename "$(readlink "/sys/bus/dax/devices/$1/driver")")" = "$2" ]
}

# fails PATTERN COMMAND... : it must, and say that.
fails()
{
	local pattern=$1
	shift
	if "$@" >/run/said 2>&1; then
		echo "went well: $*"
		return 1
	fi
	cat /run/said
	grep -q "$pattern" /run/said
}

# In the hands of the driver they cannot be looked at, in the kernel's they can.
kvtier cxl bind "$KVT_PMEM0" "$KVT_PMEM1"
fails 'cannot be looked at' kvtier fsck "$KVT_PMEM0"
kvtier pool members >/run/members
grep -q "^/dev/$KVT_PMEM0 cannot be looked at" /run/members
kvtier cxl unbind "$KVT_PMEM0" "$KVT_PMEM1"
driver_is "$KVT_PMEM0" device_dax
kvtier pool members | tee /run/members
grep -q ': complete$' /run/members
for dax in "$KVT_PMEM0" "$KVT_PMEM1"; do
	grep -q "^/dev/$dax " /run/members
	kvtier fsck "/dev/$dax"
	kvtier -j dump "$dax" --super >/run/dump
	grep -q '"tier_type": *5' /run/dump
done

fails 'is a member of kvtier pool' \
	kvtier pool create --tier dram:size=4M --tier "dax:dev=$KVT_PMEM0"
fails 'members are found' kvtier pool assemble --tier "dax:dev=$KVT_PMEM0"

# An assembly binds them; a pool has them then.
kvtier pool assemble --tier dram:size=8M
driver_is "$KVT_PMEM0" kvtier
[ "$(cat /sys/class/kvtier/kvtier0/tiers/pmem31/type)" = pmem ]
[ "$(cat /sys/class/kvtier/kvtier0/tiers/pmem31/device)" = "$KVT_PMEM1" ]
fails 'cannot be looked at' kvtier fsck "$KVT_PMEM0"
fails 'is tier kvtier0/pmem31' kvtier cxl unbind "$KVT_PMEM1"
fails 'no pool to assemble' kvtier pool assemble
kvtier pool destroy 0

# Idle, but with our driver: handed back, looked at, and bound again.
driver_is "$KVT_PMEM0" kvtier
kvtier pool assemble "$KVT_PMEM0" "/dev/$KVT_PMEM1"
kvtier pool destroy 0
