#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# All tests of libkvtier that need no kernel module: check.sh TOP OUT
# One line per test: "ok NAME" or "not ok NAME", details before it.
# shellcheck disable=SC2317 # functions are called by name, through try
set -euo pipefail

top=$1
out=$2
lib=$out/lib
CC=${CC:-cc}
NM=${NM:-nm}
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

result()
{
	if [ "$2" -eq 0 ]; then
		echo "ok lib/$1"
	else
		echo "not ok lib/$1"
		failed=1
	fi
}

# try NAME COMMAND...: the command's output only when it fails.
try()
{
	local name=$1 status=0
	shift
	# In the background, for "set -e" does not hold on the left of "||".
	"$@" >"$work/log" 2>&1 &
	wait $! || status=1
	[ "$status" -eq 0 ] || cat "$work/log"
	result "$name" "$status"
}

# The library exports what the map says and the header declares: no more, no
# less, and under one version node.
exports_match_map()
{
	local so=$lib/libkvtier.so
	sed -n 's/^\t\(kvtier_[a-z0-9_]*\);$/\1@@KVTIER_0/p' \
		"$top/lib/libkvtier.map" | sort >"$work/map"
	"$NM" -D --defined-only "$so" | awk '$2 != "A" { print $3 }' |
		sort >"$work/so"
	[ -s "$work/map" ] || return 1
	diff "$work/map" "$work/so"
}

header_matches_map()
{
	grep -oP '\bkvtier_\w+(?=\()' "$top/lib/include/kvtier/libkvtier.h" |
		sort -u >"$work/header"
	sed -n 's/^\t\(kvtier_[a-z0-9_]*\);$/\1/p' "$top/lib/libkvtier.map" |
		sort -u >"$work/map"
	diff "$work/header" "$work/map"
}

# named_in SECTION PATTERN : "PAGE FUNCTION" for what fits in that section of the pages.
named_in()
{
	awk -v wanted="$1" -v pattern="$2" '
	/^\.SH/ { section = $2 }
	section == wanted {
		while (match($0, pattern)) {
			name = substr($0, RSTART, RLENGTH)
			sub(/[(]$/, "", name)
			print FILENAME, name
			$0 = substr($0, RSTART + RLENGTH)
		}
	}' "$top"/Documentation/man/*.3 | sort
}

# Every exported function is declared in the SYNOPSIS of a manual page, which has it in
# its NAME, too: of that "make install" makes the pages it can be looked up by.
documented()
{
	named_in SYNOPSIS 'kvtier_[a-z0-9_]+[(]' >"$work/declared"
	sed -n 's/^\t\(kvtier_[a-z0-9_]*\);$/\1/p' "$top/lib/libkvtier.map" |
		sort | diff - <(cut -d' ' -f2 "$work/declared" | sort)
	named_in NAME 'kvtier_[a-z0-9_]+' | diff - "$work/declared"
}

# The example in libkvtier(3) compiles.
example_compiles()
{
	sed -n '/^\.EX/,/^\.EE/{/^\.E/d;s/\\-/-/g;p}' \
		"$top/Documentation/man/libkvtier.3" >"$work/example.c"
	[ "$(wc -l <"$work/example.c")" -gt 20 ]
	"$CC" -std=gnu11 -Wall -Wextra -Wno-sign-compare -Werror -c -I"$top/uapi" \
		-I"$top/lib/include" "$work/example.c" -o "$work/example.o"
}

man_pages_are_clean()
{
	local page
	for page in "$top"/Documentation/man/*.[0-9]; do
		man --warnings -E UTF-8 -l -Tutf8 "$page" 2>&1 >/dev/null |
			tee "$work/warnings"
		[ ! -s "$work/warnings" ]
	done
}

# A library does not print and does not end its user's process.
only_silent_imports()
{
	! "$NM" -D --undefined-only "$lib/libkvtier.so" |
		grep -E ' (printf|__printf_chk|puts|putchar|fprintf|__fprintf_chk|perror|exit|_exit)(@|$)'
}

soname()
{
	local want
	want="libkvtier.so.$(cut -d. -f1 "$top/VERSION")"
	readelf -d "$lib/libkvtier.so" | grep -F "[$want]"
}

# All structs of the interface are pinned in abi.c.
abi_complete()
{
	local missing=0 name
	while read -r name; do
		grep -q "^SIZE($name, " "$top/lib/src/abi.c" || {
			echo "lib/src/abi.c does not pin struct $name"
			missing=1
		}
	done < <(sed -n 's/^struct \(kvtier_[a-z_]*\) {$/\1/p' \
		"$top"/uapi/linux/kvtier*.h)
	return "$missing"
}

# pkg-config file, header and both libraries serve a user's program.
installed_tree_works()
{
	local flags
	make -s -C "$top/lib" install OUT="$out" PREFIX=/usr DESTDIR="$work/root"
	cat >"$work/user.c" <<-'END'
	#include <stdio.h>
	#include <kvtier/libkvtier.h>
	int main(void)
	{
		struct kvtier_pool *pool;
		puts(kvtier_version());
		return kvtier_pool_open_path("/nonexistent", &pool) == -2 ? 0 : 1;
	}
	END
	flags=$(PKG_CONFIG_SYSROOT_DIR="$work/root" \
		PKG_CONFIG_PATH="$work/root/usr/lib/pkgconfig" \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
		pkg-config --cflags --libs libkvtier)
	# shellcheck disable=SC2086 # words on purpose
	"$CC" -Wall -Werror -pedantic "$work/user.c" $flags -o "$work/user"
	grep -q 'so man3/kvtier_get.3' "$work/root/usr/share/man/man3/kvtier_release.3"
	LD_LIBRARY_PATH="$work/root/usr/lib" "$work/user" | diff - "$top/VERSION"
	rm "$work"/root/usr/lib/libkvtier.so*
	# shellcheck disable=SC2086
	"$CC" "$work/user.c" $flags -pthread -o "$work/user_static"
	"$work/user_static" | diff - "$top/VERSION"
}

header_is_cplusplus()
{
	echo '#include <kvtier/libkvtier.h>' |
		c++ -Wall -Wextra -Werror -pedantic -fsyntax-only -x c++ \
			-I"$top/uapi" -I"$top/lib/include" -
}

"$lib/test/test_libkvtier" lib || failed=1
"$lib/test/test_libkvtier_asan" lib-asan || failed=1
"$lib/test/test_libkvtier_tsan" lib-tsan || failed=1
try exports-match-map exports_match_map
try header-matches-map header_matches_map
try documented documented
try example example_compiles
if command -v man >/dev/null; then
	try man-pages man_pages_are_clean
else
	echo "skip lib/man-pages # no man"
fi
try silent only_silent_imports
try soname soname
try abi-complete abi_complete
try installed-tree installed_tree_works
try cplusplus header_is_cplusplus
exit "$failed"
