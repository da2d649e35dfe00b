// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>

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

/* The descriptor of the program attached to the device, or -1. */
static int attached(int ifindex, enum xdp_state *state)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd;

	libbpf_set_print(listen_to);
	*state = XDP_STATE_NONE;
	if (bpf_xdp_query(ifindex, 0, &query) || !query.attach_mode)
		return -1;
	*state = XDP_STATE_OTHER;
	if (!query.drv_prog_id)
		return -1;
	fd = bpf_prog_get_fd_by_id(query.drv_prog_id);
	if (fd < 0)
		*state = XDP_STATE_HIDDEN;
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	    !strcmp(info.name, NAME))
		*state = XDP_STATE_OURS;
	return fd;
}

enum xdp_state kern_xdp_state(int ifindex)
{
	enum xdp_state state;
	int fd = attached(ifindex, &state);

	if (fd >= 0)
		close(fd);
	return state;
}

int kern_xdp_detach(int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	enum xdp_state state;
	int err = -ENOENT;

	options.old_prog_fd = attached(ifindex, &state);
	if (state == XDP_STATE_HIDDEN)
		err = -errno;
	if (state == XDP_STATE_OURS)
		err = bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, &options);
	if (options.old_prog_fd >= 0)
		close(options.old_prog_fd);
	return err;
}
