/* SPDX-License-Identifier: GPL-2.0 */
/* A multicast group of the family L4LB whose records the kernel numbers. */
#ifndef IPVSCTL_KERN_GROUP_H
#define IPVSCTL_KERN_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct nlattr;
struct nlmsghdr;
struct nl_sock;

struct group {
	const char *name;	/* L4LB_GENL_* */
	int cmd;		/* of its messages; it also asks for the last number */
	bool batches;		/* a message has L4LB_ATTR_COUNT records, not one */
	struct nl_sock *sock;
	uint64_t last;		/* number of the last record */
	bool overrun;		/* the socket had no room for some */
	bool gone;		/* the module was unloaded */
};

/* @fn gets a message and its attributes; @lost how many records did not arrive. */
struct group_reader {
	void (*fn)(struct nlmsghdr *nlh, struct nlattr **top, void *arg);
	void (*lost)(uint64_t n, void *arg);
	void *arg;
};

/* These return 0 or -errno and record no failure; wire_open() comes first. */

/* Joins it. -EOPNOTSUPP: the module has no such group or command. */
int group_open(struct group *g);
/* To be polled. */
int group_fd(const struct group *g);
/* Reads what has come, without waiting, or some of it: then there is more to be polled.
 * -ENODEV: the module was unloaded; nothing comes any more, also when it is back.
 */
int group_read(struct group *g, const struct group_reader *r);
/* Has the kernel send what it has collected, and reads that, too. */
int group_finish(struct group *g, const struct group_reader *r);
void group_close(struct group *g);

#endif
