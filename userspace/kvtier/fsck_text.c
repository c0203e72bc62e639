// SPDX-License-Identifier: GPL-2.0
/*
 * The vocabulary of fsck: what is wrong, how bad it is, in words.
 */
#include "fsck.h"

enum grade {
	ALWAYS,		/* an error */
	UNLESS_DIRTY,	/* what recovery deals with */
	NEVER,		/* worth knowing */
};

static const struct word {
	const char *name;
	enum grade grade;
	const char *text;
} words[FSCK_NR] = {
	[FSCK_SUPER_MISSING] = { "super-missing", ALWAYS,
		"there is nothing in the place of this superblock" },
	[FSCK_SUPER_DAMAGED] = { "super-damaged", ALWAYS,
		"the superblock does not verify" },
	[FSCK_SUPER_UNREADABLE] = { "super-unreadable", ALWAYS,
		"the superblock cannot be read" },
	[FSCK_SUPER_NEWER] = { "super-newer", ALWAYS,
		"the older superblock is of a later version" },
	[FSCK_SUPER_MISPLACED] = { "super-misplaced", ALWAYS,
		"the superblock of generation %N is in the place of the other" },
	[FSCK_SUPER_ZONE_READONLY] = { "super-zone-readonly", ALWAYS,
		"the zone of these superblocks can only be read any more: as soon as the other is full the member cannot be used" },
	[FSCK_SUPER_ZONE_OFFLINE] = { "super-zone-offline", ALWAYS,
		"the zone of these superblocks is offline: the newest may have been in it, so the member cannot be used" },
	[FSCK_SUPER_DIFFERS] = { "super-differs", ALWAYS,
		"the superblock of generation %N is of another member or layout" },
	[FSCK_SUPERS_DAMAGED] = { "supers-damaged", ALWAYS,
		"no superblock verifies: the member cannot be used" },
	[FSCK_LAYOUT] = { "layout", ALWAYS,
		"the layout is impossible, or longer than the device: it was made on %N bytes" },
	[FSCK_SEG_ZONE_READONLY] = { "zone-readonly", NEVER,
		"%N of its zones can only be read any more: the segment will not be written again" },
	[FSCK_SEG_ZONE_OFFLINE] = { "zone-offline", ALWAYS,
		"%N of its zones are offline: it may have said that blocks elsewhere were dropped, so the member cannot be used" },
	[FSCK_SEG_UNREADABLE] = { "segment-unreadable", ALWAYS,
		"%N reads of headers or summary failed: what is in it is not known" },
	[FSCK_SEG_HEADLESS] = { "segment-headless", ALWAYS,
		"the first batch does not verify: all that the segment had in life %N is lost, kills of other blocks included" },
	[FSCK_SEG_UNSEALED] = { "segment-unsealed", UNLESS_DIRTY,
		"there is no footer, but %N batches" },
	[FSCK_SEG_SUMMARY] = { "segment-summary", UNLESS_DIRTY,
		"the summary of life %N does not verify" },
	[FSCK_SEG_BATCHES] = { "segment-batches", NEVER,
		"some batches of life %N do not verify; the summary has what was in them" },
	[FSCK_LIFE_TWICE] = { "life-twice", ALWAYS,
		"two segments have life %N" },
	[FSCK_LIFE_LIMIT] = { "life-limit", ALWAYS,
		"there is a life %N, which is above the superblock's limit" },
	[FSCK_SEQ_LIMIT] = { "seq-limit", ALWAYS,
		"there is a sequence %N, which is above the superblock's limit" },
	[FSCK_NS_LIMIT] = { "namespace-limit", ALWAYS,
		"there is a namespace %N, which is above the superblock's limit" },
	[FSCK_ENTRY] = { "entry-damaged", ALWAYS,
		"%N namespaces or kills are not valid" },
	[FSCK_KILL_LIFE] = { "kill-life", NEVER,
		"%N kills are of lives that no segment was ever given: they do not count" },
	[FSCK_REC_DAMAGED] = { "record-damaged", UNLESS_DIRTY,
		"the record of a block does not verify" },
	[FSCK_REC_UNKNOWN] = { "record-unknown", UNLESS_DIRTY,
		"the record of a block is of a later version" },
	[FSCK_REC_RANGE] = { "record-range", UNLESS_DIRTY,
		"the record of a block has an impossible place or length" },
	[FSCK_PAYLOAD_TORN] = { "payload-torn", UNLESS_DIRTY,
		"the bytes of a block in an unsealed segment do not verify" },
	[FSCK_PAYLOAD_DAMAGED] = { "payload-damaged", ALWAYS,
		"the bytes of a block of namespace %N do not verify" },
	[FSCK_PAYLOAD_UNREADABLE] = { "payload-unreadable", ALWAYS,
		"the bytes of a block cannot be read" },
	[FSCK_NAME_TWICE] = { "name-twice", UNLESS_DIRTY,
		"an old copy of a block, of sequence %N, is not dead" },
	[FSCK_NS_UNDEFINED] = { "namespace-undefined", UNLESS_DIRTY,
		"a block is of namespace %N, which is nowhere defined" },
	[FSCK_NS_GONE] = { "namespace-gone", UNLESS_DIRTY,
		"a block is of namespace %N, which is gone" },
	[FSCK_NS_GROUP] = { "namespace-group", UNLESS_DIRTY,
		"a block is of group %N, which its namespace does not have" },
	[FSCK_NS_MANY] = { "namespaces-many", ALWAYS,
		"blocks are of more than %N namespaces: no pool is assembled from that" },
	[FSCK_CHAIN_CYCLE] = { "chain-cycle", UNLESS_DIRTY,
		"a block of namespace %N is its own ancestor" },
};

const char *fsck_name(enum fsck_what what)
{
	return words[what].name;
}

const char *fsck_text(enum fsck_what what)
{
	return words[what].text;
}

enum fsck_severity fsck_severity(enum fsck_what what, bool clean)
{
	return words[what].grade == ALWAYS || (words[what].grade == UNLESS_DIRTY && clean) ?
	       FSCK_ERROR : FSCK_NOTE;
}

const char *fsck_fix_text(enum fsck_fix fix)
{
	static const char *const texts[FSCK_FIX_NR] = {
		[FSCK_FIX_NONE] = "",
		[FSCK_FIX_TWIN] = "write it anew from the other",
		[FSCK_FIX_SUPER] = "mark the member dirty: the next assembly recovers it",
		[FSCK_FIX_HEAD] = "write an empty first batch: its summary counts again",
		[FSCK_FIX_FOOT] = "erase the footer: the next assembly verifies and drops",
		[FSCK_FIX_APPEND] = "write the valid one anew, to the zone that it is not in",
		[FSCK_FIX_MOVE] = "move what verifies to a free segment, and end this one",
	};

	return texts[fix];
}

const char *fsck_refused_text(enum fsck_refused refused)
{
	static const char *const texts[FSCK_REFUSED_NR] = {
		[FSCK_REFUSED_NOT] = "",
		[FSCK_REFUSED_BLIND] =
			"no segment is moved as long as others cannot be read or trusted: what these say is dead would come back",
		[FSCK_REFUSED_SEGMENT] =
			"there is no free segment left, with zones that can be written, to move one to",
		[FSCK_REFUSED_NUMBERS] =
			"the superblock's numbers are so high that none is left to go on with",
		[FSCK_REFUSED_SUPER_IO] =
			"no superblock is written as long as a zone of them cannot be read: the newest may be there",
		[FSCK_REFUSED_SUPER_ZONE] =
			"the zone that the next superblock has to go to cannot be written any more",
	};

	return texts[refused];
}
