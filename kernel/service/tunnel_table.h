/* SPDX-License-Identifier: GPL-2.0 */
/* Which tunnels lead to an address: real servers with method tunnel. */
#ifndef _L4LB_TUNNEL_TABLE_H
#define _L4LB_TUNNEL_TABLE_H

#include "service/server.h"

/* Packet path, RCU: could a tunnel of any real server have made a packet with
 * this outer header?
 */
bool l4lb_tunnel_known(struct l4lb_net *ln, const struct l4lb_flow *outer);

/* Packet path, RCU: is there a real server of this address, with any forwarding
 * method?  Also a removed one, as long as it may have connections.
 */
bool l4lb_tunnel_is_server(struct l4lb_net *ln, const union nf_inet_addr *addr,
			   u8 af);

/* Could a tunnel of type and port @tun? */
bool l4lb_tunnel_carries(struct l4lb_tun tun, const struct l4lb_flow *outer);

/* Configuration mutex held.  add(): may sleep, 0 or a negative errno; the real
 * server's address is known until del().  Its tunnel counts from the next
 * update() on, which follows each change of its method or tunnel, until it is
 * removed from its service: unlist().
 */
int l4lb_tunnel_add(struct l4lb_server *server);
void l4lb_tunnel_update(struct l4lb_server *server);
void l4lb_tunnel_unlist(struct l4lb_server *server);
void l4lb_tunnel_del(struct l4lb_server *server);

int l4lb_tunnel_net_init(struct l4lb_net *ln);
void l4lb_tunnel_net_exit(struct l4lb_net *ln);

#endif /* _L4LB_TUNNEL_TABLE_H */
