#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Static checks of the whole tree: suite-static.sh [CHECK]...
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$KVT_ROOT"

WORK="$KVT_OUT/static"
STATUS=0

# verdict NAME COMMAND... : its output is shown only when it fails.
verdict()
{
	local name=$1
	shift
	if "$@" >"$WORK/$name.log" 2>&1; then
		grep '^# ' "$WORK/$name.log" || true
		echo "ok static.$name"
	else
		head -n 200 "$WORK/$name.log" | sed 's/^/# /'
		echo "not ok static.$name"
		STATUS=1
	fi
}

# The modules under sparse; what it finds in the kernel's own headers is not ours. What the
# compiler says to W=1 ends the build, which other suites use as well.
check_build()
{
	local log="$WORK/build.txt"
	scripts/build-modules.sh stock C=2 CF="-D__CHECK_ENDIAN__ -Wno-unknown-attribute" \
		>"$log" 2>&1 || { cat "$log"; return 1; }
	if ! grep -q '^  CHECK .*/driver/' "$log"; then
		echo "sparse did not run"
		return 1
	fi
	! grep -E "$KVT_OUT/build-stock.*(warning|error):|^WARNING: modpost" -A 3 "$log"
}

# Nothing is left out for the kernel side (FILE_PATH_CHANGES is about patches).  In user space:
#   STRCPY, STRNCPY                 strscpy() and its like are the kernel's
#   PREFER_DEFINED_ATTRIBUTE_MACRO  so are __printf and __noreturn
#   VOLATILE                        sig_atomic_t and reads of shared mappings
#   NEW_TYPEDEFS, AVOID_EXTERNS     callbacks, and symbols of the fuzzer
#   MACRO_WITH_FLOW_CONTROL         assertions that leave the test
#   SPLIT_STRING                    usage texts
#   SPACING                         "FIXTURE_DATA(x) *self" is taken for a product
#   PREFER_KERNEL_TYPES             u32 and its like are the kernel's, too
CHECKPATCH_USER_IGNORE=STRCPY,STRNCPY,PREFER_DEFINED_ATTRIBUTE_MACRO,VOLATILE,NEW_TYPEDEFS,AVOID_EXTERNS,MACRO_WITH_FLOW_CONTROL,SPLIT_STRING,SPACING,PREFER_KERNEL_TYPES

# patch_batch FILE... : checkpatch finds nothing in them, which is remembered.
patch_batch()
{
	local file
	perl "$PATCH_TOOL" --no-tree --no-summary --terse --quiet --max-line-length=100 \
		--ignore "$PATCH_IGNORE" --file "$@" || return 1
	for file in "$@"; do
		touch "$PATCH_SEEN/$(patch_key "$file")"
	done
}

# patch_key FILE : what the verdict on it depends on.
patch_key()
{
	{ echo "$PATCH_BASE $1"; cat "$1"; } | sha256sum | cut -d' ' -f1
}

# A few files at a time, so that all processors have some; none that was found clean before.
# All of the tree is minutes of work.
run_checkpatch()
{
	local tool file todo=() hash
	tool=$(selftests/vm/kernel.sh source)/scripts
	PATCH_IGNORE=$1
	shift
	PATCH_TOOL=$tool/checkpatch.pl
	PATCH_SEEN=$KVT_CACHE/checkpatch
	hash=$(cat "$tool"/{checkpatch.pl,spelling.txt,const_structs.checkpatch} | sha256sum)
	PATCH_BASE="$PATCH_IGNORE ${hash%% *}"
	mkdir -p "$PATCH_SEEN"
	find "$PATCH_SEEN" -type f -mtime +60 -delete
	for file in "$@"; do
		[ -e "$PATCH_SEEN/$(patch_key "$file")" ] || todo+=("$file")
	done
	echo "# checkpatch: ${#todo[@]} of $# files are new to it"
	[ ${#todo[@]} -gt 0 ] || return 0
	export PATCH_IGNORE PATCH_TOOL PATCH_SEEN PATCH_BASE
	export -f patch_batch patch_key
	# shellcheck disable=SC2016 # for the shell that is started
	printf '%s\0' "${todo[@]}" |
		xargs -0 -n 8 -P "$(nproc)" bash -c 'patch_batch "$@"' checkpatch
}

check_patch()
{
	local kernel user status=0
	mapfile -t kernel < <(tree_files '^(driver|uapi|selftests/modules)/.*\.[ch]$')
	mapfile -t user < <(tree_files '^(lib|userspace|selftests/(bench|crash|host|kselftest|vm))/.*\.[ch]$')
	run_checkpatch FILE_PATH_CHANGES "${kernel[@]}" || status=1
	run_checkpatch "$CHECKPATCH_USER_IGNORE" "${user[@]}" || status=1
	return "$status"
}

shell_files()
{
	tree_files . | while IFS= read -r file; do
		if [[ $file == *.sh || $file == userspace/completion/* ]] ||
			head -n 1 "$file" | grep -qE '^#!.*\b(ba)?sh\b'; then
			echo "$file"
		fi
	done
}

# SC2317 takes functions that are passed by name for unreachable.
check_shell()
{
	local files
	mapfile -t files < <(shell_files)
	echo "# ${#files[@]} scripts"
	printf '%s\0' "${files[@]}" |
		xargs -0 -n 8 -P "$(nproc)" shellcheck -f gcc -x -P SCRIPTDIR -e SC2317
}

check_cppcheck()
{
	cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -j "$(nproc)" \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		--include=scripts/cppcheck_harness.h \
		-I uapi -I lib/include lib userspace selftests
}

check_spelling()
{
	local files
	mapfile -t files < <(tree_files '\.(c|h|sh|py|md|rst|txt|1|3|5|8)$' Makefile Kbuild)
	codespell --ignore-words scripts/codespell.ignore "${files[@]}"
}

check_sizes()
{
	local files
	mapfile -t files < <(tree_files '\.(c|h|sh|py)$')
	scripts/check_sizes.py "${files[@]}"
}

# The layering check itself finds what it is there for.
check_includes_notices()
{
	local tree="$WORK/offender"
	rm -rf "$tree"
	mkdir -p "$tree/driver/core" "$tree/lib" "$tree/userspace"
	echo '#include <linux/slab.h>' >"$tree/driver/core/kvt_x.c"
	! scripts/check_includes.sh "$tree" || return 1
	echo '#include "kvt_env.h"' >"$tree/driver/core/kvt_x.c"
	touch "$tree/driver/core/kvt_env.h"
	scripts/check_includes.sh "$tree" || return 1
	echo '#include <linux/kvtier.h>' >"$tree/userspace/x.c"
	! scripts/check_includes.sh "$tree" || return 1
	echo '#include "kvt_recover.h"' >"$tree/userspace/x.c"
	! scripts/check_includes.sh "$tree"
}

# The checks of the documentation find what they are there for.
check_docs_notice()
{
	local tree="$WORK/documented"
	rm -rf "$tree"
	mkdir -p "$tree"
	cp -r README.md SECURITY.md VERSION dkms.conf Documentation driver lib scripts selftests uapi \
		userspace COPYING COPYING.LIB "$tree"
	scripts/check_abi.sh "$tree" && scripts/check_docs.sh "$tree" || return 1
	echo 'module_param(kvt_undocumented, int, 0644);' >>"$tree/driver/kvt_main.c"
	! scripts/check_abi.sh "$tree" || return 1
	! scripts/check_docs.sh "$tree" || return 1
	cp driver/kvt_main.c "$tree/driver/"
	# shellcheck disable=SC2016 # quotes of another language
	sed -i 's/``dax_zombies``/dax_zombies/' "$tree/Documentation/admin-guide/kvtier.rst"
	! scripts/check_docs.sh "$tree" || return 1
	cp Documentation/admin-guide/kvtier.rst "$tree/Documentation/admin-guide/"
	scripts/check_docs.sh "$tree" || return 1
	sed -i '/^any.export/s/$/ at all/' "$tree/selftests/kselftest/skips.list"
	! scripts/check_docs.sh "$tree" || return 1
	cp selftests/kselftest/skips.list "$tree/selftests/kselftest/"
	rm "$tree/driver/kvt_move.c"
	! scripts/check_docs.sh "$tree"
}

check_syzkaller()
{
	scripts/check_syzkaller.py
}

# A command, a field or a width that is not in both is found.
check_syzkaller_notices()
{
	local tree="$WORK/described" edit header=uapi/linux/kvtier.h
	rm -rf "$tree"
	mkdir -p "$tree/uapi" "$tree/selftests"
	for edit in 's/KVTIER_OP_EXPORT = 18,/&\n\tKVTIER_OP_OTHER = 19,/' \
		's/^\t__u32 nr_prefix;$/\t__u32 nr_head;/' 's/^\t__u16 group;$/\t__u32 group;/'; do
		cp -r uapi/linux "$tree/uapi/"
		cp -r selftests/syzkaller "$tree/selftests/"
		scripts/check_syzkaller.py "$tree" || return 1
		sed -i "$edit" "$tree/$header"
		! scripts/check_syzkaller.py "$tree" || return 1
	done
}

# What only long runs take out of the driver is still there.
check_teeth()
{
	scripts/suite-teeth.sh edits
}

# The library's users link to it; what the kernel's headers say of user space goes for the uAPI.
check_licences()
{
	local missing=0 file want
	while IFS= read -r file; do
		case $file in
		lib/*) want=LGPL-2.1-or-later ;;
		uapi/*.h) want='GPL-2.0 WITH Linux-syscall-note' ;;
		*) want=GPL-2.0 ;;
		esac
		if ! head -n 3 "$file" | grep -qE "SPDX-License-Identifier: $want( \*/)?\$"; then
			echo "$file: no SPDX line, or not $want"
			missing=1
		fi
	done < <(tree_files '\.(c|h|sh|py|map|mk|rules|list)$' '(^|/)(Makefile|Kbuild)$|\.pc\.in$')
	return "$missing"
}

main()
{
	local check checks=("$@")
	mkdir -p "$WORK"
	[ ${#checks[@]} -gt 0 ] ||
		checks=(build patch shell cppcheck spelling sizes includes includes_notices licences
			abi docs docs_notice syzkaller syzkaller_notices teeth)
	for check in "${checks[@]}"; do
		case $check in
		includes | abi | docs) verdict "$check" "scripts/check_$check.sh" ;;
		*) verdict "$check" "check_$check" ;;
		esac
	done
	exit $STATUS
}

main "$@"
