/* SPDX-License-Identifier: GPL-2.0 */
/* XDP on one device, with messages that say what is in the way. All return an exit code;
 * with --dry-run they print what they would do.
 */
#ifndef IPVSCTL_XDP_DEVICE_H
#define IPVSCTL_XDP_DEVICE_H

/* Has the module XDP at all? Call it after wire_open(). */
int xdp_possible(void);

/* What is there already is kept; another's program is never replaced or removed. */
int xdp_attach(const char *name);
int xdp_detach(const char *name);

#endif
