# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# The rule by which members have the assembly of their pool started (sourced): putting it
# to work, and what udev makes of a device by it.  The machine has no systemd: what that
# would be told is what counts.

UDEV_RULE=/etc/udev/rules.d/64-kvtier.rules
UDEV_PROPS=/run/props

# udev_rule_on UUID... : as installed on a host that has these pools assembled.  By rename, as packages
# do it: udevd looks for new rules by itself, too, and never meets half of one.
udev_rule_on()
{
	local uuid
	mkdir -p /etc/kvtier/assemble.d
	for uuid in "$@"; do
		touch "/etc/kvtier/assemble.d/$uuid"
	done
	sed 's,@SBINDIR@,/usr/bin,' /kvt/udev/64-kvtier.rules >/etc/udev/64-kvtier
	mv /etc/udev/64-kvtier "$UDEV_RULE"
	udevadm control --reload
}

udev_rule_off()
{
	rm -rf "$UDEV_RULE" /etc/kvtier/assemble.d
	udevadm control --reload
}

# udev_wants PATH : does udev have the assembly of its pool started, and nothing else.
# What it knows of the device is in UDEV_PROPS.
udev_wants()
{
	local uuid
	udevadm settle
	udevadm info -q property -p "$(readlink -f "$1")" >"$UDEV_PROPS"
	uuid=$(sed -n 's/^KVTIER_POOL=//p' "$UDEV_PROPS")
	grep -qx "SYSTEMD_WANTS=kvtier-assemble@$uuid.service" "$UDEV_PROPS" && [ -n "$uuid" ]
}
