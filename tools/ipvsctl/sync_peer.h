/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl sync` beyond ip_vs: other directors by address. */
#ifndef IPVSCTL_SYNC_PEER_H
#define IPVSCTL_SYNC_PEER_H

#include <jansson.h>

struct args;

/* Verbs; they return an exit code. */
int sync_peer(struct args *a);
int sync_resync(struct args *a);
int sync_push(struct args *a);
int sync_wait(struct args *a);
int sync_verify(struct args *a);

/* Prints peers and settings as lines, or adds them to @doc if that is not NULL;
 * nothing of them if the module does not know them. Returns an exit code.
 */
int sync_show_peers(json_t *doc);

#endif
