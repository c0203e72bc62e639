#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Whose the device nodes are when udev has seen them: pools are for members of group
# kvtier, the control device is root's. The driver says the mode, the rule of
# userspace/install the group.
set -euo pipefail

NODE=

fail()
{
	echo "# $*"
	exit 1
}

# is NODE OWNER:GROUP:MODE
is()
{
	local found
	found=$(stat -c %U:%G:%a "$1")
	[ "$found" = "$2" ] || fail "$1 is $found, not $2"
}

# opens USER NODE : for reading and writing, with all groups the user is in.
opens()
{
	# shellcheck disable=SC2016 # for the shell that is started
	setpriv --reuid "$1" --regid "$1" --init-groups bash -c 'exec 3<>"$1"' open "$2" 2>/dev/null
}

modprobe kvtier
trap '[ -z "$NODE" ] || kvtier pool destroy "$NODE" >/dev/null' EXIT
NODE=/dev/kvtier$(kvtier -j pool create --tier dram:size=4M |
	grep -o '"pool": *[0-9]*' | head -n 1 | grep -o '[0-9]*$')
udevadm settle
is "$NODE" root:kvtier:660
is /dev/kvtier root:root:600
# alice is in the group, bob is not.
opens alice "$NODE" || fail "a member of group kvtier cannot open $NODE"
! opens bob "$NODE" || fail "who is not in group kvtier can open $NODE"
! opens alice /dev/kvtier || fail "a member of group kvtier can open /dev/kvtier"
