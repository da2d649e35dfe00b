# SPDX-License-Identifier: GPL-2.0
"""The systems that are compared: in-tree ip_vs, l4lb, and paths without a director."""

import contextlib
import copy
import ctypes
import os
import socket
import struct
from pathlib import Path

from bed import ALL, FAMILIES, PORT, SERVER_PORT
from lab.ctl import IPVSCTL
from lab.netns import run, wait_until

FLAG = {"nat": "-m", "dr": "-g", "tun": "-i"}
FAST_PATH = "net/ipv4/vs/fast_path"
DRIVER = 1 << 2     # XDP_FLAGS_DRV_MODE
MODULES = {"ip_vs": "ip_vs", "l4lb": "l4lb"}


def service_lines(family, proto, vip, method, servers=1, *, scheduler="rr", port=None):
    """A service as `ipvsadm -R` reads it. PORT: of the real servers, if it is another one."""
    f = FAMILIES[family]
    name = f"-{proto[0]} {f.bracket(f.vip(vip))}:{PORT}"
    port = port or (SERVER_PORT if method == "nat" else PORT)
    yield f"-A {name} -s {scheduler}"
    for n in range(1, servers + 1):
        yield f"-a {name} -r {f.bracket(f.server(n))}:{port} {FLAG[method]} -w 1"


class Director:
    """A load balancer; loaded() loads its module, and unloads it after the block."""

    def __init__(self, name, module, parameters=(), fast_paths=(None,)):
        self.name, self.module, self.parameters = name, module, parameters
        # (name, value) for each setting of its fast path; None: it has none.
        self.fast_paths = [(f"{name} fast {n}" if n else name, n) for n in fast_paths]

    def __repr__(self):
        return self.name

    @contextlib.contextmanager
    def loaded(self):
        run(["modprobe", self.module, *self.parameters])
        try:
            yield self
        finally:
            # References to schedulers go with the namespace, a moment later.
            wait_until(self._unload, 60, f"{self.module} can be unloaded", step=0.1)

    def _unload(self):
        loaded = {line.split()[0] for line in
                  Path("/proc/modules").read_text("ascii").splitlines()}
        for name in sorted(n for n in loaded if n.startswith(self.module + "_")
                           and n != "l4lb_gen"):
            if run(["rmmod", name], check=False).returncode:
                return False
        return run(["rmmod", self.module], check=False).returncode == 0

    def configure(self, bed, lines):
        bed.ns.run(["ipvsadm", "-R"], text_input="\n".join(lines) + "\n", timeout=600)

    def standard(self, bed):
        """All three methods for both protocols and families."""
        self.configure(bed, [line for family in (4, 6) for proto in ("udp", "tcp")
                             for n, method in enumerate(ALL, 1)
                             for line in service_lines(family, proto, n, method)])

    def modes(self):
        """The same director with one setting of its fast path, for each."""
        for mode in self.fast_paths:
            one = copy.copy(self)
            one.fast_paths = [mode]
            yield one

    @staticmethod
    def set_fast_path(bed, value):
        if value is not None:
            bed.ns.sysctl(FAST_PATH, value)


IP_VS = Director("ip_vs", "ip_vs", ["conn_tab_bits=20"])
IP_VS_DEFAULT = Director("ip_vs default table", "ip_vs")
L4LB = Director("l4lb", "l4lb", fast_paths=(0, 1, 2))

DROP = """table netdev bench {
	chain in { type filter hook ingress device gen0 priority 0; drop; }
}
"""
REDIRECT = """table netdev bench {
	chain in { type filter hook ingress device gen0 priority 0; fwd to srv0; }
}
"""
DNAT = """table ip bench {
	%s
	chain pre {
		type nat hook prerouting priority -100
		ip daddr %s udp dport %d dnat to %s:%d
	}
	chain onward {
		type filter hook forward priority 0
		%s
	}
}
"""
FLOWTABLE = "flowtable ft { hook ingress priority 0; devices = { gen0, srv0 }; }"


def dnat(vip, flowtable):
    return DNAT % (FLOWTABLE if flowtable else "", vip, PORT, FAMILIES[4].server(1), SERVER_PORT,
                   "ip protocol udp flow add @ft" if flowtable else "")


@contextlib.contextmanager
def ruleset(bed, text):
    bed.ns.run(["nft", "-f", "-"], text_input=text)
    try:
        yield
    finally:
        bed.ns.run(["nft", "delete", *text.split(" {")[0].split()])


@contextlib.contextmanager
def announcing(bed, device="sync0"):
    """The director announces its connections to others, of which there are none."""
    bed.ns.ip(f"link add {device} type dummy", f"addr add 192.0.2.1/32 dev {device}",
              f"link set {device} up")
    try:
        with announcing_on(bed, device):
            yield
    finally:
        bed.ns.ip(f"link del {device}")


@contextlib.contextmanager
def announcing_on(bed, device):
    """The director announces its connections on DEVICE."""
    bed.ns.run(["ipvsadm", "--start-daemon", "master", "--mcast-interface", device])
    try:
        yield
    finally:
        bed.ns.run(["ipvsadm", "--stop-daemon", "master"])


def vehicle():
    return os.environ.get("L4LB_VEHICLE", "")


# XDP programs for comparison, as instructions of BPF: (code, registers, offset, number).
XDP_DROP = [(0xb7, 0, 0, 1), (0x95, 0, 0, 0)]


def xdp_redirect(ifindex):
    """bpf_redirect(IFINDEX, 0)"""
    return [(0xb7, 1, 0, ifindex), (0xb7, 2, 0, 0), (0x85, 0, 0, 23), (0x95, 0, 0, 0)]


def _libbpf():
    return ctypes.CDLL("libbpf.so.1", use_errno=True)


@contextlib.contextmanager
def attached(program):
    """PROGRAM, a descriptor, which is closed, is attached to gen0. srv0 takes frames without."""
    gen0 = socket.if_nametoindex("gen0")
    if program < 0 or _libbpf().bpf_xdp_attach(gen0, program, DRIVER, None):
        raise OSError(ctypes.get_errno(), "XDP cannot be attached")
    os.close(program)
    try:
        yield
    finally:
        _libbpf().bpf_xdp_detach(gen0, DRIVER, None)


def xdp(code):
    """The program CODE is attached to gen0."""
    text = b"".join(struct.pack("<BBhi", *line) for line in code)
    return attached(_libbpf().bpf_prog_load(6, b"bench", b"GPL", text, ctypes.c_size_t(len(code)),
                                            None))


@contextlib.contextmanager
def l4lb_xdp(bed):
    """l4lb forwards by XDP on both sides."""
    for device in ("gen0", "srv0"):
        bed.ns.run([IPVSCTL, "-q", "fast-path", "xdp", "dev", device])
    try:
        yield
    finally:
        bed.ns.run([IPVSCTL, "fast-path", "no-xdp", "all"])
