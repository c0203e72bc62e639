#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Crashes of the driver in the machine, and what comes back:
#
#   killed    QEMU is killed under load, again and again; the disks stay
#   replayed  states that a disk may be in when power goes, from a log of dm-log-writes
#   notices   the same must show when a check, or the disk's flush, is left out
#   assembled some of these states, taken by the driver, all in one boot
#
# To save boots each one compares what the last crash has left and goes on from there;
# the first one also records the log, the last one also assembles. CRASH_SEED decides on
# everything but what time decides.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

DIR=$KVT_OUT/crash
HERE=$KVT_ROOT/selftests/crash
SHARE=$DIR/share
SEED=${CRASH_SEED:-1}
DISK_MIB=96
# Small, so that it is soon full of blocks that may go, and a state is soon looked at.
RECORD_MIB=48
RECORD_BLOCKS=88
# Of each worker, in the first of its namespaces: as much as may be pinned in one.
BLOCKS=184
KILLS=3
STATES=60
EVERY=2
OPS=350
if [ "${KVT_LENGTH:-full}" = long ]; then
	KILLS=50
	STATES=2000
	EVERY=8
	OPS=1200
fi
STATUS=0
VM_PID=

result()
{
	local name=$1
	shift
	if "$@"; then
		echo "ok crash.$name"
	else
		echo "not ok crash.$name"
		STATUS=1
		return 1
	fi
}

# vm BOOT IMAGE... -- STEP... : what the machine says goes to $DIR/boot.BOOT. Takes the
# place of a subshell, so that its process id is that of run.sh.
vm()
{
	local boot=$1 images=()
	shift
	while [ "$1" != -- ]; do
		images+=(--nvme-image "$1")
		shift
	done
	shift
	rm -f "$DIR/pid"
	exec "$KVT_ROOT/selftests/vm/run.sh" --cxl 0 --timeout 3600 "${images[@]}" --share "$SHARE" \
		--bin "$DIR/kvt-crash" --payload "$HERE/guest" --log "$DIR/kernel.$boot" \
		--pidfile "$DIR/pid" -- /payload/crash.sh "$@" >"$DIR/boot.$boot" 2>&1
}

# Lines of that kind that the journals have.
lines()
{
	cat "$SHARE"/journal.* 2>/dev/null | grep -c "^[$1] " || true
}

# Has the load that now runs, which has no end, told of enough: blocks durable, drops done.
under_way()
{
	[ "$(lines S)" -ge $((DURABLE + 8)) ] && [ "$(lines d)" -ge $((DROPS + 20)) ]
}

# kill_machine : when there is something to lose, at a moment by chance.
kill_machine()
{
	local waited=0 before after
	until grep -q '^# load runs' "$DIR/boot.$1" 2>/dev/null && under_way; do
		if [ $((waited++)) -gt 10000 ] || ! kill -0 "$VM_PID" 2>/dev/null; then
			echo "# the load does not come, or does not go on"
			return 1
		fi
		sleep 0.1
	done
	before=$(lines SdDPG)
	sleep "$((1 + RANDOM % 12))e-1"
	kill -KILL "$(cat "$DIR/pid")" || return 1
	after=$(lines SdDPG)
	echo "# killed, $((after - before)) lines of the journals after there was enough to lose"
}

# boot_and_kill BOOT IMAGE... -- STEP... : all steps but the load, which is ended.
boot_and_kill()
{
	local boot=$1 status=0 ok=0
	DURABLE=$(lines S)
	DROPS=$(lines d)
	vm "$@" load "$BLOCKS" $((SEED * 1000 + boot)) &
	VM_PID=$!
	kill_machine "$boot" || ok=1
	[ "$ok" -eq 0 ] || kill "$VM_PID" 2>/dev/null || true
	wait "$VM_PID" || status=$?
	grep '^# ' "$DIR/boot.$boot" || true
	if [ "$ok" -ne 0 ] || [ "$status" -ne 137 ] || grep -q '^# load ended' "$DIR/boot.$boot"; then
		sed 's/^/# /' "$DIR/boot.$boot"
		echo "# machine $boot ended with status $status, and was to be killed"
		return 1
	fi
}

# Exit status 0: neither is damaged, however it was left.
check_disks()
{
	"$KVT_OUT/bin/kvtier" fsck --payload "$DIR/disk.0" "$DIR/disk.1" | sed 's/^/# /'
}

# One machine: what the last one has left, and load again.
killed()
{
	boot_and_kill "$@" && check_disks
}

replayed()
{
	local status=0
	"$DIR/kvt-crash" replay "$DIR/log" $((RECORD_MIB << 20)) "$STATES" "$SEED" "$DIR/state" \
		"$KVT_OUT/bin/kvtier" >"$DIR/replayed" || status=$?
	grep -v ' blocks$' "$DIR/replayed" || true
	return "$status"
}

# notices WHAT : without that it must go wrong, and not for another reason.
notices()
{
	local status=0
	"$DIR/kvt-crash" replay "$DIR/log" $((RECORD_MIB << 20)) 2000 "$SEED" \
		"$DIR/toothless" '' "$1" >"$DIR/notices.$1" 2>&1 || status=$?
	tail -n 2 "$DIR/notices.$1"
	[ "$status" -eq 1 ] && grep -qE 'is lost$|wrong bytes$|comes back' "$DIR/notices.$1"
}

last_boot()
{
	local status=0
	(vm last "$DIR/disk.0" "$DIR/disk.1" "$DIR/log" -- assemble end \
		states "$STATES" "$EVERY" $((RECORD_MIB << 20)) "$SEED") || status=$?
	grep '^# ' "$DIR/boot.last" | grep -v ' blocks$' || true
	[ "$status" -eq 0 ] || sed 's/^/# /' "$DIR/boot.last"
	return "$status"
}

# With as many blocks in each as the core's recovery finds there; and the driver's are not right
# when the disk's flush is left out.
assembled()
{
	local same
	same=$(grep -cxFf <(grep ' blocks$' "$DIR/replayed") "$DIR/boot.last" || true)
	echo "# $same of $((STATES / EVERY)) states with the blocks that the core finds"
	[ "$same" -eq $((STATES / EVERY)) ] && grep -q '^# all states are right$' "$DIR/boot.last" &&
		grep -q '^# a disk that lies is noticed$' "$DIR/boot.last"
}

ended()
{
	grep -q '^# wrong journals are noticed$' "$DIR/boot.last" &&
		grep -q '^# ended$' "$DIR/boot.last" && check_disks
}

prepare()
{
	"$KVT_ROOT/scripts/build-modules.sh" stock
	make -s --no-print-directory -C "$KVT_ROOT" tools
	make -s --no-print-directory -C "$HERE"
	rm -rf "$SHARE" "$DIR"/{disk,state,boot,kernel,notices}.* "$DIR"/{log,record,state,toothless}
	mkdir -p "$SHARE"
	truncate -s "${DISK_MIB}M" "$DIR/disk.0" "$DIR/disk.1"
	truncate -s "${RECORD_MIB}M" "$DIR/record"
	truncate -s 8G "$DIR/log"
	RANDOM=$SEED
}

main()
{
	local boot what
	prepare >&2
	result killed.1 killed 0 "$DIR/disk.0" "$DIR/disk.1" "$DIR/record" "$DIR/log" -- \
		record "$OPS" "$RECORD_BLOCKS" "$SEED" create || exit 1
	result replayed replayed || true
	for what in flush payload_checksum life; do
		result "notices.$what" notices "$what" || true
	done
	for ((boot = 1; boot < KILLS; boot++)); do
		result "killed.$((boot + 1))" killed "$boot" "$DIR/disk.0" "$DIR/disk.1" -- \
			assemble || exit 1
	done
	last_boot || true
	result ended ended || true
	result assembled assembled || true
	exit $STATUS
}

main "$@"
