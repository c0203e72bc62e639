#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots the test machine and runs a command in it as root:
#
#	run.sh [OPTIONS] -- COMMAND [ARG]...	(or one string for bash)
#
#   --kernel stock|debug|kcsan  kernel to boot (stock)
#   --timeout S           kill the machine after S seconds (300)
#   --mem M               guest memory in MiB (2048; debug, kcsan: 3072)
#   --smp N               virtual CPUs (2)
#   --cxl N               emulated CXL RAM devices (2), --cxl-size M MiB each (256)
#   --cxl-bridges N       host bridges that have these by turns (1); with several each has a
#                         window of its own, and the last window is interleaved over all
#   --soft M              M MiB of memory besides that are not for the kernel, but for dax
#   --pmem DIR            also a persistent CXL device (serial 100, 256 MiB); its
#                         contents are in DIR and stay there
#   --nvme N              NVMe controllers (2), --nvme-size M MiB each (512)
#   --nvme-bps B          throttle each namespace to B bytes/s
#   --nvme-image FILE     disk that outlives the machine (repeatable): the first
#                         controllers have these, in this order
#   --far MIB             memory on a node of its own, without processors (0)
#   --zns N               zoned namespaces on an NVMe controller more (0)
#   --payload DIR         copied to /payload
#   --bin PROGRAM         host program copied to /usr/bin (repeatable)
#   --share DIR           host folder seen as /host, read-write
#   --redis               redis-server, redis-cli, redis-benchmark in /usr/bin
#   --icount              one CPU whose nanoseconds are executed instructions
#   --monitor             the guest has QEMU's monitor: virtio port "kvt.monitor"
#   --append ARGS         more kernel command line
#   --qemu ARGS           more QEMU arguments (split at blanks)
#   --env NAME=VALUE      environment of the command (repeatable)
#   --log FILE            keep the kernel log there
#   --pidfile FILE        gets QEMU's process id: whoever wants to kill it may
#   --interactive         connect the terminal
#
# Exit status: the command's; 124 after a timeout; 125 when the machine died or
# did not start; 137 when it was killed by way of --pidfile; 1 when all was well but
# the kernel complained.
# Everything made for a run lives in one temporary folder, so runs may overlap.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

KERNEL_KIND=stock
TIMEOUT_S=300
MEM_MIB=
SMP=2
CXL=2
CXL_MIB=256
CXL_BRIDGES=1
SOFT_MIB=0
FAR_MIB=0
PMEM_DIR=
NVME=2
NVME_MIB=512
NVME_BPS=
NVME_IMAGES=()
PIDFILE=
ZNS=0
SHARE=
ICOUNT=no
MONITOR=no
APPEND=
QEMU_EXTRA=
START_S=${KVTIER_START_S:-300}	# a machine takes 10 to 120, as busy as the host may be
LOG=
INTERACTIVE=no
INITRAMFS_ARGS=()
ENV_VARS=()
COMMAND=()

usage()
{
	sed -n '4,40s/^# \{0,1\}//p' "$0"
	exit "${1:-2}"
}

parse_args()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) KERNEL_KIND=$2; shift ;;
		--timeout) TIMEOUT_S=$2; shift ;;
		--mem) MEM_MIB=$2; shift ;;
		--smp) SMP=$2; shift ;;
		--cxl) CXL=$2; shift ;;
		--cxl-size) CXL_MIB=$2; shift ;;
		--cxl-bridges) CXL_BRIDGES=$2; shift ;;
		--soft) SOFT_MIB=$2; shift ;;
		--far) FAR_MIB=$2; shift ;;
		--pmem) PMEM_DIR=$2; shift ;;
		--nvme) NVME=$2; shift ;;
		--nvme-size) NVME_MIB=$2; shift ;;
		--nvme-bps) NVME_BPS=$2; shift ;;
		--nvme-image) NVME_IMAGES+=("$2"); shift ;;
		--pidfile) PIDFILE=$2; shift ;;
		--zns) ZNS=$2; shift ;;
		--payload) INITRAMFS_ARGS+=(--payload "$2"); shift ;;
		--bin) INITRAMFS_ARGS+=(--bin "$2"); shift ;;
		--redis) INITRAMFS_ARGS+=(--redis) ;;
		--share) SHARE=$2; shift ;;
		--icount) ICOUNT=yes ;;
		--monitor) MONITOR=yes ;;
		--append) APPEND=$2; shift ;;
		--qemu) QEMU_EXTRA=$2; shift ;;
		--env) ENV_VARS+=("$2"); shift ;;
		--log) LOG=$2; shift ;;
		--interactive) INTERACTIVE=yes ;;
		-h | --help) usage 0 ;;
		--) shift; COMMAND=("$@"); return ;;
		*) log "run.sh: unknown argument '$1'"; usage ;;
		esac
		shift
	done
}

# The command as a script the guest's bash runs.
write_command()
{
	local var
	: >"$TMP/control/env"
	for var in "${ENV_VARS[@]}"; do
		printf 'export %s=%q\n' "${var%%=*}" "${var#*=}" >>"$TMP/control/env"
	done
	if [ "$INTERACTIVE" = yes ]; then
		touch "$TMP/control/interactive"
	fi
	case ${#COMMAND[@]} in
	0) die "run.sh: no command (after --)" ;;
	1) printf '%s\n' "${COMMAND[0]}" ;;
	*) printf '%q ' "${COMMAND[@]}"; echo ;;
	esac >"$TMP/control/command"
}

# Host bridges, and fixed memory windows that cover what is below. All windows are one option:
# QEMU does not add up several.
cxl_bridge_args()
{
	local b windows='' all=
	for ((b = 0; b < CXL_BRIDGES; b++)); do
		QEMU+=(-device "pxb-cxl,bus_nr=$((12 + b * 32)),bus=pcie.0,id=cxlhb$b")
		windows+="cxl-fmw.$b.targets.0=cxlhb$b,cxl-fmw.$b.size=4G,"
		all+="cxl-fmw.$CXL_BRIDGES.targets.$b=cxlhb$b,"
	done
	[ "$CXL_BRIDGES" -eq 1 ] || windows+="${all}cxl-fmw.$CXL_BRIDGES.size=4G"
	QEMU+=(-M "${windows%,}")
}

# Type-3 devices, each on its own root port.
cxl_args()
{
	local i
	[ "$CXL" -gt 0 ] || [ -n "$PMEM_DIR" ] || return 0
	cxl_bridge_args
	for ((i = 0; i < CXL; i++)); do
		QEMU+=(-object "memory-backend-ram,id=cxlmem$i,size=${CXL_MIB}M"
			-device "cxl-rp,port=$i,bus=cxlhb$((i % CXL_BRIDGES)),id=cxlrp$i,chassis=0,slot=$((i + 2))"
			-device "cxl-type3,bus=cxlrp$i,volatile-memdev=cxlmem$i,id=cxldev$i,sn=$((i + 1))")
	done
	[ -z "$PMEM_DIR" ] || pmem_args
}

# Its memory and its label area are files, mapped so that what is stored is in them
# whatever becomes of the machine.
pmem_args()
{
	truncate -s 256M "$PMEM_DIR/pmem.img"
	truncate -s 256K "$PMEM_DIR/labels.img"
	QEMU+=(-object "memory-backend-file,id=cxlpmem,size=256M,share=on,mem-path=$PMEM_DIR/pmem.img"
		-object "memory-backend-file,id=cxllsa,size=256K,share=on,mem-path=$PMEM_DIR/labels.img"
		-device "cxl-rp,port=$CXL,bus=cxlhb0,id=cxlrp$CXL,chassis=0,slot=$((CXL + 2))"
		-device "cxl-type3,bus=cxlrp$CXL,persistent-memdev=cxlpmem,lsa=cxllsa,id=cxlpmemdev,sn=100")
}

# Behind root ports, because devices on pcie.0 cannot be unplugged. What the guest has
# written is in the host's page cache, so it outlives QEMU, but not the host.
nvme_args()
{
	local i opts image
	[ "$NVME" -ge ${#NVME_IMAGES[@]} ] || NVME=${#NVME_IMAGES[@]}
	for ((i = 0; i < NVME; i++)); do
		image=${NVME_IMAGES[i]:-}
		if [ -z "$image" ]; then
			image=$TMP/nvme$i.img
			truncate -s "${NVME_MIB}M" "$image"
		fi
		opts="file=$image,format=raw,if=none,id=nvmedrive$i,cache=unsafe,discard=unmap"
		[ -z "$NVME_BPS" ] || opts+=",throttling.bps-total=$NVME_BPS"
		QEMU+=(-drive "$opts"
			-device "pcie-root-port,id=nvmerp$i,bus=pcie.0,chassis=$((i + 16)),slot=$((i + 16))"
			-device "nvme,serial=kvtnvme$i,drive=nvmedrive$i,bus=nvmerp$i,id=nvme$i")
	done
}

# 24 zones, of which a part cannot be written, and few of which may be in use at a time.
zns_args()
{
	local i zones="zoned=true,zoned.zone_size=4M,zoned.zone_capacity=3M"
	zones+=",zoned.max_open=10,zoned.max_active=10"
	[ "$ZNS" -gt 0 ] || return 0
	QEMU+=(-device "pcie-root-port,id=znsrp,bus=pcie.0,chassis=48,slot=48"
		-device "nvme,serial=kvtzns,bus=znsrp,id=zns")
	for ((i = 0; i < ZNS; i++)); do
		truncate -s 96M "$TMP/zns$i.img"
		QEMU+=(-drive "file=$TMP/zns$i.img,format=raw,if=none,id=znsdrive$i,cache=unsafe"
			-device "nvme-ns,drive=znsdrive$i,bus=zns,nsid=$((i + 1)),$zones")
	done
}

machine_args()
{
	# The hypervisor bit must be off, or the kernel refuses to commit CXL
	# regions; without erms/fsrm its memcpy is 7 times faster on emulated
	# CXL and "rep movsb" does not count as one instruction.
	local cpu=max,-hypervisor,-erms,-fsrm accel=${KVTIER_ACCEL:-tcg} plugin
	QEMU=(qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
		-M "q35,cxl=on" -m "$((MEM_MIB + SOFT_MIB + FAR_MIB))M,maxmem=16G,slots=8" -cpu "$cpu")
	[ "$FAR_MIB" -eq 0 ] ||
		QEMU+=(-object "memory-backend-ram,id=near,size=$((MEM_MIB + SOFT_MIB))M"
			-object "memory-backend-ram,id=far,size=${FAR_MIB}M"
			-numa "node,nodeid=0,cpus=0-$((SMP - 1)),memdev=near"
			-numa "node,nodeid=1,memdev=far")
	if [ "$ICOUNT" = yes ]; then
		QEMU+=(-accel "tcg,thread=single" -icount "shift=0,sleep=off" -smp 1)
	elif [ "$accel" = tcg ]; then
		# The emulator's processors write to the wrong device when one that appears or
		# goes changes the map at that moment. Most such writes are ends of interrupts,
		# and a processor that loses one stands still: with x2APIC, which needs an IOMMU
		# that remaps interrupts, these are no memory accesses.
		QEMU+=(-accel "tcg,thread=multi" -smp "$SMP" -device "intel-iommu,intremap=on,eim=on")
		plugin=$("$HERE/plugin.sh")
		[ -z "$plugin" ] || QEMU+=(-plugin "$plugin")
	else
		QEMU+=(-accel "$accel" -smp "$SMP")
	fi
}

# ttyS0: the kernel's log, to a file.  hvc0: the command.
console_args()
{
	QEMU+=(-chardev "file,id=console,path=$TMP/console.log" -serial chardev:console
		-device "virtio-serial-pci,bus=pcie.0")
	if [ "$INTERACTIVE" = yes ]; then
		QEMU+=(-chardev "stdio,id=command,signal=off")
	else
		QEMU+=(-chardev "stdio,id=command")
	fi
	QEMU+=(-device "virtconsole,chardev=command")
	# The port's end of the line is a client of the monitor's.
	[ "$MONITOR" = no ] ||
		QEMU+=(-chardev "socket,id=monitor,path=$TMP/monitor,server=on,wait=off"
			-mon "chardev=monitor,mode=readline"
			-chardev "socket,id=monitorport,path=$TMP/monitor"
			-device "virtserialport,chardev=monitorport,name=kvt.monitor")
}

share_args()
{
	QEMU+=(-fsdev "local,id=control,path=$TMP/control,security_model=none"
		-device "virtio-9p-pci,bus=pcie.0,fsdev=control,mount_tag=kvtctl")
	if [ -n "$SHARE" ]; then
		touch "$TMP/control/share"
		QEMU+=(-fsdev "local,id=share,path=$SHARE,security_model=none,multidevs=remap"
			-device "virtio-9p-pci,bus=pcie.0,fsdev=share,mount_tag=kvthost")
	fi
}

boot_args()
{
	local cmdline="console=ttyS0 loglevel=6 log_buf_len=8M panic=-1 random.trust_cpu=on"
	# A watchdog of the guest, and the check of its timer at boot, fail when the host is
	# merely slow.
	cmdline+=" nowatchdog no_timer_check rcupdate.rcu_cpu_stall_suppress=1"
	# It is there for interrupts alone.
	cmdline+=" intel_iommu=off"
	# No program here spies on others, and not being able to costs a tenth of all time. Where
	# instructions are counted they are to be those of a host.
	[ "$ICOUNT" = yes ] || cmdline+=" mitigations=off"
	# The kernel forgets for a moment of its boot what its processor can do. An interrupt
	# in that moment is a wild access to KASAN, which asks whether five levels are in use.
	[ "$KERNEL_KIND" != debug ] || cmdline+=" no5lvl"
	# As firmware reserves memory of a special kind: from 1 GiB on, ordinary memory (1) becomes
	# "soft reserved".
	[ "$SOFT_MIB" -eq 0 ] || cmdline+=" memmap=${SOFT_MIB}M%0x40000000-1+0xefffffff"
	cmdline+=" $APPEND"
	QEMU+=(-kernel "$KERNEL/vmlinuz" -initrd "$TMP/initramfs" -append "$cmdline")
	[ -z "$PIDFILE" ] || QEMU+=(-pidfile "$PIDFILE")
	if [ -n "$QEMU_EXTRA" ]; then
		# shellcheck disable=SC2206 # splitting is what the option is for
		QEMU+=($QEMU_EXTRA)
	fi
}

stop_watcher()
{
	[ -n "${WATCHER_PID:-}" ] || return 0
	kill "$WATCHER_PID" 2>/dev/null || true
	wait "$WATCHER_PID" 2>/dev/null || true
	WATCHER_PID=
}

cleanup()
{
	local status=$?
	stop_watcher
	if [ -n "${QEMU_PID:-}" ]; then
		kill "$QEMU_PID" 2>/dev/null || true
		wait "$QEMU_PID" 2>/dev/null || true
	fi
	if [ -n "$LOG" ] && [ -e "$TMP/console.log" ]; then
		cat "$TMP/console.log" "$TMP/control/dmesg" >"$LOG" 2>/dev/null || true
	fi
	rm -rf "$TMP"
	exit "$status"
}

# Ends a machine that does not come to its command: at boot a processor of the emulator has
# been seen to sleep through its interrupts, on a busy host.
watch_start()
{
	local waited
	for ((waited = 0; waited < START_S; waited++)); do
		[ ! -e "$TMP/control/started" ] || return 0
		sleep 1
	done
	# Whoever has that number when all is over is another one.
	! touch "$TMP/stuck" || kill "$1"
}

boot()
{
	local status=0
	rm -f "$TMP/stuck"
	if [ "$INTERACTIVE" = yes ]; then
		stty raw -echo isig 2>/dev/null || true
		"${QEMU[@]}" || status=$?
		stty sane 2>/dev/null || true
		return "$status"
	fi
	# In the background, so that a signal to this script is acted upon at
	# once; through cat, because QEMU makes its stdout non-blocking for
	# everyone who shares it.
	timeout -k 5 "$TIMEOUT_S" "${QEMU[@]}" </dev/null > >(exec cat) 2>"$TMP/qemu.log" &
	QEMU_PID=$!
	watch_start "$QEMU_PID" >/dev/null 2>&1 &
	WATCHER_PID=$!
	wait "$QEMU_PID" || status=$?
	QEMU_PID=
	stop_watcher
	return "$status"
}

# Did the emulator itself fail, before the command was started: QEMU has a race of
# processors against devices that appear ("iotlb_to_section: Assertion"), and see above.
emulator_failed()
{
	[ ! -e "$TMP/control/started" ] || return 1
	[ ! -e "$TMP/stuck" ] || { echo "not started after $START_S s" >>"$TMP/qemu.log"; return 0; }
	grep -q ': Assertion .* failed' "$TMP/qemu.log" 2>/dev/null
}

boot_again_if_needed()
{
	local status=0 tries
	for tries in 1 2 3; do
		status=0
		boot || status=$?
		emulator_failed || break
		log "run.sh: the emulator failed before the command was started ($tries of 3): $(tail -n 1 "$TMP/qemu.log")"
	done
	return "$status"
}

# The machine is gone without a word: show the end of its log.
report_death()
{
	log "run.sh: $1; end of the kernel log:"
	grep -v 'kvt-mark ' "$TMP/console.log" 2>/dev/null | tail -n 60 | tr -d '\r' | sed 's/^/#   /' >&2 || true
	cat "$TMP/qemu.log" >&2 2>/dev/null || true
}

# Complaints of the kernel, leaks, and checks that were given up.  The console has only what is important
# but survives a crash; the log read at the end has everything.
kernel_complained()
{
	local splat file
	splat=$(cat "$HERE/guest/splat.regex")
	for file in "$TMP/control/dmesg" "$TMP/console.log"; do
		if [ -e "$file" ] && grep -qE "$splat" "$file"; then
			log "run.sh: the kernel complained:"
			tr -d '\r' <"$file" | grep -v 'kvt-mark ' | grep -E -B 2 -A 40 "$splat" |
				head -n 120 | sed 's/^/#   /' >&2
			return 0
		fi
	done
	if [ -s "$TMP/control/kmemleak" ]; then
		log "run.sh: kmemleak:"
		head -n 100 "$TMP/control/kmemleak" | sed 's/^/#   /' >&2
		return 0
	fi
	if [ -s "$TMP/control/lockdep" ]; then
		log "run.sh: lockdep is off: $(cat "$TMP/control/lockdep")"
		return 0
	fi
	return 1
}

main()
{
	local qemu_status=0 status
	parse_args "$@"
	[ -n "$MEM_MIB" ] || case $KERNEL_KIND in
	debug | kcsan) MEM_MIB=3072 ;;
	*) MEM_MIB=2048 ;;
	esac
	"$KVT_ROOT/scripts/setup.sh" build vm
	KERNEL=$("$HERE/kernel.sh" "$KERNEL_KIND")
	mkdir -p "$KVT_CACHE"
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/kvtier-vm.XXXXXX")
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir "$TMP/control"
	write_command
	"$HERE/mkinitramfs.sh" --kernel "$KERNEL_KIND" --output "$TMP/initramfs" "${INITRAMFS_ARGS[@]}"
	machine_args
	cxl_args
	nvme_args
	zns_args
	console_args
	share_args
	boot_args
	boot_again_if_needed || qemu_status=$?

	if [ "$qemu_status" -eq 137 ] && [ -n "$PIDFILE" ]; then
		! kernel_complained || exit 1
		exit 137
	fi
	if [ "$qemu_status" -eq 124 ] || [ "$qemu_status" -eq 137 ]; then
		report_death "timeout: killed the machine after $TIMEOUT_S s"
		exit 124
	fi
	if [ ! -s "$TMP/control/status" ]; then
		report_death "the machine died (QEMU status $qemu_status)"
		exit 125
	fi
	status=$(cat "$TMP/control/status")
	if kernel_complained && [ "$status" -eq 0 ]; then
		status=1
	fi
	exit "$status"
}

main "$@"
