#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What documentation says must be there: check_docs.sh [TREE]
#
#   example  the README's program is the marked part of the one that is tested
#   links    what README and Documentation point to exists, source files they name, too
#   uapi     every command, status and errno of the header is explained
#   params   the administrator's guide has the module's parameters and no others
#   suites   suites and test programs are those that run
#   skips    programs say for what they are skipped, as skips.list has it
#   version  dkms.conf is of the version of the tree
#
# Prints each offence and exits 1 when there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
HEADER=uapi/linux/kvtier.h
API=Documentation/userspace-api/kvtier.rst
ADMIN=Documentation/admin-guide/kvtier.rst
TESTING=Documentation/testing.rst
BAD=0

offence()
{
	echo "$*"
	BAD=1
}

example()
{
	sed -n '/^\/\* \[readme\] \*\/$/,/^\/\* \[end\] \*\/$/{/^\/\* \[/d;p}' \
		userspace/examples/roundtrip.c
}

readme_code()
{
	# shellcheck disable=SC2016 # quotes of another language
	sed -n '/^```c$/,/^```$/{/^```/d;p}' README.md
}

check_example()
{
	[ "$(example | wc -l)" -gt 20 ] || offence "roundtrip.c: no marked part"
	diff <(example) <(readme_code) || offence "README.md: the program is not roundtrip.c"
	[ "$(grep -cE '^<!-- bench(-log)?:(begin|end) -->$' README.md)" -eq 4 ] ||
		offence "README.md: no place for the tables of measurements"
}

check_links()
{
	local file target
	while IFS=: read -r file target; do
		case $target in
		http*) ;;
		*) [ -e "$(dirname "$file")/$target" ] || offence "$file: no $target" ;;
		esac
	done < <(grep -oE '\]\([^)#]+\)' README.md | sed 's/^](\(.*\))$/README.md:\1/'
		grep -roE '<[^> ]+>`_' Documentation --include='*.rst' |
			sed -E 's/^([^:]+):<(.*)>`_$/\1:\2/')
	# Paths in the text.
	while IFS=: read -r file target; do
		case $target in
		*NAME*) ;;
		*) [ -e "$target" ] || offence "$file: no $target" ;;
		esac
	done < <(grep -roE '(Documentation|driver|scripts|selftests|userspace|lib|uapi)/[A-Za-z0-9_/.-]+\.(rst|c|h|sh|md|list)\b' \
		README.md Documentation --include='*.rst' --include=README.md | sort -u)
}

# Source files that are named without their folder.
check_names()
{
	local file name
	while IFS=: read -r file name; do
		find driver selftests -name "$name" | grep -q . || offence "$file: no $name"
	done < <(grep -roE '\b(kvt|tier|ops)_[a-z_]+\.[ch]\b' Documentation --include='*.rst' |
		sort -u)
}

# Words of the header that must stand at the start of a line or title there.
check_uapi()
{
	local name
	while read -r name; do
		grep -qE "^([A-Z_]+, )*$name(, [A-Z_]+)*\$" "$API" || offence "$API: no section $name"
	done < <(sed -n 's/^\tKVTIER_OP_\([A-Z_]*\) = [0-9]*,$/\1/p' "$HEADER")
	while read -r name; do
		grep -qE "^$name +-?[0-9]+ " "$API" || offence "$API: no status $name"
	done < <(sed -n 's/^#define KVTIER_ST_\([A-Z_]*\)\t.*/\1/p' "$HEADER")
	while read -r name; do
		grep -qE "^$name +[^ ]" "$API" || offence "$API: no errno $name"
	done < <(sed -n 's/^ \*   \(E[A-Z0-9]*\) .*/\1/p' "$HEADER")
}

# Whoever is told of an errno anywhere finds it in the list for all commands.
check_errnos()
{
	local name errnos
	errnos=$(sed -n 's/^#define[\t ]*\(E[A-Z0-9]*\).*/\1/p' \
		/usr/include/asm-generic/errno-base.h /usr/include/asm-generic/errno.h)
	while read -r name; do
		grep -qE "^ \\*   $name +[^ ]" "$HEADER" || offence "$HEADER: no errno $name in its list"
	done < <(cat uapi/linux/*.h "$API" | grep -oE '\<E[A-Z0-9]+\>' | sort -u |
		grep -xF "$errnos")
}

# Quoted names in the paragraph about them.
check_params()
{
	# shellcheck disable=SC2016 # quotes of another language
	diff <(sed -n -E 's/^module_param(_named|_cb)?\(([a-z0-9_]+),.*/\2/p' driver/*.c |
			grep -v ^test_ | sort) \
		<(sed -n '/^Module parameters:/,/^$/p' "$ADMIN" | grep -oE '``[a-z0-9_]+``' |
			tr -d '`' | sort) ||
		offence "$ADMIN: other module parameters than the driver"
}

check_suites()
{
	diff <(sed -n '/^LONG=(/,/)/p' scripts/check.sh | sed 's/^LONG=//' | tr -cs 'a-z0-9:/' '\n' |
		sed -e '/^$/d' -e 's,:[0-9]*/[0-9]*$,,' | sort -u) \
		<(sed -n '/^Suites$/,/^What the/s/^\([a-z]\+\(:[a-z]\+\)\?\)  .*/\1/p' "$TESTING" | sort) ||
		offence "$TESTING: other suites than scripts/check.sh"
	diff <(sed -n 's/^\([a-z_]\+\).*/\1/p' selftests/kselftest/tests.list | sort) \
		<(sed -n '/^What the/,/^After each/s/^\([a-z_]\+\)  .*/\1/p' "$TESTING" | sort) ||
		offence "$TESTING: other programs than tests.list"
}

check_skips()
{
	local kernel program reason
	while read -r kernel program reason; do
		case $kernel in
		any | stock | debug | kcsan) ;;
		*) offence "skips.list: there is no kernel $kernel" ;;
		esac
		grep -q "^$program\>" selftests/kselftest/tests.list ||
			offence "skips.list: there is no program $program"
		grep -rqF --include='*.[ch]' "\"$reason\"" selftests/kselftest ||
			offence "skips.list: no test is skipped because $reason"
	done < <(grep -v '^\(#\|$\)' selftests/kselftest/skips.list)
}

check_version()
{
	grep -qx "PACKAGE_VERSION=\"$(cat VERSION)\"" dkms.conf ||
		offence "dkms.conf: not of version $(cat VERSION)"
}

check_example
check_links
check_names
check_uapi
check_errnos
check_params
check_suites
check_skips
check_version
exit $BAD
