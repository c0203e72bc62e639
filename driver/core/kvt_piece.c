// SPDX-License-Identifier: GPL-2.0
/*
 * The map of a memory tier; see kvt_piece.h for the model.
 *
 * Invariants: a split's words are not all the same, for as many pieces as its stretch has;
 * the two words of a stretch differ, unless it has no first pieces; nr_splits counts the
 * splits of stretches and the spare ones. The last stretch may be short: its words are those of
 * the pieces there are.
 */
#include "kvt_piece.h"

#define AT(piece)	((piece) & (KVT_STRETCH_PIECES - 1))
#define KVT_NEXT_STRETCHES	16u	/* that kvt_pieces_next_used() looks at */

/* A stretch holds two words, how many pieces have the first, and a bit. */
static_assert(2 * KVT_WORD_BITS + KVT_STRETCH_SHIFT + 1 <= 64);
static_assert(KVT_PIECE_NR < KVT_PIECE_UNKNOWN);

static u64 stretch_of_word(u32 word)
{
	return kvt_stretch_of(word, 0, word);
}

static u32 stretch_len(const struct kvt_pieces *p, u32 s)
{
	return min(KVT_STRETCH_PIECES, p->nr - (s << KVT_STRETCH_SHIFT));
}

/**
 * kvt_pieces_init() - start with one word for all
 * @p:    map
 * @map:  KVT_PIECES_WORDS(@nr) of them; stays the caller's
 * @nr:   pieces
 * @word: KVT_PIECE_CLEAN or KVT_PIECE_UNKNOWN
 */
void kvt_pieces_init(struct kvt_pieces *p, u64 *map, u32 nr, u32 word)
{
	u32 i, nr_stretches = KVT_STRETCHES(nr);

	memset(p, 0, sizeof(*p));
	p->stretch = map;
	p->bits = (struct kvt_bits *)(map + nr_stretches);
	p->nr = nr;
	for (i = 0; i < nr_stretches; i++)
		p->stretch[i] = stretch_of_word(word);
	memset(p->bits, 0, nr_stretches * sizeof(*p->bits));
}

static void split_spare(struct kvt_pieces *p, union kvt_split *split)
{
	split->next = p->spare;
	p->spare = split;
	WRITE_ONCE(p->nr_spare, p->nr_spare + 1);
}

static union kvt_split *split_take(struct kvt_pieces *p)
{
	union kvt_split *split = p->spare;

	p->spare = split->next;
	WRITE_ONCE(p->nr_spare, p->nr_spare - 1);
	return split;
}

/**
 * kvt_pieces_add() - have one more spare split
 * @p:     map
 * @split: the map's from here on success, until kvt_pieces_surplus() or kvt_pieces_end()
 * Return: false if there are enough, so it stays the caller's.
 */
bool kvt_pieces_add(struct kvt_pieces *p, union kvt_split *split)
{
	if (!kvt_pieces_low(p))
		return false;
	p->nr_splits++;
	split_spare(p, split);
	return true;
}

/**
 * kvt_pieces_surplus() - take a split that is not needed
 * @p: map
 * Return: the caller's from here, or NULL: what is spare is to stay.
 */
union kvt_split *kvt_pieces_surplus(struct kvt_pieces *p)
{
	if (p->nr_spare <= KVT_SPLITS_SPARE)
		return NULL;
	p->nr_splits--;
	return split_take(p);
}

/**
 * kvt_pieces_end() - take any split, since the map is not used any more
 * @p:  map
 * @at: the caller's, 0 the first time
 * Return: the caller's from here; NULL: that was the last.
 */
union kvt_split *kvt_pieces_end(struct kvt_pieces *p, u32 *at)
{
	for (; !p->spare && *at < KVT_STRETCHES(p->nr); ++*at) {
		if (kvt_stretch_split(p->stretch[*at]))
			split_spare(p, kvt_stretch_split(p->stretch[*at]));
	}
	if (!p->spare)
		return NULL;
	p->nr_splits--;
	return split_take(p);
}

static bool split_is_one(const union kvt_split *split, u32 len)
{
	u32 i;

	for (i = 1; i < len && split->word[i] == split->word[0]; i++)
		;
	return i == len;
}

/* All of a stretch has one word now. */
static void stretch_join(struct kvt_pieces *p, u32 s, u32 word)
{
	union kvt_split *split = kvt_stretch_split(p->stretch[s]);

	WRITE_ONCE(p->stretch[s], stretch_of_word(word));
	if (split)
		split_spare(p, split);
}

static void split_set(struct kvt_pieces *p, u32 s, u32 at, u32 nr, u32 word)
{
	union kvt_split *split = kvt_stretch_split(p->stretch[s]);
	u32 i;

	for (i = at; i < at + nr; i++)
		split->word[i] = word;
	if (split_is_one(split, stretch_len(p, s)))
		stretch_join(p, s, word);
}

/* How often the word changes on the way; *@first: how many pieces there are before that. */
static u32 words_turns(const u32 *word, u32 *first)
{
	u32 i, nr = 0;

	*first = 0;
	for (i = 1; i < KVT_STRETCH_PIECES; i++) {
		if (word[i] != word[i - 1]) {
			*first = i;
			nr++;
		}
	}
	return nr;
}

static void stretch_split(struct kvt_pieces *p, u32 s, const u32 *word)
{
	union kvt_split *split = split_take(p);

	memcpy(split->word, word, sizeof(split->word));
	/* Who reads without the lock finds the same words there. */
	smp_store_release(&p->stretch[s], (u64)(uintptr_t)split);
}

/* The words of a stretch once some of its pieces have another; behind the last one, the last's. */
static void stretch_words(const struct kvt_pieces *p, u32 s, u32 at, u32 nr, u32 word, u32 *words)
{
	u32 len = stretch_len(p, s), i;

	for (i = 0; i < KVT_STRETCH_PIECES; i++) {
		if (i >= len)
			words[i] = words[len - 1];
		else if (i >= at && i < at + nr)
			words[i] = word;
		else
			words[i] = kvt_piece_word(p, (s << KVT_STRETCH_SHIFT) + i);
	}
}

static void stretch_set(struct kvt_pieces *p, u32 s, u32 at, u32 nr, u32 word)
{
	u32 words[KVT_STRETCH_PIECES], first;

	if (nr == stretch_len(p, s)) {
		stretch_join(p, s, word);
		return;
	}
	if (kvt_stretch_split(p->stretch[s])) {
		split_set(p, s, at, nr, word);
		return;
	}
	stretch_words(p, s, at, nr, word, words);
	if (words_turns(words, &first) > 1)
		stretch_split(p, s, words);
	else
		WRITE_ONCE(p->stretch[s],
			   kvt_stretch_of(words[0], first, words[KVT_STRETCH_PIECES - 1]));
}

/* Those of a stretch from @at on. */
static u16 bits_of(u32 at, u32 nr)
{
	return ((1u << nr) - 1) << at;
}

/* Free pieces that are bad stay busy. */
static void bits_set(struct kvt_bits *b, u16 which, bool used)
{
	if (used)
		b->busy |= which;
	else
		b->busy &= ~(which & ~b->odd);
}

/**
 * kvt_pieces_set() - give a range of pieces a word
 * @p:     map; not kvt_pieces_low(), unless all of the range, and nothing else, has one word: a
 *         region's number
 * @first: of the range
 * @nr:    its length
 * @word:  for each. Those that are free then can be had, but for bad ones
 */
void kvt_pieces_set(struct kvt_pieces *p, u32 first, u32 nr, u32 word)
{
	u32 len;

	for (; nr; nr -= len, first += len) {
		len = min(nr, KVT_STRETCH_PIECES - AT(first));
		stretch_set(p, first >> KVT_STRETCH_SHIFT, AT(first), len, word);
		bits_set(kvt_piece_bits(p, first), bits_of(AT(first), len), word & KVT_PIECE_USED);
	}
}

/**
 * kvt_piece_spoil() - some page is bad: once it is free it cannot be had
 * @p:     map
 * @piece: free or in use
 */
void kvt_piece_spoil(struct kvt_pieces *p, u32 piece)
{
	kvt_piece_bits(p, piece)->busy |= kvt_piece_bit(piece);
	kvt_piece_bits(p, piece)->odd |= kvt_piece_bit(piece);
}

/**
 * kvt_piece_mend() - what was bad is not the piece's
 * @p:     map
 * @piece: in use
 */
void kvt_piece_mend(struct kvt_pieces *p, u32 piece)
{
	kvt_piece_bits(p, piece)->odd &= ~kvt_piece_bit(piece);
}

/**
 * kvt_piece_leave() - there is no memory behind a piece
 * @p:     map
 * @piece: can be had
 */
void kvt_piece_leave(struct kvt_pieces *p, u32 piece)
{
	kvt_piece_bits(p, piece)->busy |= kvt_piece_bit(piece);
}

/*
 * What can be said of a piece that comes: what two words say, and what needs a split where
 * there is one, or one to spare for a stretch that was divided before.
 */
static bool come_is_kept(const struct kvt_pieces *p, u32 piece)
{
	u32 s = piece >> KVT_STRETCH_SHIFT, words[KVT_STRETCH_PIECES], first;

	if (kvt_stretch_split(p->stretch[s]) || (kvt_stretch_first(p->stretch[s]) && p->nr_spare))
		return true;
	stretch_words(p, s, AT(piece), 1, KVT_PIECE_CLEAN, words);
	return words_turns(words, &first) <= 1;
}

/**
 * kvt_piece_come() - there is, and it is zeroed
 * @p:     map
 * @piece: absent
 *
 * That it is zeroed is forgotten where remembering it would take memory.
 */
void kvt_piece_come(struct kvt_pieces *p, u32 piece)
{
	kvt_piece_bits(p, piece)->busy &= ~kvt_piece_bit(piece);
	if (come_is_kept(p, piece))
		stretch_set(p, piece >> KVT_STRETCH_SHIFT, AT(piece), 1, KVT_PIECE_CLEAN);
}

/**
 * kvt_pieces_next_used() - where to go on looking for pieces in use
 * @p:     map
 * @piece: where to begin
 * Return: the first piece from there on that is in a region, or some piece before it to go on
 * from; at least @p->nr when there is none. It looks at some stretches at most.
 */
u32 kvt_pieces_next_used(const struct kvt_pieces *p, u32 piece)
{
	u32 last = min(p->nr, piece + KVT_NEXT_STRETCHES * KVT_STRETCH_PIECES);

	while (piece < last && !(kvt_piece_word(p, piece) & KVT_PIECE_USED)) {
		u64 stretch = p->stretch[piece >> KVT_STRETCH_SHIFT];

		if (kvt_stretch_split(stretch) || AT(piece) < kvt_stretch_first(stretch))
			piece++;
		else
			piece = (piece | (KVT_STRETCH_PIECES - 1)) + 1;
	}
	return piece;
}

/* Pieces of a stretch that cannot be had, or are not between @from and @to. */
static u16 run_busy(const struct kvt_pieces *p, u32 s, u32 from, u32 to)
{
	u32 first = s << KVT_STRETCH_SHIFT;
	u16 busy = p->bits[s].busy;

	if (from > first)
		busy |= bits_of(0, from - first);
	if (to - first < KVT_STRETCH_PIECES)
		busy |= bits_of(to - first, KVT_STRETCH_PIECES - (to - first));
	return busy;
}

/* A run that goes on in a stretch of which not all can be had. Whether it is long enough. */
static bool run_in(u32 s, u16 busy, u32 want, u32 *start, u32 *run)
{
	u32 i;

	for (i = 0; i < KVT_STRETCH_PIECES; i++) {
		if (busy & 1u << i) {
			*run = 0;
			continue;
		}
		if (!(*run)++)
			*start = (s << KVT_STRETCH_SHIFT) + i;
		if (*run == want)
			return true;
	}
	return false;
}

/**
 * kvt_pieces_run() - look for free pieces in a row
 * @p:       map
 * @from:    the first that will do
 * @to:      behind the last one, at most @p->nr
 * @want:    how many; a multiple of KVT_STRETCH_PIECES if @aligned
 * @aligned: whole stretches
 * Return: the first one, or KVT_NO_PIECE.
 */
u32 kvt_pieces_run(const struct kvt_pieces *p, u32 from, u32 to, u32 want, bool aligned)
{
	u32 s, start = 0, run = 0;

	for (s = from >> KVT_STRETCH_SHIFT; s << KVT_STRETCH_SHIFT < to; s++) {
		u16 busy = run_busy(p, s, from, to);

		if (busy == U16_MAX || (busy && aligned)) {
			run = 0;
		} else if (busy) {
			if (run_in(s, busy, want, &start, &run))
				return start;
		} else {
			if (!run)
				start = s << KVT_STRETCH_SHIFT;
			run += KVT_STRETCH_PIECES;
			if (run >= want)
				return start;
		}
	}
	return KVT_NO_PIECE;
}
