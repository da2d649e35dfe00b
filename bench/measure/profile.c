// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts which instructions a guest runs between two marks.
 *
 *	-plugin profile.so,out=FILE
 *
 * A mark is the instruction MARK below, which nothing but the bench runs.  The
 * first starts the count, the second ends it and writes FILE: for each instruction
 * a line with its address and how often it was run.  QEMU may translate one
 * several times, and then it has several lines.
 *
 * QEMU's plugin interface (version 1, since 4.2) is declared here because
 * Debian's packages of QEMU have no header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

enum { QEMU_PLUGIN_INLINE_ADD_U64 };
enum { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*translated_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*executed_fn)(unsigned int cpu, void *arg);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated_fn fn);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int op,
						void *counter, uint64_t add);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_fn fn,
					    int flags, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

/* mov $0x424c344c, %eax */
static const unsigned char MARK[] = { 0xb8, 0x4c, 0x34, 0x4c, 0x42 };

/* The instructions of a block that QEMU has translated. */
struct block {
	struct block	*next;
	size_t		n;
	struct {
		uint64_t	address;
		uint64_t	run;		/* so far */
		uint64_t	before;		/* run, at the first mark */
	} insn[];
};

static struct block *blocks;
static const char *out;
static int marks;

static void write_counts(void)
{
	FILE *f = fopen(out, "w");

	if (!f) {
		perror(out);
		exit(1);
	}
	for (struct block *b = blocks; b; b = b->next)
		for (size_t i = 0; i < b->n; i++)
			if (b->insn[i].run != b->insn[i].before)
				fprintf(f, "%" PRIx64 " %" PRIu64 "\n", b->insn[i].address,
					b->insn[i].run - b->insn[i].before);
	fclose(f);
}

static void marked(unsigned int cpu, void *arg)
{
	if (++marks == 2)
		write_counts();
	for (struct block *b = blocks; marks == 1 && b; b = b->next)
		for (size_t i = 0; i < b->n; i++)
			b->insn[i].before = b->insn[i].run;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *b = calloc(1, sizeof(*b) + n * sizeof(b->insn[0]));

	if (!b)
		abort();
	b->n = n;
	b->next = blocks;
	blocks = b;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		b->insn[i].address = qemu_plugin_insn_vaddr(insn);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &b->insn[i].run, 1);
		if (qemu_plugin_insn_size(insn) == sizeof(MARK) &&
		    !memcmp(qemu_plugin_insn_data(insn), MARK, sizeof(MARK)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
			       char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "profile: give it out=FILE\n");
		return 1;
	}
	out = argv[0] + 4;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
