// SPDX-License-Identifier: GPL-2.0
/*
 * The sink: an Ethernet device that counts and frees the packets that it
 * should send, and keeps the headers of every 256th.  It has no queue and no
 * offloads and takes no lock, so it adds next to nothing to a packet's time.
 */
#include "gen.h"

#include <linux/etherdevice.h>
#include <linux/percpu.h>
#include <linux/rtnetlink.h>
#include <net/rtnetlink.h>

enum { SAMPLE_EVERY = 256 };

void gen_sink_count(struct gen_priv *priv, const void *data, unsigned int len)
{
	struct gen_sink *sink = this_cpu_ptr(priv->sink);

	if (unlikely(is_multicast_ether_addr(data)))
		return;
	if (unlikely(sink->packets % SAMPLE_EVERY == 0)) {
		sink->sample_len = min_t(u32, len, GEN_SAMPLE);
		memcpy(sink->sample, data, sink->sample_len);
	}
	sink->packets++;
	sink->bytes += len;
}

static netdev_tx_t gen_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct gen_priv *priv = netdev_priv(dev);
	struct gen_sink *sink = this_cpu_ptr(priv->sink);

	/* From the host itself: neighbour discovery, multicast reports. */
	if (unlikely(is_multicast_ether_addr(skb->data)))
		goto out;
	if (unlikely(sink->packets % SAMPLE_EVERY == 0)) {
		sink->sample_len = min_t(u32, skb->len, GEN_SAMPLE);
		if (skb_copy_bits(skb, 0, sink->sample, sink->sample_len))
			sink->sample_len = 0;
	}
	sink->packets++;
	sink->bytes += skb->len;
	if (unlikely(READ_ONCE(priv->role)))
		gen_answer(dev, skb, priv->role);
out:
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static int gen_dev_init(struct net_device *dev)
{
	struct gen_priv *priv = netdev_priv(dev);
	int err = -ENOMEM;

	priv->sink = alloc_percpu(struct gen_sink);
	priv->talk = alloc_percpu(struct gen_talk);
	if (priv->sink && priv->talk)
		err = gen_xdp_init(dev);
	if (err) {
		free_percpu(priv->sink);
		free_percpu(priv->talk);
	}
	return err;
}

static void gen_dev_uninit(struct net_device *dev)
{
	struct gen_priv *priv = netdev_priv(dev);

	gen_xdp_exit(dev);
	free_percpu(priv->sink);
	free_percpu(priv->talk);
}

static const struct net_device_ops gen_dev_ops = {
	.ndo_init		= gen_dev_init,
	.ndo_uninit		= gen_dev_uninit,
	.ndo_start_xmit		= gen_xmit,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_bpf		= gen_bpf,
	.ndo_xdp_xmit		= gen_xdp_xmit,
};

static void gen_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &gen_dev_ops;
	dev->needs_free_netdev = true;
	dev->priv_flags |= IFF_NO_QUEUE | IFF_LIVE_ADDR_CHANGE;
	dev->max_mtu = ETH_MAX_MTU;
	l4lb_dev_lltx(dev);
	eth_hw_addr_random(dev);
}

static struct rtnl_link_ops gen_link_ops = {
	.kind		= "l4lb_gen",
	.priv_size	= sizeof(struct gen_priv),
	.setup		= gen_setup,
};

bool gen_is_ours(const struct net_device *dev)
{
	return dev->netdev_ops == &gen_dev_ops;
}

/* The sum is exact only while no packet is in flight on any CPU. */
void gen_sink_read(const struct net_device *dev, struct gen_sink *sum)
{
	struct gen_priv *priv = netdev_priv(dev);
	int cpu;

	ASSERT_RTNL();
	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct gen_sink *one = per_cpu_ptr(priv->sink, cpu);

		sum->packets += READ_ONCE(one->packets);
		sum->bytes += READ_ONCE(one->bytes);
		if (one->sample_len) {
			sum->sample_len = one->sample_len;
			memcpy(sum->sample, one->sample, GEN_SAMPLE);
		}
	}
}

void gen_sink_zero(struct net_device *dev)
{
	struct gen_priv *priv = netdev_priv(dev);
	int cpu;

	ASSERT_RTNL();
	for_each_possible_cpu(cpu) {
		memset(per_cpu_ptr(priv->sink, cpu), 0,
		       sizeof(struct gen_sink));
		memset(per_cpu_ptr(priv->talk, cpu), 0,
		       sizeof(struct gen_talk));
	}
}

int gen_device_init(void)
{
	return rtnl_link_register(&gen_link_ops);
}

void gen_device_exit(void)
{
	rtnl_link_unregister(&gen_link_ops);
}
