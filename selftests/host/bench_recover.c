// SPDX-License-Identifier: GPL-2.0
/*
 * How fast a member's summaries become an index: bench_recover OUT.json
 *
 * A million blocks of 64 KiB in segments of 64 MiB, all sealed, one in a hundred dead
 * by a kill and one in a hundred there twice. Segments are recovered one after the
 * other by one thread, into the core's own table and index, as the driver does it:
 * entries first, then kills, then names, where the newest wins. The media is memory,
 * so this is what the processor has to do; time is the processor's as well, so that
 * others on the machine matter little.
 *
 * What it takes beyond the index is one scratch buffer and the kills. The sequence
 * that decides between equal names is kept in fields of the entry that are not used
 * yet.
 */
#include "kvt_env.h"
#include "kvt_recover.h"
#include "kvt_log.h"
#include <inttypes.h>
#include <time.h>

#define NR_SEGS		1000u
#define SEG_BLOCKS	1000u
#define BLOCKS		(NR_SEGS * SEG_BLOCKS)
#define UNIT		4096u
#define SEG_UNITS	16384u
#define BLOCK_UNITS	16u
#define SUM_BYTES	(SEG_BLOCKS * 128 + SEG_KILLS * 16)
#define SEG_KILLS	(SEG_BLOCKS / 100)
#define SUM_UNITS	((SUM_BYTES + UNIT - 1) / UNIT)
#define CHUNKS		(BLOCKS / KVT_CHUNK_BLOCKS + 2)
#define BUF_BYTES	(1u << 20)
#define AIM_PER_S	1000000.0

static const struct kvt_geometry geo = {
	.member = "one to be timed",
	.first_byte = KVT_HEAD_BYTES_MIN,
	.seg_bytes = (u64)SEG_UNITS * UNIT,
	.unit_bytes = UNIT,
	.seg_units = SEG_UNITS,
	.nr_segs = NR_SEGS,
};

/* First unit, summary and footer of a segment: all that is read. */
struct image {
	u8 first[UNIT];
	u8 tail[(SUM_UNITS + 1) * UNIT];
};

struct store {
	struct image *image;
	struct kvt_table table;
	struct kvt_index index;
	struct kvt_seg segs[NR_SEGS];
	u64 life[NR_SEGS];
	struct kvt_kill *kills;
	u32 nr_kills;
	u32 nr_alive;
};

static void *alloc(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!p)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	memset(p, 0, bytes);
	return p;
}

static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Every hundredth block has the name of the one before it. */
static void name_of(u32 n, u8 *key)
{
	u64 word[4];
	u32 i;

	for (i = 0; i < 4; i++)
		word[i] = mix((n - (n % 100 == 99)) * 4ull + i + 1);
	memcpy(key, word, sizeof(word));
}

static void make_segment(struct image *im, u32 seg)
{
	struct kvt_batch_info b = { .life = seg + 1, .seg = seg, .header_units = 1 };
	struct kvt_footer_info f = {
		.life = seg + 1, .seg = seg, .sum_unit = SEG_UNITS - 1 - SUM_UNITS,
		.sum_bytes = SUM_BYTES, .nr_blocks = SEG_BLOCKS, .nr_kills = SEG_KILLS,
		.nr_batches = 8, .fill = SEG_UNITS - 1 - SUM_UNITS,
	};
	u8 *at = im->tail;
	u32 i;

	for (i = 0; i < SEG_BLOCKS; i++, at += sizeof(struct kvt_m_block)) {
		struct kvt_rec r = {
			.ns = 1, .bytes = 65536, .stored = 65536, .unit = 1 + i * BLOCK_UNITS,
			.seq = seg * SEG_BLOCKS + i,
		};

		name_of(seg * SEG_BLOCKS + i, r.key);
		kvt_rec_encode((struct kvt_m_block *)at, &r);
	}
	for (i = 0; i < SEG_KILLS; i++, at += sizeof(struct kvt_m_kill)) {
		struct kvt_kill k = {
			.seg = (seg + 1) % NR_SEGS, .unit = 1 + i * 100 * BLOCK_UNITS,
			.life = (seg + 1) % NR_SEGS + 1,
		};

		kvt_kill_encode((struct kvt_m_kill *)at, &k);
	}
	kvt_scramble(im->tail, SUM_BYTES, f.life, f.salt, 0);
	f.sum_crc = kvt_crc(im->tail, SUM_BYTES);
	kvt_batch_encode(&geo, im->first, &b);
	kvt_footer_encode(&geo, (struct kvt_m_footer *)(im->tail + SUM_UNITS * UNIT), &f);
}

static int read_image(void *ctx, u64 byte, void *buf, u32 len)
{
	struct store *st = ctx;
	u64 at = byte - geo.first_byte, in = at % geo.seg_bytes;
	const struct image *im = &st->image[at / geo.seg_bytes];

	if (in + len <= UNIT)
		memcpy(buf, im->first + in, len);
	else if (in >= geo.seg_bytes - sizeof(im->tail))
		memcpy(buf, im->tail + (in - (geo.seg_bytes - sizeof(im->tail))), len);
	else
		return -EIO;
	return 0;
}

static u64 seq_of(const struct kvt_cold *c)
{
	return (u64)c->owner << 32 | c->touch_ms;
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct store *st = ctx;
	u32 id = kvt_table_alloc(&st->table);
	struct kvt_hot *h = kvt_hot(&st->table, id);
	struct kvt_cold *c = kvt_cold(&st->table, id);
	struct kvt_seg *s = &st->segs[seg];

	st->life[seg] = life;
	memcpy(h->key, r->key, sizeof(h->key));
	h->ns_group = kvt_ns_group((u32)r->ns, r->group);
	h->hash = kvt_ix_hash(&st->index, h->ns_group, h->key);
	h->log_unit = seg * SEG_UNITS + r->unit;
	c->csum = r->sum;
	c->owner = (u32)(r->seq >> 32);
	c->touch_ms = (u32)r->seq;
	atomic_set(&h->ctl, KVT_READY | KVT_CTL_LOG);
	s->ids[s->nr_ids++] = id;
}

static void on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct store *st = ctx;

	(void)seg;
	st->kills[st->nr_kills++] = *k;
}

static const struct kvt_recover_sink sink = {
	.block = on_block,
	.kill = on_kill,
};

/* Ids of a segment are in the order of their units. */
static void apply_kill(struct store *st, const struct kvt_kill *k)
{
	const struct kvt_seg *s = &st->segs[k->seg];
	u32 low = 0, high = s->nr_ids, mid, want = k->seg * SEG_UNITS + k->unit;

	if (st->life[k->seg] != k->life)
		return;
	while (low < high) {
		mid = (low + high) / 2;
		if (kvt_hot(&st->table, s->ids[mid])->log_unit < want)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->nr_ids && kvt_hot(&st->table, s->ids[low])->log_unit == want)
		atomic_set(&kvt_hot(&st->table, s->ids[low])->ctl, KVT_DEAD);
}

static void insert(struct store *st, u32 id)
{
	struct kvt_hot *h = kvt_hot(&st->table, id);
	struct kvt_shard *sh = kvt_ix_shard(&st->index, h->hash);
	u32 other, nr;

	if (kvt_ctl_state(kvt_ctl(h)) != KVT_READY)
		return;
	spin_lock(&sh->lock);
	other = kvt_ix_find(&st->index, sh, h->hash, h->ns_group, h->key);
	if (other && seq_of(kvt_cold(&st->table, other)) > seq_of(kvt_cold(&st->table, id))) {
		atomic_set(&h->ctl, KVT_DEAD);
		spin_unlock(&sh->lock);
		return;
	}
	if (other) {
		kvt_ix_remove(&st->index, sh, other);
		atomic_set(&kvt_hot(&st->table, other)->ctl, KVT_DEAD);
		st->nr_alive--;
	}
	kvt_ix_insert(&st->index, sh, id);
	st->nr_alive++;
	if (kvt_ix_crowded(sh)) {
		nr = 2 * (sh->mask + 1);
		free(kvt_ix_resize(&st->index, sh, alloc(nr * sizeof(u32)), nr));
	}
	spin_unlock(&sh->lock);
}

static struct store *store_new(void)
{
	struct store *st = alloc(sizeof(*st));
	struct kvt_hash_seed seed;
	u32 i;

	memset(&seed, 0x17, sizeof(seed));
	st->image = alloc(NR_SEGS * sizeof(*st->image));
	for (i = 0; i < NR_SEGS; i++)
		make_segment(&st->image[i], i);
	kvt_table_init(&st->table, alloc(CHUNKS * sizeof(void *)), alloc(CHUNKS * sizeof(void *)),
		       CHUNKS);
	kvt_ix_init(&st->index, &st->table, &seed);
	for (i = 0; i < KVT_SHARDS; i++)
		kvt_ix_shard_init(&st->index.shards[i], alloc(64), 16);
	return st;
}

/* All of it, memory for the index included. */
static void recover(struct store *st)
{
	struct kvt_recover r = {
		.geo = &geo,
		.read = read_image,
		.sink = &sink,
		.ctx = st,
		.buf = alloc(BUF_BYTES),
		.buf_bytes = BUF_BYTES,
	};
	struct kvt_seg_found f;
	u32 i, k;

	for (i = 0; i < CHUNKS; i++)
		kvt_table_add_chunk(&st->table,
				    alloc(KVT_CHUNK_BLOCKS * sizeof(struct kvt_hot)),
				    alloc(KVT_CHUNK_BLOCKS * sizeof(struct kvt_cold)));
	st->kills = alloc(NR_SEGS * SEG_KILLS * sizeof(*st->kills));
	for (i = 0; i < NR_SEGS; i++) {
		st->segs[i].ids = alloc(SEG_BLOCKS * sizeof(u32));
		kvt_recover_segment(&r, i, &f);
		if (f.state != KVT_RC_SEALED || f.nr_blocks != SEG_BLOCKS)
			kvt_env_die(__FILE__, __LINE__, "segment not recovered");
	}
	for (i = 0; i < st->nr_kills; i++)
		apply_kill(st, &st->kills[i]);
	for (i = 0; i < NR_SEGS; i++) {
		for (k = 0; k < st->segs[i].nr_ids; k++)
			insert(st, st->segs[i].ids[k]);
	}
	free(r.buf);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct store *st = store_new();
	double extra, rate, t;
	FILE *f;

	if (argc != 2) {
		fprintf(stderr, "usage: %s OUT.json\n", argv[0]);
		return 2;
	}
	t = now_s();
	recover(st);
	rate = BLOCKS / (now_s() - t);
	if (st->nr_alive != BLOCKS - 2 * (BLOCKS / 100))
		kvt_env_die(__FILE__, __LINE__, "other blocks than there are");
	extra = BUF_BYTES + (double)st->nr_kills * sizeof(struct kvt_kill);
	f = fopen(argv[1], "w");
	if (!f) {
		perror(argv[1]);
		return 1;
	}
	fprintf(f, "{ \"blocks\": %u, \"recovered_per_s\": %.0f, \"extra_bytes\": %.0f, "
		"\"extra_bytes_per_block\": %.2f }\n", BLOCKS, rate, extra, extra / BLOCKS);
	fclose(f);
	printf("# recovery: %.0f blocks/s, %.2f bytes a block beyond the index\n", rate,
	       extra / BLOCKS);
	printf("%sok bench/recovery_rate\n", rate >= AIM_PER_S ? "" : "not ");
	return rate < AIM_PER_S;
}
