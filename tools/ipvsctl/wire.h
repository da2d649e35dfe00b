/* SPDX-License-Identifier: GPL-2.0 */
/* One generic netlink socket, for the family IPVS and, if l4lb is loaded, L4LB.
 * Every wait has a time limit.
 */
#ifndef IPVSCTL_WIRE_H
#define IPVSCTL_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include <netlink/msg.h>

/* Called for each message of an answer. */
typedef void (*wire_reply_fn)(struct nlmsghdr *nlh, void *arg);

/* Enters the network namespace given with -N; may be called again. */
int wire_enter_netns(void);

/* Opens the socket and looks up the families. Returns an exit code, with the
 * failure recorded; may be called again.
 */
int wire_open(void);
void wire_close(void);

/* A request for IPVS command @cmd; attributes are added by the caller. */
struct nl_msg *wire_request(int cmd, int flags);

/* True if the kernel has the family L4LB; the wire must be open. */
bool wire_has_own(void);

/* The number of a multicast group of the family L4LB, or -errno: -ENOENT if there is none. */
int wire_own_group(const char *name);

/* A request for command @cmd of the family L4LB; needs wire_has_own(). */
struct nl_msg *wire_own_request(int cmd, int flags);

/* How often a dump is asked for that a change of the configuration has interrupted. */
enum { DUMP_TRIES = 5 };

/* Sends @msg, frees it, and reads the whole answer. Returns 0 or -errno:
 * -ETIMEDOUT if no answer came in time, -EINTR if a listing changed while it
 * was read.
 */
int wire_call(struct nl_msg *msg, wire_reply_fn fn, void *arg);

/* For reply functions: ignores the rest of the answer. The socket is closed;
 * wire_open() can open another.
 */
void wire_enough(void);

/* Like wire_call(), for a command of the family L4LB that may be too large for
 * libnl: @data has room for both headers, then the attributes. *offset is the
 * place in @data that a refusal points to, or 0.
 */
int wire_own_call_raw(void *data, size_t len, int cmd, size_t *offset);

/* Like wire_call(), for undoing after a refusal: keeps that wire_extack(). */
int wire_undo(struct nl_msg *msg);

/* The kernel's sentence (extended ACK) about the last refusal, or "". */
const char *wire_extack(void);

#endif
