# SPDX-License-Identifier: GPL-2.0
"""This guest and another one with a cable between them. tests/lab/interop starts both, and
both run the same test, which asks NUMBER which of the two it is in.

L4LB_INTEROP=DIRECTORY:NUMBER:COUNT: files in DIRECTORY are the guests' talk, NUMBER is this
guest's, COUNT the number of connections of each kind."""

import contextlib
import json
import os
import re
from pathlib import Path

from .netns import run, wait_until
from .sync_group import DEVICE, DIRECTOR, PEER, up

HERE, NUMBER, COUNT = os.environ.get("L4LB_INTEROP", ".:0:0").split(":")
HERE, NUMBER, COUNT = Path(HERE), int(NUMBER), int(COUNT)
END = "link0"       # a name that the topologies do not use
MAC = f"52:54:00:00:5c:0{NUMBER}"
PATIENCE = 400      # seconds that one guest waits for the other
OWN = (DIRECTOR, PEER)[NUMBER]      # this guest's addresses on the cable, and the other one's
OTHER = (PEER, DIRECTOR)[NUMBER]


def tell(what, value=None):
    path = HERE / f"{what}-{NUMBER}"
    path.with_suffix(".new").write_text(json.dumps(value), encoding="utf-8")
    path.with_suffix(".new").rename(path)


def ask(what):
    path = HERE / f"{what}-{1 - NUMBER}"
    wait_until(path.exists, PATIENCE, what=f"the other guest's {path.name}", step=0.2)
    return json.loads(path.read_text(encoding="utf-8"))


def meet(what, value=None):
    """Both come to WHAT; returns the other one's value."""
    tell(what, value)
    return ask(what)


def find_end():
    """Gives the cable's end its name."""
    run("modprobe virtio_net")
    name = wait_until(lambda: re.search(rf"^\d+: (\w+):.* {MAC} ", run("ip -o link").stdout,
                                        re.M), 10, what="the cable")[1]
    run(f"ip link set {name} down")
    run(f"ip link set {name} name {END}")


def lines(device):
    """What `ip` does with a device by which the directors announce connections."""
    yield from (f"addr add {OWN[family]}/{length} dev {device}{more}"
                for family, length, more in ((4, 24, ""), (6, 64, " nodad")))
    yield f"link set {device} up"


@contextlib.contextmanager
def cable(ns):
    """The whole cable is the director's, to announce connections."""
    run(["ip", "link", "set", END, "netns", ns.name])
    try:
        ns.ip(f"link set {END} name {DEVICE}", *lines(DEVICE))
        wait_until(lambda: up(ns, DEVICE), 10, what=f"{DEVICE} up")
        yield
    finally:
        ns.ip(f"link set {DEVICE} down", f"link set {DEVICE} name {END}",
              f"link set {END} netns 1")


@contextlib.contextmanager
def wires(*ends):
    """The cable carries several wires. Each of ENDS is (namespace, device, MAC) in this guest;
    the n-th leads to the n-th one in the other guest."""
    run("modprobe 8021q")
    run(f"ip link set {END} up")
    try:
        for n, (ns, device, mac) in enumerate(ends, 1):
            run(f"ip link add link {END} name wire{n} type vlan id {n}")
            run(f"ip link set wire{n} address {mac} netns {ns.name}")
            ns.ip(f"link set wire{n} name {device}", f"link set {device} up")
        yield
    finally:
        for ns, device, _ in ends:
            ns.run(["ip", "link", "del", device], check=False)
        run(f"ip link set {END} down")
