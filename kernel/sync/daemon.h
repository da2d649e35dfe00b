/* SPDX-License-Identifier: GPL-2.0 */
/* Synchronisation daemons of a namespace: the sending and the receiving one. */
#ifndef _L4LB_SYNC_DAEMON_H
#define _L4LB_SYNC_DAEMON_H

#include <linux/ip_vs.h>
#include <linux/jump_label.h>
#include <linux/netfilter.h>

#include "base/net.h"

struct netlink_ext_ack;

/**
 * struct l4lb_sync_config - what a daemon is started with
 * @state: %IP_VS_STATE_MASTER sends, %IP_VS_STATE_BACKUP receives
 * @ifname: device of the multicast group
 * @sync_id: as given; its low 8 bits are sent; 0 on a backup: any
 * @maxlen: bytes of a message, without UDP and IP; 0: default
 * @af: family of @group; 0: default group
 * @group: multicast address
 * @port: of the first thread; 0: default
 * @ttl: TTL or hop limit of messages; 0: default
 */
struct l4lb_sync_config {
	u32			state;
	char			ifname[IP_VS_IFNAME_MAXLEN];
	u32			sync_id;
	u16			maxlen;
	u8			af;
	union nf_inet_addr	group;
	u16			port;
	u8			ttl;
};

/* On while a receiving daemon runs in any namespace.  For a sending one there is
 * l4lb_conn_watched.
 */
DECLARE_STATIC_KEY_FALSE(l4lb_sync_receives);

/* Does the namespace leave the clients' packets to its own stack, because it is
 * only a backup (backup_only)?  Any context.
 */
static __always_inline bool l4lb_sync_stands_by(const struct l4lb_net *ln)
{
	return static_branch_unlikely(&l4lb_sync_receives) &&
	       READ_ONCE(ln->sync_receives) &&
	       READ_ONCE(ln->sysctl.backup_only);
}

/* Does a daemon run, or is one being started?  Configuration mutex held. */
bool l4lb_sync_runs(const struct l4lb_net *ln);

/* These may sleep; no lock may be held. */

int l4lb_sync_start(struct l4lb_net *ln, const struct l4lb_sync_config *config,
		    struct netlink_ext_ack *extack);
int l4lb_sync_stop(struct l4lb_net *ln, u32 state);
/* The configuration of a running daemon, defaults filled in. */
bool l4lb_sync_get(struct l4lb_net *ln, u32 state,
		   struct l4lb_sync_config *config);

/* What all parts of synchronisation need; kept until the namespace goes. */
int l4lb_sync_prepare(struct l4lb_net *ln);
/* From now on no server of another family can be added, and the module stays.
 * -EINVAL, -ENOMEM, -ENOPROTOOPT.
 */
int l4lb_sync_claim(struct l4lb_net *ln, struct netlink_ext_ack *extack);
void l4lb_sync_unclaim(struct l4lb_net *ln);

void l4lb_sync_net_stop(struct l4lb_net *ln);
void l4lb_sync_net_exit(struct l4lb_net *ln);

/* @changed is called when l4lb_sync_stands_by() may have changed, but for the
 * sysctl; it may sleep.
 */
int l4lb_sync_init(void (*changed)(struct l4lb_net *ln));
void l4lb_sync_exit(void);

#endif /* _L4LB_SYNC_DAEMON_H */
