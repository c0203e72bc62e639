// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a member with the core's decoder, as ../kselftest/kvt_medium.c does, and can have
 * a check of the core left out. Of all files here only this one sees the core.
 */
#include "../kselftest/kvt_medium.c"

bool medium_break(const char *name);

bool medium_break(const char *name)
{
	if (!strcmp(name, "payload_checksum"))
		kvt_env_break = KVT_BREAK_PAYLOAD_SUM;
	else if (!strcmp(name, "life"))
		kvt_env_break = KVT_BREAK_LIFE;
	return kvt_env_break != KVT_BREAK_NONE;
}
