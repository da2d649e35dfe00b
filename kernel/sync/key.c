// SPDX-License-Identifier: GPL-2.0
/* Keyed BLAKE2s over a message whose MAC is 0. */
#include "sync/key.h"

#include <crypto/algapi.h>
#include <crypto/blake2s.h>
#include <linux/string.h>

static_assert(L4LB_SYNC_KEY_LEN == BLAKE2S_KEY_SIZE);
static_assert((int)L4LB_SYNC_MAC == BLAKE2S_HASH_SIZE);

static void mac(u8 *out, const u8 *key, const u8 *data, size_t len)
{
	blake2s(out, data, key, L4LB_SYNC_MAC, len, L4LB_SYNC_KEY_LEN);
}

void l4lb_sync_keys_set(struct l4lb_sync_keys *keys, const u8 *key)
{
	struct l4lb_sync_keys set = { };

	if (key) {
		set.on = true;
		memcpy(set.now, key, sizeof(set.now));
		set.has_old = keys->on;
		memcpy(set.old, keys->now, sizeof(set.old));
	}
	*keys = set;
	memzero_explicit(&set, sizeof(set));
}

u32 l4lb_sync_key_id(const struct l4lb_sync_keys *keys)
{
	static const u8 label[] = "l4lb key id";
	u8 out[L4LB_SYNC_MAC];

	mac(out, keys->now, label, sizeof(label));
	return get_unaligned_be32(out);
}

void l4lb_sync_sign(const struct l4lb_sync_keys *keys, u8 *data, size_t len)
{
	u8 out[L4LB_SYNC_MAC];

	if (!keys->on)
		return;
	mac(out, keys->now, data, len);
	memcpy(data + len - L4LB_SYNC_MAC, out, L4LB_SYNC_MAC);
}

static bool is_of(const u8 *key, const u8 *data, size_t len, const u8 *found)
{
	u8 out[L4LB_SYNC_MAC];

	mac(out, key, data, len);
	return !crypto_memneq(out, found, L4LB_SYNC_MAC);
}

bool l4lb_sync_verify(const struct l4lb_sync_keys *keys, u8 *data, size_t len,
		      const struct l4lb_sync_trailer *trailer)
{
	u8 *place = data + len - L4LB_SYNC_MAC;
	u8 found[L4LB_SYNC_MAC];

	if (!keys->on)
		return !(trailer->flags & L4LB_SYNC_T_KEYED);
	if (!(trailer->flags & L4LB_SYNC_T_KEYED))
		return false;
	memcpy(found, place, sizeof(found));
	memset(place, 0, L4LB_SYNC_MAC);
	return is_of(keys->now, data, len, found) ||
	       (keys->has_old && is_of(keys->old, data, len, found));
}
