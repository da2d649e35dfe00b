/* SPDX-License-Identifier: GPL-2.0 */
/* One generic-netlink socket to the IPVS family. Every wait has an end. */
#ifndef IPVSCTL_WIRE_H
#define IPVSCTL_WIRE_H

#include <netlink/msg.h>

/* Called for each message of an answer. */
typedef void (*wire_reply_fn)(struct nlmsghdr *nlh, void *arg);

/* Enters the network namespace asked for with -N; harmless to repeat. */
int wire_enter_netns(void);

/* Opens the socket and finds the family. Returns an exit code, having said
 * what is missing; harmless to repeat.
 */
int wire_open(void);
void wire_close(void);

/* 1 if a generic-netlink family is there, 0 if not, -errno on trouble. */
int wire_family_present(const char *name);

/* A request for IPVS command @cmd; attributes are added by the caller. */
struct nl_msg *wire_request(int cmd, int flags);

/* Sends @msg, which it consumes, and reads the answer to its end. Returns 0
 * or -errno: -ETIMEDOUT when no answer came in time, -EINTR when a listing
 * changed while it was read.
 */
int wire_call(struct nl_msg *msg, wire_reply_fn fn, void *arg);

/* The sentence the kernel gave with the last refusal, or "". */
const char *wire_extack(void);

#endif
