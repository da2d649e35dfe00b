// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.vs.run_estimation: 0 freezes the counters that readers see. */
#include "config/estimation.h"

#include "service/server.h"

void l4lb_stats_freeze_all(struct l4lb_net *ln, bool frozen)
{
	struct l4lb_service *svc;
	struct l4lb_server *server;

	lockdep_assert_held(&ln->lock);
	l4lb_stats_freeze(&ln->stats, frozen);
	list_for_each_entry(svc, &ln->services, list) {
		l4lb_stats_freeze(&svc->stats, frozen);
		list_for_each_entry(server, &svc->servers, node)
			l4lb_stats_freeze(&server->stats, frozen);
	}
}
