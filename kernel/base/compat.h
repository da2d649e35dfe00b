/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between the kernels l4lb is built for, and nothing else.
 * Included on the command line of every file, see Kbuild.
 */
#ifndef _L4LB_COMPAT_H
#define _L4LB_COMPAT_H

#include <linux/compiler.h>
#include <linux/version.h>

#if !IS_ENABLED(CONFIG_IP_VS)
#error "l4lb needs a kernel built with CONFIG_IP_VS=m: it provides skb->ipvs_property"
#endif

/* A large local variable that is written before it is read, for each packet.
 * Debian's kernels fill all others with zeros first (CONFIG_INIT_STACK_ALL_ZERO).
 * Not with KASAN: those modules are built with a pattern instead of zeros, so that
 * a value that nobody has written is noticed.
 */
#ifdef CONFIG_KASAN
#define __l4lb_unset
#else
#define __l4lb_unset __uninitialized
#endif

/* 6.6: flexible arrays may name their counter. */
#ifndef __counted_by
#define __counted_by(member)
#endif

/* 6.12: the header has moved. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

/* 6.3: extack messages may hold values, up to 79 characters in all.
 *
 * Before, the text must outlive the command, because the reply is built after
 * the command has returned.  So messages are kept forever.  They must not hold
 * text from user space, which could fill the table: @str is left out.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/string.h>

static __maybe_unused __printf(1, 2)
const char *l4lb_keep_sentence(const char *fmt, ...)
{
	static DEFINE_MUTEX(lock);
	static char kept[64][80];
	const char *found = "refused; there is no room to say why";
	va_list args;
	char text[80];
	int i;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(kept); i++) {
		if (!kept[i][0])
			strscpy(kept[i], text, sizeof(kept[i]));
		if (!strcmp(kept[i], text)) {
			found = kept[i];
			break;
		}
	}
	mutex_unlock(&lock);
	return found;
}

/* Left out: its numbers would soon fill the table of kept messages. */
static inline __printf(2, 3)
void l4lb_err_before(struct netlink_ext_ack *extack, const char *fmt, ...)
{
}

#define l4lb_err_attr_str(extack, attr, msg, str)			\
	NL_SET_ERR_MSG_ATTR(extack, attr, msg)
#define l4lb_err_attr_fmt(extack, attr, fmt, args...)			\
do {									\
	struct netlink_ext_ack *__extack = (extack);			\
									\
	if (__extack) {							\
		__extack->_msg = l4lb_keep_sentence(fmt, ##args);	\
		NL_SET_BAD_ATTR(__extack, attr);			\
	}								\
} while (0)
#else
/* Puts a prefix before the message; text that does not fit is cut off. */
#define l4lb_err_before(extack, fmt, args...)				\
do {									\
	struct netlink_ext_ack *__ack = (extack);			\
	char __text[NETLINK_MAX_FMTMSG_LEN];				\
									\
	snprintf(__text, sizeof(__text), fmt "%s", ##args,		\
		 __ack->_msg ?: "");					\
	NL_SET_ERR_MSG_FMT(__ack, "%s", __text);			\
} while (0)
#define l4lb_err_attr_str(extack, attr, msg, str)			\
	NL_SET_ERR_MSG_ATTR_FMT(extack, attr, msg ": \"%s\"", str)
#define l4lb_err_attr_fmt NL_SET_ERR_MSG_ATTR_FMT
#endif

/* 6.10: the flags of a tunnel are a bitmap. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define l4lb_gre_push(skb, len, csum, proto)				\
	gre_build_header(skb, len, (csum) ? TUNNEL_CSUM : 0, proto, 0, 0)
#else
#define l4lb_gre_push(skb, len, csum, proto)				\
	do {								\
		IP_TUNNEL_DECLARE_FLAGS(l4lb_flags) = { };		\
		__assign_bit(IP_TUNNEL_CSUM_BIT, l4lb_flags, csum);	\
		gre_build_header(skb, len, l4lb_flags, proto, 0, 0);	\
	} while (0)
#endif

/* 6.10: dst_rtable() exists. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define dst_rtable(_ptr) container_of_const(_ptr, struct rtable, dst)
#endif

/* 6.2: a namespace may have a UDP table of its own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define l4lb_udp_table(net)	((void)(net), &udp_table)
#else
#define l4lb_udp_table(net)	((net)->ipv4.udp_table)
#endif

/* 6.6: sysctl tables have a size.  Before, they end with an empty entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size)			\
	register_net_sysctl(net, path, table)
#endif

/* 6.11: the handler of a sysctl gets a const table entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define l4lb_ctl_table struct ctl_table
#else
#define l4lb_ctl_table const struct ctl_table
#endif

/* 6.2: pre_doit() gets a struct genl_split_ops. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define l4lb_genl_ops const struct genl_ops
#else
#define l4lb_genl_ops const struct genl_split_ops
#endif

/* 6.6: a dump has a struct genl_info with its attributes, like a command. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define l4lb_dump_attrs(cb)	(genl_dumpit_info(cb)->attrs)
#else
#define l4lb_dump_attrs(cb)	(genl_info_dump(cb)->attrs)
#endif

/* 6.5: the GSO helpers have a header of their own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

/* 6.12: a device's own locking (LLTX) is a flag, not a feature any more. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define l4lb_dev_lltx(dev) ((dev)->features |= NETIF_F_LLTX)
#else
#define l4lb_dev_lltx(dev) ((dev)->lltx = true)
#endif

/* 6.3: functions that BPF programs may call are marked. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define __bpf_kfunc __used noinline
#endif

/* 6.7: their prototypes are not asked for. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define __bpf_kfunc_start_defs()
#define __bpf_kfunc_end_defs()
#endif

/* 6.9: a set of them has a flag. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name) BTF_SET8_END(name)
#endif

/* 6.3: a device says whether it takes XDP frames.  Before, veth takes them if the
 * other end polls, which it does with GRO, and other devices if they have a program
 * of their own.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define l4lb_dev_takes_frames(dev, peer)				\
	((dev)->netdev_ops->ndo_xdp_xmit &&				\
	 ((peer) ? !!((peer)->features & NETIF_F_GRO) :			\
		   (READ_ONCE((dev)->xdp_state[XDP_MODE_DRV].prog) ||	\
		    READ_ONCE((dev)->xdp_state[XDP_MODE_DRV].link))))
#else
#define l4lb_dev_takes_frames(dev, peer)				\
	(READ_ONCE((dev)->xdp_features) & NETDEV_XDP_ACT_NDO_XMIT)
#endif

/* Likewise, how a driver says it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define l4lb_dev_set_takes_frames(dev) ((void)(dev))
#else
#define l4lb_dev_set_takes_frames(dev)					\
	((dev)->xdp_features = NETDEV_XDP_ACT_BASIC |			\
			       NETDEV_XDP_ACT_REDIRECT | NETDEV_XDP_ACT_NDO_XMIT)
#endif

/* 6.6: the pools of pages have several headers. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define L4LB_PAGE_POOL_H "net/page_pool.h"
#else
#define L4LB_PAGE_POOL_H "net/page_pool/helpers.h"
#endif

/* 6.11: code that redirects frames outside of the core's poll has a context. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define l4lb_redirect_begin(c) (c)
#define l4lb_redirect_end(c) ((void)(c))
struct bpf_net_context { };
#else
#define l4lb_redirect_begin bpf_net_ctx_set
#define l4lb_redirect_end bpf_net_ctx_clear
#endif

#endif /* _L4LB_COMPAT_H */
