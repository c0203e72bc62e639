#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Kernels of the rig, all kept in the cache: kernel.sh WHAT prints a folder.
#
#   stock           Debian's kernel: vmlinuz, lib/modules/<release>
#   headers         build tree for modules of the stock kernel
#   debug           the instrumented kernel, same layout as stock
#   debug-headers   its build tree
#   kcsan           the one that looks for data races, likewise
#   kcsan-headers   its build tree
#   newest-headers  build tree of the newest kernel Debian offers (compile only)
#   source          unpacked source of the stock kernel (checkpatch, debug)
#
# Nothing is installed on the host.  All packages are of the one release that
# setup.sh pinned.  Every entry is made once, under a lock, and is complete
# when its final name exists.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

# publish TMP FINAL: makes a finished entry visible.
publish()
{
	mv -T "$1" "$2"
}

new_entry()
{
	rm -rf "$1.new"
	mkdir -p "$1.new"
	echo "$1.new"
}

make_stock()
{
	local final=$1 rel=$2 tmp
	[ ! -d "$final" ] || return 0
	log "fetching the stock kernel $rel"
	tmp=$(new_entry "$final")
	fetch_debs "$tmp/deb" "linux-image-$rel-unsigned=$(stock_version)" ||
		die "cannot download linux-image-$rel-unsigned"
	mkdir -p "$tmp/lib/modules"
	mv "$tmp/deb/boot/vmlinuz-$rel" "$tmp/vmlinuz"
	mv "$tmp/deb/boot/config-$rel" "$tmp/config"
	mv "$tmp/deb/lib/modules/$rel" "$tmp/lib/modules/"
	rm -rf "$tmp/deb" "$tmp/lib/modules/$rel/build" "$tmp/lib/modules/$rel/source"
	depmod -b "$tmp" "$rel"
	publish "$tmp" "$final"
}

# The packaged headers name each other by absolute path: point them into the
# cache instead.
relocate_headers()
{
	local tmp=$1 final=$2 rel=$3 common=$4
	sed -i "s,/usr/src/$common,$final/usr/src/$common,g" \
		"$tmp/usr/src/linux-headers-$rel/Makefile"
}

make_headers()
{
	local final=$1 rel=$2 tmp common base
	[ ! -d "$final" ] || return 0
	log "fetching headers of $rel"
	base=${rel%-amd64}
	common="linux-headers-$base-common"
	tmp=$(new_entry "$final")
	fetch_debs "$tmp" "linux-headers-$rel=$(stock_version)" \
		"$common=$(stock_version)" "linux-kbuild-$base=$(stock_version)" ||
		die "cannot download the headers of $rel"
	relocate_headers "$tmp" "$final" "$rel" "$common"
	publish "$tmp" "$final"
}

make_source()
{
	local final=$1 tmp
	[ ! -d "$final" ] || return 0
	log "fetching the kernel source $(stock_version)"
	tmp=$(new_entry "$final")
	fetch_debs "$tmp/.deb" "linux-source-6.12=$(stock_version)" ||
		die "cannot download linux-source-6.12"
	tar -C "$tmp" -xf "$tmp/.deb/usr/src/linux-source-6.12.tar.xz" --strip-components=1
	rm -rf "$tmp/.deb"
	publish "$tmp" "$final"
}

# fragments FLAVOUR : what its configuration is made of; of a line that is there twice the
# last one counts.
fragments()
{
	echo "$HERE/debug.config"
	[ "$1" = debug ] || echo "$HERE/$1.config"
}

# Kconfig drops what it cannot have without a word, so ask for it afterwards.
verify_config()
{
	local config=$1 line name bad=0
	shift
	while read -r line; do
		case $line in
		CONFIG_*=n)
			name=${line%=n}
			if grep -q "^$name=" "$config"; then
				log "$config: $name is set and should not be"
				bad=1
			fi
			;;
		CONFIG_*)
			if ! grep -qxF -- "$line" "$config"; then
				log "$config: wanted $line, got $(grep "^${line%%=*}=" "$config" || echo nothing)"
				bad=1
			fi
			;;
		esac
	done < <(cat "$@" | tac | awk -F= '/^CONFIG_/ && !seen[$1]++')
	return $bad
}

# build_debug SOURCE TREE FRAGMENT...
build_debug()
{
	local src=$1 tree=$2
	shift 2
	make -s -C "$src" O="$tree" tinyconfig
	"$src/scripts/kconfig/merge_config.sh" -m -O "$tree" "$tree/.config" "$@" >/dev/null
	make -s -C "$src" O="$tree" olddefconfig
	verify_config "$tree/.config" "$@" || return 1
	make -s -C "$src" O="$tree" -j"$(nproc)" bzImage modules
}

# A module build needs scripts, generated headers and Module.symvers, not the
# kernel's own objects.
strip_tree()
{
	local tree=$1
	find "$tree" \( -path "$tree/scripts" -o -path "$tree/tools" \) -prune -o -type f \
		\( -name '*.o' -o -name '*.a' -o -name '*.cmd' -o -name '*.ko' \
		-o -name '*.mod' -o -name '*.mod.c' -o -name 'vmlinux*' -o -name 'bzImage' \) \
		-exec rm -f {} +
}

# Layout: vmlinuz, lib/modules as in stock; build/ is the prepared tree.
make_debug()
{
	local final=$1 src=$2 flavour=$3 tmp rel parts
	[ ! -d "$final" ] || return 0
	log "building the $flavour kernel (several minutes, once); log: $final.log"
	mapfile -t parts < <(fragments "$flavour")
	tmp=$(new_entry "$final")
	mkdir -p "$tmp/build"
	build_debug "$src" "$tmp/build" "${parts[@]}" >"$final.log" 2>&1 ||
		{ tail -n 30 "$final.log" >&2; die "the $flavour kernel does not build"; }
	rel=$(make -s -C "$tmp/build" kernelrelease)
	make -s -C "$tmp/build" INSTALL_MOD_STRIP=1 INSTALL_MOD_PATH="$tmp" DEPMOD=true modules_install >>"$final.log" 2>&1
	rm -f "$tmp/lib/modules/$rel/build" "$tmp/lib/modules/$rel/source"
	depmod -b "$tmp" "$rel"
	cp "$tmp/build/arch/x86/boot/bzImage" "$tmp/vmlinuz"
	cp "$tmp/build/.config" "$tmp/config"
	cp "$tmp/build/System.map" "$tmp/"
	strip_tree "$tmp/build"
	publish "$tmp" "$final"
}

# debug_entry FLAVOUR
debug_entry()
{
	local key parts
	mapfile -t parts < <(fragments "$1")
	key=$({ stock_version; cat "${parts[@]}"; sed -n '/^build_debug/,/^}/p' "$0"; } |
		sha256sum | cut -c1-12)
	echo "$KVT_CACHE/$1-$(stock_version)-$key"
}

main()
{
	local rel entry
	"$KVT_ROOT/scripts/setup.sh" build
	rel=$(stock_release)
	case ${1:-} in
	stock)
		entry="$KVT_CACHE/stock-$rel"
		with_lock "stock" make_stock "$entry" "$rel"
		echo "$entry"
		;;
	headers)
		entry="$KVT_CACHE/headers-$rel"
		with_lock "headers" make_headers "$entry" "$rel"
		echo "$entry/usr/src/linux-headers-$rel"
		;;
	source)
		entry="$KVT_CACHE/source-$(stock_version)"
		with_lock "source" make_source "$entry"
		echo "$entry"
		;;
	debug | debug-headers | kcsan | kcsan-headers)
		"$KVT_ROOT/scripts/setup.sh" debug
		entry=$(debug_entry "${1%-headers}")
		if [ ! -d "$entry" ]; then
			with_lock "source" make_source "$KVT_CACHE/source-$(stock_version)"
			with_lock "debug" make_debug "$entry" "$KVT_CACHE/source-$(stock_version)" \
				"${1%-headers}"
		fi
		case $1 in
		*-headers) echo "$entry/build" ;;
		*) echo "$entry" ;;
		esac
		;;
	newest-headers)
		exec "$HERE/newest-headers.sh"
		;;
	*)
		sed -n '4,13s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
}

main "$@"
