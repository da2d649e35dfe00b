# SPDX-License-Identifier: GPL-2.0
"""A namespace that ends takes its services, hooks and memory along; the leak
scan after this file (conftest.py) would find what stays."""

import pytest
from lab import genl
from lab.genl import PERSISTENT
from lab.netns import Namespace, wait_until
from lab.packet import TCP, UDP


@pytest.mark.smoke
@pytest.mark.ip_vs_differs("references to the module stay when a namespace ends")
def test_configured_namespaces_end(backend):
    for turn in range(3):
        ns = Namespace(f"ends{turn}")
        try:
            ns.ip("link set lo up")
            with genl.Ipvs(ns) as ipvs:
                for vip, rip in (("198.51.100.1", "192.0.2.9"),
                                 ("2001:db8:1::1", "2001:db8:2::9")):
                    for proto in (TCP, UDP):
                        ipvs.service(vip, 80, proto=proto, sched="wrr",
                                     flags=PERSISTENT * (turn % 2), timeout=60).server(rip, 80)
        finally:
            ns.destroy()
    wait_until(lambda: backend.refcount() == len(backend.family()) - 1, 20,
               what="references to the module")
