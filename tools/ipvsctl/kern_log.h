/* SPDX-License-Identifier: GPL-2.0 */
/* The log of connections that have ended, which in-tree ip_vs lacks. */
#ifndef IPVSCTL_KERN_LOG_H
#define IPVSCTL_KERN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

struct ended {
	struct conn conn;
	uint32_t why;		/* enum l4lb_end */
	uint64_t time;		/* nanoseconds since 1970 */
	uint64_t lasted;	/* milliseconds in the table */
	uint64_t idle;		/* those of them since the last packet */
	bool copy;		/* it came from another director or a file */
};

/* @lost: how many records did not arrive. */
struct log_reader {
	void (*fn)(const struct ended *e, void *arg);
	void (*lost)(uint64_t n, void *arg);
	void *arg;
};

/* These return 0 or -errno and record no failure; wire_open() comes first. */

/* -EOPNOTSUPP: the module has no log. */
int kern_log_open(void);
/* To be polled. */
int kern_log_fd(void);
/* Reads the records that have come, without waiting. */
int kern_log_read(const struct log_reader *r);
/* Those, too, that the kernel has not sent yet. */
int kern_log_finish(const struct log_reader *r);
void kern_log_close(void);

#endif
