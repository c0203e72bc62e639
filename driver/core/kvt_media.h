/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is written to a member device, version 1: structures as they lie on the
 * media, and nothing else. Documentation/design/format.rst explains them.
 *
 *   byte 0          superblock, and its twin at 512 KiB. On a zoned device: a log of
 *                   superblocks, in the first two zones
 *   first_byte      segment 0, segment 1, ...      each seg_units units long
 *
 *   segment         batch, batch, ... | padding | summary | footer (last unit)
 *   batch           header: struct kvt_m_batch, namespaces, blocks, kills
 *                   payloads of its blocks, each from the start of a unit
 *   summary         namespaces, blocks, kills of the whole segment
 *
 * All integers are little-endian, all reserved bytes zero when written and ignored
 * when read. A reader that sees an unknown bit in an incompatible feature word, or
 * in flags, must not interpret the structure. Sizes and offsets never change: they
 * are asserted at the end of this file.
 *
 * Headers behind their first 128 bytes, and summaries, are scrambled: see
 * kvt_scramble().
 *
 * No record ends with its own checksum: a CRC over records that do is the same
 * whatever they are, so a header or summary torn where records meet would verify.
 *
 * Only kvt_format.c looks into these structures.
 */
#ifndef KVT_MEDIA_H
#define KVT_MEDIA_H

#include "kvt_env.h"

#define KVT_MEDIA_VERSION	1
#define KVT_MAGIC_SUPER		0x425352454954564bULL	/* "KVTIERSB" */
#define KVT_MAGIC_BATCH		0x484354414254564bULL	/* "KVTBATCH" */
#define KVT_MAGIC_FOOTER	0x544f4f465354564bULL	/* "KVTSFOOT" */

#define KVT_SUPER_BYTES		4096u
#define KVT_SUPER_TWIN_BYTE	(512u << 10)
#define KVT_SUPER_SLOTS		2u
#define KVT_HEAD_BYTES_MIN	(1u << 20)	/* reserved in front of segment 0 */
#define KVT_ZONE_BYTES_MIN	(64u << 10)
#define KVT_ZONE_BYTES_MAX	(1ULL << 40)
#define KVT_UNIT_BYTES_MIN	4096u
#define KVT_UNIT_BYTES_MAX	(128u << 10)
#define KVT_HEADER_BYTES_MAX	(256u << 10)	/* of a batch */
#define KVT_SUM_BYTES		(64u << 10)	/* of a payload, for its checksum */
#define KVT_STORED_BYTES_MAX	(256u << 20)
#define KVT_MEMBERS_MAX		16u
#define KVT_UUID_BYTES		16u
#define KVT_KILL_ALL		U32_MAX		/* as a unit: the whole segment */

/* Bits of kvt_m_super.incompat */
#define KVT_INCOMPAT_ZONED	0x1ULL	/* all is written at the write pointers of zones */

/* Values of kvt_m_super.state */
#define KVT_STATE_CLEAN		1u
#define KVT_STATE_DIRTY		2u

/* Flags of kvt_m_ns */
#define KVT_NSF_SECRET		0x1u
#define KVT_NSF_GONE		0x2u
#define KVT_NSF_ALL		(KVT_NSF_SECRET | KVT_NSF_GONE)

struct kvt_m_member {
	u8 uuid[16];
	__le64 generation;
	u8 reserved[8];
};

struct kvt_m_super {
	__le64 magic;
	__le32 crc;		/* of all 4096 bytes, this field zero */
	__le16 version;
	u8 reserved0[2];
	u8 pool[16];
	u8 member[16];
	__le64 generation;
	__le64 compat;
	__le64 ro_compat;
	__le64 incompat;
	__le64 device_bytes;
	__le64 first_byte;
	__le64 seg_bytes;
	__le32 unit_bytes;
	__le32 nr_segs;
	__le64 life_limit;
	__le64 seq_limit;
	__le64 ns_limit;
	__le64 created_ns;
	__le64 updated_ns;
	__le32 state;
	__le32 tier_type;
	__le32 rank;
	__le32 nr_members;
	u8 reserved1[24];
	u8 name[32];
	__le64 zone_bytes;	/* with KVT_INCOMPAT_ZONED, as the next one */
	__le64 zone_stride;
	u8 reserved2[16];
	struct kvt_m_member members[16];
	u8 reserved3[3328];
};

struct kvt_m_batch {
	__le64 magic;
	__le32 crc;		/* of all header units, this field zero */
	__le16 version;
	__le16 flags;
	u8 member[16];
	__le64 life;
	__le64 seq;		/* highest in it */
	__le32 seg;
	__le32 number;
	__le32 header_units;
	__le32 payload_units;
	__le32 nr_ns;
	__le32 nr_blocks;
	__le32 nr_kills;
	u8 reserved[52];
};

struct kvt_m_block {
	u8 key[32];
	u8 parent[32];
	__le64 ns;
	__le64 seq;
	__le64 expiry_s;
	__le32 bytes;
	__le32 stored;
	__le32 unit;
	__le32 sum;
	__le16 group;
	__le16 flags;
	__le16 part;
	__le16 nr_parts;
	u8 codec;
	u8 reserved0[3];
	__le32 crc;		/* of these 128 bytes, this field zero */
	u8 reserved1[8];
};

struct kvt_m_kill {
	__le32 seg;
	__le32 unit;
	__le64 life;
};

struct kvt_m_ns {
	__le64 id;
	__le64 seq;
	__le64 life_mark;
	__le64 quota_bytes;
	__le64 min_bytes;
	__le32 uid;
	__le32 gid;
	__le32 mode;
	__le32 flags;
	__le16 nr_groups;
	__le16 identity_len;
	__le32 crc;		/* of these 512 bytes, this field zero */
	__le32 group_bytes[16];
	u8 salt[16];
	u8 secret[32];
	u8 identity[256];
	__le64 life_first;
	u8 reserved[72];
};

struct kvt_m_footer {
	__le64 magic;
	__le32 crc;		/* of these 128 bytes, this field zero */
	__le16 version;
	__le16 flags;
	u8 member[16];
	__le64 life;
	__le64 min_seq;
	__le64 max_seq;
	__le32 seg;
	__le32 sum_unit;
	__le32 sum_bytes;
	__le32 sum_crc;		/* as scrambled */
	__le32 nr_ns;
	__le32 nr_blocks;
	__le32 nr_kills;
	__le32 nr_batches;
	__le32 fill;
	u8 reserved0[4];
	__le64 salt;
	u8 reserved1[24];
};

#define KVT_MEDIA_SIZE(type, bytes)	static_assert(sizeof(struct type) == (bytes))
#define KVT_MEDIA_AT(type, field, at)	static_assert(offsetof(struct type, field) == (at))

KVT_MEDIA_SIZE(kvt_m_member, 32);
KVT_MEDIA_AT(kvt_m_member, generation, 16);

KVT_MEDIA_SIZE(kvt_m_super, 4096);
KVT_MEDIA_AT(kvt_m_super, crc, 8);
KVT_MEDIA_AT(kvt_m_super, version, 12);
KVT_MEDIA_AT(kvt_m_super, pool, 16);
KVT_MEDIA_AT(kvt_m_super, member, 32);
KVT_MEDIA_AT(kvt_m_super, generation, 48);
KVT_MEDIA_AT(kvt_m_super, compat, 56);
KVT_MEDIA_AT(kvt_m_super, ro_compat, 64);
KVT_MEDIA_AT(kvt_m_super, incompat, 72);
KVT_MEDIA_AT(kvt_m_super, device_bytes, 80);
KVT_MEDIA_AT(kvt_m_super, first_byte, 88);
KVT_MEDIA_AT(kvt_m_super, seg_bytes, 96);
KVT_MEDIA_AT(kvt_m_super, unit_bytes, 104);
KVT_MEDIA_AT(kvt_m_super, nr_segs, 108);
KVT_MEDIA_AT(kvt_m_super, life_limit, 112);
KVT_MEDIA_AT(kvt_m_super, seq_limit, 120);
KVT_MEDIA_AT(kvt_m_super, ns_limit, 128);
KVT_MEDIA_AT(kvt_m_super, created_ns, 136);
KVT_MEDIA_AT(kvt_m_super, updated_ns, 144);
KVT_MEDIA_AT(kvt_m_super, state, 152);
KVT_MEDIA_AT(kvt_m_super, tier_type, 156);
KVT_MEDIA_AT(kvt_m_super, rank, 160);
KVT_MEDIA_AT(kvt_m_super, nr_members, 164);
KVT_MEDIA_AT(kvt_m_super, name, 192);
KVT_MEDIA_AT(kvt_m_super, zone_bytes, 224);
KVT_MEDIA_AT(kvt_m_super, zone_stride, 232);
KVT_MEDIA_AT(kvt_m_super, members, 256);

KVT_MEDIA_SIZE(kvt_m_batch, 128);
KVT_MEDIA_AT(kvt_m_batch, crc, 8);
KVT_MEDIA_AT(kvt_m_batch, version, 12);
KVT_MEDIA_AT(kvt_m_batch, flags, 14);
KVT_MEDIA_AT(kvt_m_batch, member, 16);
KVT_MEDIA_AT(kvt_m_batch, life, 32);
KVT_MEDIA_AT(kvt_m_batch, seq, 40);
KVT_MEDIA_AT(kvt_m_batch, seg, 48);
KVT_MEDIA_AT(kvt_m_batch, number, 52);
KVT_MEDIA_AT(kvt_m_batch, header_units, 56);
KVT_MEDIA_AT(kvt_m_batch, payload_units, 60);
KVT_MEDIA_AT(kvt_m_batch, nr_ns, 64);
KVT_MEDIA_AT(kvt_m_batch, nr_blocks, 68);
KVT_MEDIA_AT(kvt_m_batch, nr_kills, 72);

KVT_MEDIA_SIZE(kvt_m_block, 128);
KVT_MEDIA_AT(kvt_m_block, parent, 32);
KVT_MEDIA_AT(kvt_m_block, ns, 64);
KVT_MEDIA_AT(kvt_m_block, seq, 72);
KVT_MEDIA_AT(kvt_m_block, expiry_s, 80);
KVT_MEDIA_AT(kvt_m_block, bytes, 88);
KVT_MEDIA_AT(kvt_m_block, stored, 92);
KVT_MEDIA_AT(kvt_m_block, unit, 96);
KVT_MEDIA_AT(kvt_m_block, sum, 100);
KVT_MEDIA_AT(kvt_m_block, group, 104);
KVT_MEDIA_AT(kvt_m_block, flags, 106);
KVT_MEDIA_AT(kvt_m_block, part, 108);
KVT_MEDIA_AT(kvt_m_block, nr_parts, 110);
KVT_MEDIA_AT(kvt_m_block, codec, 112);
KVT_MEDIA_AT(kvt_m_block, crc, 116);

KVT_MEDIA_SIZE(kvt_m_kill, 16);
KVT_MEDIA_AT(kvt_m_kill, unit, 4);
KVT_MEDIA_AT(kvt_m_kill, life, 8);

KVT_MEDIA_SIZE(kvt_m_ns, 512);
KVT_MEDIA_AT(kvt_m_ns, seq, 8);
KVT_MEDIA_AT(kvt_m_ns, life_mark, 16);
KVT_MEDIA_AT(kvt_m_ns, life_first, 432);
KVT_MEDIA_AT(kvt_m_ns, quota_bytes, 24);
KVT_MEDIA_AT(kvt_m_ns, min_bytes, 32);
KVT_MEDIA_AT(kvt_m_ns, uid, 40);
KVT_MEDIA_AT(kvt_m_ns, gid, 44);
KVT_MEDIA_AT(kvt_m_ns, mode, 48);
KVT_MEDIA_AT(kvt_m_ns, flags, 52);
KVT_MEDIA_AT(kvt_m_ns, nr_groups, 56);
KVT_MEDIA_AT(kvt_m_ns, identity_len, 58);
KVT_MEDIA_AT(kvt_m_ns, crc, 60);
KVT_MEDIA_AT(kvt_m_ns, group_bytes, 64);
KVT_MEDIA_AT(kvt_m_ns, salt, 128);
KVT_MEDIA_AT(kvt_m_ns, secret, 144);
KVT_MEDIA_AT(kvt_m_ns, identity, 176);
KVT_MEDIA_AT(kvt_m_ns, reserved, 440);

KVT_MEDIA_SIZE(kvt_m_footer, 128);
KVT_MEDIA_AT(kvt_m_footer, crc, 8);
KVT_MEDIA_AT(kvt_m_footer, version, 12);
KVT_MEDIA_AT(kvt_m_footer, flags, 14);
KVT_MEDIA_AT(kvt_m_footer, member, 16);
KVT_MEDIA_AT(kvt_m_footer, life, 32);
KVT_MEDIA_AT(kvt_m_footer, min_seq, 40);
KVT_MEDIA_AT(kvt_m_footer, max_seq, 48);
KVT_MEDIA_AT(kvt_m_footer, seg, 56);
KVT_MEDIA_AT(kvt_m_footer, sum_unit, 60);
KVT_MEDIA_AT(kvt_m_footer, sum_bytes, 64);
KVT_MEDIA_AT(kvt_m_footer, sum_crc, 68);
KVT_MEDIA_AT(kvt_m_footer, nr_ns, 72);
KVT_MEDIA_AT(kvt_m_footer, nr_blocks, 76);
KVT_MEDIA_AT(kvt_m_footer, nr_kills, 80);
KVT_MEDIA_AT(kvt_m_footer, nr_batches, 84);
KVT_MEDIA_AT(kvt_m_footer, fill, 88);
KVT_MEDIA_AT(kvt_m_footer, salt, 96);

#endif /* KVT_MEDIA_H */
