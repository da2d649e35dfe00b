# SPDX-License-Identifier: GPL-2.0
"""Directors that forward by XDP: on which devices, and with what at their other ends.

UML can neither compile BPF programs nor describe its types, but it is fast, and has KASAN. There
tests/modules/l4lb_bare.c takes the place of the program.
"""

import contextlib
import os
from pathlib import Path

from . import modules
from .ctl import IPVSCTL
from .netns import run

# With --xdp: all directors of the tests of the fast path do, from fast.ready() on.
everywhere = False
sent = 0        # packets that it has forwarded then
_labs = []
_shown = set()  # labs whose other ends hide nothing
ABSENT = "this kernel has no types of its own (BTF): Debian's have (suite stages 6.12, 6.1)"


BARE = Path(os.environ.get("L4LB_MODULES", ""), "tests/l4lb_bare.ko")


def has_programs():
    return os.path.exists("/sys/kernel/btf/vmlinux")


def is_possible():
    return has_programs() or BARE.exists()


def cables(lab):
    """(device of the director, node at its other end, device there)"""
    if lab.shape == "nat":
        return [("eth0", lab.client, "eth0"), ("eth1", lab.nodes["router"], "director")]
    return [("eth0", lab.nodes["router"], "director")]


def set_offloads(node, port, state, gro):
    """Of checksums and tags, which the other end of PORT does not see, and of GRO."""
    with node.ns.enter():
        run(["ethtool", "-K", port, "tx", state, "txvlan", state, "tx-vlan-stag-hw-insert", state,
             "gro", gro])


def show(lab):
    """The other ends leave nothing to their devices, and poll, until the end of the test's file:
    programs that say so to a device take longer than most tests."""
    if lab not in _shown:
        _shown.add(lab)
        for _, node, port in cables(lab):
            set_offloads(node, port, "off", gro="on")


def hide(lab):
    _shown.remove(lab)
    for _, node, port in cables(lab):
        set_offloads(node, port, "on", gro="off")


def hide_all():
    for lab in list(_shown):
        if lab.nodes:       # a topology with rules was destroyed
            hide(lab)
    _shown.clear()


def ipvsctl(lab, *words, check=True):
    with lab.director.ns.enter():
        return run([IPVSCTL, "-q", "fast-path", *words], check=check)


def _bare(lab, word):
    if not modules.is_loaded(BARE.stem):
        modules.probe(BARE)
    lab.director.ns.write("/proc/net/l4lb_bare", word)


def on(lab, device):
    if has_programs():
        ipvsctl(lab, "xdp", "dev", device)
    else:
        _bare(lab, f"+{device}")


def off(lab, device):
    if has_programs():
        ipvsctl(lab, "no-xdp", "dev", device)
    else:
        _bare(lab, f"-{device}")


def attach(lab):
    """To all devices of LAB's director. A veth hides checksums and tags that its other end
    leaves to it, and takes redirected frames only if that end polls, which it does with GRO."""
    if lab in _labs:
        return
    _labs.append(lab)
    show(lab)
    for device, _, _ in cables(lab):
        on(lab, device)


def detach(lab):
    global sent
    sent += int(dict(line.split() for line in lab.director.ns.read("/proc/net/l4lb").splitlines())["xdp"])
    _labs.remove(lab)
    if has_programs():
        ipvsctl(lab, "no-xdp", "all")
        return
    for device in lab.director.ns.read("/proc/net/l4lb_bare").split():
        _bare(lab, f"-{device}")
    if not _labs:
        modules.remove(BARE.stem)


def detach_all():
    for lab in list(_labs):
        detach(lab)


@contextlib.contextmanager
def attached(lab):
    attach(lab)
    try:
        yield
    finally:
        detach(lab)
