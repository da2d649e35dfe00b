// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include <net/if.h>

#include "backend.h"
#include "err.h"
#include "kern_ethtool.h"
#include "kern_xdp.h"
#include "opt.h"
#include "out.h"
#include "xdp_device.h"

int xdp_possible(void)
{
	return backend_is_l4lb() ? RC_OK :
	       fail(RC_BACKEND, "fast-path", "the module %s has no XDP",
		    backend_name());
}

static int no_device(const char *name)
{
	int rc = fail(RC_MISSING, name, "there is no such device");

	hint("try: ip link show");
	return rc;
}

static int no_types(void)
{
	int rc = fail(RC_BACKEND, "fast-path",
		      "module l4lb has no type information (BTF) for this kernel");

	hint("try: install pahole (package dwarves), and build the module again");
	return rc;
}

static int no_jit(void)
{
	int rc = fail(RC_BACKEND, "fast-path", "this kernel does not compile BPF programs");

	hint("try: sysctl -w net.core.bpf_jit_enable=1");
	return rc;
}

static int taken(const char *name)
{
	int rc = fail(RC_EXISTS, name, "another XDP program is attached to it");

	hint("ip link show %s has its number", name);
	return rc;
}

/* @what the kernel has refused, with errno and perhaps its reason. */
static int refusal(const char *name, const char *what, const char *why)
{
	int err = errno, rc;

	fail_errno(err);
	if (err != EPERM && err != EACCES)
		return fail(RC_REFUSED, name, "the kernel refused to %s XDP: %s",
			    what, why ? why : strerror(err));
	rc = fail(RC_PERM, name, "XDP programs are not permitted");
	hint("they need CAP_SYS_ADMIN and CAP_NET_ADMIN");
	return rc;
}

static int explain(enum xdp_error error, const char *name, const char *why)
{
	switch (error) {
	case XDP_NO_KERNEL_TYPES:
		return fail(RC_BACKEND, "fast-path",
			    "this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
	case XDP_NO_MODULE_TYPES:
		return no_types();
	case XDP_NO_JIT:
		return no_jit();
	case XDP_TAKEN:
		return taken(name);
	case XDP_NO_DRIVER:
		return fail(RC_REFUSED, name, "%s",
			    why ? why : "its driver cannot run XDP programs");
	case XDP_BAD_DEVICE:
		return fail(RC_REFUSED, name, "its driver refuses: %s",
			    why ? why : "see its MTU and queues");
	default:
		return refusal(name, "attach", why);
	}
}

/* What makes the program leave all frames to the stack. */
static void remark(const char *name)
{
	uint32_t flags;

	if (ethtool_is(name, "veth"))
		note("%s: frames need tx and VLAN offloads off at its other end: see doc/xdp.md",
		     name);
	else if (ethtool_is(name, "tun"))
		note("%s: frames stay with the stack: tun and tap devices hide checksums",
		     name);
	else if (ethtool_is(name, "bonding"))
		note("%s: its devices must not take VLAN tags off: ethtool -K DEV rxvlan off",
		     name);
	else if (ethtool_flags(name, &flags) && flags & ETH_FLAG_RXVLAN)
		note("%s: frames stay with the stack until: ethtool -K %s rxvlan off",
		     name, name);
}

int xdp_attach(const char *name)
{
	int ifindex = (int)if_nametoindex(name);
	struct xdp_programs programs;
	enum xdp_error error;
	enum xdp_state state;
	const char *why;

	if (!ifindex)
		return no_device(name);
	kern_xdp_programs(&programs);
	state = xdp_state_of(&programs, ifindex);
	xdp_programs_free(&programs);
	if (state == XDP_STATE_HIDDEN) {
		errno = EPERM;
		return refusal(name, "show", NULL);
	}
	if (state == XDP_STATE_OURS)
		return RC_OK;
	if (opt.dry_run) {
		plan_step("xdp", name);
		return RC_OK;
	}
	error = kern_xdp_attach(ifindex, &why);
	if (error)
		return explain(error, name, why);
	remark(name);
	return RC_OK;
}

int xdp_detach(const char *name)
{
	int err, ifindex = (int)if_nametoindex(name);

	if (!ifindex)
		return no_device(name);
	if (opt.dry_run) {
		plan_step("no-xdp", name);
		return RC_OK;
	}
	err = kern_xdp_detach(ifindex);
	if (!err || err == -ENOENT)
		return RC_OK;
	errno = -err;
	return refusal(name, "detach", NULL);
}
