/* SPDX-License-Identifier: GPL-2.0 */
/* One generic-netlink socket, to the family IPVS and, where it is, to L4LB.
 * Every wait has an end.
 */
#ifndef IPVSCTL_WIRE_H
#define IPVSCTL_WIRE_H

#include <stdbool.h>
#include <stddef.h>

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

/* A request for IPVS command @cmd; attributes are added by the caller. */
struct nl_msg *wire_request(int cmd, int flags);

/* True if the family L4LB is there; asked of the kernel once. */
bool wire_has_own(void);

/* A request for command @cmd of the family L4LB, which is there. */
struct nl_msg *wire_own_request(int cmd, int flags);

/* Sends @msg, which it consumes, and reads the answer to its end. Returns 0
 * or -errno: -ETIMEDOUT when no answer came in time, -EINTR when a listing
 * changed while it was read.
 */
int wire_call(struct nl_msg *msg, wire_reply_fn fn, void *arg);

/* In a reply function: the rest of the answer is not wanted. The socket closes,
 * and wire_open() would open another.
 */
void wire_enough(void);

/* The same for a command of the family L4LB whose attributes are at @data,
 * after room for both headers, and too large for the above. *offset is where
 * in @data the refusal points to, or 0.
 */
int wire_own_call_raw(void *data, size_t len, int cmd, size_t *offset);

/* The same for a step back after a refusal, of which the sentence is kept. */
int wire_undo(struct nl_msg *msg);

/* The sentence the kernel gave with the last refusal, or "". */
const char *wire_extack(void);

#endif
