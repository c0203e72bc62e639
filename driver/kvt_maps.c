// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings, as what they cost whoever takes memory away.
 *
 * unmap_mapping_range() goes to each mapping of an address_space that overlaps the range,
 * however little is mapped there, and nothing stops it. The pool's worker calls it for
 * everybody. So each namespace has an address_space of its own: a region's mappings are
 * those of its owner's files, and nobody else's are gone over. And each namespace has a
 * bounded number of mappings, so that taking a region away takes milliseconds.
 *
 * Counted are mappings as the kernel has them (a VMA each). mmap and what splits one are
 * refused at KVTIER_MAPS_MAX. fork cannot be refused from here: it may go on to
 * KVT_MAPS_FORKED; who goes past that is killed, which ends his fork.
 *
 * Whoever may open a namespace may map it, so the owner's are counted apart: others do not
 * use up his. What has been exported counts as others', for it is made to be given away.
 */
#include <linux/cred.h>
#include <linux/ratelimit.h>
#include <linux/sched/signal.h>

#include "kvt_internal.h"

#define KVT_MAPS_FORKED	(4 * KVTIER_MAPS_MAX)

/*
 * mmap counts a writable mapping where the file's f_mapping is when it begins, and takes that
 * back where it is when it ends. If NS_OPEN comes between, an inode loses one that it never
 * had; below 0, i_mmap_writable means that nobody may map it writably. Nothing here denies
 * that, so the counter starts far above 0 and is put back there when much of it has gone.
 */
#define KVT_MAPS_WRITABLE	(1 << 30)

int kvt_maps_init(struct kvt_maps *m)
{
	m->inode = kvt_inode_alloc();
	if (IS_ERR(m->inode))
		return PTR_ERR(m->inode);
	atomic_set(&m->inode->i_mapping->i_mmap_writable, KVT_MAPS_WRITABLE);
	return 0;
}

void kvt_maps_free(struct kvt_maps *m)
{
	if (!IS_ERR_OR_NULL(m->inode))
		iput(m->inode);
}

/**
 * kvt_maps_bind() - have a file's mappings found among a namespace's
 * @ns:   whose the file is from now on; it outlives the file's last mapping
 * @file: never mapped so far; an mmap of it may be under way
 */
void kvt_maps_bind(struct kvt_ns *ns, struct file *file)
{
	struct address_space *mapping = ns->maps.inode->i_mapping;
	int was = atomic_read(&mapping->i_mmap_writable);

	/* Each mmap that is overtaken takes one, and there are never half as many under way. */
	if (was < KVT_MAPS_WRITABLE / 2)
		atomic_cmpxchg(&mapping->i_mmap_writable, was, KVT_MAPS_WRITABLE);
	file->f_mapping = mapping;
}

/**
 * kvt_maps_of() - where the caller's mappings of a namespace count
 * @ns: of a bound file
 */
atomic_t *kvt_maps_of(struct kvt_ns *ns)
{
	bool owner;

	/* NS_CLAIM changes it. */
	spin_lock(&ns->pool->meta_lock);
	owner = uid_eq(ns->uid, current_fsuid());
	spin_unlock(&ns->pool->meta_lock);
	return &ns->maps.nr[owner ? KVT_MAPS_OWNER : KVT_MAPS_OTHERS];
}

/**
 * kvt_maps_add() - there is to be one more, by mmap
 * @nr: of kvt_maps_of()
 * Return: 0 or -ENOMEM, as mmap says of too many in one process.
 */
int kvt_maps_add(atomic_t *nr)
{
	if (atomic_inc_return(nr) <= KVTIER_MAPS_MAX)
		return 0;
	atomic_dec(nr);
	return -ENOMEM;
}

/**
 * kvt_maps_open() - there is one more, by fork, mremap or a split
 * @nr:  where it counts
 * @vma: it
 */
void kvt_maps_open(atomic_t *nr, const struct vm_area_struct *vma)
{
	/* Only fork makes them in another's memory. dup_mmap() looks for this signal. */
	if (atomic_inc_return(nr) <= KVT_MAPS_FORKED || vma->vm_mm == current->mm)
		return;
	pr_warn_ratelimited("kvtier: %s[%d] killed: its fork would make more than %u mappings of one namespace; map larger ranges, or madvise(MADV_DONTFORK)\n",
			    current->comm, task_pid_nr(current), KVT_MAPS_FORKED);
	send_sig(SIGKILL, current, 1);
}

/**
 * kvt_maps_may_split() - may one become two
 * @nr: where it counts
 * Return: 0 or -ENOMEM.
 */
int kvt_maps_may_split(const atomic_t *nr)
{
	return atomic_read(nr) < KVTIER_MAPS_MAX ? 0 : -ENOMEM;
}

/**
 * kvt_unmap() - take a range away from a namespace's files and buffers
 * @ns:     kept alive by the caller, who may sleep; after kvt_map_barrier()
 * @offset: in the pool's offset space
 * @bytes:  how many; 0: to its end
 */
void kvt_unmap(const struct kvt_ns *ns, u64 offset, u64 bytes)
{
	unmap_mapping_range(ns->maps.inode->i_mapping, (loff_t)offset, (loff_t)bytes, 1);
}

/* The inode of the next namespace from *@idx on, held. NULL: there is none. */
static struct inode *kvt_maps_next(struct kvt_pool *p, unsigned long *idx)
{
	struct inode *inode = NULL;
	struct kvt_ns *ns;

	/* Who frees one takes it out under this lock first. */
	spin_lock(&p->meta_lock);
	ns = xa_find(&p->ns, idx, ULONG_MAX, XA_PRESENT);
	if (ns) {
		inode = ns->maps.inode;
		ihold(inode);
	}
	spin_unlock(&p->meta_lock);
	++*idx;
	return inode;
}

/**
 * kvt_unmap_all() - take a range away from everybody
 * @p:      pool; may sleep; after kvt_map_barrier()
 * @offset: as of kvt_unmap()
 * @bytes:  same
 *
 * Namespaces that come meanwhile have nothing mapped of what may not be mapped any more.
 */
void kvt_unmap_all(struct kvt_pool *p, u64 offset, u64 bytes)
{
	struct inode *inode;
	unsigned long idx = 0;

	while ((inode = kvt_maps_next(p, &idx))) {
		unmap_mapping_range(inode->i_mapping, (loff_t)offset, (loff_t)bytes, 1);
		iput(inode);
		cond_resched();
	}
}
