// SPDX-License-Identifier: GPL-2.0
/*
 * A network device that receives what it is told to send, in the buffers of a card
 * that splits frames: the first @split bytes are where XDP programs look, the rest is
 * in a page of its own.  Devices of kind "l4lb_frames"; 0: one buffer for a frame.
 */
#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <net/rtnetlink.h>
#include <net/xdp.h>

static unsigned int split;
module_param(split, uint, 0644);
MODULE_PARM_DESC(split, "bytes of a frame in its first buffer; 0: all");

struct frames {
	struct bpf_prog		*prog;	/* written under RTNL */
	struct xdp_rxq_info	rxq;
};

enum { ROOM = PAGE_SIZE - XDP_PACKET_HEADROOM -
	      SKB_DATA_ALIGN(sizeof(struct skb_shared_info)) };

/* Puts what is behind the first buffer into a page. */
static int add_rest(struct xdp_buff *xdp, const struct sk_buff *skb, unsigned int at)
{
	struct skb_shared_info *info = xdp_get_shared_info_from_buff(xdp);
	unsigned int rest = skb->len - at;
	struct page *page = rest > PAGE_SIZE ? NULL : alloc_page(GFP_ATOMIC);

	if (!page)
		return -ENOMEM;
	skb_copy_bits(skb, at, page_address(page), rest);
	memset(info, 0, sizeof(*info));
	__skb_fill_page_desc_noacc(info, 0, page, 0, rest);
	info->nr_frags = 1;
	info->xdp_frags_size = rest;
	xdp_buff_set_frags_flag(xdp);
	return 0;
}

static int fill(struct xdp_buff *xdp, const struct sk_buff *skb, struct page *page)
{
	unsigned int at = min(READ_ONCE(split) ?: skb->len, skb->len);

	if (at > ROOM)
		return -EMSGSIZE;
	xdp_prepare_buff(xdp, page_address(page), XDP_PACKET_HEADROOM, at, false);
	skb_copy_bits(skb, 0, xdp->data, at);
	return at < skb->len ? add_rest(xdp, skb, at) : 0;
}

static void pass(struct net_device *dev, struct xdp_buff *xdp)
{
	unsigned int rest = xdp_get_buff_len(xdp) - (xdp->data_end - xdp->data);
	struct sk_buff *skb = build_skb(xdp->data_hard_start, PAGE_SIZE);

	if (!skb) {
		xdp_return_buff(xdp);
		return;
	}
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	if (rest)
		xdp_update_skb_shared_info(skb, 1, rest, PAGE_SIZE, false);
	skb->protocol = eth_type_trans(skb, dev);
	netif_rx(skb);
}

static void receive(struct net_device *dev, struct xdp_buff *xdp)
{
	struct frames *priv = netdev_priv(dev);
	struct bpf_prog *prog = READ_ONCE(priv->prog);

	switch (prog ? bpf_prog_run_xdp(prog, xdp) : XDP_PASS) {
	case XDP_PASS:
		pass(dev, xdp);
		return;
	case XDP_REDIRECT:
		if (!xdp_do_redirect(dev, xdp, prog)) {
			xdp_do_flush();
			return;
		}
		fallthrough;
	default:
		xdp_return_buff(xdp);
	}
}

static netdev_tx_t frames_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct bpf_net_context context, *before;
	struct frames *priv = netdev_priv(dev);
	struct page *page = alloc_page(GFP_ATOMIC);
	struct xdp_buff xdp;

	if (page) {
		xdp_init_buff(&xdp, PAGE_SIZE, &priv->rxq);
		before = l4lb_redirect_begin(&context);
		if (fill(&xdp, skb, page))
			__free_page(page);
		else
			receive(dev, &xdp);
		l4lb_redirect_end(before);
	}
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static int frames_bpf(struct net_device *dev, struct netdev_bpf *command)
{
	struct frames *priv = netdev_priv(dev);
	struct bpf_prog *old;

	if (command->command != XDP_SETUP_PROG)
		return -EINVAL;
	old = xchg(&priv->prog, command->prog);
	synchronize_net();
	if (old)
		bpf_prog_put(old);
	return 0;
}

static int frames_init(struct net_device *dev)
{
	struct frames *priv = netdev_priv(dev);
	int err = xdp_rxq_info_reg(&priv->rxq, dev, 0, 0);

	if (!err)
		err = xdp_rxq_info_reg_mem_model(&priv->rxq, MEM_TYPE_PAGE_ORDER0, NULL);
	return err;
}

static void frames_uninit(struct net_device *dev)
{
	struct frames *priv = netdev_priv(dev);

	xdp_rxq_info_unreg(&priv->rxq);
}

static const struct net_device_ops frames_ops = {
	.ndo_init		= frames_init,
	.ndo_uninit		= frames_uninit,
	.ndo_start_xmit		= frames_xmit,
	.ndo_bpf		= frames_bpf,
};

static void frames_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &frames_ops;
	dev->needs_free_netdev = true;
	dev->max_mtu = ETH_MAX_MTU;
	dev->priv_flags |= IFF_NO_QUEUE;
	eth_hw_addr_random(dev);
}

static struct rtnl_link_ops frames_link = {
	.kind		= "l4lb_frames",
	.priv_size	= sizeof(struct frames),
	.setup		= frames_setup,
};

static int __init frames_module_init(void)
{
	return rtnl_link_register(&frames_link);
}

static void __exit frames_module_exit(void)
{
	rtnl_link_unregister(&frames_link);
}

module_init(frames_module_init);
module_exit(frames_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb tests: a device that splits frames");
