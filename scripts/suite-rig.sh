#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The rig is only worth something if it notices: exit codes are carried, a
# complaint of the kernel, a hang and a dead machine are failures, the devices
# are what the tests rely on.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

VM="$KVT_ROOT/selftests/vm/run.sh"
STATUS=0
OUTPUT=$(mktemp)
trap 'rm -f "$OUTPUT"' EXIT

# vm_test NAME WANTED-STATUS PATTERN RUN-ARG...
vm_test()
{
	local name=$1 wanted=$2 pattern=$3 got=0
	shift 3
	"$VM" "$@" >"$OUTPUT" 2>&1 || got=$?
	if [ "$got" -eq "$wanted" ] && grep -qE "$pattern" "$OUTPUT"; then
		echo "ok rig.$name"
	else
		sed 's/^/# /' "$OUTPUT"
		echo "# exit status $got, wanted $wanted and a line like '$pattern'"
		echo "not ok rig.$name"
		STATUS=1
	fi
}

# shellcheck disable=SC2016 # for the guest's shell
guest_devices='
. /kvt/guest/cxl.sh
set -e
cxl_wait_endpoints 2
for i in 0 1; do
	grep -qw kvtnvme$i /sys/class/nvme/nvme*/serial
done
test -b /dev/nvme0n1 && test -b /dev/nvme1n1
modprobe device_dax
cxl_create_region 2 $((256 << 20)) noautoprobe
test -e /sys/bus/dax/devices/dax0.0
udevadm --version
'
vm_test devices 0 '^region0$' --timeout 120 -- "$guest_devices"
vm_test exit-status 37 '^hello$' --timeout 120 --cxl 0 --nvme 0 -- 'echo hello; exit 37'
vm_test kernel-warning 1 'kernel complained' --timeout 120 --cxl 0 --nvme 0 -- \
	'echo "<4>WARNING: made up by the rig test" >/dev/kmsg'
vm_test timeout 124 'timeout: killed' --timeout 25 --cxl 0 --nvme 0 -- 'sleep 1000'
vm_test panic 125 'sysrq triggered crash' --timeout 120 --cxl 0 --nvme 0 -- \
	'echo c >/proc/sysrq-trigger; sleep 1000'
exit $STATUS
