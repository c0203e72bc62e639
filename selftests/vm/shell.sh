#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# An interactive test machine with everything that can be built in it:
# shell.sh [run.sh OPTION]...   Leave with "exit"; Ctrl-A is not special.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$HERE/../../scripts/lib.sh"

make -s -C "$KVT_ROOT" modules tools kselftest >&2
exec "$HERE/run.sh" --interactive --timeout 86400 "$@" -- '
cat /kvt/guest/motd
exec bash -i'
