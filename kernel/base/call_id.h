/* SPDX-License-Identifier: GPL-2.0 */
/* The Call-ID of a SIP message (RFC 3261). */
#ifndef _L4LB_CALL_ID_H
#define _L4LB_CALL_ID_H

#include <linux/types.h>

enum {
	L4LB_CALL_ID_MAX	= 255,	/* bytes, as with ip_vs */
	L4LB_CALL_ID_WITHIN	= 4096,	/* it ends within the first bytes of a message */
};

unsigned int l4lb_call_id_find(const u8 *data, unsigned int len, unsigned int *at);

#endif /* _L4LB_CALL_ID_H */
