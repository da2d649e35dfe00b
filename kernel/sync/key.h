/* SPDX-License-Identifier: GPL-2.0 */
/* Keys with which messages between directors are signed. */
#ifndef _L4LB_SYNC_KEY_H
#define _L4LB_SYNC_KEY_H

#include "l4lb.h"
#include "sync/trailer.h"

/**
 * struct l4lb_sync_keys - keys of a namespace
 * @on: there is a key: messages are signed, and others are not taken
 * @has_old: @old is accepted, too
 * @now: the key
 * @old: the one before
 */
struct l4lb_sync_keys {
	bool	on;
	bool	has_old;
	u8	now[L4LB_SYNC_KEY_LEN];
	u8	old[L4LB_SYNC_KEY_LEN];
};

/* Each may be called in any context; the caller protects @keys. */

/* @key: of %L4LB_SYNC_KEY_LEN bytes; NULL: there is no key any more. */
void l4lb_sync_keys_set(struct l4lb_sync_keys *keys, const u8 *key);
/* A number that tells keys apart, and nothing else about them. */
u32 l4lb_sync_key_id(const struct l4lb_sync_keys *keys);

/* Write the MAC of a message with a trailer, if there is a key. */
void l4lb_sync_sign(const struct l4lb_sync_keys *keys, u8 *data, size_t len);
/* Is the message signed with a key, or not signed if there is none?  The MAC in
 * it becomes 0.
 */
bool l4lb_sync_verify(const struct l4lb_sync_keys *keys, u8 *data, size_t len,
		      const struct l4lb_sync_trailer *trailer);

#endif /* _L4LB_SYNC_KEY_H */
