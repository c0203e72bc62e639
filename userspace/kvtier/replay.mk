# SPDX-License-Identifier: GPL-2.0
# What kvtier replay and gen need besides the tool's own libraries.
TOOL_LIBS += -lzstd
