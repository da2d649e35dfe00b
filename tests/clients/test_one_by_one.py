# SPDX-License-Identifier: GPL-2.0
"""One service of thousands of real servers, which are added one by one, beside in-tree ip_vs
with as many servers in small services."""

import time

import pytest
from lab.backend import Backend
from lab.genl import ROUTE, Ipvs
from lab.netns import Namespace
from lab.packet import UDP

NO_MODULE = True        # one module after the other
AT_MOST = 3             # times as long; to write to each server each time would be more
SCHEDULERS = ("rr", "wlc")


def seconds(module, sched, services, servers):
    """The time that it takes to add SERVERS to each of SERVICES."""
    with Backend(module).alone([sched]):
        ns = Namespace("many")
        try:
            ns.ip("link set lo up")     # without any address ip_vs takes no real server
            with Ipvs(ns) as ipvs:
                made = [ipvs.service(f"198.18.{n >> 8}.{n & 255}", 80, proto=UDP, sched=sched)
                        for n in range(services)]
                began = time.perf_counter()
                for service in made:
                    for n in range(servers):
                        service.server(f"10.1.{n >> 8}.{n & 255}", 80, method=ROUTE)
                took = time.perf_counter() - began
                ipvs.flush()
        finally:
            ns.destroy()
        return took


@pytest.mark.slow
@pytest.mark.parametrize("sched", SCHEDULERS)
def test_ten_thousand(sched):
    few = seconds("ip_vs", sched, 1000, 10)
    many = seconds("l4lb", sched, 1, 10_000)
    print(f"{sched}: ip_vs 1,000 x 10 in {few:.2f} s, l4lb 1 x 10,000 in {many:.2f} s")
    assert many <= AT_MOST * few, (few, many)
