/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting until a drained server has no connection left. */
#ifndef IPVSCTL_DRAIN_WAIT_H
#define IPVSCTL_DRAIN_WAIT_H

struct server;
struct svc_id;

/* Before the drain: from now on, no event is missed. */
void drain_listen(void);

/* Waits for opt.wait_secs at most, for events, or where the module has none by asking
 * every half second. Updates @srv. Returns an exit code: RC_OK also if the server was
 * removed, or if --kill ends what is left.
 */
int drain_wait(const struct svc_id *id, struct server *srv);

#endif
