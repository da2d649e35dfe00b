// SPDX-License-Identifier: GPL-2.0
/* A reply gets the priority of the band that its connection has reached. */
#include "forward/las_reply.h"

#include "service/las.h"

static void count(const struct l4lb_bands *bands, unsigned int band,
		  unsigned int len)
{
	struct l4lb_bands_cpu *b = this_cpu_ptr(bands->cpu);

	u64_stats_update_begin(&b->syncp);
	u64_stats_inc(&b->packets[band]);
	u64_stats_add(&b->bytes[band], len);
	u64_stats_update_end(&b->syncp);
}

/**
 * l4lb_las_band() - put a reply into the band of its connection
 * @skb: the reply; its priority becomes the band's number
 * @conn: the connection, with use %L4LB_USE_SERVED
 * @len: bytes of the IP packet
 *
 * While the service's priority is off, replies are neither marked nor counted.
 * When it is on again, @conn continues with the byte count it had before.
 *
 * Context: RCU, BH off.
 */
void l4lb_las_band(struct sk_buff *skb, struct l4lb_conn *conn,
		   unsigned int len)
{
	const struct l4lb_service *svc = rcu_dereference(conn->server->svc);
	u32 served = READ_ONCE(conn->served);
	unsigned int band = 0;

	if (!svc)
		return;
	/* Pairs with l4lb_las_set(): svc->bands is set before the priority. */
	if (smp_load_acquire(&svc->policy.priority) != L4LB_PRIORITY_LAS)
		return;
	while (band < L4LB_BANDS - 1 &&
	       served >= READ_ONCE(svc->band_ends[band]))
		band++;
	/* Not atomic: if two CPUs write at once, one packet is not counted. */
	WRITE_ONCE(conn->served, min_t(u64, (u64)served + len, U32_MAX - 1));
	skb->priority = band;
	count(READ_ONCE(svc->bands), band, len);
}
