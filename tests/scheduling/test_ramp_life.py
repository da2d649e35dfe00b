# SPDX-License-Identifier: GPL-2.0
"""What can end while real servers start slowly: each of them, their service, the scheduler, the
namespace. Real time, so that it runs on the debug kernel, too; test_ramp.py tests shares."""

import contextlib
import time

import pytest
from lab import genl
from lab.genl import Ipvs
from lab.netns import Namespace
from lab.packet import UDP
from lab.raw import Raw

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]
VIP = "192.0.2.1"
RAMP = 4        # long enough for a slow kernel to do what happens meanwhile
SCHEDULERS = ("wlc", "rr", "mh", "lblc", "fo", "sed")


@contextlib.contextmanager
def space(name):
    ns = Namespace(name)
    try:
        ns.run("ip link set lo up")
        ns.run("ip route add blackhole 198.51.100.0/24")
        yield ns
    finally:
        ns.destroy()


def ramping(ns):
    with genl.L4lb(ns) as l4lb:
        return {d["server"] for d in l4lb.drains() if "ramp" in d}


def many(n, first=0):
    return [genl.batch_server(f"198.51.100.{i}") for i in range(first + 1, first + n + 1)]


@pytest.fixture(scope="module")
def old(module_life):
    """A namespace with a service of 40 servers for each scheduler, older than its ramp."""
    with space("ramp1") as ns, Ipvs(ns), genl.L4lb(ns) as l4lb:
        for port, sched in enumerate(SCHEDULERS, 1):
            l4lb.set_services([genl.batch_entry(VIP, port, many(40), sched=sched, policy={"ramp": RAMP})])
        assert ramping(ns) == set()
        time.sleep(RAMP + 0.1)
        yield ns


@pytest.mark.smoke
@pytest.mark.parametrize("sched", SCHEDULERS)
def test_life(old, sched):
    """One and twenty join 40, lose their weight, go and come back."""
    port = SCHEDULERS.index(sched) + 1
    with Ipvs(old) as ipvs, genl.L4lb(old) as l4lb:
        service = ipvs.service(VIP, port, add=False, sched=sched)
        service.server("198.51.100.101", 80)
        assert ramping(old) == {"198.51.100.101"}
        l4lb.set_services([genl.batch_entry(VIP, port, many(20, 60), sched=sched, policy={"ramp": RAMP})],
                          genl.MERGE)
        assert len(ramping(old)) == 21
        service.edit_server("198.51.100.101", 80, weight=0)
        assert len(ramping(old)) == 20
        service.edit_server("198.51.100.101", 80, weight=5)
        service.edit_server("198.51.100.61", 80, weight=7)
        assert len(ramping(old)) == 21
        service.edit(sched="lc")
        service.edit(sched=sched)
        service.delete_server("198.51.100.70", 80)
        service.delete_server("198.51.100.1", 80)
        assert len(ramping(old)) == 20
        service.server("198.51.100.70", 80)
        assert len(ramping(old)) == 21
        for n in (*range(61, 81), 101):
            service.delete_server(f"198.51.100.{n}", 80)
        service.server("198.51.100.1", 80)
        service.delete_server("198.51.100.1", 80)
        assert ramping(old) == set()


@pytest.mark.smoke
def test_their_time_is_up(old):
    """Of all services at about the same time; nobody has connections, so all have caught up."""
    with Ipvs(old) as ipvs:
        services = [ipvs.service(VIP, port, add=False, sched=sched)
                    for port, sched in enumerate(SCHEDULERS, 1)]
        for n in (201, 202):
            for service in services:
                service.server(f"198.51.100.{n}", 80)
        assert ramping(old) == {"198.51.100.201", "198.51.100.202"}
        time.sleep(RAMP + 2.5)
        assert ramping(old) == set()
        for service in services:
            service.delete_server("198.51.100.201", 80)


@pytest.mark.smoke
def test_a_namespace_ends_meanwhile():
    with space("ramp2") as ns, Ipvs(ns) as ipvs, genl.L4lb(ns) as l4lb:
        l4lb.set_services([genl.batch_entry(VIP, 80, many(3), sched="wlc", policy={"ramp": 2})])
        time.sleep(2.1)
        ipvs.service(VIP, 80, add=False).server("198.51.100.9", 80)
        assert ramping(ns) == {"198.51.100.9"}


@pytest.mark.smoke
def test_its_service_goes_after_it():
    """Nobody looks at a newcomer that was removed, nor at its service."""
    with space("ramp4") as ns, Ipvs(ns) as ipvs, genl.L4lb(ns) as l4lb:
        l4lb.set_services([genl.batch_entry(VIP, 80, many(3), sched="wlc", policy={"ramp": 1})])
        time.sleep(1.1)
        service = ipvs.service(VIP, 80, add=False)
        service.server("198.51.100.9", 80)
        service.delete_server("198.51.100.9", 80)
        service.delete()
        ipvs.service(VIP, 81, sched="rr")
        time.sleep(2.2)


def test_all_are_replaced(old):
    """Servers that are added while all others go have nobody to leave the load to."""
    with space("ramp3") as ns, Ipvs(ns), genl.L4lb(ns) as l4lb:
        entry = {"sched": "wlc", "policy": {"ramp": 2}}
        l4lb.set_services([genl.batch_entry(VIP, 80, many(3), **entry)])
        time.sleep(2.1)
        l4lb.set_services([genl.batch_entry(VIP, 80, many(3, 10), exact=True, **entry)], genl.MERGE)
        assert ramping(ns) == set()
        # The service is new again: another one is equal to those.
        l4lb.set_services([genl.batch_entry(VIP, 80, many(1, 20), **entry)], genl.MERGE)
        assert ramping(ns) == set()
        time.sleep(2.1)
        # One that stays is enough.
        l4lb.set_services([genl.batch_entry(VIP, 80, many(4, 10), exact=True, **entry)], genl.MERGE)
        assert ramping(ns) == {"198.51.100.14"}
    assert ramping(old) == set()


@pytest.mark.parametrize("sched", ("wlc", "mh", "rr"))
def test_packets_meanwhile(dr, sched):
    """Each new flow finds a server, in each phase of each change."""
    raw = Raw(dr, UDP, numbers=(1, 2), sched=sched)
    with genl.L4lb(dr.director.ns) as l4lb:
        l4lb.set_policy(raw.service, ramp=1)
    time.sleep(1.1)
    for step in range(24):
        if step % 6 == 0:
            raw.add(3)
            raw.numbers = (1, 2, 3)
        elif step % 6 == 3:
            raw.edit(3, weight=step)
        elif step % 6 == 5:
            raw.remove(3)
            raw.numbers = (1, 2)
        before = raw.service.stats["conns"]
        raw.send_all([raw.client().packet() for _ in range(20)])
        assert raw.service.stats["conns"] == before + 20
        time.sleep(0.1)
