// SPDX-License-Identifier: GPL-2.0
/*
 * Laying out the member to be recovered; see recover_media.h for what is on it.
 */
#include "recover_media.h"

#define NS_ENTRIES_MAX	(MEDIA_NS + 1)
#define KILLS_MAX	(2 * MEDIA_OLD + MEDIA_DROPPED)
#define SUM_BYTES_MAX	(NS_ENTRIES_MAX * 512 + MEDIA_RECS * 128 + KILLS_MAX * 16)
#define SUM_UNITS_MAX	((SUM_BYTES_MAX + MEDIA_UNIT - 1) / MEDIA_UNIT)
#define TAIL_UNITS	(SUM_UNITS_MAX + 1)
#define FILL		(1 + MEDIA_RECS * MEDIA_BLOCK_UNITS)

#define FIRST_LIFE	5000u	/* lives below are over */
#define FIRST_SEQ	((1ull << 32) - 300000)
#define ENDED_SEQ	(1ull << 40)
#define SEG_SEQS	1024u
#define HOLE_GROUP	1u	/* whose chain lacks a block, in each segment */
#define HOLE_INDEX	8u
#define HOLE_POS	(HOLE_GROUP * MEDIA_CHAIN + MEDIA_CHAIN - 1 - HOLE_INDEX)
#define RING_EACH	100u	/* segments */
#define FORK_FIRST	3u	/* group: from there on each second goes on from the one before */
#define FORK_INDEX	7u
#define NS_SEQ		100u

const struct kvt_geometry media_geo = {
	.member = "one to be timed",
	.first_byte = KVT_HEAD_BYTES_MIN,
	.seg_bytes = (u64)MEDIA_SEG_UNITS * MEDIA_UNIT,
	.unit_bytes = MEDIA_UNIT,
	.seg_units = MEDIA_SEG_UNITS,
	.nr_segs = MEDIA_SEGS_ALL,
};

/* First unit, summary and footer of a segment: all that is read. */
struct image {
	u8 first[MEDIA_UNIT];
	u8 tail[TAIL_UNITS * MEDIA_UNIT];
};

struct media {
	struct image segs[MEDIA_SEGS_ALL];
};

static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Keys look as an engine's hashes do. */
void media_key(struct media_block b, u8 *key)
{
	u64 nr = (u64)b.chain * MEDIA_CHAIN + b.index;
	u32 i;

	for (i = 0; i < KVT_KEY_BYTES / 8; i++) {
		u64 word = mix(nr * 4 + i + 1);

		memcpy(key + 8 * i, &word, sizeof(word));
	}
}

/* How many segments the blocks of a chain are apart. */
static u32 stride(u32 group)
{
	return 1 + group * 37 % (MEDIA_SEGS - 1);
}

/* How many strides a block is from where its chain ends. */
static u32 strides(u32 group, u32 index)
{
	if (group < MEDIA_WHOLE)
		return 0;
	if (group < MEDIA_WHOLE + MEDIA_SPLIT)
		return index < MEDIA_CHAIN / 2;
	return MEDIA_CHAIN - 1 - index;
}

/* The block of a place with a chain's. */
struct media_block media_block_at(u32 seg, u32 pos)
{
	u32 group = pos / MEDIA_CHAIN, index = MEDIA_CHAIN - 1 - pos % MEDIA_CHAIN;
	u32 home = (seg + strides(group, index) * stride(group)) % MEDIA_SEGS;

	return (struct media_block) { .chain = home * MEDIA_GROUPS + group, .index = index };
}

u32 media_seg_of(struct media_block b)
{
	u32 group = b.chain % MEDIA_GROUPS, home = b.chain / MEDIA_GROUPS;
	u32 away = strides(group, b.index) * stride(group) % MEDIA_SEGS;

	return (home + MEDIA_SEGS - away) % MEDIA_SEGS;
}

bool media_dropped(struct media_block b)
{
	return b.chain % MEDIA_GROUPS == HOLE_GROUP && b.index == HOLE_INDEX;
}

/* Says its first block that it follows the last one. */
bool media_ring(u32 chain)
{
	return !(chain % MEDIA_GROUPS) && !(chain / MEDIA_GROUPS % RING_EACH);
}

/* The block that it says it follows, if any. */
bool media_up(struct media_block b, struct media_block *up)
{
	u32 group = b.chain % MEDIA_GROUPS;

	*up = b;
	if (b.index)
		up->index = b.index - 1;
	else if (media_ring(b.chain))
		up->index = MEDIA_CHAIN - 1;
	else if (group >= FORK_FIRST && group % 2)
		*up = (struct media_block) { b.chain - 1, FORK_INDEX };
	else
		return false;
	return true;
}

/* Segments were not opened in the order in which they lie. */
static u64 seq_of(u32 seg, u32 pos)
{
	return FIRST_SEQ + seg * 389 % MEDIA_SEGS * SEG_SEQS + pos;
}

static void rec_chained(u32 seg, u32 pos, struct kvt_rec *r)
{
	struct media_block b = media_block_at(seg, pos), up;

	r->ns = 1 + b.chain / 2 % MEDIA_NS;
	r->seq = seq_of(seg, pos);
	media_key(b, r->key);
	if (media_up(b, &up))
		media_key(up, r->parent);
}

/*
 * A record that a cleaner has carried since: of that name, but older. One is of a block
 * that has lost its parent.
 */
static void rec_old(u32 seg, u32 nr, struct kvt_rec *r)
{
	u32 of = (seg + MEDIA_SEGS / 2) % MEDIA_SEGS, pos = nr == 1 ? HOLE_POS - 1 : nr * 97;
	struct media_block b = media_block_at(of, pos);

	rec_chained(of, pos, r);
	r->seq = 1 + seg * MEDIA_OLD + nr;
	memset(r->parent, 0, sizeof(r->parent));
	if (b.index >= 2)
		media_key((struct media_block) { b.chain, b.index - 2 }, r->parent);
}

static void rec_rest(u32 seg, u32 nr, struct kvt_rec *r)
{
	struct media_block b = { .chain = ~0u - seg, .index = nr };

	if (nr < MEDIA_OLD) {
		rec_old(seg, nr, r);
		return;
	}
	r->ns = nr < MEDIA_OLD + MEDIA_ORPHANS ? MEDIA_NS_GONE : 1 + nr % MEDIA_NS;
	r->seq = seq_of(seg, MEDIA_CHAINED + nr);
	media_key(b, r->key);
	b.index--;
	media_key(b, r->parent);
}

/* The record at a place of a segment that counts. */
void media_rec(u32 seg, u32 pos, struct kvt_rec *r)
{
	*r = (struct kvt_rec) {
		.bytes = MEDIA_BLOCK_BYTES,
		.stored = MEDIA_BLOCK_BYTES,
		.unit = media_unit(pos),
		.sum = seg ^ pos << 16,
	};
	if (pos < MEDIA_CHAINED)
		rec_chained(seg, pos, r);
	else
		rec_rest(seg, pos - MEDIA_CHAINED, r);
}

/* What is to be written as a summary: entries so far, and behind them the next. */
struct summary {
	struct kvt_footer_info f;
	u8 *at;
	u8 buf[SUM_BYTES_MAX];
};

static void put_ns(struct summary *s, u64 id, u64 seq, u32 flags, u32 block_bytes)
{
	struct kvt_nsdef d = {
		.id = id, .seq = seq, .mode = 0600, .flags = flags, .nr_groups = 1,
		.identity_len = 8, .group_bytes = { block_bytes }, .identity = "a model",
	};

	kvt_nsdef_encode((struct kvt_m_ns *)s->at, &d);
	s->at += sizeof(struct kvt_m_ns);
	s->f.nr_ns++;
}

/* Each segment defines those that it has blocks of. Not all definitions are the newest. */
static void put_namespaces(struct summary *s, u32 seg)
{
	u32 i;

	for (i = 1; i <= MEDIA_NS; i++)
		put_ns(s, i, NS_SEQ, 0, MEDIA_BLOCK_BYTES);
	if (seg == 5)
		put_ns(s, 3, NS_SEQ - 1, 0, MEDIA_UNIT);
	if (seg == 7)
		put_ns(s, MEDIA_NS_GONE, NS_SEQ + 1, KVT_NSF_GONE, MEDIA_BLOCK_BYTES);
	if (seg == 8)
		put_ns(s, MEDIA_NS_GONE, NS_SEQ, 0, MEDIA_BLOCK_BYTES);
}

static void put_block(struct summary *s, const struct kvt_rec *r)
{
	kvt_rec_encode((struct kvt_m_block *)s->at, r);
	s->at += sizeof(struct kvt_m_block);
	s->f.nr_blocks++;
	s->f.max_seq = max(s->f.max_seq, r->seq);
}

static void put_kill(struct summary *s, u32 seg, u32 unit, u64 life)
{
	struct kvt_kill k = { .seg = seg, .unit = unit, .life = life };

	kvt_kill_encode((struct kvt_m_kill *)s->at, &k);
	s->at += sizeof(struct kvt_m_kill);
	s->f.nr_kills++;
}

static void put_kills(struct summary *s, u32 seg)
{
	u32 of = (seg + MEDIA_SEGS / 2) % MEDIA_SEGS, i;

	put_kill(s, of, media_unit(HOLE_POS), FIRST_LIFE + of);
	for (i = 0; i < MEDIA_OLD; i += 2)
		put_kill(s, of, media_unit(MEDIA_CHAINED + i), FIRST_LIFE + of);
	for (i = MEDIA_OLD + MEDIA_ORPHANS; i < MEDIA_REST; i++)
		put_kill(s, of, media_unit(MEDIA_CHAINED + i), FIRST_LIFE + of);
	for (i = 0; i < MEDIA_OLD; i++)
		put_kill(s, of, media_unit(100 + i), 1 + of);
	if (seg < MEDIA_ENDED)
		put_kill(s, MEDIA_SEGS + seg, KVT_KILL_ALL, FIRST_LIFE + MEDIA_SEGS + seg);
}

static void put_ended(struct summary *s, u32 seg)
{
	struct kvt_rec r;
	u32 pos;

	for (pos = 0; pos < MEDIA_RECS; pos++) {
		media_rec(seg - MEDIA_SEGS, pos, &r);
		r.seq += ENDED_SEQ;
		put_block(s, &r);
	}
}

static void put_segment(struct summary *s, u32 seg)
{
	struct kvt_rec r;
	u32 pos;

	put_namespaces(s, seg);
	for (pos = 0; pos < MEDIA_RECS; pos++) {
		media_rec(seg, pos, &r);
		put_block(s, &r);
	}
	put_kills(s, seg);
}

static void make_segment(struct image *im, u32 seg, struct summary *s)
{
	struct kvt_batch_info b = { .life = FIRST_LIFE + seg, .seg = seg, .header_units = 1 };
	u32 bytes, units;

	s->f = (struct kvt_footer_info) {
		.life = b.life, .seg = seg, .nr_batches = 8, .fill = FILL, .salt = seg + 1,
	};
	s->at = s->buf;
	if (seg < MEDIA_SEGS)
		put_segment(s, seg);
	else
		put_ended(s, seg);
	bytes = (u32)(s->at - s->buf);
	units = kvt_geo_units(&media_geo, bytes);
	kvt_scramble(s->buf, bytes, s->f.life, s->f.salt, 0);
	s->f.sum_unit = MEDIA_SEG_UNITS - 1 - units;
	s->f.sum_bytes = bytes;
	s->f.sum_crc = kvt_crc(s->buf, bytes);
	memcpy(im->tail + (TAIL_UNITS - 1 - units) * MEDIA_UNIT, s->buf, bytes);
	kvt_footer_encode(&media_geo,
			  (struct kvt_m_footer *)(im->tail + (TAIL_UNITS - 1) * MEDIA_UNIT), &s->f);
	/* Of an ended one the next life's first batch may be half written. */
	if (seg < MEDIA_SEGS || seg % 2)
		kvt_batch_encode(&media_geo, im->first, &b);
}

struct media *media_new(void)
{
	struct media *m = calloc(1, sizeof(*m));
	struct summary *s = malloc(sizeof(*s));
	u32 i;

	if (!m || !s)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	for (i = 0; i < MEDIA_SEGS + MEDIA_ENDED; i++)
		make_segment(&m->segs[i], i, s);
	free(s);
	return m;
}

int media_read(const struct media *m, u64 byte, void *buf, u32 len)
{
	u64 at = byte - media_geo.first_byte, in = at % media_geo.seg_bytes;
	const struct image *im = &m->segs[at / media_geo.seg_bytes];

	if (in + len <= MEDIA_UNIT)
		memcpy(buf, im->first + in, len);
	else if (in >= media_geo.seg_bytes - sizeof(im->tail))
		memcpy(buf, im->tail + (in - (media_geo.seg_bytes - sizeof(im->tail))), len);
	else
		return -EIO;
	return 0;
}

static void sum_one(struct media_sum *s, u32 seg, struct media_block b)
{
	struct media_block up;

	if (media_seg_of(b) != seg)
		kvt_env_die(__FILE__, __LINE__, "a block is not where it is said to be");
	if (media_dropped(b))
		return;
	s->blocks++;
	if (!media_up(b, &up) || media_dropped(up))
		return;
	/* The one link that a ring has more is cut. */
	if (!b.index && media_ring(b.chain)) {
		s->cycles++;
		return;
	}
	s->links++;
	s->away += media_seg_of(up) != seg;
	s->later += media_seg_of(up) > seg;
}

struct media_sum media_sum(void)
{
	struct media_sum s = {
		.dead = MEDIA_SEGS * (1 + MEDIA_OLD / 2 + MEDIA_DROPPED),
		.superseded = MEDIA_SEGS * (MEDIA_OLD / 2),
		.orphans = MEDIA_SEGS * MEDIA_ORPHANS,
	};
	u32 seg, pos;

	for (seg = 0; seg < MEDIA_SEGS; seg++) {
		for (pos = 0; pos < MEDIA_CHAINED; pos++)
			sum_one(&s, seg, media_block_at(seg, pos));
	}
	return s;
}
