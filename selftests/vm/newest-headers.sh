#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the build tree of the newest kernel Debian offers (trixie-backports or
# sid), for compiling only.
#
# The machine's own apt state is not touched: package lists, headers and the
# compiler that kernel was built with live in the cache.  Their programs want a
# newer C library than this system has, so they are given that one too: patchelf
# points each at the loader and libraries unpacked beside it.  The file
# kvt-make-args in the build tree holds the make arguments that select the
# compiler.  What is newest is asked again when the answer is a week old.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

APT_DIR="$KVT_CACHE/newest-apt"
PICK="$KVT_CACHE/newest-release"
LIBS=(libc6 libgmp10 libisl23 libmpc3 libmpfr6 zlib1g libzstd1 libelf1t64 libssl3t64 libstdc++6)

use_private_apt()
{
	APT_OPTS=(-o "Dir::State::lists=$APT_DIR/lists" -o "Dir::Cache=$APT_DIR/cache"
		-o "Dir::Etc::sourcelist=$APT_DIR/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
		-o Acquire::Languages=none)
}

# One suite at a time: a mirror may not have all of them.
update_lists()
{
	local source suite
	source=$(mirror_of_bookworm)
	rm -rf "$APT_DIR"
	mkdir -p "$APT_DIR/lists/partial" "$APT_DIR/cache"
	for suite in trixie-backports sid; do
		echo "$source $suite main" >"$APT_DIR/sources.list.$suite"
		cp "$APT_DIR/sources.list.$suite" "$APT_DIR/sources.list"
		if ! apt-get -q "${APT_OPTS[@]}" update >"$APT_DIR/log" 2>&1; then
			log "the mirror has no $suite"
			rm "$APT_DIR/sources.list.$suite"
		fi
	done
	cat "$APT_DIR"/sources.list.* >"$APT_DIR/sources.list" 2>/dev/null ||
		{ tail -n 5 "$APT_DIR/log" >&2; return 1; }
	apt-get -q "${APT_OPTS[@]}" update >"$APT_DIR/log" 2>&1
}

# RELEASE VERSION GCC-MAJOR of the newest linux-headers-amd64.
pick_newest()
{
	local version release gcc
	update_lists || return 1
	version=$(apt-cache "${APT_OPTS[@]}" madison linux-headers-amd64 |
		cut -d'|' -f2 | tr -d ' ' | sort -V | tail -n 1)
	release=$(apt-cache "${APT_OPTS[@]}" show "linux-headers-amd64=$version" |
		sed -n 's/^Depends:.*linux-headers-\([0-9][^ ,]*-amd64\).*/\1/p' | head -n 1)
	gcc=$(apt-cache "${APT_OPTS[@]}" show "linux-headers-$release=$version" |
		sed -n 's/^Depends:.*gcc-\([0-9]*\)-.*/\1/p' | head -n 1)
	[ -n "$release" ] && [ -n "$gcc" ] || return 1
	echo "$release $version $gcc" >"$PICK"
}

# Makes the unpacked ELF programs run on their own C library.
adopt_programs()
{
	local tmp=$1 final=$2 file libs
	libs="$final/usr/lib/x86_64-linux-gnu:$final/lib/x86_64-linux-gnu"
	while IFS= read -r -d '' file; do
		if patchelf --print-interpreter "$file" >/dev/null 2>&1; then
			patchelf --set-interpreter "$final/lib64/ld-linux-x86-64.so.2" \
				--set-rpath "$libs" "$file"
		fi
	done < <(find "$tmp/usr/bin" "$tmp/usr/libexec" "$tmp"/usr/lib/linux-kbuild-* \
		-type f -perm -100 -print0)
	# The loader's folder is a link of the base system's, not of a package.
	mkdir -p "$tmp/lib64"
	ln -sf ../usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$tmp/lib64/ld-linux-x86-64.so.2"
}

make_tree()
{
	local final=$1 release=$2 version=$3 gcc=$4 tmp base dir
	[ ! -d "$final" ] || return 0
	log "fetching headers and compiler of $release"
	base=${release%-amd64}
	rm -rf "$final.new"
	mkdir -p "$final.new"
	tmp="$final.new"
	fetch_debs "$tmp" "linux-headers-$release=$version" "linux-headers-$base-common=$version" \
		"linux-kbuild-$base=$version" "gcc-$gcc-x86-64-linux-gnu" \
		"cpp-$gcc-x86-64-linux-gnu" "${LIBS[@]}" || return 1
	adopt_programs "$tmp" "$final"
	dir="$tmp/usr/src/linux-headers-$release"
	sed -i "s,/usr/src/,$final/usr/src/,g" "$dir/Makefile"
	# Without vmlinux kbuild does not look for pahole to make BTF.
	rm -f "$dir/vmlinux"
	echo "CC=$final/usr/bin/x86_64-linux-gnu-gcc-$gcc" >"$dir/kvt-make-args"
	mv -T "$tmp" "$final"
}

main()
{
	local release version gcc entry
	"$KVT_ROOT/scripts/setup.sh" build test
	mkdir -p "$KVT_CACHE"
	use_private_apt
	if [ -z "$(find "$PICK" -mtime -7 2>/dev/null)" ]; then
		with_lock newest pick_newest || [ -e "$PICK" ] ||
			die "cannot find out which kernel is the newest"
		touch "$PICK"
	fi
	read -r release version gcc <"$PICK"
	entry="$KVT_CACHE/newest-$version"
	with_lock newest make_tree "$entry" "$release" "$version" "$gcc" ||
		die "cannot fetch the newest kernel's headers"
	echo "$entry/usr/src/linux-headers-$release"
}

main "$@"
