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

#endif /* _L4LB_COMPAT_H */
