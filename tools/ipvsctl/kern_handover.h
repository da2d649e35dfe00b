/* SPDX-License-Identifier: GPL-2.0 */
/* Connections as messages of the kernel, which only the kernel reads. */
#ifndef IPVSCTL_KERN_HANDOVER_H
#define IPVSCTL_KERN_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

#include "../../kernel/l4lb.h"

struct handover_message {
	const void *data;
	size_t len;		/* bytes, at most L4LB_HANDOVER_LEN */
	uint32_t records;	/* connections and templates in it */
	uint32_t left_out;	/* those that no message can tell */
};

struct handover_tally {
	uint64_t imported, no_server, full, unsupported;
};

/* Both return 0 or -errno: -EOPNOTSUPP if the kernel lacks the command. */

/* Calls @fn for each message of all connections. */
int kern_export(void (*fn)(const struct handover_message *m, void *arg),
		void *arg);
/* Sends a message; adds what became of its connections to @tally. */
int kern_import(const void *data, size_t len, struct handover_tally *tally);

#endif
