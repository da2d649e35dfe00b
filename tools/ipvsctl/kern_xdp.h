/* SPDX-License-Identifier: GPL-2.0 */
/* The XDP program that hands a device's frames to l4lb: made, attached, found. */
#ifndef IPVSCTL_KERN_XDP_H
#define IPVSCTL_KERN_XDP_H

#include <stddef.h>

/* What is attached to a device. */
enum xdp_state {
	XDP_STATE_NONE,
	XDP_STATE_OURS,
	XDP_STATE_OTHER,	/* somebody else's program */
	XDP_STATE_HIDDEN,	/* a program that may not be looked at: errno */
};

enum xdp_error {
	XDP_OK,
	XDP_NO_KERNEL_TYPES,	/* this kernel has no BTF */
	XDP_NO_MODULE_TYPES,	/* the module has none that fits the kernel */
	XDP_NO_JIT,
	XDP_REFUSED,		/* by the kernel, errno is set */
	XDP_TAKEN,		/* by another program */
	XDP_NO_DRIVER,		/* the device's driver cannot do it */
	XDP_BAD_DEVICE,		/* it can, but not as the device is set up */
};

/* The devices that have a program, sorted by their number. */
struct xdp_programs {
	struct xdp_program {
		int ifindex;
		enum xdp_state state;
	} *v;
	size_t n;
};

/* All in one request; 0 or -errno. xdp_programs_free() in any case. */
int kern_xdp_programs(struct xdp_programs *p);
void xdp_programs_free(struct xdp_programs *p);
enum xdp_state xdp_state_of(const struct xdp_programs *p, int ifindex);

/* A kernel's own words about the refusal may be in @why, valid until the next call;
 * else it is NULL.
 */
enum xdp_error kern_xdp_attach(int ifindex, const char **why);
/* Only our program: -ENOENT without it.  0 or -errno. */
int kern_xdp_detach(int ifindex);

#endif
