// SPDX-License-Identifier: GPL-2.0
/*
 * Gives the frames of a device to l4lb_xdp() where no program can: User-Mode Linux has no
 * compiler for BPF, and it is the kernel that has KASAN.  Each frame is copied into memory
 * of its exact size, so that no access beyond it goes unseen, and what is to be forwarded
 * is sent.  In a namespace:
 *
 *	echo +eth0 >/proc/net/l4lb_bare
 *	echo -eth0 >/proc/net/l4lb_bare
 */
#include <linux/bpf.h>
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <net/netns/generic.h>
#include <net/xdp.h>

#include "entry/xdp.h"

/* As in the module's xdp.c. */
enum { ACTION_BITS = 4, ACTION_MASK = (1 << ACTION_BITS) - 1 };

struct bare {
	struct list_head	node;
	struct nf_hook_ops	ops;
};

struct bare_net {
	struct list_head	devices;	/* RTNL */
};

static unsigned int bare_net_id;

static void send(const struct xdp_buff *xdp, struct net_device *in, u64 result)
{
	unsigned int len = xdp->data_end - xdp->data;
	struct net_device *out = in;
	struct sk_buff *skb;

	if ((result & ACTION_MASK) == XDP_REDIRECT)
		out = dev_get_by_index_rcu(dev_net(in), result >> ACTION_BITS);
	if (!out)
		return;
	skb = alloc_skb(LL_MAX_HEADER + len, GFP_ATOMIC);
	if (!skb)
		return;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put_data(skb, xdp->data, len);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = eth_hdr(skb)->h_proto;
	skb->dev = out;
	dev_queue_xmit(skb);
}

/* Whether @xdp was taken.  If not, it must be as it was. */
static bool give(struct xdp_buff *xdp, struct net_device *dev)
{
	const void *data = xdp->data, *end = xdp->data_end;
	u32 before = jhash(data, end - data, 0);
	u64 result = l4lb_xdp((struct xdp_md *)xdp, dev->ifindex);

	if (result != XDP_PASS) {
		send(xdp, dev, result);
		return true;
	}
	WARN_ONCE(xdp->data != data || xdp->data_end != end ||
		  jhash(data, end - data, 0) != before,
		  "l4lb_xdp() has changed a frame that it passed on");
	return false;
}

static unsigned int bare_hook(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	struct xdp_rxq_info rxq = { .dev = skb->dev };
	unsigned int len = ETH_HLEN + skb->len;
	struct xdp_buff xdp;
	bool taken = false;
	void *memory;

	/* A driver that has taken a tag off would not show it to a program, either. */
	if (skb_vlan_tag_present(skb) || skb_is_gso(skb) ||
	    len > PAGE_SIZE - XDP_PACKET_HEADROOM)
		return NF_ACCEPT;
	memory = kmalloc(XDP_PACKET_HEADROOM + len, GFP_ATOMIC);
	if (!memory)
		return NF_ACCEPT;
	xdp_init_buff(&xdp, XDP_PACKET_HEADROOM + len, &rxq);
	xdp_prepare_buff(&xdp, memory, XDP_PACKET_HEADROOM, len, false);
	memcpy(xdp.data, skb_mac_header(skb), ETH_HLEN);
	if (!skb_copy_bits(skb, 0, xdp.data + ETH_HLEN, skb->len))
		taken = give(&xdp, skb->dev);
	kfree(memory);
	return taken ? NF_DROP : NF_ACCEPT;
}

static void detach(struct net *net, struct bare *bare)
{
	list_del(&bare->node);
	nf_unregister_net_hook(net, &bare->ops);
	kfree(bare);
}

static struct bare *find(struct bare_net *devices, const struct net_device *dev)
{
	struct bare *bare;

	list_for_each_entry(bare, &devices->devices, node)
		if (bare->ops.dev == dev)
			return bare;
	return NULL;
}

static int attach(struct net *net, struct net_device *dev)
{
	struct bare_net *devices = net_generic(net, bare_net_id);
	struct bare *bare = kzalloc(sizeof(*bare), GFP_KERNEL);
	int err;

	if (!bare)
		return -ENOMEM;
	bare->ops = (struct nf_hook_ops) {
		.hook = bare_hook, .dev = dev, .pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MAX - 1,	/* l4lb's is INT_MAX */
	};
	err = nf_register_net_hook(net, &bare->ops);
	if (err)
		kfree(bare);
	else
		list_add(&bare->node, &devices->devices);
	return err;
}

static int change(struct net *net, char *text)
{
	const char *name = strim(text + 1);
	struct net_device *dev;
	struct bare *bare;
	int err = -ENODEV;

	rtnl_lock();
	dev = __dev_get_by_name(net, name);
	bare = dev ? find(net_generic(net, bare_net_id), dev) : NULL;
	if (dev && *text == '+') {
		err = bare ? -EEXIST : attach(net, dev);
	} else if (bare && *text == '-') {
		detach(net, bare);
		err = 0;
	}
	rtnl_unlock();
	return err;
}

static int bare_write(struct file *file, char *text, size_t size)
{
	return change(pde_data(file_inode(file)), text);
}

static int bare_show(struct seq_file *seq, void *v)
{
	struct net *net = seq->private;
	struct bare_net *devices = net_generic(net, bare_net_id);
	struct bare *bare;

	rtnl_lock();
	list_for_each_entry(bare, &devices->devices, node)
		seq_printf(seq, "%s\n", bare->ops.dev->name);
	rtnl_unlock();
	return 0;
}

static int bare_event(struct notifier_block *block, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct net *net = dev_net(dev);
	struct bare *bare = event == NETDEV_UNREGISTER ?
			    find(net_generic(net, bare_net_id), dev) : NULL;

	if (bare)
		detach(net, bare);
	return NOTIFY_DONE;
}

static struct notifier_block bare_notifier = {
	.notifier_call = bare_event,
};

static int __net_init bare_net_init(struct net *net)
{
	struct bare_net *devices = net_generic(net, bare_net_id);

	INIT_LIST_HEAD(&devices->devices);
	return proc_create_net_single_write("l4lb_bare", 0600, net->proc_net, bare_show,
					    bare_write, net) ? 0 : -ENOMEM;
}

static void __net_exit bare_net_exit(struct net *net)
{
	struct bare_net *devices = net_generic(net, bare_net_id);
	struct bare *bare, *next;

	remove_proc_entry("l4lb_bare", net->proc_net);
	rtnl_lock();
	list_for_each_entry_safe(bare, next, &devices->devices, node)
		detach(net, bare);
	rtnl_unlock();
}

static struct pernet_operations bare_net_ops = {
	.init	= bare_net_init,
	.exit	= bare_net_exit,
	.id	= &bare_net_id,
	.size	= sizeof(struct bare_net),
};

static int __init bare_init(void)
{
	int err = register_pernet_subsys(&bare_net_ops);

	if (err)
		return err;
	err = register_netdevice_notifier(&bare_notifier);
	if (err)
		unregister_pernet_subsys(&bare_net_ops);
	return err;
}

static void __exit bare_exit(void)
{
	unregister_netdevice_notifier(&bare_notifier);
	unregister_pernet_subsys(&bare_net_ops);
}

module_init(bare_init);
module_exit(bare_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb tests: XDP without a program");
