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

/* 6.6: flexible arrays may name their counter. */
#ifndef __counted_by
#define __counted_by(member)
#endif

/* 6.3: extack sentences may hold values.  Before, @msg alone has to do. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define l4lb_err_attr_str(extack, attr, msg, str)			\
	NL_SET_ERR_MSG_ATTR(extack, attr, msg)
#else
#define l4lb_err_attr_str(extack, attr, msg, str)			\
	NL_SET_ERR_MSG_ATTR_FMT(extack, attr, msg ": \"%s\"", str)
#endif

/* 6.6: sysctl tables have a size.  Before, they end with an empty entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size)			\
	register_net_sysctl(net, path, table)
#endif

/* 6.5: the GSO helpers have a header of their own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

#endif /* _L4LB_COMPAT_H */
