// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts the misses of a guest's packets in modelled caches.
 *
 *	-plugin cache.so,out=FILE
 *
 * Four instructions are marks, which nothing but the bench runs.  ARM empties the
 * modelled caches; before the first ARM, the guest runs at full speed and nothing
 * is counted.  The packet generator runs BEGIN and END around each of its batches
 * (bench/gen/job.c): the CPU's reads and writes between them, interrupts
 * included, go through model.c.  REPORT adds a line to FILE with the sums over
 * all CPUs since ARM or the last REPORT:
 *
 *	ACCESSES L1-MISSES LAST-LEVEL-MISSES TRANSFERS
 *
 * Addresses are physical.  Only the first ARM has QEMU translate all code again:
 * QEMU 7.2 may keep pointers to its data about translated reads and writes, and
 * crashes when these data are thrown away once more.
 *
 * QEMU's plugin interface (version 1, since 4.2) is declared here because
 * Debian's packages of QEMU have no header.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_info;

enum { QEMU_PLUGIN_CB_NO_REGS };
enum { QEMU_PLUGIN_MEM_RW = 3 };

typedef void (*simple_fn)(qemu_plugin_id_t id);
typedef void (*translated_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*executed_fn)(unsigned int cpu, void *arg);
typedef void (*memory_fn)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address,
			  void *arg);

void qemu_plugin_reset(qemu_plugin_id_t id, simple_fn fn);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated_fn fn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_fn fn,
					    int flags, void *arg);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, memory_fn fn, int flags,
				      int kinds, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *where);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *where);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

/* mov $0x424c344c, %eax and so on */
enum mark { ARM, BEGIN, END, REPORT, N_MARKS };
static const unsigned char MARKS[N_MARKS][5] = {
	[ARM]	= { 0xb8, 0x4c, 0x34, 0x4c, 0x42 },
	[BEGIN]	= { 0xb8, 0x4d, 0x34, 0x4c, 0x42 },
	[END]	= { 0xb8, 0x4e, 0x34, 0x4c, 0x42 },
	[REPORT] = { 0xb8, 0x4f, 0x34, 0x4c, 0x42 },
};

/* Without locks, as QEMU runs all CPUs in one thread with -icount. */
static qemu_plugin_id_t self;
static struct model *model;
static struct counts reported;
static bool inside[MAX_CPUS];
static FILE *out;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void installed(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

static void arm(unsigned int cpu, void *arg)
{
	bool first = !model;

	memset(inside, 0, sizeof(inside));
	reported = (struct counts) { };
	model_free(model);
	model = model_new(MAX_CPUS);
	if (!model)
		abort();
	/* Translate all code again, now with calls of access(). */
	if (first)
		qemu_plugin_reset(self, installed);
}

static void begin(unsigned int cpu, void *arg)
{
	if (model && cpu < MAX_CPUS)
		inside[cpu] = true;
}

static void end(unsigned int cpu, void *arg)
{
	if (cpu < MAX_CPUS)
		inside[cpu] = false;
}

static void report(unsigned int cpu, void *arg)
{
	struct counts now = { };

	if (!model)
		return;
	for (unsigned int i = 0; i < MAX_CPUS; i++) {
		struct counts one = model_counts(model, i);

		now.accesses += one.accesses;
		now.l1 += one.l1;
		now.llc += one.llc;
		now.transfers += one.transfers;
	}
	fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		now.accesses - reported.accesses, now.l1 - reported.l1,
		now.llc - reported.llc, now.transfers - reported.transfers);
	fflush(out);
	reported = now;
}

static void access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *arg)
{
	struct qemu_plugin_hwaddr *where;

	if (cpu >= MAX_CPUS || !inside[cpu])
		return;
	where = qemu_plugin_get_hwaddr(info, address);
	if (!where || qemu_plugin_hwaddr_is_io(where))
		return;
	model_access(model, cpu, qemu_plugin_hwaddr_phys_addr(where),
		     1U << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const executed_fn handlers[N_MARKS] = { arm, begin, end, report };
	size_t n = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (model)
			qemu_plugin_register_vcpu_mem_cb(insn, access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
		if (qemu_plugin_insn_size(insn) != sizeof(MARKS[0]))
			continue;
		for (enum mark m = 0; m < N_MARKS; m++)
			if (!memcmp(qemu_plugin_insn_data(insn), MARKS[m], sizeof(MARKS[m])))
				qemu_plugin_register_vcpu_insn_exec_cb(
					insn, handlers[m], QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
			       char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "cache: give it out=FILE\n");
		return 1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return 1;
	}
	self = id;
	installed(id);
	return 0;
}
