// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin: what a guest's packets miss in modelled data caches.
 *
 *	-plugin cache.so,out=FILE
 *
 * Three instructions are marks, which nothing but the bench runs: ARM begins,
 * and ends the next time; the packet generator's BEGIN and END (bench/gen/job.c)
 * are around each of its jobs.  While it is armed, what a CPU reads and writes
 * between BEGIN and END goes through model.c, whatever else the CPU does there,
 * and each END adds a line to FILE:
 *
 *	CPU ACCESSES L1-MISSES LAST-LEVEL-MISSES TRANSFERS
 *
 * The model begins empty whenever it is armed.  Addresses are physical.  Code is
 * translated anew when that changes, so that nothing is slower before and after.
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
enum mark { ARM, BEGIN, END, N_MARKS };
static const unsigned char MARKS[N_MARKS][5] = {
	[ARM]	= { 0xb8, 0x4c, 0x34, 0x4c, 0x42 },
	[BEGIN]	= { 0xb8, 0x4d, 0x34, 0x4c, 0x42 },
	[END]	= { 0xb8, 0x4e, 0x34, 0x4c, 0x42 },
};

/* QEMU runs the CPUs in turn, in one thread: -icount. */
static qemu_plugin_id_t self;
static struct model *model;
static struct counts before[MAX_CPUS];
static bool inside[MAX_CPUS];
static bool armed;
static FILE *out;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void installed(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

static void arm(unsigned int cpu, void *arg)
{
	armed = !armed;
	memset(inside, 0, sizeof(inside));
	model_free(model);
	model = armed ? model_new(MAX_CPUS) : NULL;
	if (armed && !model)
		abort();
	qemu_plugin_reset(self, installed);
}

static void begin(unsigned int cpu, void *arg)
{
	if (!armed || cpu >= MAX_CPUS)
		return;
	inside[cpu] = true;
	before[cpu] = model_counts(model, cpu);
}

static void end(unsigned int cpu, void *arg)
{
	struct counts now, was;

	if (!armed || cpu >= MAX_CPUS || !inside[cpu])
		return;
	inside[cpu] = false;
	now = model_counts(model, cpu);
	was = before[cpu];
	fprintf(out, "%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cpu,
		now.accesses - was.accesses, now.l1 - was.l1, now.llc - was.llc,
		now.transfers - was.transfers);
	fflush(out);
}

static void access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *arg)
{
	struct qemu_plugin_hwaddr *where;

	if (!armed || cpu >= MAX_CPUS || !inside[cpu])
		return;
	where = qemu_plugin_get_hwaddr(info, address);
	if (!where || qemu_plugin_hwaddr_is_io(where))
		return;
	model_access(model, cpu, qemu_plugin_hwaddr_phys_addr(where),
		     1U << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const executed_fn handlers[N_MARKS] = { arm, begin, end };
	size_t n = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (armed)
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
