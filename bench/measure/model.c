// SPDX-License-Identifier: GPL-2.0
/*
 * Data caches: a first level for each CPU, a last level that all share.
 *
 * Both replace the line that was used least recently.  The last level includes
 * all lines of the first levels, and each use counts as a use there, too; a line
 * that it evicts leaves the first levels.  Its set is a hash of the address, as
 * in hardware, so that it does not matter which pages the kernel was given.
 *
 * Each line of the last level records which CPUs have used it since another CPU
 * wrote it, and whether its user wrote it.  The record stays when a first level
 * evicts the line, as if a second level of the CPU, of any size, still had it.
 *
 * Not modelled: prefetching, code, and time (misses do not overlap).
 */
#include "model.h"

#include <stdlib.h>

#define NO_LINE	UINT64_MAX

/* A line of the last level. */
struct shared {
	uint64_t	line;
	uint64_t	used;
	uint32_t	users;		/* a bit for each CPU */
	bool		written;	/* by its only user */
};

struct private {
	uint64_t	line;
	uint64_t	used;
	struct shared	*below;
};

struct cpu {
	struct private	l1[L1_SETS][L1_WAYS];
	struct counts	counts;
	uint64_t	fetched;	/* the last access got this line from another CPU */
};

struct model {
	struct shared	llc[LLC_SETS][LLC_WAYS];
	uint64_t	now;
	unsigned int	n_cpus;
	struct cpu	cpus[];
};

static unsigned int llc_set(uint64_t line)
{
	return (line ^ line >> 10 ^ line >> 20) % LLC_SETS;
}

unsigned int model_set(uint64_t address)
{
	return llc_set(address >> LINE_BITS);
}

static struct private *l1_find(struct cpu *cpu, uint64_t line)
{
	struct private *set = cpu->l1[line % L1_SETS];

	for (unsigned int i = 0; i < L1_WAYS; i++)
		if (set[i].line == line)
			return &set[i];
	return NULL;
}

static void l1_drop(struct cpu *cpu, uint64_t line)
{
	struct private *p = l1_find(cpu, line);

	if (p)
		*p = (struct private) { .line = NO_LINE };
}

static struct private *l1_fill(struct cpu *cpu, struct shared *s)
{
	struct private *set = cpu->l1[s->line % L1_SETS], *oldest = set;

	for (unsigned int i = 1; i < L1_WAYS; i++)
		if (set[i].used < oldest->used)
			oldest = &set[i];
	oldest->line = s->line;
	oldest->below = s;
	return oldest;
}

static void drop_all(struct model *m, const struct shared *s, unsigned int but)
{
	for (unsigned int i = 0; i < m->n_cpus; i++)
		if (i != but && s->users & 1U << i)
			l1_drop(&m->cpus[i], s->line);
}

/* The line's entry in the last level; on a miss it replaces the oldest. */
static struct shared *llc_get(struct model *m, struct cpu *cpu, uint64_t line)
{
	struct shared *set = m->llc[llc_set(line)], *oldest = set;

	for (unsigned int i = 0; i < LLC_WAYS; i++) {
		if (set[i].line == line)
			return &set[i];
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	cpu->counts.llc++;
	if (oldest->line != NO_LINE)
		drop_all(m, oldest, MAX_CPUS);
	*oldest = (struct shared) { .line = line };
	return oldest;
}

/* A read directly followed by a write to the same line (a lock, a counter)
 * counts as one transfer.
 */
static void share(struct model *m, unsigned int n, struct shared *s, bool write)
{
	struct cpu *cpu = &m->cpus[n];
	uint32_t self = 1U << n;
	bool again = cpu->fetched == s->line;

	cpu->fetched = NO_LINE;
	if (write ? s->users & ~self : s->written && !(s->users & self)) {
		if (!again)
			cpu->counts.transfers++;
		if (!write)
			cpu->fetched = s->line;
	}
	if (write) {
		drop_all(m, s, n);
		s->users = self;
		s->written = true;
	} else if (!(s->users & self)) {
		s->users |= self;
		s->written = false;
	}
}

static void use(struct model *m, unsigned int n, uint64_t line, bool write)
{
	struct cpu *cpu = &m->cpus[n];
	struct private *p = l1_find(cpu, line);

	cpu->counts.accesses++;
	if (!p) {
		cpu->counts.l1++;
		p = l1_fill(cpu, llc_get(m, cpu, line));
	}
	p->used = p->below->used = ++m->now;
	share(m, n, p->below, write);
}

void model_access(struct model *m, unsigned int cpu, uint64_t address, unsigned int bytes,
		  bool write)
{
	uint64_t last = (address + bytes - 1) >> LINE_BITS;

	for (uint64_t line = address >> LINE_BITS; line <= last; line++)
		use(m, cpu, line, write);
}

struct counts model_counts(const struct model *m, unsigned int cpu)
{
	return m->cpus[cpu].counts;
}

struct model *model_new(unsigned int cpus)
{
	struct model *m;

	if (cpus < 1 || cpus > MAX_CPUS)
		return NULL;
	m = calloc(1, sizeof(*m) + cpus * sizeof(m->cpus[0]));
	if (!m)
		return NULL;
	m->n_cpus = cpus;
	for (unsigned int i = 0; i < LLC_SETS * LLC_WAYS; i++)
		m->llc[i / LLC_WAYS][i % LLC_WAYS].line = NO_LINE;
	for (unsigned int n = 0; n < cpus; n++) {
		m->cpus[n].fetched = NO_LINE;
		for (unsigned int i = 0; i < L1_SETS * L1_WAYS; i++)
			m->cpus[n].l1[i / L1_WAYS][i % L1_WAYS].line = NO_LINE;
	}
	return m;
}

void model_free(struct model *m)
{
	free(m);
}
