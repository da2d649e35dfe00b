// SPDX-License-Identifier: GPL-2.0
/*
 * XDP in a device of kind l4lb_gen, as a card's driver has it: frames are built in
 * pages of a pool and shown to the program; those that it passes become packets.
 * As a sink, a device counts and recycles frames that are redirected to it.
 */
#include "gen.h"

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/skbuff.h>
#include <net/xdp.h>
#include L4LB_PAGE_POOL_H

enum { POOL = 256 };	/* pages */

int gen_xdp_init(struct net_device *dev)
{
	struct page_pool_params params = {
		.pool_size = POOL, .nid = NUMA_NO_NODE, .dev = NULL,
	};
	struct gen_priv *priv = netdev_priv(dev);
	int err;

	priv->pool = page_pool_create(&params);
	if (IS_ERR(priv->pool))
		return PTR_ERR(priv->pool);
	err = xdp_rxq_info_reg(&priv->rxq, dev, 0, 0);
	if (err)
		goto destroy;
	err = xdp_rxq_info_reg_mem_model(&priv->rxq, MEM_TYPE_PAGE_POOL,
					 priv->pool);
	if (err)
		goto unregister;
	l4lb_dev_set_takes_frames(dev);
	return 0;

unregister:
	xdp_rxq_info_unreg(&priv->rxq);
destroy:
	page_pool_destroy(priv->pool);
	return err;
}

/* The pool goes with the queue. */
void gen_xdp_exit(struct net_device *dev)
{
	struct gen_priv *priv = netdev_priv(dev);

	xdp_rxq_info_unreg(&priv->rxq);
}

int gen_bpf(struct net_device *dev, struct netdev_bpf *command)
{
	struct gen_priv *priv = netdev_priv(dev);
	struct bpf_prog *old;

	if (command->command != XDP_SETUP_PROG)
		return -EINVAL;
	old = xchg(&priv->prog, command->prog);
	synchronize_net();
	if (old)
		bpf_prog_put(old);
	return 0;
}

int gen_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames,
		 u32 flags)
{
	struct gen_priv *priv = netdev_priv(dev);
	int i;

	for (i = 0; i < n; i++) {
		gen_sink_count(priv, frames[i]->data, frames[i]->len);
		xdp_return_frame_rx_napi(frames[i]);
	}
	return n;
}

static void pass(struct net_device *dev, struct xdp_buff *xdp,
		 struct page_pool *pool)
{
	struct sk_buff *skb = build_skb(xdp->data_hard_start, PAGE_SIZE);

	if (!skb) {
		page_pool_recycle_direct(pool, virt_to_page(xdp->data_hard_start));
		return;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	skb->protocol = eth_type_trans(skb, dev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	netif_receive_skb(skb);
}

bool gen_has_program(const struct net_device *dev)
{
	return READ_ONCE(((struct gen_priv *)netdev_priv(dev))->prog);
}

/* BH off, inside l4lb_redirect_begin() and _end(); xdp_do_flush() follows. */
bool gen_xdp_frame(struct net_device *dev, const struct gen_template *t,
		   u32 number, u32 other)
{
	struct gen_priv *priv = netdev_priv(dev);
	struct page *page = page_pool_dev_alloc_pages(priv->pool);
	/* It may be taken off meanwhile: gen_bpf() waits until nobody uses it. */
	struct bpf_prog *prog = READ_ONCE(priv->prog);
	struct xdp_buff xdp;

	if (unlikely(!page))
		return false;
	xdp_init_buff(&xdp, PAGE_SIZE, &priv->rxq);
	xdp_prepare_buff(&xdp, page_address(page), XDP_PACKET_HEADROOM, t->len,
			 false);
	gen_fill(t, xdp.data, number, other);
	switch (prog ? bpf_prog_run_xdp(prog, &xdp) : XDP_PASS) {
	case XDP_PASS:
		pass(dev, &xdp, priv->pool);
		break;
	case XDP_TX:
		gen_sink_count(priv, xdp.data, xdp.data_end - xdp.data);
		page_pool_recycle_direct(priv->pool, page);
		break;
	case XDP_REDIRECT:
		if (!xdp_do_redirect(dev, &xdp, prog))
			break;
		fallthrough;
	default:
		page_pool_recycle_direct(priv->pool, page);
	}
	return true;
}
