/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The boundary between media and memory: encoding and decoding of what
 * kvt_media.h defines.
 *
 * Whatever is decoded is hostile: each function checks the checksum first, then
 * that every count, length and address stays inside the structure, the segment and
 * the device. What a function has accepted can be used without further checks.
 * Nothing here allocates, waits or keeps state; no locks.
 */
#ifndef KVT_FORMAT_H
#define KVT_FORMAT_H

#include "kvt_index.h"
#include "kvt_media.h"

#define KVT_LIFE_MAX		(1ULL << 62)	/* lives and sequences stay below */
/* What a superblock says of them, and its generation: there is room for what comes then. */
#define KVT_LIMIT_MAX		(KVT_LIFE_MAX / 2)
#define KVT_SEGS_MAX		(1u << 22)	/* of a member: bounds memory and loops */
#define KVT_NS_GROUPS		16u
#define KVT_NS_IDENTITY		256u
#define KVT_NS_SECRET		32u
#define KVT_NS_SALT		16u

/**
 * struct kvt_geometry - where things are on one member
 * @member:     uuid; structures of another member are not ours
 * @first_byte: of segment 0
 * @seg_bytes:  length of a segment, @seg_units * @unit_bytes
 * @unit_bytes: power of two
 * @seg_units:  all units of a segment, summary and footer included
 * @nr_segs:    segments
 * @zone_bytes: what can be written to a zone of the device; 0: it is not zoned. All
 *              addresses are as if zones followed each other without gaps
 * @zone_stride: from one zone to the next on the device itself: kvt_zone_phys()
 */
struct kvt_geometry {
	u8 member[KVT_UUID_BYTES];
	u64 first_byte;
	u64 seg_bytes;
	u32 unit_bytes;
	u32 seg_units;
	u32 nr_segs;
	u64 zone_bytes;
	u64 zone_stride;
};

static inline u64 kvt_geo_byte(const struct kvt_geometry *g, u32 seg, u32 unit)
{
	return g->first_byte + seg * g->seg_bytes + (u64)unit * g->unit_bytes;
}

/* Units that @bytes take; no overflow for what fits a segment. */
static inline u32 kvt_geo_units(const struct kvt_geometry *g, u64 bytes)
{
	return (u32)((bytes + g->unit_bytes - 1) >> ilog2(g->unit_bytes));
}

/**
 * struct kvt_payload_sum - checksum of a payload, computed as its bytes come
 * @list:  crc of the pieces' checksums so far
 * @piece: crc of the piece under way
 * @fill:  bytes of it
 */
struct kvt_payload_sum {
	u32 list;
	u32 piece;
	u32 fill;
};

void kvt_payload_sum_start(struct kvt_payload_sum *s);
void kvt_payload_sum_add(struct kvt_payload_sum *s, const void *data, u32 len);
u32 kvt_payload_sum_end(struct kvt_payload_sum *s);

/**
 * struct kvt_rec - a block as recorded
 * @key:      name, with @ns and @group
 * @parent:   key of the block before it in its chain; zeroes: none
 * @ns:       namespace
 * @seq:      of two records with one name the higher is the valid one
 * @expiry_s: realtime seconds after which it is not to be found, 0: never
 * @bytes:    exact length
 * @stored:   length on the media, a multiple of 4096: the slot
 * @unit:     first unit, within the segment
 * @sum:      kvt_payload_sum of the stored bytes
 * @group:    block class in the namespace
 */
struct kvt_rec {
	u8 key[KVT_KEY_BYTES];
	u8 parent[KVT_KEY_BYTES];
	u64 ns;
	u64 seq;
	u64 expiry_s;
	u32 bytes;
	u32 stored;
	u32 unit;
	u32 sum;
	u16 group;
};

/**
 * struct kvt_kill - a record is dead
 * @seg:  segment it lies in
 * @unit: its first unit there, or KVT_KILL_ALL: every record of that life
 * @life: of the segment when it was written; of any other life this says nothing
 */
struct kvt_kill {
	u32 seg;
	u32 unit;
	u64 life;
};

/**
 * struct kvt_nsdef - a namespace as recorded
 * @id:        never reused
 * @seq:       the highest is the valid one
 * @life_mark: %KVT_NSF_GONE: no older definition is in a segment of a later life
 * @life_first: %KVT_NSF_GONE: nor of an earlier one than this, 0: not known
 * @flags:     KVT_NSF_*
 * @group_bytes: exact block size of each group
 * @salt:      opaque; with @secret: what tells whoever knows the secret
 */
struct kvt_nsdef {
	u64 id;
	u64 seq;
	u64 life_mark;
	u64 life_first;
	u64 quota_bytes;
	u64 min_bytes;
	u32 uid;
	u32 gid;
	u32 mode;
	u32 flags;
	u32 nr_groups;
	u32 identity_len;
	u32 group_bytes[KVT_NS_GROUPS];
	u8 salt[KVT_NS_SALT];
	u8 secret[KVT_NS_SECRET];
	u8 identity[KVT_NS_IDENTITY];
};

/* Header of a batch; @unit is where it starts in its segment. */
struct kvt_batch_info {
	u64 life;
	u64 seq;
	u32 seg;
	u32 unit;
	u32 number;
	u32 header_units;
	u32 payload_units;
	u32 nr_ns;
	u32 nr_blocks;
	u32 nr_kills;
};

/* Footer; @salt: of the scrambled summary, unique on the member. */
struct kvt_footer_info {
	u64 life;
	u64 min_seq;
	u64 max_seq;
	u32 seg;
	u32 sum_unit;
	u32 sum_bytes;
	u32 sum_crc;
	u32 nr_ns;
	u32 nr_blocks;
	u32 nr_kills;
	u32 nr_batches;
	u32 fill;
	u64 salt;
};

/*
 * A member of the pool, or one of the past: it has left, and has a superblock that does not
 * say so. No member has that generation, so that one is stale for whoever knows nothing
 * of this.
 */
#define KVT_GENERATION_PAST	U64_MAX

struct kvt_member {
	u8 uuid[KVT_UUID_BYTES];
	u64 generation;
};

static inline bool kvt_member_past(const struct kvt_member *m)
{
	return m->generation == KVT_GENERATION_PAST;
}

/**
 * struct kvt_super - a superblock
 * @pool:       uuid of the pool
 * @generation: the higher one is the newer
 * @compat:     features that old readers may ignore
 * @ro_compat:  ... with which they must not write
 * @incompat:   ... with which they must not read; the one of zones follows from @geo
 * @geo:        layout; @geo.member is the member's uuid
 * @device_bytes: length of the device when it was made
 * @life_limit: no segment was ever opened with this life or a higher one
 * @seq_limit:  no sequence of this or higher was ever given
 * @ns_limit:   nor a namespace id
 * @created_ns: realtime
 * @updated_ns: realtime
 * @state:      KVT_STATE_CLEAN: all that was written is in sealed segments
 * @tier_type:  the tier's, as its rank and name
 * @members:    of the pool, this one included, with their generations as known here
 */
struct kvt_super {
	u8 pool[KVT_UUID_BYTES];
	u64 generation;
	u64 compat;
	u64 ro_compat;
	u64 incompat;
	struct kvt_geometry geo;
	u64 device_bytes;
	u64 life_limit;
	u64 seq_limit;
	u64 ns_limit;
	u64 created_ns;
	u64 updated_ns;
	u32 state;
	u32 tier_type;
	u32 rank;
	u32 nr_members;
	u8 name[32];
	struct kvt_member members[KVT_MEMBERS_MAX];
};

/**
 * struct kvt_super_pick - the newest valid superblock of those looked at
 * @super: it, if @err is 0
 * @err:   0, or what is wrong with the best of them
 * @slot:  which
 * @nr_torn: superblocks of ours that did not verify
 */
struct kvt_super_pick {
	struct kvt_super super;
	int err;
	u32 slot;
	u32 nr_torn;
};

/* Why a record is not used. */
enum kvt_bad {
	KVT_BAD_NONE = 0,
	KVT_BAD_CRC,		/* record does not verify */
	KVT_BAD_UNKNOWN,	/* flags, codec or parts of a later version */
	KVT_BAD_RANGE,		/* outside of its batch or segment, overlapping, lengths */
	KVT_BAD_PAYLOAD,	/* bytes do not verify */
	KVT_BAD_IO,		/* bytes cannot be read */
	KVT_BAD_SUMMARY,	/* a summary that its footer vouches for does not verify */
	KVT_BAD_NR,
};

u32 kvt_crc(const void *data, u32 len);
void kvt_scramble(void *data, u32 len, u64 life, u64 salt, u64 offset);

void kvt_rec_encode(struct kvt_m_block *m, const struct kvt_rec *r);
enum kvt_bad kvt_rec_decode(const struct kvt_m_block *m, struct kvt_rec *r);
u32 kvt_rec_unit(const struct kvt_m_block *m);
void kvt_kill_encode(struct kvt_m_kill *m, const struct kvt_kill *k);
void kvt_kill_decode(const struct kvt_m_kill *m, struct kvt_kill *k);
void kvt_nsdef_encode(struct kvt_m_ns *m, const struct kvt_nsdef *d);
enum kvt_bad kvt_nsdef_decode(const struct kvt_m_ns *m, struct kvt_nsdef *d);

void kvt_batch_encode(const struct kvt_geometry *g, void *header,
		      const struct kvt_batch_info *b);
bool kvt_batch_decode(const struct kvt_geometry *g, u32 seg, u32 unit, const void *header,
		      struct kvt_batch_info *b);
bool kvt_batch_verify(const struct kvt_geometry *g, void *header,
		      const struct kvt_batch_info *b);

void kvt_footer_encode(const struct kvt_geometry *g, struct kvt_m_footer *m,
		       const struct kvt_footer_info *f);
bool kvt_footer_decode(const struct kvt_geometry *g, u32 seg, const struct kvt_m_footer *m,
		       struct kvt_footer_info *f);

void kvt_super_encode(void *block, const struct kvt_super *s);
bool kvt_super_verifies(const void *block);
void kvt_super_pick_start(struct kvt_super_pick *p);
void kvt_super_pick_add(struct kvt_super_pick *p, u32 slot, const void *block);
u64 kvt_super_known(const struct kvt_super *s);
int kvt_super_check(struct kvt_super *s, u64 device_bytes, bool write);

/* Bytes of a batch header or a summary with so many entries. */
static inline u64 kvt_entries_bytes(u32 nr_ns, u32 nr_blocks, u32 nr_kills)
{
	return (u64)nr_ns * sizeof(struct kvt_m_ns) + (u64)nr_blocks * sizeof(struct kvt_m_block) +
	       (u64)nr_kills * sizeof(struct kvt_m_kill);
}

#endif /* KVT_FORMAT_H */
