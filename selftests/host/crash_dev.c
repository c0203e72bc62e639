// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated device. See crash.h.
 *
 * Writes are seen at once and safe after a flush that was started when they were
 * complete. At a crash each held write is kept, dropped or torn, by 512 bytes or
 * from some point on, independently of all others and in any order of time; of two
 * that overlap the later one wins, as a device guarantees once the first is
 * complete. A discard is a write of zeroes that may be left out.
 */
#include "crash.h"

#define SECTOR	512u

u32 cr_random(struct cr_rng *r, u32 n)
{
	u64 z = (r->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (u32)(((z ^ (z >> 31)) >> 32) % n);
}

void cr_dev_init(struct cr_dev *d, u64 bytes, struct cr_rng *rng)
{
	memset(d, 0, sizeof(*d));
	d->bytes = bytes;
	d->seen = calloc(1, bytes);
	d->safe = calloc(1, bytes);
	d->tail = &d->held;
	d->rng = rng;
	if (!d->seen || !d->safe)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
}

static void drop_held(struct cr_dev *d)
{
	struct cr_held *h;

	while (d->held) {
		h = d->held;
		d->held = h->next;
		free(h);
	}
	d->tail = &d->held;
}

void cr_dev_fini(struct cr_dev *d)
{
	drop_held(d);
	free(d->seen);
	free(d->safe);
}

/* Something has happened: perhaps that was the last thing. */
void cr_dev_event(struct cr_dev *d)
{
	if (d->left && !--d->left)
		longjmp(*d->crash, 1);
}

u32 cr_dev_group(struct cr_dev *d)
{
	return ++d->next_group;
}

struct cr_held *cr_dev_hold(struct cr_dev *d, u32 group, u64 byte, const void *data,
			    u32 len)
{
	struct cr_held *h = malloc(sizeof(*h) + len);

	if (!h)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	CR_ASSERT(byte + len <= d->bytes && byte % SECTOR == 0 && len % SECTOR == 0);
	h->next = NULL;
	h->byte = byte;
	h->len = len;
	h->group = group;
	h->complete = false;
	h->reset = false;
	h->flush = 0;
	if (data)
		memcpy(h->data, data, len);
	else
		memset(h->data, 0, len);
	memcpy(d->seen + byte, h->data, len);
	*d->tail = h;
	d->tail = &h->next;
	return h;
}

/*
 * @fail: some of it arrives, and the caller will be told that it did not. A zoned device
 * has errors of its own.
 */
int cr_dev_write(struct cr_dev *d, u32 group, u64 byte, const void *data, u32 len, bool fail)
{
	u32 at;

	cr_dev_event(d);
	if (d->zone)
		return cr_zone_write(d, group, byte, data, len, fail);
	if (!fail) {
		cr_dev_hold(d, group, byte, data, len);
		return 0;
	}
	for (at = 0; at < len; at += SECTOR) {
		if (cr_random(d->rng, 2))
			cr_dev_hold(d, group, byte + at, (const u8 *)data + at, SECTOR);
	}
	return -EIO;
}

void cr_dev_discard(struct cr_dev *d, u64 byte, u32 len)
{
	u32 group = cr_dev_group(d);

	cr_dev_event(d);
	if (cr_random(d->rng, 2)) {
		cr_dev_hold(d, group, byte, NULL, len);
		cr_dev_complete(d, group);
	}
}

static u64 zone_of(const struct cr_dev *d, const struct cr_held *h)
{
	return h->byte / d->zone;
}

/* A zone has no write before those that came before it. */
static void complete_before(struct cr_dev *d, const struct cr_held *last)
{
	struct cr_held *h;

	for (h = d->held; d->zone && h != last; h = h->next)
		h->complete |= zone_of(d, h) == zone_of(d, last);
}

void cr_dev_complete(struct cr_dev *d, u32 group)
{
	struct cr_held *h;

	for (h = d->held; h; h = h->next) {
		if (h->group != group)
			continue;
		h->complete = true;
		complete_before(d, h);
	}
	cr_dev_event(d);
}

/* The first @len bytes of a held write are safe now; a reset is so as a whole. */
void cr_dev_apply(struct cr_dev *d, const struct cr_held *h, u32 len)
{
	memcpy(d->safe + h->byte, h->data, len);
	if (d->zone)
		d->safe_wp[zone_of(d, h)] = h->reset ? 0 : h->byte % d->zone + len;
}

u64 cr_dev_flush_start(struct cr_dev *d)
{
	struct cr_held *h;

	d->flushes++;
	for (h = d->held; h; h = h->next) {
		if (h->complete && !h->flush)
			h->flush = d->flushes;
	}
	cr_dev_event(d);
	return d->flushes;
}

void cr_dev_flush_end(struct cr_dev *d, u64 flush)
{
	struct cr_held **at = &d->held, *h;

	while (*at) {
		h = *at;
		if (!h->flush || h->flush > flush) {
			at = &h->next;
			continue;
		}
		cr_dev_apply(d, h, h->len);
		*at = h->next;
		free(h);
	}
	d->tail = at;
	cr_dev_event(d);
}

/* What is left of a write: by sectors, or from the start, or up to the end. */
static void tear(struct cr_dev *d, const struct cr_held *h)
{
	u32 nr = h->len / SECTOR, cut = cr_random(d->rng, nr + 1), how = cr_random(d->rng, 4);
	u32 i;
	bool keep;

	for (i = 0; i < nr; i++) {
		keep = how == 0 ? i < cut : how == 1 ? i >= cut : cr_random(d->rng, 2);
		if (keep)
			memcpy(d->safe + h->byte + i * SECTOR, h->data + i * SECTOR, SECTOR);
	}
}

/*
 * The host stops, and mostly the device loses power: what is held is lost or not.
 * Else its cache stays as it is, and loses its contents some other time.
 * Return: whether power was lost.
 */
bool cr_dev_crash(struct cr_dev *d)
{
	u32 mood = cr_random(d->rng, 4), what;
	struct cr_held *h;

	d->left = 0;
	memset(d->hurt, 0, sizeof(d->hurt));
	if (cr_random(d->rng, 6) == 0) {
		for (h = d->held; h; h = h->next)
			h->complete = true;
		return false;
	}
	if (d->zone)
		cr_zone_crash(d, mood);
	for (h = d->held; h && !d->zone; h = h->next) {
		/* Mostly mixed, but also nearly nothing or nearly everything lost. */
		what = cr_random(d->rng, mood == 0 ? 20 : 3);
		if (mood == 1 ? what != 0 : what == 1)
			memcpy(d->safe + h->byte, h->data, h->len);
		else if (what == 2)
			tear(d, h);
	}
	for (h = d->held; h; h = h->next)
		memcpy(d->seen + h->byte, d->safe + h->byte, h->len);
	memcpy(d->wp, d->safe_wp, sizeof(d->wp));
	drop_held(d);
	return true;
}

int cr_dev_read(struct cr_dev *d, u64 byte, void *buf, u32 len)
{
	CR_ASSERT(byte + len <= d->bytes);
	memcpy(buf, d->seen + byte, len);
	return 0;
}
