#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A block device that is a member has the assembly of its pool started when it appears or
# is written to, under the name by which the pool can be had; no other device has anything
# started, and none at all where that is not wanted. Persistent memory is in pmem.sh.
set -euo pipefail
# shellcheck source=selftests/vm/guest/udev.sh
. /kvt/guest/udev.sh

DISKS=()
POOL=

fail()
{
	echo "# $*"
	[ ! -e "$UDEV_PROPS" ] || sed 's/^/#   /' "$UDEV_PROPS"
	exit 1
}

clean_up()
{
	local disk
	udevadm control --log-level=info
	udev_rule_off
	[ -z "$POOL" ] || kvtier pool destroy "$POOL"
	for disk in "${DISKS[@]}"; do
		losetup -d "$disk" || :
	done
	rm -f /tmp/udev_block.*
}

# disk NAME : one more, in DISKS.
disk()
{
	local dev
	truncate -s 24M "/tmp/udev_block.$1"
	dev=$(losetup -f)
	losetup "$dev" "/tmp/udev_block.$1"
	DISKS+=("$dev")
}

# Ends with two members of a pool that is not up.
make_pool()
{
	kvtier -j pool create --tier dram:size=8M --tier "bdev:path=${DISKS[0]}" \
		--tier "bdev:path=${DISKS[1]}" >/tmp/udev_block.pool
	POOL=$(sed -n 's/.*"pool": *\([0-9]*\).*/\1/p' /tmp/udev_block.pool)
	UUID=$(cat "/sys/class/kvtier/kvtier$POOL/uuid")
	kvtier pool destroy "$POOL" >/dev/null
	POOL=
}

# wants ACTION DISK : does udev have it assembled when that happens.
wants()
{
	local path=/sys/class/block/${2##*/}
	udevadm trigger --action="$1" "$path"
	udev_wants "$path"
}

# starts ACTION DISK : the same, and says what can be seen of it if not at once.
starts()
{
	local try
	wants "$1" "$2" && return
	echo "# $1 of $2 has started nothing so far; what the rule's program says now:"
	kvtier pool members --export "$2" | sed 's/^/#   /' || echo "#   status $?"
	dmesg | grep -E "${2##*/}|rules" | tail -n 40 | sed 's/^/#   /'
	for ((try = 0; try < 20; try++)); do
		sleep 0.5
		! udev_wants "/sys/class/block/${2##*/}" || return 0
	done
	return 1
}

# knows PROPERTY=VALUE : of the device that was looked at last.
knows()
{
	grep -qx "$1" "$UDEV_PROPS" || fail "udev does not know: $1"
}

trap clean_up EXIT
modprobe -q loop || :
for name in first second empty foreign; do
	disk "$name"
done
make_pool
mkfs.ext4 -q "${DISKS[3]}"

udev_rule_on "$UUID"
udevadm control --log-level=debug
for action in add change; do
	for dev in "${DISKS[@]:0:2}"; do
		starts "$action" "$dev" || fail "$action of $dev starts nothing"
		knows "SYSTEMD_WANTS=kvtier-assemble@$UUID.service"
		knows "ID_FS_TYPE=kvtier_member"
		knows "ID_FS_UUID=$UUID"
		knows 'CURRENT_TAGS=.*:systemd:.*'
	done
	for dev in "${DISKS[@]:2}"; do
		! wants "$action" "$dev" || fail "$action of $dev starts something"
		! grep -qE '^(KVTIER_POOL|SYSTEMD_WANTS)=' "$UDEV_PROPS" ||
			fail "$dev is taken for a member"
	done
done
knows ID_FS_TYPE=ext4

# By what is said of one member all of the pool comes up.
kvtier -j pool assemble --scan --uuid "$UUID" >/tmp/udev_block.pool
POOL=$(sed -n 's/.*"pool": *\([0-9]*\).*/\1/p' /tmp/udev_block.pool)
[ "$(cat "/sys/class/kvtier/kvtier$POOL/uuid")" = "$UUID" ] || fail 'another pool is up'
[ "$(cat "/sys/class/kvtier/kvtier$POOL/degraded")" = 0 ] || fail 'some of it is missing'
kvtier pool destroy "$POOL" >/dev/null
POOL=

# A host that has asked for another one only.
mv "/etc/kvtier/assemble.d/$UUID" /etc/kvtier/assemble.d/07070707-0707-0707-0707-070707070707
! wants change "${DISKS[0]}" || fail 'started unasked'
knows "KVTIER_POOL=$UUID"
