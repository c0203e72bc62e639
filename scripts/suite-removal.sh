#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Tiers drained, unbound and unplugged under load, in a machine of their own, since
# devices that come back may have other names: suite-removal.sh [stock|debug].
set -euo pipefail

exec "$(dirname "$0")/suite-kselftest.sh" "${1:-stock}" removal
