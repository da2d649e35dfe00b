// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "args.h"
#include "kern_xdp.h"

/* Of the program; shown by `ip link` and `bpftool`. */
#define NAME "l4lb_xdp"

/* Of the module, with the function of the same name. */
#define MODULE "l4lb"

/* As in the module's xdp.c: the ifindex is above the action. */
enum { ACTION_BITS = 4, ACTION_MASK = (1 << ACTION_BITS) - 1 };

static char said[256];

/* Keeps the last line: the kernel's reason, if it gives one. */
static int listen_to(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[sizeof(said)];
	char *text;

	if (level > LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	text = strstr(line, "Kernel error message: ");
	if (text)
		snprintf(said, sizeof(said), "%s", text + strlen("Kernel error message: "));
	return 0;
}

/* ---- the module's function ---- */

/* The descriptor of the module's type information, or -1 with errno. */
static int module_types(void)
{
	struct bpf_btf_info info;
	char name[64];
	uint32_t id = 0, len;
	int fd;

	while (!bpf_btf_get_next_id(id, &id)) {
		fd = bpf_btf_get_fd_by_id(id);
		if (fd < 0)
			continue;
		memset(&info, 0, sizeof(info));
		info.name = (uintptr_t)name;
		info.name_len = sizeof(name);
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.kernel_btf && !strcmp(name, MODULE))
			return fd;
		close(fd);
	}
	return -1;	/* ENOENT: there is none */
}

/* The function's number in them, or an error below 0. */
static int function_id(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	struct btf *module;
	int id;

	if (!kernel)
		return -XDP_NO_KERNEL_TYPES;
	module = btf__load_module_btf(MODULE, kernel);
	id = module ? btf__find_by_name_kind(module, NAME, BTF_KIND_FUNC)
		    : -1;
	btf__free(module);
	btf__free(kernel);
	return id > 0 ? id : -XDP_NO_MODULE_TYPES;
}

/* ---- the program ---- */

static struct bpf_insn op(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	return (struct bpf_insn) {
		.code = code, .dst_reg = dst, .src_reg = src, .off = off,
		.imm = imm,
	};
}

/* Calls l4lb_xdp(frame, ifindex). If the answer is to redirect the frame,
 * bpf_redirect() gets the device from the bits above; others are the action.
 */
static int load(int ifindex, int function, int types)
{
	const struct bpf_insn program[] = {
		op(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, ifindex),
		/* off: types' place in the array of descriptors */
		op(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 1, function),
		op(BPF_ALU64 | BPF_MOV | BPF_X, 1, 0, 0, 0),
		op(BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, ACTION_MASK),
		op(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 3, XDP_REDIRECT),
		op(BPF_ALU64 | BPF_RSH | BPF_K, 1, 0, 0, ACTION_BITS),
		op(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
		op(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect),
		op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const int descriptors[] = { 0, types };
	struct bpf_prog_load_opts options = {
		.sz = sizeof(options), .fd_array = descriptors,
		.expected_attach_type = BPF_XDP,
		/* The function leaves frames in several buffers alone. */
		.prog_flags = BPF_F_XDP_HAS_FRAGS,
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, NAME, "GPL", program,
			     ARRAY_SIZE(program), &options);
}

static enum xdp_error attach_error(int err)
{
	errno = -err;
	switch (-err) {
	case EBUSY:
	case EEXIST:
		return XDP_TAKEN;
	case EOPNOTSUPP:
		return XDP_NO_DRIVER;
	case EINVAL:
	case ERANGE:
	case ENOSPC:
		return XDP_BAD_DEVICE;
	default:
		return XDP_REFUSED;
	}
}

enum xdp_error kern_xdp_attach(int ifindex, const char **why)
{
	enum xdp_error result = XDP_OK;
	int function, types, program, err;

	*why = NULL;
	said[0] = '\0';
	libbpf_set_print(listen_to);
	function = function_id();
	if (function < 0)
		return (enum xdp_error)-function;
	types = module_types();
	if (types < 0)
		return errno == ENOENT ? XDP_NO_MODULE_TYPES : XDP_REFUSED;
	program = load(ifindex, function, types);
	if (program < 0) {
		/* 524, which has no name here: the kernel cannot compile it. */
		result = errno == 524 ? XDP_NO_JIT : XDP_REFUSED;
	} else {
		err = bpf_xdp_attach(ifindex, program, XDP_FLAGS_DRV_MODE |
				     XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
		if (err)
			result = attach_error(err);
		close(program);
	}
	close(types);
	if (said[0])
		*why = said;
	return result;
}

/* ---- what is attached ---- */

/* The descriptor of program @id, or -1 with errno. */
static int open_program(uint32_t id, enum xdp_state *state)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0) {
		*state = errno == ENOENT ? XDP_STATE_NONE : XDP_STATE_HIDDEN;
		return -1;
	}
	*state = !bpf_obj_get_info_by_fd(fd, &info, &len) &&
		 !strcmp(info.name, NAME) ? XDP_STATE_OURS : XDP_STATE_OTHER;
	return fd;
}

/* Only programs in drivers can be ours: @driver is 0 for others. */
static void add(struct xdp_programs *p, int ifindex, uint32_t driver)
{
	struct xdp_program *more;
	enum xdp_state state = XDP_STATE_OTHER;
	int fd = driver ? open_program(driver, &state) : -1;

	if (fd >= 0)
		close(fd);
	more = realloc(p->v, (p->n + 1) * sizeof(*more));
	if (!more)
		return;
	p->v = more;
	p->v[p->n++] = (struct xdp_program) { ifindex, state };
}

/* A device's XDP attributes, or false: it has no program. */
static bool take(struct nlmsghdr *nlh, int *ifindex, uint32_t *driver)
{
	struct nlattr *tb[IFLA_MAX + 1], *xdp[IFLA_XDP_MAX + 1];
	const struct ifinfomsg *info = nlmsg_data(nlh);

	if (nlmsg_parse(nlh, sizeof(*info), tb, IFLA_MAX, NULL) < 0 ||
	    !tb[IFLA_XDP] ||
	    nla_parse_nested(xdp, IFLA_XDP_MAX, tb[IFLA_XDP], NULL) < 0 ||
	    !xdp[IFLA_XDP_ATTACHED] || !nla_get_u8(xdp[IFLA_XDP_ATTACHED]))
		return false;
	*ifindex = info->ifi_index;
	*driver = xdp[IFLA_XDP_DRV_PROG_ID] ?
		  nla_get_u32(xdp[IFLA_XDP_DRV_PROG_ID]) : 0;
	return true;
}

static int take_device(struct nl_msg *msg, void *arg)
{
	uint32_t driver;
	int ifindex;

	if (take(nlmsg_hdr(msg), &ifindex, &driver))
		add(arg, ifindex, driver);
	return NL_OK;
}

static int by_ifindex(const void *a, const void *b)
{
	const struct xdp_program *x = a, *y = b;

	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

int kern_xdp_programs(struct xdp_programs *p)
{
	struct ifinfomsg all = { .ifi_family = AF_UNSPEC };
	struct nl_sock *sock = nl_socket_alloc();
	int err = -1;

	libbpf_set_print(listen_to);
	memset(p, 0, sizeof(*p));
	if (!sock)
		return -ENOMEM;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, take_device, p);
	if (!nl_connect(sock, NETLINK_ROUTE) &&
	    nl_send_simple(sock, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all)) >= 0)
		err = nl_recvmsgs_default(sock);
	nl_socket_free(sock);
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_ifindex);
	return err < 0 ? -EIO : 0;
}

void xdp_programs_free(struct xdp_programs *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

enum xdp_state xdp_state_of(const struct xdp_programs *p, int ifindex)
{
	const struct xdp_program key = { .ifindex = ifindex };
	const struct xdp_program *found =
		p->n ? bsearch(&key, p->v, p->n, sizeof(key), by_ifindex) : NULL;

	return found ? found->state : XDP_STATE_NONE;
}

int kern_xdp_detach(int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	enum xdp_state state;
	int err = -ENOENT;

	libbpf_set_print(listen_to);
	if (bpf_xdp_query(ifindex, 0, &query) || !query.drv_prog_id)
		return err;
	options.old_prog_fd = open_program(query.drv_prog_id, &state);
	if (state == XDP_STATE_HIDDEN)
		return -errno;
	if (state == XDP_STATE_OURS)
		err = bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, &options);
	if (options.old_prog_fd >= 0)
		close(options.old_prog_fd);
	return err;
}
