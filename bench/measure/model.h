/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of the data caches of a small server, see model.c.
 */
#ifndef _L4LB_MODEL_H
#define _L4LB_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LINE_BITS	= 6,		/* 64 bytes */
	L1_SETS		= 64,		/* 32 KiB */
	L1_WAYS		= 8,
	LLC_SETS	= 1024,		/* 1 MiB */
	LLC_WAYS	= 16,
	MAX_CPUS	= 8,
};

/**
 * struct counts - what one CPU has done
 * @accesses: to lines: one that crosses into the next counts as two
 * @l1: of these, how many its first level had not
 * @llc: of those, how many the last level had not either
 * @transfers: accesses that wanted something of another CPU's caches: a line
 *	that it had written last, or that it gives up a line that is written now
 */
struct counts {
	uint64_t	accesses;
	uint64_t	l1;
	uint64_t	llc;
	uint64_t	transfers;
};

struct model;

/* NULL: no memory, or @cpus is not 1 to MAX_CPUS. */
struct model *model_new(unsigned int cpus);
void model_free(struct model *m);
void model_access(struct model *m, unsigned int cpu, uint64_t address, unsigned int bytes,
		  bool write);
struct counts model_counts(const struct model *m, unsigned int cpu);
/* The set of the last level that the line at @address goes to. */
unsigned int model_set(uint64_t address);

#endif /* _L4LB_MODEL_H */
