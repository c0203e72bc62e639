#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A device that has something else on it, or is a member of another pool, is taken by nobody who
# does not insist: neither for a new pool nor for one that is up. Not a byte of it changes.
set -euo pipefail

DISK=
POOL=
ERR=/tmp/signature.err

fail()
{
	echo "# $*"
	[ ! -e "$ERR" ] || sed 's/^/#   /' "$ERR"
	exit 1
}

clean_up()
{
	[ -z "$POOL" ] || kvtier pool destroy "$POOL" >/dev/null
	[ -z "$DISK" ] || losetup -d "$DISK"
	rm -f /tmp/signature.*
}

sum()
{
	blockdev --flushbufs "$DISK"
	sha256sum <"$DISK"
}

# refused WHAT COMMAND... : it fails, says what is there and what to do, and changes nothing.
refused()
{
	local what=$1 before
	shift
	before=$(sum)
	! "$@" >/tmp/signature.out 2>"$ERR" || fail "taken, with $what on it: $*"
	grep -qi -- "$what" "$ERR" || fail "does not say that it is $what: $*"
	grep -q -- --force "$ERR" || fail "does not say what to do: $*"
	[ "$(sum)" = "$before" ] || fail "has been written to: $*"
	[ -z "$(ls -d /sys/class/kvtier/kvtier[0-9]*/tiers/bdev* 2>/dev/null)" ] ||
		fail "a tier is there: $*"
}

pool_of()
{
	sed -n 's/.*"pool": *\([0-9]*\).*/\1/p' "$1"
}

both_refused()
{
	refused "$1" kvtier pool create --tier dram:size=8M --tier "bdev:path=$DISK"
	kvtier -j pool create --tier dram:size=8M >/tmp/signature.pool
	POOL=$(pool_of /tmp/signature.pool)
	refused "$1" kvtier tier attach "$POOL" "bdev:path=$DISK"
	kvtier pool destroy "$POOL" >/dev/null
	POOL=
}

trap clean_up EXIT
modprobe -q loop || :
truncate -s 24M /tmp/signature.disk
DISK=$(losetup -f)
losetup "$DISK" /tmp/signature.disk

mkfs.ext4 -q "$DISK"
both_refused ext4
dd if=/dev/zero of="$DISK" bs=1M status=none oflag=direct 2>/dev/null || :
printf 'LUKS\272\276\000\001' | dd of="$DISK" conv=notrunc status=none
both_refused luks

# Who insists gets it; from then on it is a member.
kvtier -j pool create --force --tier dram:size=8M --tier "bdev:path=$DISK" >/tmp/signature.pool 2>"$ERR" ||
	fail 'not taken, although told to'
POOL=$(pool_of /tmp/signature.pool)
kvtier pool destroy "$POOL" >/dev/null
POOL=
both_refused kvtier
