// SPDX-License-Identifier: GPL-2.0
/*
 * Encoding and decoding; see kvt_format.h.
 *
 * Invariant: a checksum covers all bytes of its structure, reserved ones included,
 * its own field taken as zero. So there is one way to write each structure.
 */
#include "kvt_format.h"

/* Features that this version understands. */
#define KVT_FEATURES_RO_COMPAT	0ULL
#define KVT_FEATURES_INCOMPAT	KVT_INCOMPAT_ZONED

/**
 * kvt_crc() - CRC-32C with the usual initial value and final inversion
 * @data: bytes
 * @len:  how many
 */
u32 kvt_crc(const void *data, u32 len)
{
	return ~crc32c(~0u, data, len);
}

/* The same with the four bytes at @at taken as zeroes. */
static u32 kvt_crc_hole(const void *data, u32 len, u32 at)
{
	static const u8 zero[4];
	const u8 *p = data;
	u32 crc;

	crc = crc32c(~0u, p, at);
	crc = crc32c(crc, zero, sizeof(zero));
	return ~crc32c(crc, p + at + 4, len - at - 4);
}

static u64 kvt_mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/**
 * kvt_scramble() - combine bytes with a stream that no other write has
 * @data:   bytes, aligned to 8; the same function brings them back
 * @len:    how many, a multiple of 8
 * @life:   of the segment
 * @salt:   number of the batch, or the footer's salt
 * @offset: of @data in what is scrambled, a multiple of 8
 *
 * A torn write leaves some sectors new and some old. If the next write to the same
 * place has a sector in common with it, zeroes or kills that are told again, and is
 * torn as well, it may complete the first: what recovery has found not to be there
 * would be there the next time. Scrambled, no two writes have a sector in common.
 */
void kvt_scramble(void *data, u32 len, u64 life, u64 salt, u64 offset)
{
	u64 state = kvt_mix(kvt_mix(life + 0x9e3779b97f4a7c15ULL) ^ salt) +
		    offset / 8 * 0x9e3779b97f4a7c15ULL;
	__le64 *word = data;

	for (; len >= 8; len -= 8, word++) {
		state += 0x9e3779b97f4a7c15ULL;
		*word ^= cpu_to_le64(kvt_mix(state));
	}
}

static void kvt_batch_scramble(const struct kvt_geometry *g, void *header,
			       const struct kvt_batch_info *b)
{
	kvt_scramble((u8 *)header + sizeof(struct kvt_m_batch),
		     b->header_units * g->unit_bytes - sizeof(struct kvt_m_batch), b->life,
		     b->number, 0);
}

/**
 * kvt_payload_sum_start() - begin the checksum of a payload
 * @s: state
 *
 * The checksum is the CRC-32C of the list of little-endian CRC-32Cs of each 64 KiB
 * piece. Damage within one piece changes one word of the list at most: a burst of
 * 32 bits, which a CRC of 32 bits always notices, however long the payload is, if
 * the piece's own CRC does; and pieces can be computed on several processors.
 */
void kvt_payload_sum_start(struct kvt_payload_sum *s)
{
	s->list = ~0u;
	s->piece = ~0u;
	s->fill = 0;
}

static void kvt_payload_sum_piece(struct kvt_payload_sum *s)
{
	__le32 word = cpu_to_le32(~s->piece);

	s->list = crc32c(s->list, &word, sizeof(word));
	s->piece = ~0u;
	s->fill = 0;
}

/**
 * kvt_payload_sum_add() - the next bytes
 * @s:    state
 * @data: bytes
 * @len:  how many, any number
 */
void kvt_payload_sum_add(struct kvt_payload_sum *s, const void *data, u32 len)
{
	const u8 *p = data;
	u32 n;

	for (; len; len -= n, p += n) {
		n = min(len, KVT_SUM_BYTES - s->fill);
		s->piece = crc32c(s->piece, p, n);
		s->fill += n;
		if (s->fill == KVT_SUM_BYTES)
			kvt_payload_sum_piece(s);
	}
}

/**
 * kvt_payload_sum_end() - all bytes have been there
 * @s: state
 * Return: the checksum.
 */
u32 kvt_payload_sum_end(struct kvt_payload_sum *s)
{
	if (s->fill)
		kvt_payload_sum_piece(s);
	return ~s->list;
}

/**
 * kvt_rec_encode() - a block's record
 * @m: out
 * @r: in; all fields, @r->unit within the segment
 */
void kvt_rec_encode(struct kvt_m_block *m, const struct kvt_rec *r)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->key, r->key, sizeof(m->key));
	memcpy(m->parent, r->parent, sizeof(m->parent));
	m->ns = cpu_to_le64(r->ns);
	m->seq = cpu_to_le64(r->seq);
	m->expiry_s = cpu_to_le64(r->expiry_s);
	m->bytes = cpu_to_le32(r->bytes);
	m->stored = cpu_to_le32(r->stored);
	m->unit = cpu_to_le32(r->unit);
	m->sum = cpu_to_le32(r->sum);
	m->group = cpu_to_le16(r->group);
	m->nr_parts = cpu_to_le16(1);
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/**
 * kvt_rec_decode() - read a block's record
 * @m: in
 * @r: out; only if 0 is returned
 *
 * Whether the payload lies where it may is for whoever knows the batch.
 * Return: KVT_BAD_NONE, KVT_BAD_CRC, KVT_BAD_UNKNOWN or KVT_BAD_RANGE.
 */
enum kvt_bad kvt_rec_decode(const struct kvt_m_block *m, struct kvt_rec *r)
{
	if (le32_to_cpu(m->crc) != kvt_crc_hole(m, sizeof(*m), offsetof(struct kvt_m_block, crc)))
		return KVT_BAD_CRC;
	if (m->flags || m->codec || m->part || le16_to_cpu(m->nr_parts) != 1)
		return KVT_BAD_UNKNOWN;
	memcpy(r->key, m->key, sizeof(r->key));
	memcpy(r->parent, m->parent, sizeof(r->parent));
	r->ns = le64_to_cpu(m->ns);
	r->seq = le64_to_cpu(m->seq);
	r->expiry_s = le64_to_cpu(m->expiry_s);
	r->bytes = le32_to_cpu(m->bytes);
	r->stored = le32_to_cpu(m->stored);
	r->unit = le32_to_cpu(m->unit);
	r->sum = le32_to_cpu(m->sum);
	r->group = le16_to_cpu(m->group);
	if (!r->bytes || r->bytes > r->stored || r->stored > KVT_STORED_BYTES_MAX ||
	    r->stored % KVT_UNIT_BYTES_MIN || r->seq >= KVT_LIFE_MAX ||
	    r->group >= KVT_NS_GROUPS || kvt_key_equal(r->key, r->parent))
		return KVT_BAD_RANGE;
	return KVT_BAD_NONE;
}

/**
 * kvt_rec_unit() - where a record that was not decoded says that its payload is
 * @m: record
 * Return: anything at all: to be told, not to be relied on.
 */
u32 kvt_rec_unit(const struct kvt_m_block *m)
{
	return le32_to_cpu(m->unit);
}

void kvt_kill_encode(struct kvt_m_kill *m, const struct kvt_kill *k)
{
	m->seg = cpu_to_le32(k->seg);
	m->unit = cpu_to_le32(k->unit);
	m->life = cpu_to_le64(k->life);
}

void kvt_kill_decode(const struct kvt_m_kill *m, struct kvt_kill *k)
{
	k->seg = le32_to_cpu(m->seg);
	k->unit = le32_to_cpu(m->unit);
	k->life = le64_to_cpu(m->life);
}

/**
 * kvt_nsdef_encode() - a namespace's record
 * @m: out
 * @d: in
 */
void kvt_nsdef_encode(struct kvt_m_ns *m, const struct kvt_nsdef *d)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	m->id = cpu_to_le64(d->id);
	m->seq = cpu_to_le64(d->seq);
	m->life_mark = cpu_to_le64(d->life_mark);
	m->life_first = cpu_to_le64(d->life_first);
	m->quota_bytes = cpu_to_le64(d->quota_bytes);
	m->min_bytes = cpu_to_le64(d->min_bytes);
	m->uid = cpu_to_le32(d->uid);
	m->gid = cpu_to_le32(d->gid);
	m->mode = cpu_to_le32(d->mode);
	m->flags = cpu_to_le32(d->flags);
	m->nr_groups = cpu_to_le16((u16)d->nr_groups);
	m->identity_len = cpu_to_le16((u16)d->identity_len);
	for (i = 0; i < d->nr_groups; i++)
		m->group_bytes[i] = cpu_to_le32(d->group_bytes[i]);
	memcpy(m->salt, d->salt, sizeof(m->salt));
	memcpy(m->secret, d->secret, sizeof(m->secret));
	memcpy(m->identity, d->identity, d->identity_len);
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/**
 * kvt_nsdef_decode() - read a namespace's record
 * @m: in
 * @d: out; only if 0 is returned
 * Return: KVT_BAD_NONE, KVT_BAD_CRC, KVT_BAD_UNKNOWN or KVT_BAD_RANGE.
 */
enum kvt_bad kvt_nsdef_decode(const struct kvt_m_ns *m, struct kvt_nsdef *d)
{
	u32 i;

	if (le32_to_cpu(m->crc) != kvt_crc_hole(m, sizeof(*m), offsetof(struct kvt_m_ns, crc)))
		return KVT_BAD_CRC;
	memset(d, 0, sizeof(*d));
	d->flags = le32_to_cpu(m->flags);
	if (d->flags & ~KVT_NSF_ALL)
		return KVT_BAD_UNKNOWN;
	d->id = le64_to_cpu(m->id);
	d->seq = le64_to_cpu(m->seq);
	d->life_mark = le64_to_cpu(m->life_mark);
	d->life_first = le64_to_cpu(m->life_first);
	d->quota_bytes = le64_to_cpu(m->quota_bytes);
	d->min_bytes = le64_to_cpu(m->min_bytes);
	d->uid = le32_to_cpu(m->uid);
	d->gid = le32_to_cpu(m->gid);
	d->mode = le32_to_cpu(m->mode);
	d->nr_groups = le16_to_cpu(m->nr_groups);
	d->identity_len = le16_to_cpu(m->identity_len);
	if (d->nr_groups > KVT_NS_GROUPS || d->identity_len > KVT_NS_IDENTITY ||
	    d->seq >= KVT_LIFE_MAX || !d->id)
		return KVT_BAD_RANGE;
	for (i = 0; i < d->nr_groups; i++) {
		d->group_bytes[i] = le32_to_cpu(m->group_bytes[i]);
		if (!d->group_bytes[i] || d->group_bytes[i] > KVT_STORED_BYTES_MAX)
			return KVT_BAD_RANGE;
	}
	memcpy(d->salt, m->salt, sizeof(d->salt));
	memcpy(d->secret, m->secret, sizeof(d->secret));
	memcpy(d->identity, m->identity, d->identity_len);
	return KVT_BAD_NONE;
}

/**
 * kvt_batch_encode() - finish the header of a batch
 * @g:      member
 * @header: @b->header_units units: the entries are in place behind the first 128
 *          bytes, and what is behind the entries is zero
 * @b:      what to say
 */
void kvt_batch_encode(const struct kvt_geometry *g, void *header,
		      const struct kvt_batch_info *b)
{
	struct kvt_m_batch *m = header;

	memset(m, 0, sizeof(*m));
	m->magic = cpu_to_le64(KVT_MAGIC_BATCH);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	memcpy(m->member, g->member, sizeof(m->member));
	m->life = cpu_to_le64(b->life);
	m->seq = cpu_to_le64(b->seq);
	m->seg = cpu_to_le32(b->seg);
	m->number = cpu_to_le32(b->number);
	m->header_units = cpu_to_le32(b->header_units);
	m->payload_units = cpu_to_le32(b->payload_units);
	m->nr_ns = cpu_to_le32(b->nr_ns);
	m->nr_blocks = cpu_to_le32(b->nr_blocks);
	m->nr_kills = cpu_to_le32(b->nr_kills);
	kvt_batch_scramble(g, header, b);
	m->crc = cpu_to_le32(kvt_crc(header, b->header_units * g->unit_bytes));
}

/**
 * kvt_batch_decode() - read the first 128 bytes of a batch
 * @g:      member
 * @seg:    where it was read
 * @unit:   likewise, within the segment
 * @header: what was read, at least 128 bytes
 * @b:      out; bounded, but nothing is verified before kvt_batch_verify()
 * Return: whether it can be a batch of this place.
 */
bool kvt_batch_decode(const struct kvt_geometry *g, u32 seg, u32 unit, const void *header,
		      struct kvt_batch_info *b)
{
	const struct kvt_m_batch *m = header;
	u32 room = g->seg_units - 1 - unit;

	if (le64_to_cpu(m->magic) != KVT_MAGIC_BATCH ||
	    le16_to_cpu(m->version) != KVT_MEDIA_VERSION || m->flags ||
	    memcmp(m->member, g->member, sizeof(m->member)))
		return false;
	b->unit = unit;
	b->life = le64_to_cpu(m->life);
	b->seq = le64_to_cpu(m->seq);
	b->seg = le32_to_cpu(m->seg);
	b->number = le32_to_cpu(m->number);
	b->header_units = le32_to_cpu(m->header_units);
	b->payload_units = le32_to_cpu(m->payload_units);
	b->nr_ns = le32_to_cpu(m->nr_ns);
	b->nr_blocks = le32_to_cpu(m->nr_blocks);
	b->nr_kills = le32_to_cpu(m->nr_kills);
	if (b->seg != seg || !b->life || b->life >= KVT_LIFE_MAX || b->seq >= KVT_LIFE_MAX)
		return false;
	if (!b->header_units || b->header_units > room ||
	    b->header_units > KVT_HEADER_BYTES_MAX / g->unit_bytes ||
	    b->payload_units > room - b->header_units)
		return false;
	return sizeof(*m) + kvt_entries_bytes(b->nr_ns, b->nr_blocks, b->nr_kills) <=
	       (u64)b->header_units * g->unit_bytes;
}

/**
 * kvt_batch_verify() - check all of a header, and make it readable
 * @g:      member
 * @header: all its units; if they verify, its entries are in the clear afterwards
 * @b:      from kvt_batch_decode()
 */
bool kvt_batch_verify(const struct kvt_geometry *g, void *header,
		      const struct kvt_batch_info *b)
{
	const struct kvt_m_batch *m = header;

	if (le32_to_cpu(m->crc) != kvt_crc_hole(header, b->header_units * g->unit_bytes,
						offsetof(struct kvt_m_batch, crc)))
		return false;
	kvt_batch_scramble(g, header, b);
	return true;
}

/**
 * kvt_footer_encode() - the footer of a segment
 * @g: member
 * @m: out
 * @f: in
 */
void kvt_footer_encode(const struct kvt_geometry *g, struct kvt_m_footer *m,
		       const struct kvt_footer_info *f)
{
	memset(m, 0, sizeof(*m));
	m->magic = cpu_to_le64(KVT_MAGIC_FOOTER);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	memcpy(m->member, g->member, sizeof(m->member));
	m->life = cpu_to_le64(f->life);
	m->min_seq = cpu_to_le64(f->min_seq);
	m->max_seq = cpu_to_le64(f->max_seq);
	m->seg = cpu_to_le32(f->seg);
	m->sum_unit = cpu_to_le32(f->sum_unit);
	m->sum_bytes = cpu_to_le32(f->sum_bytes);
	m->sum_crc = cpu_to_le32(f->sum_crc);
	m->nr_ns = cpu_to_le32(f->nr_ns);
	m->nr_blocks = cpu_to_le32(f->nr_blocks);
	m->nr_kills = cpu_to_le32(f->nr_kills);
	m->nr_batches = cpu_to_le32(f->nr_batches);
	m->fill = cpu_to_le32(f->fill);
	m->salt = cpu_to_le64(f->salt);
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/**
 * kvt_footer_decode() - read a segment's footer
 * @g:   member
 * @seg: where it was read
 * @m:   what was read
 * @f:   out
 * Return: whether it is valid; the summary has a checksum of its own.
 */
bool kvt_footer_decode(const struct kvt_geometry *g, u32 seg, const struct kvt_m_footer *m,
		       struct kvt_footer_info *f)
{
	if (le64_to_cpu(m->magic) != KVT_MAGIC_FOOTER ||
	    le16_to_cpu(m->version) != KVT_MEDIA_VERSION || m->flags ||
	    memcmp(m->member, g->member, sizeof(m->member)) ||
	    le32_to_cpu(m->crc) != kvt_crc_hole(m, sizeof(*m), offsetof(struct kvt_m_footer, crc)))
		return false;
	f->life = le64_to_cpu(m->life);
	f->min_seq = le64_to_cpu(m->min_seq);
	f->max_seq = le64_to_cpu(m->max_seq);
	f->seg = le32_to_cpu(m->seg);
	f->sum_unit = le32_to_cpu(m->sum_unit);
	f->sum_bytes = le32_to_cpu(m->sum_bytes);
	f->sum_crc = le32_to_cpu(m->sum_crc);
	f->nr_ns = le32_to_cpu(m->nr_ns);
	f->nr_blocks = le32_to_cpu(m->nr_blocks);
	f->nr_kills = le32_to_cpu(m->nr_kills);
	f->nr_batches = le32_to_cpu(m->nr_batches);
	f->fill = le32_to_cpu(m->fill);
	f->salt = le64_to_cpu(m->salt);
	if (f->seg != seg || !f->life || f->life >= KVT_LIFE_MAX || f->max_seq >= KVT_LIFE_MAX)
		return false;
	if (f->sum_bytes != kvt_entries_bytes(f->nr_ns, f->nr_blocks, f->nr_kills))
		return false;
	return f->fill <= f->sum_unit && f->sum_unit < g->seg_units &&
	       g->seg_units - 1 - f->sum_unit == kvt_geo_units(g, f->sum_bytes);
}

/**
 * kvt_super_encode() - a superblock
 * @block: out, KVT_SUPER_BYTES
 * @s:     in
 */
void kvt_super_encode(void *block, const struct kvt_super *s)
{
	struct kvt_m_super *m = block;
	u32 i;

	memset(m, 0, sizeof(*m));
	m->magic = cpu_to_le64(KVT_MAGIC_SUPER);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	memcpy(m->pool, s->pool, sizeof(m->pool));
	memcpy(m->member, s->geo.member, sizeof(m->member));
	m->generation = cpu_to_le64(s->generation);
	m->compat = cpu_to_le64(s->compat);
	m->ro_compat = cpu_to_le64(s->ro_compat);
	m->incompat = cpu_to_le64(s->incompat | (s->geo.zone_bytes ? KVT_INCOMPAT_ZONED : 0));
	m->zone_bytes = cpu_to_le64(s->geo.zone_bytes);
	m->zone_stride = cpu_to_le64(s->geo.zone_bytes ? s->geo.zone_stride : 0);
	m->device_bytes = cpu_to_le64(s->device_bytes);
	m->first_byte = cpu_to_le64(s->geo.first_byte);
	m->seg_bytes = cpu_to_le64(s->geo.seg_bytes);
	m->unit_bytes = cpu_to_le32(s->geo.unit_bytes);
	m->nr_segs = cpu_to_le32(s->geo.nr_segs);
	m->life_limit = cpu_to_le64(s->life_limit);
	m->seq_limit = cpu_to_le64(s->seq_limit);
	m->ns_limit = cpu_to_le64(s->ns_limit);
	m->created_ns = cpu_to_le64(s->created_ns);
	m->updated_ns = cpu_to_le64(s->updated_ns);
	m->state = cpu_to_le32(s->state);
	m->tier_type = cpu_to_le32(s->tier_type);
	m->rank = cpu_to_le32(s->rank);
	m->nr_members = cpu_to_le32(s->nr_members);
	memcpy(m->name, s->name, sizeof(m->name));
	for (i = 0; i < s->nr_members; i++) {
		memcpy(m->members[i].uuid, s->members[i].uuid, sizeof(m->members[i].uuid));
		m->members[i].generation = cpu_to_le64(s->members[i].generation);
	}
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

static void kvt_super_unpack(struct kvt_super *s, const struct kvt_m_super *m)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	memcpy(s->pool, m->pool, sizeof(s->pool));
	memcpy(s->geo.member, m->member, sizeof(s->geo.member));
	s->generation = le64_to_cpu(m->generation);
	s->compat = le64_to_cpu(m->compat);
	s->ro_compat = le64_to_cpu(m->ro_compat);
	s->incompat = le64_to_cpu(m->incompat);
	s->device_bytes = le64_to_cpu(m->device_bytes);
	s->geo.first_byte = le64_to_cpu(m->first_byte);
	s->geo.seg_bytes = le64_to_cpu(m->seg_bytes);
	s->geo.unit_bytes = le32_to_cpu(m->unit_bytes);
	s->geo.nr_segs = le32_to_cpu(m->nr_segs);
	if (s->incompat & KVT_INCOMPAT_ZONED) {
		s->geo.zone_bytes = le64_to_cpu(m->zone_bytes);
		s->geo.zone_stride = le64_to_cpu(m->zone_stride);
	}
	s->life_limit = le64_to_cpu(m->life_limit);
	s->seq_limit = le64_to_cpu(m->seq_limit);
	s->ns_limit = le64_to_cpu(m->ns_limit);
	s->created_ns = le64_to_cpu(m->created_ns);
	s->updated_ns = le64_to_cpu(m->updated_ns);
	s->state = le32_to_cpu(m->state);
	s->tier_type = le32_to_cpu(m->tier_type);
	s->rank = le32_to_cpu(m->rank);
	s->nr_members = min(le32_to_cpu(m->nr_members), KVT_MEMBERS_MAX);
	memcpy(s->name, m->name, sizeof(s->name));
	s->name[sizeof(s->name) - 1] = 0;
	for (i = 0; i < s->nr_members; i++) {
		memcpy(s->members[i].uuid, m->members[i].uuid, sizeof(s->members[i].uuid));
		s->members[i].generation = le64_to_cpu(m->members[i].generation);
	}
}

/**
 * kvt_super_verifies() - is this a superblock, of whatever version
 * @block: KVT_SUPER_BYTES
 */
bool kvt_super_verifies(const void *block)
{
	const struct kvt_m_super *m = block;

	return le64_to_cpu(m->magic) == KVT_MAGIC_SUPER &&
	       le32_to_cpu(m->crc) == kvt_crc_hole(m, sizeof(*m), offsetof(struct kvt_m_super, crc));
}

/**
 * kvt_super_pick_start() - nothing has been looked at yet
 * @p: state; stays at -EMEDIUMTYPE as long as nothing of ours is seen
 */
void kvt_super_pick_start(struct kvt_super_pick *p)
{
	memset(p, 0, sizeof(*p));
	p->err = -EMEDIUMTYPE;
}

/* Of two copies of one the one that is in its place counts. */
static bool kvt_super_newer(const struct kvt_super_pick *p, u32 slot, const struct kvt_m_super *m)
{
	u64 generation = le64_to_cpu(m->generation);

	return generation > p->super.generation ||
	       (generation == p->super.generation && slot == generation % KVT_SUPER_SLOTS);
}

/**
 * kvt_super_pick_add() - look at one place where a superblock may be
 * @p:     state
 * @slot:  number of the place, remembered for the caller
 * @block: KVT_SUPER_BYTES read there
 *
 * For the pair as for a log of superblocks: any number of places, in any order.
 * @p->err in the end: 0; -EMEDIUMTYPE: nothing of ours at all; -EUCLEAN: ours, and
 * none verifies; -EPROTONOSUPPORT: the newest is of another version, or needs
 * features that this reader does not have.
 */
void kvt_super_pick_add(struct kvt_super_pick *p, u32 slot, const void *block)
{
	const struct kvt_m_super *m = block;

	if (le64_to_cpu(m->magic) != KVT_MAGIC_SUPER)
		return;
	if (!kvt_super_verifies(block)) {
		p->nr_torn++;
		if (p->err == -EMEDIUMTYPE)
			p->err = -EUCLEAN;
		return;
	}
	if ((!p->err || p->err == -EPROTONOSUPPORT) && !kvt_super_newer(p, slot, m))
		return;
	kvt_super_unpack(&p->super, m);
	p->slot = slot;
	p->err = 0;
	if (le16_to_cpu(m->version) != KVT_MEDIA_VERSION ||
	    (p->super.incompat & ~KVT_FEATURES_INCOMPAT))
		p->err = -EPROTONOSUPPORT;
}

/* Whole zones make up segments, and the two or more in front of them. */
static bool kvt_super_zones_fit(const struct kvt_super *s)
{
	const struct kvt_geometry *g = &s->geo;
	u64 rest;

	if (!(s->incompat & KVT_INCOMPAT_ZONED))
		return true;
	if (g->zone_bytes < KVT_ZONE_BYTES_MIN || g->zone_bytes > KVT_ZONE_BYTES_MAX ||
	    g->zone_bytes & (g->unit_bytes - 1) || g->zone_stride < g->zone_bytes ||
	    g->zone_stride > KVT_ZONE_BYTES_MAX || g->first_byte < 2 * g->zone_bytes)
		return false;
	div64_u64_rem(g->seg_bytes, g->zone_bytes, &rest);
	if (rest)
		return false;
	div64_u64_rem(g->first_byte, g->zone_bytes, &rest);
	return !rest;
}

/* Every size is bounded first, so that no product below overflows. */
static bool kvt_super_fits(const struct kvt_geometry *g, u64 device_bytes)
{
	u64 units;

	if (g->unit_bytes < KVT_UNIT_BYTES_MIN || g->unit_bytes > KVT_UNIT_BYTES_MAX ||
	    !is_power_of_2(g->unit_bytes))
		return false;
	if (!g->seg_bytes || g->seg_bytes & (g->unit_bytes - 1))
		return false;
	units = g->seg_bytes >> ilog2(g->unit_bytes);
	if (units < 4 || units > (1u << 30) || !g->nr_segs || g->nr_segs > KVT_SEGS_MAX ||
	    units * g->nr_segs > 1ULL << 31)
		return false;
	if (g->first_byte < KVT_HEAD_BYTES_MIN || g->first_byte & (KVT_UNIT_BYTES_MIN - 1) ||
	    g->first_byte > device_bytes)
		return false;
	return g->seg_bytes * g->nr_segs <= device_bytes - g->first_byte;
}

/**
 * kvt_super_known() - a member's generation as others may have heard of it
 * @s: superblock
 *
 * Who corrects one without the pool raises its own generation, for the pair's sake, and leaves the
 * one in its table of members: else an old copy of a member would, corrected often enough, be as
 * new as the others say that it is.
 */
u64 kvt_super_known(const struct kvt_super *s)
{
	u64 known = s->generation;
	u32 i;

	for (i = 0; i < s->nr_members; i++) {
		if (!memcmp(s->members[i].uuid, s->geo.member, KVT_UUID_BYTES))
			known = min(known, s->members[i].generation);
	}
	return known;
}

/**
 * kvt_super_check() - can this member be used here
 * @s:            picked superblock; on success @s->geo.seg_units is filled in
 * @device_bytes: length of the device it was read from
 * @write:        it is to be written
 * Return: 0; -ERANGE: the layout is impossible or does not fit the device;
 * -EROFS: it needs features to be written that this version does not have.
 */
int kvt_super_check(struct kvt_super *s, u64 device_bytes, bool write)
{
	if (!kvt_super_fits(&s->geo, device_bytes) || !kvt_super_zones_fit(s))
		return -ERANGE;
	if (s->life_limit >= KVT_LIMIT_MAX || s->seq_limit >= KVT_LIMIT_MAX ||
	    s->generation >= KVT_LIMIT_MAX ||
	    (s->state != KVT_STATE_CLEAN && s->state != KVT_STATE_DIRTY))
		return -ERANGE;
	if (write && (s->ro_compat & ~KVT_FEATURES_RO_COMPAT))
		return -EROFS;
	s->geo.seg_units = (u32)(s->geo.seg_bytes >> ilog2(s->geo.unit_bytes));
	return 0;
}
