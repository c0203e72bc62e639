/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How far an assembly is, on one line of the terminal that is written over and over, and
 * erased in the end. Nothing is shown where there is no terminal, or JSON is wanted.
 */
#ifndef KVTIER_ASSEMBLE_WATCH_H
#define KVTIER_ASSEMBLE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ASSEMBLE_WATCH_IDS	256

/**
 * struct assemble_watch - a thread that looks while the kernel is at work
 * @stop:   an eventfd that ends it; -1: there is none
 * @id:     number that was asked for, or KVTIER_POOL_ANY_ID
 * @others: numbers of pools that were being assembled before
 */
struct assemble_watch {
	pthread_t thread;
	int stop;
	uint32_t id;
	bool others[ASSEMBLE_WATCH_IDS];
};

/* Before the kernel is asked. What fails here costs the line, and nothing else. */
void assemble_watch_begin(struct assemble_watch *w, uint32_t id);

/* When it has answered; the line is gone afterwards. */
void assemble_watch_end(struct assemble_watch *w);

#endif /* KVTIER_ASSEMBLE_WATCH_H */
