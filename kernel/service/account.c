// SPDX-License-Identifier: GPL-2.0
/* The ends of counting intervals, which packets notice. */
#include "service/account.h"

bool l4lb_account_interval(struct l4lb_server *server, struct l4lb_service *svc,
			   enum l4lb_stats_event event, unsigned int len)
{
	struct l4lb_stats *const all[] = {
		&server->ln->stats, &svc->stats, &server->stats,
	};
	unsigned long end, first = jiffies + MAX_JIFFY_OFFSET;
	int i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		end = l4lb_stats_end_interval(all[i]);
		if (time_before(end, first))
			first = end;
	}
	if (!l4lb_stats_begin(&server->stats, event, len))
		return false;
	smp_store_release(&server->stats.due, first);	/* after .cpu */
	return true;
}
