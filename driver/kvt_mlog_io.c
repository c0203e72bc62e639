// SPDX-License-Identifier: GPL-2.0
/*
 * A member's input and output. See kvt_mlog.h for the model and the locks.
 */
#include "kvt_internal.h"
#include "kvt_mlog.h"

/**
 * kvt_mlog_rw() - read or write a member's structures
 * @t:     block tier; no spinlock held, sleeps
 * @byte:  of the device
 * @buf:   kernel memory of any kind
 * @len:   bytes; all three are multiples of 4096
 * @write: direction
 * @fua:   durable when this returns
 * Return: 0 or -EIO.
 */
int kvt_mlog_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write, bool fua)
{
	int err = t->ops->rw(t, byte, buf, len, write, fua);

	if (err)
		atomic64_inc(&t->count.io_errors);
	return err;
}

/**
 * kvt_mlog_flush_dev() - have all writes that have ended on the media
 * @t: block tier; no spinlock held, sleeps
 * Return: 0 or -EIO: the device may have forgotten anything.
 */
int kvt_mlog_flush_dev(struct kvt_tier *t)
{
	int err = t->ops->flush(t);

	if (err)
		atomic64_inc(&t->count.io_errors);
	return err;
}
