/* SPDX-License-Identifier: GPL-2.0 */
/* What a device's driver takes from the stack. */
#ifndef IPVSCTL_KERN_ETHTOOL_H
#define IPVSCTL_KERN_ETHTOOL_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/ethtool.h>

/* @flags: ETH_FLAG_*; false if the device has none. */
bool ethtool_flags(const char *device, uint32_t *flags);

/* Is "veth", "tun" or the like its driver? */
bool ethtool_is(const char *device, const char *driver);

#endif
