#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The red team bites: suite-teeth.sh [TOOTH]...
#
# One protection at a time is taken out of a copy of the driver, and the attack that
# it is there for must succeed on Debian's kernel, while others are repelled still.
#
#   scrub    memory is not wiped before another namespace gets it
#   pin      foreign references to pages are overlooked
#   zap      mappings of a region are left when it changes hands
#   revoke   a slot stays writable after COMMIT
#   mode     a mode's bits do not count
#
# All in one machine, one after the other, the worst last: a broken driver may bring it
# down, and the kernel may complain. Only results count.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

WORK="$KVT_OUT/teeth"
FAILED=0

# tooth NAME : file, what is taken out, program, attack that has to succeed.
tooth()
{
	case $1 in
	scrub)
		FILE=driver/kvt_xfer.c
		EDIT='s/^\t\t\tclear_page(kvt_page_addr(t, page));$/\t\t\tcond_resched();/'
		PROGRAM=redteam_mem
		ATTACK=uninitialised_reservations
		;;
	pin)
		FILE=driver/kvt_region.c
		EDIT='s/if (kvt_page_extra_refs(first + i) <= 0)/if (kvt_page_extra_refs(first + i) <= INT_MAX)/'
		PROGRAM=redteam_mem
		ATTACK=commit_with_a_page_in_a_pipe
		;;
	zap)
		FILE=driver/kvt_region.c
		EDIT='/^void kvt_region_clean/,/^}/s/(loff_t)nr << KVT_PAGE_SHIFT, 1);/1, 1);/'
		PROGRAM=redteam_mem
		ATTACK=stale_mapping_after_eviction
		;;
	revoke)
		FILE=driver/kvt_region.c
		EDIT='/^void kvt_fill_revoke/,/^}/s/(loff_t)nr << KVT_PAGE_SHIFT, 1);/1, 1);/'
		PROGRAM=redteam_mem
		ATTACK=fill_mapping_after_commit
		;;
	mode)
		FILE=driver/kvt_ns.c
		EDIT='s/return (bits & want) == want;/return bits || want;/'
		PROGRAM=redteam_ns
		ATTACK=namespaces_probed_by_errno
		;;
	*) die "unknown tooth '$1'" ;;
	esac
}

# build NAME : the module without one protection.
build()
{
	local src=$WORK/src
	tooth "$1"
	sed -i "$EDIT" "$src/$FILE"
	! cmp -s "$KVT_ROOT/$FILE" "$src/$FILE" || die "$1: nothing to take out of $FILE"
	KVT_OUT=$WORK/out "$src/scripts/build-modules.sh" stock >"$WORK/build.log" 2>&1 || {
		tail -n 20 "$WORK/build.log" >&2
		die "$1: does not compile"
	}
	cp "$WORK/out/stock/kvtier.ko" "$WORK/payload/$1.ko"
	# With a time of its own, so that it is compiled again.
	cp "$KVT_ROOT/$FILE" "$src/$FILE"
	echo "$1 $PROGRAM" >>"$WORK/payload/teeth"
}

copy_tree()
{
	rm -rf "$WORK/payload"
	mkdir -p "$WORK/src/selftests" "$WORK/payload"
	rsync -a --delete "$KVT_ROOT"/{Kbuild,VERSION,driver,uapi,scripts} "$WORK/src/"
	rsync -a --delete "$KVT_ROOT"/selftests/{vm,modules} "$WORK/src/selftests/"
	cat >"$WORK/payload/bite.sh" <<-'END'
		modprobe kvtier
		while read -r name program <&3; do
			rmmod kvtier && insmod "/payload/$name.ko" || break
			echo "== $name"
			timeout 200 "/kvt/kselftest/$program" 2>&1
			echo "== end"
		done 3</payload/teeth
	END
}

# judge NAME : the attack succeeded, and another one did not.
judge()
{
	local said=$WORK/$1.log
	tooth "$1"
	sed -n "/^== $1$/,/^== end$/p" "$WORK/machine.log" >"$said"
	if grep -q "^not ok .* redteam\.$ATTACK" "$said" && grep -q "^ok .* redteam\." "$said"; then
		echo "ok teeth.$1"
		return
	fi
	echo "not ok teeth.$1"
	tail -n 60 "$said" | sed 's/^/# /'
	FAILED=1
}

main()
{
	local name
	[ $# -gt 0 ] || set -- mode scrub pin revoke zap
	"$KVT_ROOT/scripts/build-modules.sh" stock >&2
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest >&2
	copy_tree
	for name in "$@"; do
		build "$name"
	done
	"$KVT_ROOT/selftests/vm/run.sh" --kernel stock --timeout 600 --payload "$WORK/payload" \
		--env KVT_LENGTH=quick -- bash /payload/bite.sh >"$WORK/machine.log" 2>&1 || true
	for name in "$@"; do
		judge "$name"
	done
	exit $FAILED
}

main "$@"
