/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The map of a memory tier: what the word of each 2 MiB piece is, and two bits.
 *
 * Large regions are long runs of pieces with one word, and so is free space. So pieces
 * are taken by *stretches* of 16, aligned, and a stretch has two words: that of its first
 * pieces, and that of the rest. That is all there is where one region ends and the next begins,
 * or free space does. Where there are more it is *split*: a split, which is memory that the
 * caller hands in, has a word for each. It is given back as soon as all are the same again.
 *
 * What may happen to any single piece at any time, where nobody can get memory, are bits:
 * they need no split. One says that a piece cannot be had, and so does it for those in use:
 * runs of free pieces are looked for in the bits alone.
 *
 *   word      busy  odd
 *   free        0    0
 *   free        1    0    absent: there is no memory behind it
 *   free        1    1    retired: some page is bad
 *   in use      1    0
 *   in use      1    1    some page is bad
 *
 * Memory: 12 bytes for a stretch, 64 more for a split one. Splits that nobody uses are
 * *spare*; a change of a range takes two at most, at its ends.
 *
 * Lock: the owner's, for everything that does not say otherwise. But who knows that a piece
 * stays in the region that it is in may read its word without: it does not change, whatever
 * happens to the rest of its stretch. A stretch is one load; it may become split, but not the
 * other way round while what is in a part of it keeps it split. So a stretch must not be split or
 * joined at any other time than when words change.
 */
#ifndef KVT_PIECE_H
#define KVT_PIECE_H

#include "kvt_env.h"

#define KVT_STRETCH_SHIFT	4
#define KVT_STRETCH_PIECES	(1u << KVT_STRETCH_SHIFT)
#define KVT_SPLITS_SPARE	2u	/* what a change may need */

/*
 * Words of the map, of KVT_WORD_BITS. Used: the region's number. Else: a namespace's id or one of
 * these.
 */
#define KVT_WORD_BITS		29
#define KVT_PIECE_USED		(1u << (KVT_WORD_BITS - 1))
#define KVT_PIECE_NR		((1u << 23) - 1)
#define KVT_PIECE_CLEAN		0u
#define KVT_PIECE_UNKNOWN	(KVT_PIECE_USED - 1)
#define KVT_NO_PIECE		(~0u)

/**
 * union kvt_split - the words of a stretch that has had more than two
 * @word: each piece's
 * @next: of one that is spare
 */
union kvt_split {
	u32 word[KVT_STRETCH_PIECES];
	union kvt_split *next;
};

/**
 * struct kvt_bits - bits of a stretch's pieces, see above
 * @busy: not to be had
 * @odd:  some page is bad
 */
struct kvt_bits {
	u16 busy;
	u16 odd;
};

/**
 * struct kvt_pieces - the map
 * @stretch:   for each its words, see kvt_stretch_of(), or the address of a split
 * @bits:      for each
 * @spare:     splits that are not used, or NULL
 * @nr_spare:  how many
 * @nr_splits: used ones and spare ones
 * @nr:        pieces
 */
struct kvt_pieces {
	u64 *stretch;
	struct kvt_bits *bits;
	union kvt_split *spare;
	u32 nr_spare;
	u32 nr_splits;
	u32 nr;
};

#define KVT_STRETCHES(nr_pieces)	DIV_ROUND_UP(nr_pieces, KVT_STRETCH_PIECES)

/* Memory for the map of so many pieces, in u64. */
#define KVT_PIECES_WORDS(nr_pieces)	(KVT_STRETCHES(nr_pieces) + \
					 DIV_ROUND_UP(KVT_STRETCHES(nr_pieces), 2))

static inline u64 kvt_pieces_bytes(const struct kvt_pieces *p)
{
	return KVT_PIECES_WORDS((u64)p->nr) * sizeof(u64) +
	       (u64)p->nr_splits * sizeof(union kvt_split);
}

/* A stretch whose first @nr pieces, less than all, have one word, and the rest another. */
static inline u64 kvt_stretch_of(u32 first, u32 nr, u32 rest)
{
	return (u64)rest << (64 - KVT_WORD_BITS) | (u64)first << (64 - 2 * KVT_WORD_BITS) |
	       nr << 1 | 1;
}

static inline union kvt_split *kvt_stretch_split(u64 stretch)
{
	return stretch & 1 ? NULL : (union kvt_split *)(uintptr_t)stretch;
}

/* Of one that is not split: how many are its first pieces. */
static inline u32 kvt_stretch_first(u64 stretch)
{
	return stretch >> 1 & (KVT_STRETCH_PIECES - 1);
}

/* The word of a piece that there is. */
static inline u32 kvt_piece_word(const struct kvt_pieces *p, u32 piece)
{
	u64 stretch = READ_ONCE(p->stretch[piece >> KVT_STRETCH_SHIFT]);
	const union kvt_split *split = kvt_stretch_split(stretch);
	u32 at = piece & (KVT_STRETCH_PIECES - 1);

	if (split)
		return split->word[at];
	if (at < kvt_stretch_first(stretch))
		stretch <<= KVT_WORD_BITS;
	return (u32)(stretch >> (64 - KVT_WORD_BITS));
}

static inline u16 kvt_piece_bit(u32 piece)
{
	return 1u << (piece & (KVT_STRETCH_PIECES - 1));
}

static inline struct kvt_bits *kvt_piece_bits(const struct kvt_pieces *p, u32 piece)
{
	return &p->bits[piece >> KVT_STRETCH_SHIFT];
}

static inline bool kvt_piece_bad(const struct kvt_pieces *p, u32 piece)
{
	return kvt_piece_bits(p, piece)->odd & kvt_piece_bit(piece);
}

/* In no region, and fit for one. */
static inline bool kvt_piece_free(const struct kvt_pieces *p, u32 piece)
{
	return !(kvt_piece_bits(p, piece)->busy & kvt_piece_bit(piece));
}

static inline bool kvt_piece_absent(const struct kvt_pieces *p, u32 piece)
{
	return !kvt_piece_free(p, piece) && !kvt_piece_bad(p, piece) &&
	       !(kvt_piece_word(p, piece) & KVT_PIECE_USED);
}

/*
 * May splits be wanting when a range is changed: kvt_pieces_add() first. Any context; it may
 * have changed by the time the lock is held.
 */
static inline bool kvt_pieces_low(const struct kvt_pieces *p)
{
	return READ_ONCE(p->nr_spare) < KVT_SPLITS_SPARE;
}

void kvt_pieces_init(struct kvt_pieces *p, u64 *map, u32 nr, u32 word);
bool kvt_pieces_add(struct kvt_pieces *p, union kvt_split *split);
union kvt_split *kvt_pieces_surplus(struct kvt_pieces *p);
union kvt_split *kvt_pieces_end(struct kvt_pieces *p, u32 *at);
void kvt_pieces_set(struct kvt_pieces *p, u32 first, u32 nr, u32 word);
void kvt_piece_spoil(struct kvt_pieces *p, u32 piece);
void kvt_piece_mend(struct kvt_pieces *p, u32 piece);
void kvt_piece_leave(struct kvt_pieces *p, u32 piece);
void kvt_piece_come(struct kvt_pieces *p, u32 piece);
u32 kvt_pieces_next_used(const struct kvt_pieces *p, u32 piece);
u32 kvt_pieces_run(const struct kvt_pieces *p, u32 from, u32 to, u32 want, bool aligned);

#endif /* KVT_PIECE_H */
