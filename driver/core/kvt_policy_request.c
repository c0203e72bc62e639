// SPDX-License-Identifier: GPL-2.0
/*
 * Requests, and what the policy "reuse" learns from them.
 *
 * A request is the next turn of the session that ended at its chain's deepest block
 * known as last but one of a request: by the table of kvt_policy_turn.h, or by a mark
 * in a block that is still there. It may also be a stranger who shares the beginning,
 * if it does not go on with the earlier one's last block. It is taken for one if it is
 * no longer than that, or if strangers have been seen at that block before.
 *
 * A request that comes in parts is told as one, so each part takes the one before back. Where
 * a chain only grows, as with each block of an answer, nothing of that would come out otherwise,
 * and what is new is put where it would have been put: that takes no longer than what is
 * new. If other requests have come meanwhile it stays where they have left it, with what is
 * new, until it has grown by a part of its length; then all of it is looked at again. A chain
 * that is only read once more, as by who asks until all of it is there, gets its places anew.
 */
#include "kvt_chain.h"
#include "kvt_hint.h"
#include "kvt_policy_gate.h"
#include "kvt_policy_request.h"

#define REUSE_AGES_STEPS	64u
#define REUSE_TIP_BLOCKS	4u	/* of those there: how many may end a session */
#define REUSE_STRANGERS		2u
#define REUSE_LEARN_EACH	2u	/* requests for each row worked out */
#define REUSE_LEARN_ROUND	32u	/* rows until the first comes again, some are empty */
#define REUSE_LEN_MAX		32u	/* blocks: longer ones are of one class */
#define REUSE_BEHIND		64u	/* part of a chain by which it may grow behind others */
#define REUSE_BEHIND_MIN	16u

/**
 * struct reuse_chain - a request's chain
 * @m:    what is known of its namespace
 * @ask:  where it is noted for its next part; or NULL
 * @tip:  its last block
 * @more: a part of it was looked at before
 * @known: it is a session's next turn
 * @sure:  and would be if it were longer; or not, and would not be
 * @old:  the first block on the way up that was there before the request, or KVT_NIL
 * @stranger: block at which it was taken for a stranger, or KVT_NIL
 * @marked: block that is marked as a session's end
 * @name: hash of the last but one, or of the only one
 * @len:  blocks, at most REUSE_LEN_MAX
 * @nr:   blocks, at most KVT_REQUEST_MAX
 * @turn: number of the turn that it is, from 0
 * @turn_was: what was known of the turn before; name 0: nothing
 * @turn_over: what was forgotten to remember this one
 * @over_ms: its age
 * @gap_ms: since the turn before
 */
struct reuse_chain {
	struct kvt_mind *m;
	struct kvt_ask *ask;
	u32 tip;
	bool more;
	bool known;
	bool sure;
	u32 old;
	u32 stranger;
	u32 marked;
	u32 name;
	u32 len;
	u32 nr;
	u32 turn;
	u32 gap_ms;
	struct kvt_turn turn_was;
	struct kvt_turn turn_over;
	u32 over_ms;
};

static bool reuse_is_new(const struct kvt_policy *p, u32 id)
{
	return kvt_cold(p->table, id)->cls == KVT_CLS_NEW;
}

/*
 * Does the request go on with the session that ended around block @id. @same: its next
 * block is that session's last, too. @pos: blocks after it.
 */
static bool reuse_goes_on(struct kvt_policy *p, struct reuse_chain *ch, u32 id, bool same,
			  u32 pos)
{
	struct kvt_cold *c = kvt_cold(p->table, id);

	if (same)
		return true;
	if (pos >= 2)
		return c->shared < REUSE_STRANGERS;
	if (!ch->stranger) {
		c->shared += c->shared < U8_MAX;
		ch->stranger = id;
	}
	return false;
}

/*
 * Is a session known to have ended around block @id, and is the request its next turn.
 * @old: the block was there before, @child_old: and so was the one after it.
 */
static bool reuse_follows(struct kvt_policy *p, struct reuse_chain *ch, u32 id, u32 child,
			  u32 pos, bool old, bool child_old)
{
	struct kvt_turn *e = kvt_turn_find(&ch->m->turns, reuse_hash(p, id));
	u32 past = kvt_cold(p->table, id)->past;

	if (e) {
		if (!reuse_goes_on(p, ch, id, e->last == (u8)(reuse_hash(p, child ?: id) >> 8),
				   pos))
			return false;
		ch->turn = e->turn + 1;
		ch->turn_was = *e;
		ch->gap_ms = kvt_turn_age_ms(e, p->now_ms);
		kvt_learn_use(&ch->m->learn, e->cls, ch->gap_ms, true);
		e->name = 0;
		return true;
	}
	if (!old || !(past >> REUSE_GAP_BITS) || !reuse_goes_on(p, ch, id, child_old, pos))
		return false;
	ch->turn = past >> REUSE_GAP_BITS;
	ch->gap_ms = kvt_age_of_bin(past & REUSE_GAP_MASK);
	return true;
}

/* Length, name and turn of a request. */
static void reuse_look(struct kvt_policy *p, struct reuse_chain *ch)
{
	u32 id, child = KVT_NIL, old = 0, pos;
	bool child_old = false;

	ch->name = reuse_hash(p, ch->tip);
	for (id = ch->tip; id && ch->len < REUSE_LEN_MAX; id = kvt_cold(p->table, id)->parent) {
		if (ch->len++ == 1)
			ch->name = reuse_hash(p, id);
	}
	for (id = ch->tip, pos = 0; id && pos < KVT_REQUEST_MAX; pos++) {
		if (old > REUSE_TIP_BLOCKS || ch->known)
			break;
		if (!ch->old && !ch->more && !reuse_is_new(p, id))
			ch->old = id;
		old += old || id == ch->old;
		ch->known = reuse_follows(p, ch, id, child, pos, old, child_old);
		child_old = old;
		child = id;
		id = kvt_cold(p->table, id)->parent;
	}
	/* See reuse_goes_on(): how far it goes on matters up to the third block only. */
	ch->sure = !ch->stranger && (!ch->known || pos > 2);
	p->nr_steps += pos;
}

/* Marks that reuse_look() may ask for once more; the request's blocks lose them. */
static void reuse_save_marks(struct kvt_policy *p, const struct reuse_chain *ch)
{
	u32 id = ch->old, i;

	if (!ch->ask || ch->more)
		return;
	for (i = 0; id && i < KVT_ASK_MARKS; i++, id = kvt_cold(p->table, id)->parent)
		ch->ask->marks[i] = kvt_cold(p->table, id)->past >> REUSE_GAP_BITS;
}

/* It did not end there. */
static void reuse_end_forget(const struct reuse_chain *ch)
{
	const struct kvt_ask *a = ch->ask;
	struct kvt_turn *e = kvt_turn_find(&ch->m->turns, a->name);

	if (e)
		*e = a->turn_over;
	if (a->turn_over.name)
		kvt_learn_forget(&ch->m->learn, a->turn_over.cls, a->over_ms, false);
}

/* If a block's list has it for the last of the youngest request, that is who was it before. */
static void reuse_restore_young(struct kvt_policy *p, u32 id, const struct kvt_cold *c)
{
	u32 tier = kvt_policy_tier(p, id), on = kvt_policy_list(c), was;

	if (tier == KVT_NO_TIER || p->young[tier][on] != id || p->before[tier][on].id != id)
		return;
	was = p->before[tier][on].was;
	/* It may have left since. */
	if (was && kvt_policy_tier(p, was) == tier &&
	    kvt_policy_list(kvt_cold(p->table, was)) == on)
		p->young[tier][on] = was;
}

/* What a part has made of a block of its chain; @above: how many there are from @old up to it. */
static void reuse_take_back(const struct kvt_ask *a, u32 id, struct kvt_cold *c, u32 above)
{
	if (id == a->marked)
		c->past &= REUSE_GAP_MASK;
	if (above && above <= KVT_ASK_MARKS)
		c->past = (u8)((c->past & REUSE_GAP_MASK) |
			       a->marks[above - 1] << REUSE_GAP_BITS);
	if (above && !a->known)
		c->shared -= c->shared && c->shared < U8_MAX;
	if (id == a->stranger)
		c->shared -= c->shared && c->shared < U8_MAX;
}

/*
 * The request goes on: what was taken from its last part is taken back. Its blocks are no
 * longer new; those that were there before it begin at @ask->old.
 */
static void reuse_resume(struct kvt_policy *p, struct reuse_chain *ch)
{
	const struct kvt_ask *a = ch->ask;
	struct kvt_cold *c;
	struct kvt_turn *e;
	u32 id, n, above = 0;

	ch->more = true;
	ch->old = a->old;
	reuse_end_forget(ch);
	if (a->turn_was.name) {
		kvt_learn_forget(&ch->m->learn, a->turn_was.cls, a->gap_ms, true);
		e = kvt_turn_slot(&ch->m->turns, a->turn_was.name, p->now_ms);
		if (!e->name)
			*e = a->turn_was;
	}
	/* From here, as with the next look: what is too far up for that keeps what it got. */
	for (id = a->told, n = 0; id && n < KVT_REQUEST_MAX; n++, id = c->parent) {
		c = kvt_cold(p->table, id);
		above += above || id == a->old;
		/* A session's next turn has changed nothing more of those that were there. */
		if (a->known && above > KVT_ASK_MARKS)
			break;
		reuse_restore_young(p, id, c);
		reuse_take_back(a, id, c, above);
	}
	p->nr_steps += n;
}

/* For its next part. */
static void reuse_note_ask(const struct reuse_chain *ch, u32 cls)
{
	struct kvt_ask *a = ch->ask;

	if (!a)
		return;
	a->more = true;
	a->known = ch->known;
	a->turn_was = ch->turn_was;
	a->turn_over = ch->turn_over;
	a->over_ms = ch->over_ms;
	a->gap_ms = ch->gap_ms;
	a->name = ch->name;
	a->old = ch->old;
	a->stranger = ch->stranger;
	a->marked = ch->marked;
	a->told = ch->tip;
	a->nr = (u16)ch->nr;
	a->behind = 0;
	a->cls = (u8)cls;
	a->turn = (u8)min(ch->turn, KVT_TURN_MAX + 1);
	a->len = (u8)ch->len;
	a->grows = ch->sure;
}

/* A block's new class: of a shared block, or @cls. @stranger: who uses it shares it. */
static u32 reuse_classify(struct kvt_cold *c, u32 cls, bool stranger)
{
	c->past &= REUSE_GAP_MASK;
	c->shared += stranger && c->shared < U8_MAX;
	cls = c->shared ? kvt_class_of_shared(c->shared) : cls;
	c->cls = (u8)cls;
	return cls;
}

/**
 * kvt_reuse_turned_out() - a block's first use since its client has said when that will be
 * @p:      policy; meta lock held
 * @m:      what was learned of its owner
 * @id:     block that kvt_class_told() is true of
 * @age_ms: since then
 *
 * What was not believed is cold, and has the bin of the time that was said. From here on it is
 * of a class that says nothing but that it is not new, and has the bin of its age; its request
 * gives it another.
 */
void kvt_reuse_turned_out(struct kvt_policy *p, struct kvt_mind *m, u32 id, u32 age_ms)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 bin = c->past & REUSE_GAP_MASK;

	if (c->cls == KVT_CLS_COLD)
		kvt_learn_not_over(&m->learn, age_ms);
	if (kvt_class_hinted(c->cls))
		kvt_hint_use(&m->learn, c->cls, bin, age_ms);
	else if (bin != REUSE_GAP_NEVER)
		kvt_hint_use(&m->learn, kvt_hint_class(kvt_age_of_bin(bin)), bin, age_ms);
	c->cls = KVT_CLS_SESSION;
	if (age_ms)
		c->past = (u8)((c->past & ~REUSE_GAP_MASK) | kvt_age_bin(age_ms));
}

/**
 * struct reuse_places - where a chain's blocks are put
 * @run:  blocks in hand; none to begin with
 * @seen: by tier, bit by list: it has got a run
 */
struct reuse_places {
	struct kvt_run run;
	u32 seen[KVT_TIERS];
};

static void reuse_set_young(struct kvt_policy *p, u32 tier, u32 list, u32 id)
{
	p->before[tier][list] = (struct kvt_young) { .id = id, .was = p->young[tier][list] };
	p->young[tier][list] = id;
}

static void reuse_place(struct kvt_policy *p, struct reuse_places *w)
{
	const struct kvt_run *r = &w->run;
	bool was;

	if (!r->nr)
		return;
	/* Read again, with nobody else in between: who was before it stays that. */
	was = p->young[r->tier][r->to] == r->old;
	kvt_policy_renew(p, r);
	if (was)
		p->young[r->tier][r->to] = r->old;
	else if (!(w->seen[r->tier] & (1u << r->to)))
		reuse_set_young(p, r->tier, r->to, r->old);
	w->seen[r->tier] |= 1u << r->to;
}

/* Where a session ends. */
static void reuse_mark(struct kvt_policy *p, struct reuse_chain *ch)
{
	u32 id = ch->len > 1 ? kvt_cold(p->table, ch->tip)->parent : ch->tip;
	u32 mark = (min(ch->turn, KVT_TURN_MAX) + 1) << REUSE_GAP_BITS;
	struct kvt_cold *c = kvt_cold(p->table, id);

	ch->marked = id;
	c->past = (u8)((c->past & REUSE_GAP_MASK) | mark);
}

/* The gate learns of a block, if it is new. */
static void reuse_stored(const struct kvt_policy *p, const struct reuse_chain *ch, u32 id)
{
	if (reuse_is_new(p, id))
		kvt_gate_stored(ch->m, reuse_hash(p, id));
}

/*
 * Give the chain's blocks their class, and their places among the youngest. What the last
 * request put side by side stays that and goes as one.
 */
static void reuse_settle(struct kvt_policy *p, struct reuse_chain *ch, u32 cls)
{
	struct reuse_places w = { 0 };
	u32 id, beside = KVT_NIL, to, tier, n, asked = U32_MAX;
	bool stranger = false;
	struct kvt_cold *c;

	for (id = ch->tip, n = 0; id && n < KVT_REQUEST_MAX; n++, id = c->parent) {
		c = kvt_cold(p->table, id);
		stranger |= id == ch->old && !ch->known;
		reuse_stored(p, ch, id);
		/* Who only stores what follows has not read it here. */
		if (kvt_class_told(c->cls))
			kvt_reuse_turned_out(p, ch->m, id, reuse_age_ms(p, c));
		/* What comes before the last part was counted with that. */
		if (ch->more && id == ch->ask->told)
			asked = n;
		to = reuse_classify(c, cls, stranger);
		if (id == beside && to == w.run.to && !reuse_stuck(c)) {
			kvt_run_on(p, &w.run, id, c);
			beside = c->lru_prev;
			continue;
		}
		reuse_place(p, &w);
		w.run.nr = 0;
		beside = KVT_NIL;
		tier = kvt_policy_tier(p, id);
		if (tier == KVT_NO_TIER || reuse_stuck(c))
			continue;
		kvt_run_begin(p, &w.run, tier, to, id);
		beside = c->lru_prev;
	}
	reuse_place(p, &w);
	kvt_gate_asked(ch->m, min(asked, n));
	ch->nr = n;
	p->nr_steps += n;
	reuse_mark(p, ch);
}

static void reuse_remember(struct kvt_policy *p, struct reuse_chain *ch, u32 cls)
{
	struct kvt_turn *e = kvt_turn_slot(&ch->m->turns, ch->name, p->now_ms);

	ch->turn_over = *e;
	ch->over_ms = kvt_turn_age_ms(e, p->now_ms);
	if (e->name)
		kvt_learn_use(&ch->m->learn, e->cls, ch->over_ms, false);
	e->name = ch->name;
	e->time = (u16)(p->now_ms >> KVT_TURN_SHIFT);
	e->last = (u8)(reuse_hash(p, ch->tip) >> 8);
	e->turn = (u8)min(ch->turn, KVT_TURN_MAX);
	e->cls = (u8)cls;
}

/*
 * Ages of a namespace's blocks on a list, added to @waiting: of those among the oldest as
 * they are; of the others it is taken that they were used at a constant rate since, and
 * that as many of them are the namespace's.
 */
static void reuse_ages(struct kvt_policy *p, const struct kvt_list *l,
		       const struct kvt_mind *m, u16 *waiting)
{
	u32 left = l->count, id = l->tail, bin = 0, own = 0, i, part;

	for (i = 0; id && i < REUSE_AGES_STEPS; i++, left--) {
		const struct kvt_cold *c = kvt_cold(p->table, id);

		if (kvt_policy_mind(p, id) == m) {
			bin = kvt_age_bin(reuse_age_ms(p, c));
			waiting[bin] += waiting[bin] < U16_MAX;
			own++;
		}
		id = c->lru_prev;
	}
	p->nr_steps += i;
	if (own < i)
		left = min(left, U32_MAX / REUSE_AGES_STEPS) * own / i;
	/* The time between two edges is three tenths of the time up to the second. */
	for (left = min(left, KVT_COUNT_MAX); left; left -= part) {
		part = bin ? DIV_ROUND_UP(left * 3, 10) : left;
		waiting[bin] = (u16)min(waiting[bin] + part, (u32)U16_MAX);
		bin -= bin != 0;
	}
}

static void reuse_waiting(struct kvt_policy *p, const struct kvt_mind *m, u32 cls,
			  u16 *waiting)
{
	u32 tier, c;

	/* Cold ones count as lost already. */
	if (cls == KVT_CLS_COLD)
		return;
	if (cls == KVT_CLS_NEW || cls >= KVT_CLS_SESSION) {
		kvt_turns_waiting(&m->turns, cls, p->now_ms, waiting);
		return;
	}
	for (tier = 0; tier < KVT_TIERS; tier++) {
		for (c = KVT_CLS_SHARED; p->some[tier] && c < KVT_CLS_SESSION; c++) {
			if (c == cls || cls == KVT_CLS_POOL)
				reuse_ages(p, &p->list[tier][c], m, waiting);
		}
	}
}

/* One row at a time: a request never does more than that. */
static void reuse_learn(struct kvt_policy *p, struct kvt_mind *m)
{
	u32 tier, cls = m->nr_requests++ / REUSE_LEARN_EACH % REUSE_LEARN_ROUND;
	u16 waiting[KVT_AGE_BINS] = { 0 };

	kvt_turns_expire(&m->turns, &m->learn, p->now_ms);
	if (m->nr_requests % REUSE_LEARN_EACH || cls >= KVT_CLASSES)
		return;
	p->nr_steps += REUSE_LEARN_STEPS;
	reuse_waiting(p, m, cls, waiting);
	kvt_learn_row(&m->learn, cls, waiting);
	for (tier = 0; tier < KVT_TIERS; tier++)
		p->stale[tier] = U32_MAX;
}

/* --- a chain that grows -------------------------------------------------------------- */

/* Does a session known end there, or did one that was forgotten to remember this request. */
static bool reuse_ends_at(const struct kvt_policy *p, const struct reuse_chain *ch, u32 id)
{
	u32 name = reuse_hash(p, id);

	return name == ch->ask->turn_over.name || kvt_turn_find(&ch->m->turns, name);
}

/*
 * How many blocks a chain has grown by since its last part, if these are new, where that part
 * ends, and end no session known. 0: some are not, or it has become another chain.
 */
static u32 reuse_grown(struct kvt_policy *p, const struct reuse_chain *ch, u32 tier)
{
	u32 id = ch->tip, n;

	for (n = 0; id && id != ch->ask->told && n < KVT_REQUEST_MAX; n++) {
		const struct kvt_cold *c = kvt_cold(p->table, id);

		if (c->cls != KVT_CLS_NEW || c->shared || kvt_policy_tier(p, id) != tier ||
		    kvt_policy_list(c) == REUSE_ASIDE || reuse_ends_at(p, ch, id))
			break;
		id = c->parent;
	}
	p->nr_steps += n;
	return id == ch->ask->told ? n : 0;
}

/* Put what is new next to the last part. */
static void reuse_put_new(struct kvt_policy *p, const struct reuse_chain *ch, u32 tier)
{
	u32 told = ch->ask->told, cls = ch->ask->cls, id, up, next;
	bool youngest = p->young[tier][cls] == told;

	for (id = ch->tip; id != told; id = up) {
		struct kvt_cold *c = kvt_cold(p->table, id);

		up = c->parent;
		reuse_stored(p, ch, id);
		c->cls = (u8)cls;
		c->past &= REUSE_GAP_MASK;
		kvt_policy_del(p, tier, id);
		next = kvt_cold(p->table, told)->lru_next;
		if (next)
			kvt_policy_add_before(p, tier, id, next);
		else
			kvt_policy_add(p, tier, cls, id, true);
	}
	if (youngest)
		p->young[tier][cls] = ch->tip;
	if (p->before[tier][cls].id == told)
		p->before[tier][cls].id = ch->tip;
}

/* The chain has only grown, and by little if others came between. Whether that is all. */
static bool reuse_grow(struct kvt_policy *p, struct reuse_chain *ch)
{
	struct kvt_ask *a = ch->ask;
	const struct kvt_cold *c = kvt_cold(p->table, a->told);
	u32 tier = kvt_policy_tier(p, a->told), nr, behind;

	if (!a->grows || tier == KVT_NO_TIER || c->cls != a->cls || kvt_policy_list(c) != a->cls)
		return false;
	nr = reuse_grown(p, ch, tier);
	ch->len = min(a->len + nr, REUSE_LEN_MAX);
	ch->turn = a->turn;
	if (!nr || kvt_class_of_session(ch->turn, ch->len, a->gap_ms) != a->cls)
		return false;
	behind = p->young[tier][a->cls] == a->told ? 0 : nr;
	if (behind && a->behind + behind > max(a->nr / REUSE_BEHIND, REUSE_BEHIND_MIN))
		return false;
	kvt_gate_asked(ch->m, nr);
	reuse_end_forget(ch);
	/* That of the last part. */
	kvt_cold(p->table, a->len > 1 ? c->parent : a->told)->past &= REUSE_GAP_MASK;
	reuse_put_new(p, ch, tier);
	reuse_mark(p, ch);
	ch->name = reuse_hash(p, ch->marked);
	reuse_remember(p, ch, a->cls);
	a->turn_over = ch->turn_over;
	a->over_ms = ch->over_ms;
	a->name = ch->name;
	a->marked = ch->marked;
	a->told = ch->tip;
	a->len = (u8)ch->len;
	a->behind += (u16)behind;
	return true;
}

/*
 * A client has asked for the whole chain once more. There is nothing to learn from that, and
 * nothing to take back, but its blocks are the youngest again. Not if the session has gone on
 * meanwhile, or was forgotten.
 */
static bool reuse_again(struct kvt_policy *p, struct reuse_chain *ch)
{
	struct kvt_ask *a = ch->ask;
	struct kvt_turn *e = kvt_turn_find(&ch->m->turns, a->name);

	if (!e)
		return false;
	ch->more = true;
	ch->turn = a->turn;
	ch->len = a->len;
	reuse_settle(p, ch, a->cls);
	e->time = (u16)(p->now_ms >> KVT_TURN_SHIFT);
	a->marked = ch->marked;
	a->nr = (u16)ch->nr;
	a->behind = 0;
	return true;
}

/**
 * kvt_reuse_request() - a request has come to a block
 * @p:   policy
 * @id:  READY block, the last of its chain so far
 * @ask: what is known of its parts before; NULL: it has one
 *
 * What the requests before have taught is worked out first: that is once for each.
 */
void kvt_reuse_request(struct kvt_policy *p, u32 id, struct kvt_ask *ask)
{
	struct reuse_chain ch = { .tip = id, .ask = ask, .m = kvt_policy_mind(p, id) };
	u32 cls;

	if (ask && ask->more && (id == ask->told ? reuse_again(p, &ch) : reuse_grow(p, &ch)))
		return;
	ch = (struct reuse_chain) { .tip = id, .ask = ask, .m = ch.m };
	if (ask && ask->more)
		reuse_resume(p, &ch);
	else
		reuse_learn(p, ch.m);
	reuse_look(p, &ch);
	reuse_save_marks(p, &ch);
	cls = kvt_class_of_session(ch.turn, ch.len, ch.gap_ms);
	reuse_settle(p, &ch, cls);
	reuse_remember(p, &ch, cls);
	reuse_note_ask(&ch, cls);
}
