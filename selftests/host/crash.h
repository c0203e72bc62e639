/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Crash test of the log: a small store on a simulated device, and an oracle.
 *
 *   crash_dev.c     the device: a cache that a crash tears, drops and reorders
 *   crash_zone.c    a zoned device, which keeps the order of what is in one zone
 *   crash_io.c      drives the writer: batches, flushes, footers, superblocks
 *   crash_clean.c   makes room: ends of segments, cleaning
 *   crash_store.c   operations on the store, and what they promise
 *   crash_chain.c   parents, and links of entries
 *   crash_ns.c      namespaces: definitions, quotas
 *   crash_mount.c   recovery into an empty store, compared with the oracle
 *   crash_main.c    chains of crashes, and broken builds that must be noticed
 *   crash_image.c   images of the device for the tests of others
 *
 * The oracle outlives crashes. For each name it knows the version that must be found
 * (reported durable, and not dropped, evicted or moved off the log since), and the
 * version up to which nothing may come back (a fence has passed, as for DROP). A version
 * is put once, so bytes tell which one they are, and what its parent was. For each
 * namespace it knows the definition, and with that the quota, that must be found.
 *
 * Everything follows from one seed. Any write, completion or flush can be the moment
 * of a crash: it is a longjmp() out of whatever is going on, and everything but
 * device and oracle is forgotten.
 */
#ifndef KVT_CRASH_H
#define KVT_CRASH_H

#include "kvt_env.h"
#include "kvt_merge.h"
#include "kvt_wlog.h"
#include "kvt_zone.h"
#include <setjmp.h>

#define CR_SEGS_MAX	14u
#define CR_SEG_UNITS_MAX 48u
#define CR_UNIT		4096u
#define CR_BYTES_MAX	(KVT_HEAD_BYTES_MIN + CR_SEGS_MAX * CR_SEG_UNITS_MAX * CR_UNIT)
#define CR_SLOTS	3u		/* namespaces alive at a time */
#define CR_GROUPS	2u
#define CR_KEYS		18u
#define CR_NAMES	(CR_SLOTS * CR_GROUPS * CR_KEYS)
#define CR_PARENTS	4u		/* a version is put under one of so many */
#define CR_BLOCKS	(4 * CR_NAMES)	/* entries; id 0 is none */
#define CR_STORED_MAX	(4 * CR_UNIT)
#define CR_IDS		64u
#define CR_NS_MAX	(1u << 16)
#define CR_BATCH_BLOCKS	8u
#define CR_RING		64u
#define CR_GROUPS_IO	64u
#define CR_ZONES_MAX	64u
#define CR_NO_HOLE	(~0u)

struct cr_rng {
	u64 state;
};

u32 cr_random(struct cr_rng *r, u32 n);

/* A write that no flush has covered, or the reset of a zone. */
struct cr_held {
	struct cr_held *next;
	u64 byte;
	u32 len;
	u32 group;
	bool complete;
	bool reset;
	u64 flush;		/* flush under way that covers it, 0: none */
	u8 data[];
};

/**
 * struct cr_dev - the device
 * @seen:   what is read
 * @safe:   what is left after a crash, before the held writes have had their chance
 * @left:   events to the next crash, 0: none will come
 * @zone:   capacity of a zone, 0: it is not zoned
 * @wp:     write pointers, from the starts of their zones
 * @safe_wp: likewise, after a crash
 * @hurt:   a write to the zone has failed since its last reset
 */
struct cr_dev {
	u8 *seen;
	u8 *safe;
	u64 bytes;
	struct cr_held *held;
	struct cr_held **tail;
	u32 next_group;
	u64 flushes;
	u32 left;
	jmp_buf *crash;
	struct cr_rng *rng;
	u64 zone;
	u64 wp[CR_ZONES_MAX];
	u64 safe_wp[CR_ZONES_MAX];
	bool hurt[CR_ZONES_MAX];
};

void cr_dev_init(struct cr_dev *d, u64 bytes, struct cr_rng *rng);
void cr_dev_fini(struct cr_dev *d);
u32 cr_dev_group(struct cr_dev *d);
int cr_dev_write(struct cr_dev *d, u32 group, u64 byte, const void *data, u32 len, bool fail);
void cr_dev_discard(struct cr_dev *d, u64 byte, u32 len);
void cr_dev_complete(struct cr_dev *d, u32 group);
u64 cr_dev_flush_start(struct cr_dev *d);
void cr_dev_flush_end(struct cr_dev *d, u64 flush);
bool cr_dev_crash(struct cr_dev *d);
void cr_dev_event(struct cr_dev *d);
int cr_dev_read(struct cr_dev *d, u64 byte, void *buf, u32 len);
struct cr_held *cr_dev_hold(struct cr_dev *d, u32 group, u64 byte, const void *data,
			    u32 len);
void cr_dev_apply(struct cr_dev *d, const struct cr_held *h, u32 len);

/* crash_zone.c */
u64 cr_zone_choose(u32 *seg_units, struct cr_rng *rng);
int cr_zone_write(struct cr_dev *d, u32 group, u64 byte, const void *data, u32 len, bool fail);
void cr_zone_reset(struct cr_dev *d, u64 byte, u64 len);
void cr_zone_crash(struct cr_dev *d, u32 mood);

/**
 * struct cr_ref - what the oracle knows of a name
 * @must:   version that must be found, 0: none has to be
 * @floor:  no version up to this may be found
 * @newest: put last
 * @cut:    no version behind this may be found without its parent: a mount that has not
 *          found the parent takes it off the records that are written later
 * @bare:   @must, if it must be found like that
 */
struct cr_ref {
	u32 must;
	u32 floor;
	u32 newest;
	u32 cut;
	u32 bare;
};

/* ... and of a namespace, whose definitions have numbers. */
struct cr_ref_ns {
	u64 id;			/* 0: none */
	bool must;		/* it has to be there */
	u32 def_must;		/* or a later one */
	u32 def;		/* given last */
};

struct cr_oracle {
	struct cr_ref name[CR_NAMES];
	struct cr_ref_ns ns[CR_SLOTS];
	u8 gone[CR_NS_MAX];	/* ids whose end has been acknowledged */
	u32 next_version;
	u64 next_ns;
};

enum cr_state {
	CR_FREE = 0,
	CR_READY,
	CR_DEAD,		/* has units or a move left */
};

/**
 * struct cr_block - an entry
 * @unit:     on the log, KVT_NO_UNIT: not there; with @mem, too: a copy
 * @new_unit: where it is being moved to
 * @keep_mem: it stays in memory when it has been demoted
 * @carried:  by the cleaner: it is there only when that is durable
 * @lost:     its batch was: it can be read where it is, but need not be found
 * @bare:     its record on the log is without the parent that it was put under
 * @charged:  its namespace has used its bytes; what is DEAD and is not lacks all but children
 */
struct cr_block {
	enum cr_state state;
	u32 name;
	u64 ns;
	u32 version;
	u32 stored;
	u32 sum;
	bool mem;
	bool moving;
	bool keep_mem;
	bool carried;
	bool lost;
	bool bare;
	bool charged;
	u32 unit;
	u32 new_unit;
};

struct cr_ns {
	u64 id;
	u64 used;		/* bytes, of its quota */
	u32 def;		/* number of its definition */
	bool dirty;		/* definition is not on the log yet */
	bool going;		/* being destroyed: not defined any more */
	bool fresh;		/* never defined on a log */
	struct kvt_ns_home home;
};

/* A write under way: a batch, a footer or the superblock. */
struct cr_io {
	enum { CR_IO_NONE, CR_IO_BATCH, CR_IO_FOOTER, CR_IO_SUPER } kind;
	u32 group;
	u32 handle;
	int err;
	u32 nr;
	u32 hole;		/* of a zoned device: this one's bytes could not be had */
	u64 byte;		/* superblock */
	u32 ids[CR_BATCH_BLOCKS];
};

/* A place on the log that is nobody's, and not given back yet. */
struct cr_stray {
	u32 unit;
	u32 units;
};

/* Definitions in a batch, the last of each; @unit: where its payload begins. */
struct cr_told {
	u32 unit;
	u64 ns[CR_SLOTS];
	u32 def[CR_SLOTS];
};

struct cr_todo {
	u32 seg;
	u32 unit;
	u64 life;
};

/**
 * struct cr_store - all that a crash forgets
 * @io:       under way
 * @table:    of links alone, with one chunk
 * @found_def: that was found of each namespace
 * @collect:  ids of the open batch of each head, and what it tells
 * @told:     by batches that are closed
 * @todo:     kills for records that recovery has not used
 */
struct cr_store {
	struct cr_dev *dev;
	struct cr_oracle *ora;
	struct cr_rng *rng;
	struct kvt_geometry geo;
	struct kvt_super super;
	struct kvt_super_log slog;
	struct kvt_log log;
	struct kvt_seg segs[CR_SEGS_MAX];
	struct kvt_wlog w;
	void *wmem;
	u64 seq;
	struct cr_block block[CR_BLOCKS];
	u32 by_name[CR_NAMES];
	struct kvt_table table;
	struct kvt_cold *chunk[1];
	struct kvt_cold cold[KVT_CHUNK_BLOCKS];
	struct cr_ns ns[CR_SLOTS];
	u32 found_def[CR_SLOTS];
	struct cr_io io[CR_GROUPS_IO];
	struct {
		u32 nr;
		u32 ids[CR_BATCH_BLOCKS];
		struct cr_told told;
	} collect[KVT_HEADS];
	struct cr_told told[KVT_WLOG_BATCHES];
	u64 flush_dev;
	u64 flush;
	u32 ids[2 * CR_SEGS_MAX][CR_IDS];
	bool ids_used[2 * CR_SEGS_MAX];
	struct cr_todo todo[CR_SEGS_MAX * CR_SEG_UNITS_MAX];
	u32 nr_todo;
	struct cr_stray stray[KVT_WLOG_BATCHES * CR_BATCH_BLOCKS];
	u32 nr_stray;
	u32 nr_mem;
	bool restored_durable;
	u32 write_errors;	/* one in so many, 0: none */
	u32 last_seg;		/* that was opened, when there was no other */
	bool last_for_bad;	/* ... for the end of one that cannot be written again, first */
	u64 *count;
};

/* What the run is made of, summed up in the end. */
enum cr_count {
	CR_N_OPS,
	CR_N_DURABLE,
	CR_N_FOUND,
	CR_N_CARRIED,
	CR_N_ENDS,
	CR_N_HOMED,
	CR_N_TRIMS,
	CR_N_FOOTERS,
	CR_N_DOOMED,
	CR_N_CLEAN,
	CR_N_UNSEALED,
	CR_N_BAD,
	CR_N_ERRORS,
	CR_N_STUCK,
	CR_N_SOFT,
	CR_N_COPIES,
	CR_N_SHED,
	CR_N_REUSED,
	CR_N_MUST,
	CR_N_RESETS,
	CR_N_TURNS,
	CR_N_FILLED,
	CR_N_HOLES,
	CR_N_HOPELESS,
	CR_N_SYNCED,
	CR_N_LINKED,
	CR_N_ORPHANS,
	CR_N_CYCLES,
	CR_N_DEFS,
	CR_N_QUOTA,
	CR_N_OVER,
	CR_NR_COUNTS,
};

void cr_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define CR_ASSERT(cond)							\
do {									\
	if (!(cond))							\
		cr_fail("%s:%d: does not hold: %s", __FILE__, __LINE__, #cond); \
} while (0)

/* crash_store.c */
u32 cr_name(u32 slot, u32 group, u32 key);
u32 cr_slot(u32 name);
u32 cr_stored(u32 name);
void cr_rec(const struct cr_store *s, u32 id, struct kvt_rec *r);
u32 cr_parent_of_rec(const struct kvt_rec *r, u32 name);
bool cr_name_of(const struct cr_store *s, const struct kvt_rec *r, u32 *name);
void cr_fill(u8 *buf, u32 stored, u32 name, u64 ns, u32 version);
u32 cr_version_of(const u8 *buf, u32 stored, u32 name, u64 ns);
u32 cr_sum(const u8 *buf, u32 stored);
void cr_reap(struct cr_store *s, u32 id);
void cr_gone(struct cr_store *s, u32 id);
void cr_copy(struct cr_store *s, u32 id, bool copy);
bool cr_shed(struct cr_store *s, u32 id);
void cr_evict(struct cr_store *s, u32 id);
bool cr_dead_for_good(struct cr_store *s, u32 slot, u32 name);
u32 cr_block_new(struct cr_store *s);
bool cr_trim(struct cr_store *s);
void cr_op(struct cr_store *s);
void cr_check(struct cr_store *s);
bool cr_shutdown(struct cr_store *s);

/* crash_chain.c */
u32 cr_parent_of(u32 name, u32 version);
u32 cr_parent_choose(const struct cr_store *s, u32 name);
void cr_links_init(struct cr_store *s);
void cr_link(struct cr_store *s, u32 id, u32 up);
u32 cr_linked(const struct cr_store *s, u32 id);
bool cr_bare(const struct cr_store *s, u32 id);
u32 cr_leaf(const struct cr_store *s, u32 id);
u32 cr_cut_cycles(struct cr_store *s);
bool cr_is_above(const struct cr_store *s, u32 above, u32 id);
void cr_check_links(const struct cr_store *s);

/* crash_ns.c */
u64 cr_quota(u64 ns, u32 def);
void cr_nsdef(const struct cr_store *s, u32 slot, struct kvt_nsdef *d);
enum kvt_wlog_status cr_tell_ns(struct cr_store *s, enum kvt_log_head head,
				struct kvt_nsdef *d, u32 stored);
bool cr_define_ns(struct cr_store *s, enum kvt_log_head head, u32 slot, u32 stored,
		  enum kvt_wlog_status *st);
bool cr_emit_ns(struct cr_store *s, u32 slot);
u64 cr_ns_first(const struct cr_store *s, u32 slot);
void cr_told_closed(struct cr_store *s, enum kvt_log_head head, const struct kvt_wlog_io *w);
void cr_told_durable(struct cr_store *s, const struct kvt_wlog_done *d);
void cr_ns_must(struct cr_store *s, u32 slot, u64 ns, u32 def);
void cr_charge(struct cr_store *s, u32 id, bool charged);
bool cr_quota_room(struct cr_store *s, u32 slot, u32 stored, u32 keep);
void cr_check_used(const struct cr_store *s);
void cr_op_ns_create(struct cr_store *s);
void cr_op_quota(struct cr_store *s);
void cr_op_ns_destroy(struct cr_store *s);

/* crash_io.c */
bool cr_satisfy(struct cr_store *s, enum kvt_log_head head, enum kvt_wlog_status st);
bool cr_put(struct cr_store *s, enum kvt_log_head head, u32 id, bool carry);
void cr_background(struct cr_store *s);
bool cr_progress(struct cr_store *s, bool kills);
bool cr_wait(struct cr_store *s, struct kvt_wlog_fence *f);
bool cr_flush(struct cr_store *s);
bool cr_write_super(struct cr_store *s, bool clean);
void cr_strays(struct cr_store *s);
void cr_close(struct cr_store *s, enum kvt_log_head head);
bool cr_open(struct cr_store *s, enum kvt_log_head head, bool urgent);
bool cr_seg_room(const struct cr_store *s, u32 seg, u32 unit);

/* crash_clean.c */
bool cr_end_one(struct cr_store *s);
void cr_todo_kills(struct cr_store *s);
bool cr_write_kills(struct cr_store *s);
void cr_clean_ends(struct cr_store *s);
bool cr_clean(struct cr_store *s, bool hard);

/* crash_mount.c */
void cr_format(struct cr_store *s, u32 nr_segs, u32 seg_units);
u64 cr_first_byte(u64 zone);
void cr_mount(struct cr_store *s);
void cr_refill(struct cr_store *s);

/* crash_image.c */
struct cr_dev *cr_image_make(u64 seed, u32 ops, bool clean, bool zoned);
struct cr_oracle *cr_image_oracle(void);
int cr_image(char **argv);
int cr_image_mount(char **argv);

#endif /* KVT_CRASH_H */
