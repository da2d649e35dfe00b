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
 * struct counts - accesses of one CPU
 * @accesses: to lines: an access that crosses into the next line counts as two
 * @l1: those that missed the CPU's first level
 * @llc: those that missed the last level, too
 * @transfers: those that needed another CPU's caches: a read of a line that it
 *	wrote last, or a write to a line that it has used and now loses
 */
struct counts {
	uint64_t	accesses;
	uint64_t	l1;
	uint64_t	llc;
	uint64_t	transfers;
};

struct model;

/* Returns NULL without memory, or if @cpus is not 1 to MAX_CPUS. */
struct model *model_new(unsigned int cpus);
void model_free(struct model *m);
void model_access(struct model *m, unsigned int cpu, uint64_t address, unsigned int bytes,
		  bool write);
struct counts model_counts(const struct model *m, unsigned int cpu);
/* The last level's set for the line at @address. */
unsigned int model_set(uint64_t address);

#endif /* _L4LB_MODEL_H */
