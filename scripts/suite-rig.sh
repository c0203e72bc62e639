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
TMP=$(mktemp -d)
OUTPUT=$TMP/output
trap 'rm -rf "$TMP"' EXIT

# said NAME WANTED-STATUS PATTERN : the last machine has ended and talked as it should have.
said()
{
	if [ "$GOT" -eq "$2" ] && grep -qE "$3" "$OUTPUT"; then
		echo "ok rig.$1"
	else
		sed 's/^/# /' "$OUTPUT"
		echo "# exit status $GOT, wanted $2 and a line like '$3'"
		echo "not ok rig.$1"
		STATUS=1
	fi
}

# at_length NAME... : is this a long run? If not, these are skipped.
at_length()
{
	local name
	[ "${KVT_LENGTH:-full}" != long ] || return 0
	for name in "$@"; do
		echo "skip rig.$name # in make check-long only"
	done
	return 1
}

# vm_test NAME WANTED-STATUS PATTERN RUN-ARG...
vm_test()
{
	local name=$1 wanted=$2 pattern=$3
	shift 3
	GOT=0
	"$VM" "$@" >"$OUTPUT" 2>&1 || GOT=$?
	said "$name" "$wanted" "$pattern"
}

# shellcheck disable=SC2016 # for the guest's shell
guest_devices='
. /kvt/guest/cxl.sh
until_true()
{
	local i
	for ((i = 0; i < 600; i++)); do
		! "$@" 2>/dev/null || return 0
		sleep 0.1
	done
	"$@"
}
set -e
cxl_wait_endpoints 2
for i in 0 1; do
	until_true grep -qw kvtnvme$i /sys/class/nvme/nvme*/serial
done
until_true test -b /dev/nvme0n1
until_true test -b /dev/nvme1n1
modprobe device_dax
cxl_create_region 2 $((256 << 20)) noautoprobe
test -e /sys/bus/dax/devices/dax0.0
udevadm --version
# The tests get memory that firmware has set aside, and CXL memory where they ask for it.
dax_is()
{
	local line
	line=$(/kvt/kselftest/devices $2 | grep ^KVT_DAX=)
	[[ $(readlink -f "/sys/bus/dax/devices/${line#*=}") == */$1* ]]
}
dax_is hmem
dax_is region cxl
'
# See machine_args() of run.sh.
[ "${KVTIER_ACCEL:-tcg}" != tcg ] || guest_devices="set -e; dmesg | grep -q 'x2apic enabled'; $guest_devices"
# Reports that say neither WARNING nor BUG: with a colon.
# shellcheck disable=SC2016 # for the guest's shell
guest_complaints='
. /kvt/guest/lib.sh
dmesg_mark
echo "<6>INFO: nothing to complain about" >/dev/kmsg
# A data race of the kernel with itself is not ours to mend.
echo "<3>BUG: KCSAN: data-race in tick_nohz_stop_tick / tick_sched_timer" >/dev/kmsg
dmesg_check quiet || exit 2
while IFS= read -r line; do
	dmesg_mark
	echo "<3>$line" >/dev/kmsg
	! dmesg_check made-up >/dev/null || { echo "went unnoticed: $line"; exit 3; }
done <<END
INFO: trying to register non-static key.
turning off the locking correctness validator.
BUG kmalloc-64 (Not tainted): Right Redzone overwritten
BUG kvtier_entry (Tainted: G           O      ): Poison overwritten
sysfs: cannot create duplicate filename "/class/kvtier"
BUG: KCSAN: data-race in kvt_ring_add [kvtier] / rcu_all_qs
BUG: KCSAN: data-race in kvt_ring_add+0x10/0x20 [kvtier]
BUG: KASAN: slab-out-of-bounds in kvt_ring_add
BUG: kernel NULL pointer dereference
BUG:made up
END
echo all noticed'
# A line that comes in two parts is one. And what bash leaves when its time is up just as
# a line has ended is that line, not the beginning of the next one.
# shellcheck disable=SC2016 # for the guest's shell
guest_lines='
. /kvt/guest/lib.sh
show_lines()
{
	local got
	while :; do
		got=0
		read_line "$1" 1 || got=$?
		[ $got -ne 1 ] || break
		[ $got -ne 0 ] || echo -n "[$REPLY]"
	done
}
exec {out}< <(printf "par"; sleep 2; printf "tial\n")
show_lines "$out"
READ_PART="# OK a"
exec {out}< <(printf "ok 1 a\n# b\n")
show_lines "$out"
echo'
# A test that is skipped for a reason that is not listed for this kernel has failed.
# shellcheck disable=SC2016 # for the guest's shell
guest_skips='
. /kvt/guest/lib.sh
KVT_SKIPS=/run/skips.list
echo "stock one it cannot be" >$KVT_SKIPS
for KVT_KERNEL in stock debug; do
	for reason in "it cannot be" "no device"; do
		run_ktap rig.one printf "1..1\nok 1 a.b # SKIP %s\n" "$reason"
		judged+=" $?"
	done
done
echo "judged$judged"'
# Each leak is put down to the program that ran then, and to no other; a kmemleak that has given
# up, as it does when it is out of memory for its records, has not found that there is none.
# shellcheck disable=SC2016 # for the guest's shell
guest_leaks='
cd /kvt/kselftest
# There are none, and the real one waits for them.
echo true >devices
program()
{
	printf "#!/bin/bash\n%s\necho 1..1\necho ok 1 rig.%s\n" "$2" "$1" >"$1"
	chmod +x "$1"
	echo "$1" >>tests.list
}
: >tests.list
program before :
program leaky "modprobe kvt_testleak || exit 1"
program after :
program blind "echo off >/sys/kernel/debug/kmemleak"
bash /kvt/guest/kselftest.sh before leaky after
echo "leaks judged: $?"
bash /kvt/guest/kselftest.sh blind
echo "blind judged: $?"'
# Where nothing can be installed it is said what to install, all of it.
other_system()
{
	printf 'ID=other\nPRETTY_NAME="Other 1"\n' >"$TMP/os-release"
	# shellcheck disable=SC2016 # for the shell that is started
	as_root env KVTIER_CACHE="$TMP/cache" unshare -m bash -c \
		'mount --bind "$1" /etc/os-release && exec "$2" all' other "$TMP/os-release" \
		"$KVT_ROOT/scripts/setup.sh"
}
GOT=0
other_system >"$OUTPUT" 2>&1 || GOT=$?
for group in build vm debug test; do
	said "other-system.$group" 1 "^  $group: +[a-z]"
done
# The emulator that setup.sh installs takes it. Without it all goes well, at some cost.
GOT=0
"$KVT_ROOT/selftests/vm/plugin.sh" >"$OUTPUT" 2>&1 || GOT=$?
said plugin 0 '^/.*\.so$'
vm_test devices 0 '^region0$' --timeout 600 --soft 64 -- "$guest_devices"
vm_test kernel-warning 1 'kernel complained' --timeout 600 --cxl 0 --nvme 0 -- \
	'echo "<4>WARNING: made up by the rig test" >/dev/kmsg'
vm_test kernel-complaints 1 '^all noticed$' --timeout 600 --cxl 0 --nvme 0 -- "$guest_complaints"
leaks()
{
	{
		"$KVT_ROOT/scripts/build-modules.sh" debug
		make -s --no-print-directory -C "$KVT_ROOT" kselftest
	} >&2
	vm_test leaks 0 '^leaks judged: 1$' --kernel debug --timeout 600 --cxl 0 --nvme 0 \
		--env KVT_KERNEL=debug -- "$guest_leaks"
	said leak-is-blamed 0 '^not ok kselftest\.leaky\.leaks$'
	said kmemleak-off 0 '^not ok kselftest\.kmemleak$'
	said kmemleak-off-fails 0 '^blind judged: 1$'
}
if at_length leaks leak-is-blamed kmemleak-off kmemleak-off-fails lockdep-off stuck-at-boot; then
	leaks
	vm_test lockdep-off 1 'lockdep is off: .*debug_locks: +0$' --timeout 600 --cxl 0 --nvme 0 \
		--env KVT_LOCKDEP_STATS=/run/lockdep_stats -- \
		'echo " debug_locks:                             0" >/run/lockdep_stats'
	# Processors that never run.
	KVTIER_START_S=3 vm_test stuck-at-boot 125 '3 of 3\): not started after 3 s' --timeout 60 \
		--cxl 0 --nvme 0 --qemu -S -- 'echo hello'
fi
vm_test timeout 124 'timeout: killed' --timeout 8 --cxl 0 --nvme 0 -- 'sleep 1000'

# An emulator that fails as QEMU does now and then, as often as the file says.
mkdir "$TMP/bin"
cat >"$TMP/bin/qemu-system-x86_64" <<END
#!/bin/bash
left=\$(cat "$TMP/failures")
[[ \$left -gt 0 && " \$* " == *" -kernel "* ]] || exec "$(command -v qemu-system-x86_64)" "\$@"
echo \$((left - 1)) >"$TMP/failures"
echo "qemu: physmem.c:1: iotlb_to_section: Assertion \\\`made up' failed." >&2
exit 134
END
chmod +x "$TMP/bin/qemu-system-x86_64"
echo 1 >"$TMP/failures"
# One machine for all that needs nothing special of it.
PATH=$TMP/bin:$PATH vm_test emulator-fails-once 37 'the emulator failed' --timeout 600 --cxl 0 --nvme 0 \
	-- "$guest_lines$guest_skips"'; echo hello; exit 37'
said exit-status 37 '^hello$'
said lines 37 '^\[partial]\[# OK a]\[ok 1 a]\[# b]$'
said skips 37 '^judged 0 1 1 1$'
# Somebody types.
GOT=0
printf 'modprobe kvtier && ls /dev/kvtier*\nexit\n' |
	make -s --no-print-directory -C "$KVT_ROOT" shell >"$OUTPUT" 2>&1 || GOT=$?
said shell 0 '^/dev/kvtier'
echo 9 >"$TMP/failures"
PATH=$TMP/bin:$PATH vm_test emulator-fails 125 'the machine died' --timeout 600 --cxl 0 --nvme 0 -- true
vm_test panic 125 'sysrq triggered crash' --timeout 600 --cxl 0 --nvme 0 -- \
	'echo c >/proc/sysrq-trigger; sleep 1000'
exit $STATUS
