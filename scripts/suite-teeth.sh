#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests bite: suite-teeth.sh [core|edits|TOOTH...]
#
# "core" are scrub, pin and zap; "edits" looks only whether each protection is still where it is
# taken out.
#
# One protection at a time is taken out of a copy of the driver, and what it is there for
# must be noticed: the red team gets through, or a test fails, while others are as before.
#
#   scrub    memory is not wiped before another namespace gets it
#   pin      foreign references to pages are overlooked
#   alone    page-table entries elsewhere count as the namespace's own
#   zap      mappings of a region are left when it changes hands, and do not count
#   revoke   a slot stays writable after COMMIT
#   mode     a mode's bits do not count
#   fixed    what leases and reservations keep in place has no limit
#   budget   cgroups' limits for all they store are not looked at
#   charge   pages of a tier with charge=yes are nobody's
#   sum      what comes from a disk is not compared with its checksum
#   super    no flush before a superblock: the crash test of the log, built from the copy
#
# On Debian's kernel, but for the last, in one machine, one after the other, the worst at the
# end: a broken driver may bring it down, and the kernel may complain. Only results count.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

WORK="$KVT_OUT/teeth"
POINTS=10000	# crashes in which a missing flush must show
FAILED=0
ALL=(super mode fixed budget charge sum alone scrub pin revoke zap)

# tooth NAME : file, what is taken out, program, what of it has to fail, all of that; no program:
# the crash test has to.
tooth()
{
	PROGRAM=
	case $1 in
	scrub)
		FILE=driver/kvt_xfer.c
		EDIT='s/^\t\t\tclear_page(kvt_page_addr(t, page));$/\t\t\tcond_resched();/'
		PROGRAM=redteam_mem
		ATTACK=redteam.uninitialised_reservations
		;;
	pin)
		FILE=driver/kvt_region.c
		EDIT='s/if (extra <= 0)/if (extra <= INT_MAX)/'
		PROGRAM=redteam_mem
		ATTACK='redteam.commit_with_a_page_in_a_pipe redteam.page_in_a_pipe_over_handover
			redteam.registered_buffer_over_eviction'
		;;
	alone)
		FILE=driver/kvt_region.c
		EDIT='s/extra = alone ? page_ref_count(first + i) - 1 :/extra = !t ? 0 :/'
		PROGRAM=redteam_mem
		ATTACK=redteam.page_in_a_socket_over_handover
		;;
	zap)
		FILE=driver/kvt_region.c
		EDIT='/^void kvt_region_clean/,/^}/s/(u64)nr << KVT_PAGE_SHIFT);/1);/
			s/extra = alone ? page_ref_count(first + i) - 1 :/extra = !t ? 0 :/'
		PROGRAM=redteam_mem
		ATTACK=redteam.stale_mapping_after_eviction
		;;
	revoke)
		FILE=driver/kvt_fill.c
		EDIT='/^static void kvt_fill_run_end/,/^}/s/(u64)r->nr << KVT_PAGE_SHIFT);/1);/'
		PROGRAM=redteam_mem
		ATTACK=redteam.fill_mapping_after_commit
		;;
	mode)
		FILE=driver/kvt_names.c
		EDIT='s/return (bits & want) == want;/return bits || want;/'
		PROGRAM=redteam_ns
		ATTACK=redteam.namespaces_probed_by_errno
		;;
	fixed)
		FILE=driver/kvt_fixed.c
		EDIT='s/if (force || READ_ONCE(reg->arena))/if (!force || READ_ONCE(reg->arena))/'
		PROGRAM=redteam_ops
		ATTACK=redteam.all_memory_held
		;;
	budget)
		FILE=driver/kvt_budget.c
		EDIT='s/if (b->used_bytes + bytes > b->limit_bytes)/if (!b->cgroup)/'
		PROGRAM=memcg
		ATTACK=budget.of_all_namespaces
		;;
	charge)
		FILE=driver/kvt_charge.c
		EDIT='s/come(t, piece, true)/come(t, piece, false)/'
		PROGRAM=charge
		ATTACK=charge.alone.who_stores_pays
		;;
	sum)
		FILE=driver/kvt_xfer.c
		EDIT='s/else if (csum != x->csum)$/else if (csum != x->csum \&\& !x->bytes)/
			s/if (kvt_payload_sum_end(&sum) != x->csum)$/if (!x->bytes)/'
		PROGRAM='faults -t one_wrong_byte -t scrub_is_not_for_everybody'
		ATTACK=faults.one_wrong_byte
		;;
	super)
		FILE=driver/core/kvt_wlog_seg.c
		EDIT='s/if (w->flush_done < w->write_flush && .*/if (w->given_up)/'
		;;
	*) die "unknown tooth '$1'" ;;
	esac
}

# take_out NAME : from the copy.
take_out()
{
	tooth "$1"
	sed -i "$EDIT" "$WORK/src/$FILE"
	! cmp -s "$KVT_ROOT/$FILE" "$WORK/src/$FILE" || die "$1: nothing to take out of $FILE"
}

# edits : each protection is there to be taken out, in as many places as it is.
edits()
{
	local name wanted found
	for name in "${ALL[@]}"; do
		tooth "$name"
		wanted=$(grep -c 's/' <<<"$EDIT")
		found=$(sed "$EDIT" "$KVT_ROOT/$FILE" | diff - "$KVT_ROOT/$FILE" | grep -c '^>' || true)
		[ "$found" -ge "$wanted" ] || {
			echo "$name: in $wanted places of $FILE there is something to take out, not in $found"
			FAILED=1
		}
	done
}

# put_back : with a time of its own, so that it is compiled again.
put_back()
{
	cp "$KVT_ROOT/$FILE" "$WORK/src/$FILE"
}

# build NAME : the module without one protection.
build()
{
	take_out "$1"
	KVT_OUT=$WORK/out "$WORK/src/scripts/build-modules.sh" stock >"$WORK/build.log" 2>&1 || {
		tail -n 20 "$WORK/build.log" >&2
		die "$1: does not compile"
	}
	cp "$WORK/out/stock/kvtier.ko" "$WORK/payload/$1.ko"
	grep -c '  CC ' "$WORK/build.log" | sed "s/^/# $1: compiled /"
	put_back
	echo "$1 $PROGRAM" >>"$WORK/payload/teeth"
}

# crash_test : of the copy as it is. Whether it finds nothing.
crash_test()
{
	make -s --no-print-directory -C "$WORK/src/selftests/host" OUT="$WORK/out" \
		"$WORK/out/host/crash" >"$WORK/build.log" 2>&1 || {
		tail -n 20 "$WORK/build.log" >&2
		die "the crash test does not compile"
	}
	"$WORK/out/host/crash" "$POINTS" >"$WORK/crash.log" 2>&1
}

# bite_host NAME : the crash test fails without the protection, and only then.
bite_host()
{
	local verdict='not ok'
	if crash_test; then
		take_out "$1"
		if ! crash_test && grep -q '^# crash .* of the chain' "$WORK/crash.log"; then
			verdict=ok
		fi
		put_back
	fi
	if [ "$verdict" != ok ]; then
		tail -n 60 "$WORK/crash.log" | sed 's/^/# /'
		FAILED=1
	fi
	echo "$verdict teeth.$1"
}

# By contents, with times of its own: what the last run has built from changed sources is
# older than what was put back. The first time there is nothing of that: see take_over().
copy_tree()
{
	local how=-rlpc
	[ -d "$WORK/src" ] || how=-a
	rm -rf "$WORK/payload"
	mkdir -p "$WORK/src/selftests" "$WORK/payload"
	rsync "$how" --delete "$KVT_ROOT"/{Kbuild,VERSION,driver,uapi,userspace,scripts} "$WORK/src/"
	rsync "$how" --delete "$KVT_ROOT"/selftests/{vm,modules,host} "$WORK/src/selftests/"
	cat >"$WORK/payload/bite.sh" <<-'END'
		modprobe kvtier
		while read -r name program <&3; do
			rmmod kvtier && insmod "/payload/$name.ko" || break
			echo "== $name"
			timeout 200 /kvt/kselftest/$program 2>&1
			echo "== end"
		done 3</payload/teeth
	END
}

# judge NAME : what has to fail did, and another one did not.
judge()
{
	local said=$WORK/$1.log attack bites=yes
	tooth "$1"
	sed -n "/^== $1$/,/^== end$/p" "$WORK/machine.log" >"$said"
	for attack in $ATTACK; do
		grep -q "^not ok .* ${attack//./\\.}" "$said" || bites=no
		grep -q "^ok .* ${attack%%.*}\." "$said" || bites=no
	done
	if [ "$bites" = yes ]; then
		echo "ok teeth.$1"
		return
	fi
	tail -n 60 "$said" | sed 's/^/# /'
	echo "not ok teeth.$1"
	FAILED=1
}

# What is compiled for the stock kernel already, as if it had been in the copy's place, so that of
# a copy only what is changed is compiled.
take_over()
{
	local from=$KVT_OUT/build-stock to=$WORK/out/build-stock
	[ ! -d "$to" ] || return 0
	mkdir -p "$WORK/out"
	flock "$KVT_OUT/build-stock.lock" cp -a "$from" "$to.new"
	grep -rlZF "$from" "$to.new" --include='*.cmd' --include='.*.cmd' --include='*.mod' \
		--include=modules.order --include=Module.symvers |
		xargs -0r sed -i "s,$from,$to,g"
	mv "$to.new" "$to"
}

# bite_machine NAME... : modules without one protection each, in one machine.
bite_machine()
{
	local name
	"$KVT_ROOT/scripts/build-modules.sh" stock >&2
	make -s --no-print-directory -C "$KVT_ROOT" tools kselftest >&2
	take_over
	for name in "$@"; do
		build "$name"
	done
	"$KVT_ROOT/selftests/vm/run.sh" --kernel stock --timeout 1200 --payload "$WORK/payload" \
		--env KVT_LENGTH=quick -- bash /payload/bite.sh >"$WORK/machine.log" 2>&1 || true
	for name in "$@"; do
		judge "$name"
	done
}

main()
{
	local name machine=()
	if [ "${1:-}" = edits ]; then
		edits
		exit $FAILED
	fi
	[ "${1:-}" != core ] || set -- scrub pin zap
	[ $# -gt 0 ] || set -- "${ALL[@]}"
	copy_tree
	for name in "$@"; do
		tooth "$name"
		if [ -n "$PROGRAM" ]; then
			machine+=("$name")
		else
			bite_host "$name"
		fi
	done
	[ ${#machine[@]} -eq 0 ] || bite_machine "${machine[@]}"
	exit $FAILED
}

main "$@"
