# SPDX-License-Identifier: GPL-2.0
"""Raw packets through a virtual service by firewall mark."""

import contextlib
import socket

from .packet import TCP
from .raw import Raw

_mark = [100]


def fresh_mark():
    _mark[0] += 1
    return _mark[0]


@contextlib.contextmanager
def marking(lab, mark, *matches):
    """The director marks packets that fit MATCHES (nft expressions) before routing."""
    rules = "".join(f"  {m} meta mark set {mark}\n" for m in matches)
    lab.director.ns.nft(
        "table inet l4lb_test {\n chain pre {\n"
        "  type filter hook prerouting priority mangle;\n"
        f"{rules} }}\n chain out {{\n  type route hook output priority mangle;\n"
        f"{rules} }}\n}}\n")
    try:
        yield
    finally:
        lab.director.ns.nft("delete table inet l4lb_test")


@contextlib.contextmanager
def here(lab, mark, family=4):
    """The director receives marked packets as its own, whatever their address."""
    run = lab.director.ns.run
    ip = "ip -6" if family == 6 else "ip"
    run(f"{ip} rule add fwmark {mark} lookup 100")
    run(f"{ip} route add local default dev lo table 100")
    try:
        yield
    finally:
        run(f"{ip} route flush table 100")
        run(f"{ip} rule del fwmark {mark}")


class Marked(Raw):
    """A Raw service by firewall mark; clients connect to .port."""

    def __init__(self, lab, mark, family=4, numbers=(1, 2), weights=None, **kwargs):
        self.mark = mark
        options = dict(kwargs)
        dport = options.pop("dport", 0)
        proto = options.pop("proto", TCP)
        service = lab.ipvs.service(fwmark=mark, sched=options.pop("sched", "rr"),
                                   af=socket.AF_INET6 if family == 6 else socket.AF_INET,
                                   **options)
        self.lab, self.proto, self.family = lab, proto, family
        self.server_family, self.numbers, self.method = family, numbers, lab.method
        self.vip, self.port, self.dport = lab.raw_vip(family), lab.fresh_port(), dport
        self.client_tap = lab.tap("client")
        self.taps = {}
        self.service = service
        for i, n in enumerate(numbers):
            self.add(n, weight=weights[i] if weights else 1)
