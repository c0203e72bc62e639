#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the modules of one flavour into out/<flavour>/: build-modules.sh
# FLAVOUR [MAKE-ARG]...
#
#   stock   Debian's 6.12 kernel (the one the tests boot)
#   hooked  the same, with the hooks for tests of driver/kvt_test.c
#   debug   the instrumented kernel of the rig; coverage is recorded as well
#   kcsan   the kernel of the rig that looks for data races
#   newest  the newest kernel Debian offers, compile only
#   host    the running kernel, or KDIR=
#
# kbuild writes beside the sources, so each flavour has its own copy of them in
# out/build-<flavour>.  rsync keeps time stamps: rebuilds are incremental.
# Suites that run at the same time build the same flavour: one after the other, and a
# module is replaced only by another one, as a whole.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# kdir FLAVOUR : the kernel's build tree.
kdir()
{
	case $1 in
	stock | hooked) "$KVT_ROOT/selftests/vm/kernel.sh" headers ;;
	debug) "$KVT_ROOT/selftests/vm/kernel.sh" debug-headers ;;
	kcsan) "$KVT_ROOT/selftests/vm/kernel.sh" kcsan-headers ;;
	newest) "$KVT_ROOT/selftests/vm/kernel.sh" newest-headers ;;
	host) echo "${KDIR:-/lib/modules/$(uname -r)/build}" ;;
	*) die "unknown flavour '$1' (stock, hooked, debug, kcsan, newest, host)" ;;
	esac
}

copy_sources()
{
	local tree=$1 product protect=()
	for product in 'kvt_config.h*' '*.o' '*.ko' '*.mod' '*.mod.c' '.*.cmd' '*.a' Module.symvers modules.order; do
		protect+=(--filter="P $product" --exclude="$product")
	done
	mkdir -p "$tree/selftests"
	rsync -a --delete "${protect[@]}" "$KVT_ROOT/Kbuild" "$KVT_ROOT/driver" \
		"$KVT_ROOT/uapi" "$KVT_ROOT/VERSION" "$tree/"
	if [ -e "$KVT_ROOT/selftests/modules" ]; then
		rsync -a --delete "${protect[@]}" "$KVT_ROOT/selftests/modules" "$tree/selftests/"
	fi
}

# put_modules TREE FOLDER : the modules of the tree, and no others.
put_modules()
{
	local tree=$1 folder=$2 ko name built=' '
	mkdir -p "$folder"
	while IFS= read -r -d '' ko; do
		name=${ko##*/}
		built+="$name "
		cmp -s "$ko" "$folder/$name" || {
			cp -p "$ko" "$folder/.$name.new"
			mv "$folder/.$name.new" "$folder/$name"
		}
	done < <(find "$tree" -name '*.ko' -print0)
	for ko in "$folder"/*.ko; do
		[[ $built == *" ${ko##*/} "* ]] || rm -f "$ko"
	done
}

build()
{
	local flavour=$1 kernel tree args
	shift
	kernel=$(kdir "$flavour")
	[ -d "$kernel" ] || die "no kernel build tree at $kernel"
	tree="$KVT_OUT/build-$flavour"
	copy_sources "$tree"
	args=(-C "$kernel" "-j$(nproc)" --no-print-directory "$@")
	if [ -e "$kernel/kvt-make-args" ]; then
		mapfile -t -O "${#args[@]}" args <"$kernel/kvt-make-args"
	fi
	# The instrumented kernel is the one the unit tests run in, and the one whose module
	# can be told what time it is.
	[ "$flavour" != debug ] || args+=(KVT_KUNIT=1 KVT_TEST=1 KVT_KCOV=1)
	[ "$flavour" != hooked ] || args+=(KVT_TEST=1)
	# Debian's: static would otherwise have to build it for itself. Debug: has the unit tests.
	[ "$flavour" != stock ] && [ "$flavour" != debug ] || args+=(W=1e)
	make "${args[@]}" M="$tree" modules
	if [ -e "$tree/selftests/modules/Kbuild" ]; then
		make "${args[@]}" M="$tree/selftests/modules" \
			KBUILD_EXTRA_SYMBOLS="$tree/Module.symvers" modules
	fi
	put_modules "$tree" "$KVT_OUT/$flavour"
}

main()
{
	local flavour=${1:?flavour}
	mkdir -p "$KVT_OUT"
	exec 9>"$KVT_OUT/build-$flavour.lock"
	flock 9
	build "$@" 9>&-
}

main "$@"
