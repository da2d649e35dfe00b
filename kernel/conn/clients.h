/* SPDX-License-Identifier: GPL-2.0 */
/* The clients of a service's connections. */
#ifndef _L4LB_CONN_CLIENTS_H
#define _L4LB_CONN_CLIENTS_H

#include "service/trial.h"

/* Gives @trial the clients of the connections that its service has in @ln; of more than
 * %L4LB_TRIAL_LIVE_MAX a sample.  May sleep, for each connection of the namespace;
 * no lock held.  Return: 0, -ENOMEM, or -EINTR: the caller is to die.
 */
int l4lb_conn_clients(struct l4lb_net *ln, struct l4lb_trial *trial);

#endif /* _L4LB_CONN_CLIENTS_H */
