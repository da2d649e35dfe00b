# SPDX-License-Identifier: GPL-2.0
"""The life of shadows: what can end while one is at work, what can fail, and what is refused."""

import contextlib
import errno
import time

import pytest
from lab import faults, genl
from lab.faults import FaultyL4lb
from lab.genl import attr, is_refused, text
from lab.monitor import Monitor
from lab.netns import Namespace, run, wait_until
from lab.nobody import as_nobody
from lab.packet import ACK, FIN, RST, TCP, UDP
from lab.raw import Raw
from lab.rows import large
from lab.sequences import SCHEDULERS
from lab.shadows import each, give, in_all, loads, name_of, read, totals

pytestmark = pytest.mark.usefixtures("only_l4lb")
VIP = "192.0.2.1"


@pytest.fixture
def ns(nat):
    return nat.director.ns


def service_of(nat, servers=3, port=None, **options):
    service = nat.ipvs.service(VIP, port or nat.fresh_port(), **options)
    for n in range(servers):
        service.server(f"198.51.100.{n + 1}", 80)
    return service


def opened(raw, count=4):
    clients = [raw.client() for _ in range(count)]
    for client in clients:
        client.open()
    return clients


def refused(call, code, word):
    said = is_refused(call, code)
    assert word in said or not genl.SAYS_WHY, said


# -- what ends

@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_swap_and_off_with_connections(nat, l4lb, backend, family, proto):
    """Connections of a shadow that is over go on and end; the next one does not know them."""
    for sched in SCHEDULERS:
        backend.need_scheduler(sched)
    raw = Raw(nat, proto, family, (1, 2, 3))
    olds = []
    for sched in (*SCHEDULERS, "none"):
        give(l4lb, raw.service, sched)
        olds += opened(raw, 2)
        if sched != "none":
            found = read(l4lb, raw.service)
            assert found["seen"] == 2 and sum(in_all(loads(found))) == 2, sched
    assert name_of(l4lb, raw.service) is None
    if proto == TCP:
        for client in olds[::2]:
            client.send(RST).arrive()
    give(l4lb, raw.service, "lc")
    l4lb.kill(vip=raw.vip, vport=raw.port)
    wait_until(lambda: not any(raw.dest(n)["active"] + raw.dest(n)["inactive"] for n in (1, 2, 3)), 10)
    assert in_all(loads(read(l4lb, raw.service))) == (0, 0)


@pytest.mark.smoke
def test_many_ghosts_end(nat, l4lb):
    """So many that the shadow holds tournaments: connections that outlive it mark nothing."""
    raw = Raw(nat, weights=(9,), sched="fo")
    for n in range(1, 41):
        raw.service.server(f"198.51.100.{n}", 80)
    for sched in ("wlc", "lblcr", "wlc"):
        give(l4lb, raw.service, sched)
        clients = opened(raw, 5)
        found = read(l4lb, raw.service)
        assert sum(each(found)) == 5 and (sched != "wlc" or max(each(found)) == 1)
        raw.service.delete_server("198.51.100.7", 80)
        assert len(read(l4lb, raw.service)["servers"]) == 40
        raw.service.server("198.51.100.7", 80)
        give(l4lb, raw.service, "none")
        time.sleep(0.2)     # for what it had to be freed
        for client in clients:
            client.send(FIN | ACK).arrive()


def test_module_is_held(nat, l4lb, backend):
    backend.need_scheduler("sed")
    raw = Raw(nat, numbers=(1, 2))
    give(l4lb, raw.service, "sed")
    opened(raw)
    assert run(["rmmod", f"{backend.prefix}sed"], check=False).returncode
    give(l4lb, raw.service, "nq")
    assert not run(["rmmod", f"{backend.prefix}sed"], check=False).returncode
    # Its connections go on without it.
    l4lb.kill(vip=raw.vip, vport=raw.port)
    give(l4lb, raw.service, "sed")      # loads it again
    opened(raw)
    raw.service.delete()
    assert not run(["rmmod", f"{backend.prefix}sed"], check=False).returncode


@pytest.mark.smoke
def test_service_ends(nat, l4lb):
    """A service goes with its shadow, by a command, a flush and a batch; made again, it has none."""
    def delete(raw):
        raw.service.delete()

    def replace(_):
        l4lb.set_services([], genl.REPLACE)
    for end in (delete, lambda _: nat.ipvs.flush(), replace):
        raw = Raw(nat, numbers=(1, 2))
        give(l4lb, raw.service, "lblc")
        opened(raw)
        end(raw)
        raw.service.add()
        for n in (1, 2):
            raw.add(n)
        assert name_of(l4lb, raw.service) is None
        give(l4lb, raw.service, "lblc")
        opened(raw)
        assert in_all(loads(read(l4lb, raw.service))) == (4, 0)
        raw.service.delete()


@pytest.mark.smoke
def test_namespace_ends(nat, backend):
    """With connections that remember ghosts, servers in the trash, and a shadow that is over."""
    for sched in ("lblcr", "mh"):
        backend.need_scheduler(sched)
    for last in ("lblcr", "none"):
        ns = Namespace("shadow1")
        with contextlib.ExitStack() as undo:
            undo.callback(ns.destroy)
            ns.run("ip link set lo up")
            ns.run(f"ip addr add {VIP}/32 dev lo")
            with genl.Ipvs(ns) as ipvs, genl.L4lb(ns) as l4lb:
                service = ipvs.service(VIP, 80, UDP)
                for n in (1, 2, 3):
                    service.server(f"127.0.0.{n + 1}", 80)
                give(l4lb, service, "mh")
                ns.datagrams((VIP, 80), 20)
                service.delete_server("127.0.0.2", 80)
                give(l4lb, service, last)
                ns.datagrams((VIP, 80), 20)


@pytest.mark.parametrize("count", (3000, large(100_000)))
def test_off_costs_the_same(nat, l4lb, count):
    """A shadow is turned off without a look at the connections that remember its ghosts; the
    control, with few of them, takes as long."""
    raw = Raw(nat, UDP, numbers=(1, 2, 3))
    took = {}
    for many in (10, count):
        give(l4lb, raw.service, "wlc")
        raw.send_all(raw.client(sport=1024 + n % 60_000,
                                address=f"198.18.{n // 60_000}.7").packet() for n in range(many))
        assert in_all(loads(read(l4lb, raw.service)))[1] == many
        best = []
        for sched in ("none", "wlc", "none", "wlc"):
            began = time.perf_counter()
            give(l4lb, raw.service, sched)
            best.append(time.perf_counter() - began)
        took[many] = min(best[::2])
        l4lb.kill(vip=raw.vip, vport=raw.port)
        give(l4lb, raw.service, "none")
    assert took[count] < 5 * took[10] + 0.002, took


# -- batches and listings

def test_batch(nat, l4lb):
    """An entry has all of its service: with SHADOW or without; the listing can be sent back."""
    port = nat.fresh_port()

    def put(shadow, mode=genl.MERGE, servers=("198.51.100.1", "198.51.100.2"), sched="rr"):
        l4lb.set_services([genl.batch_entry(VIP, port, servers, shadow=shadow, sched=sched)], mode)
        return nat.ipvs.service(VIP, port, add=False)
    service = put("mh")
    assert name_of(l4lb, service) == "mh"
    first = read(l4lb, service)
    assert [s["addr"] for s in first["servers"]] == ["198.51.100.1", "198.51.100.2"]
    time.sleep(0.1)
    put("mh", servers=("198.51.100.3",), sched="wlc")
    again = read(l4lb, service)
    assert len(again["servers"]) == 3 and again["age"] >= first["age"] + 100    # the same shadow
    put("lc", servers=("198.51.100.4",))
    assert len(read(l4lb, service)["servers"]) == 4 and read(l4lb, service)["age"] < again["age"]
    listed = l4lb.get_services()
    put("none")
    assert name_of(l4lb, service) is None
    assert l4lb.get_services() != listed
    put("lc")
    assert l4lb.get_services() == listed
    put(None)
    assert name_of(l4lb, service) is None
    put("lc")
    l4lb.set_services([genl.batch_entry(VIP, port, sched="rr", shadow="lc")], genl.REPLACE)
    assert read(l4lb, service)["servers"] == []
    # One wrong entry, and nothing has changed.
    refused(lambda: l4lb.set_services([genl.batch_entry(VIP, port, shadow="mh"),
                                       genl.batch_entry(VIP, port + 1, shadow="nosuch")], genl.MERGE),
            errno.ENOENT, "no such scheduler")
    assert name_of(l4lb, service) == "lc"


def test_family_ipvs_does_not_know_it(nat, l4lb):
    service = service_of(nat)
    before = service.get(), service.servers()
    give(l4lb, service, "mh")
    assert (service.get(), service.servers()) == before
    service.edit(sched="wlc")
    assert name_of(l4lb, service) == "mh"


def test_many_servers(nat, l4lb):
    """More than one buffer holds, in the service's order; a change during the listing is told."""
    port = nat.fresh_port()
    service = service_of(nat, 0, port)
    give(l4lb, service, "wlc")
    servers = [f"198.51.{100 + n // 250}.{n % 250 + 1}" for n in range(1000)]
    for first in range(0, 1000, 500):
        l4lb.set_services([genl.batch_entry(VIP, port, servers[first:first + 500], shadow="wlc")], genl.MERGE)
    assert [s["addr"] for s in read(l4lb, service)["servers"]] == servers
    service.delete_server(servers[500], 80)
    assert [s["addr"] for s in read(l4lb, service)["servers"]] == servers[:500] + servers[501:]


# -- what fails

def test_a_shadow_that_cannot_follow_ends(nat, ns, l4lb, moody):
    """Its service notices nothing, and listeners are told."""
    raw = Raw(nat, numbers=(1, 2))
    give(l4lb, raw.service, "moody")
    opened(raw, 2)
    with Monitor(ns, "service") as monitor:
        moody["build_error"] = -errno.ENOMEM
        raw.add(3)
        raw.numbers = (1, 2, 3)
        said = monitor.next()
        moody["build_error"] = 0
        assert said["event"] == "shadow-lost", said
    assert name_of(l4lb, raw.service) is None
    assert sorted(client.number for client in opened(raw, 3)) == [1, 2, 3]
    for code in ("init_error", "build_error"):
        moody[code] = -errno.EINVAL
        refused(lambda: give(l4lb, raw.service, "moody"), errno.EINVAL, "cannot work for this service")
        moody[code] = 0
    give(l4lb, raw.service, "moody")
    moody["build_error"] = -errno.ENOMEM
    refused(lambda: l4lb.set_services([genl.batch_entry(VIP, 4000, ["198.51.100.1"], shadow="moody")], genl.ADD),
            errno.ENOMEM, "no memory for the shadow")
    assert name_of(l4lb, raw.service) == "moody"
    raw.remove(3)
    moody["build_error"] = 0
    assert name_of(l4lb, raw.service) is None


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.smoke
@pytest.mark.parametrize("sched", ("lblcr", "mh", "wlc"))
def test_no_memory(nat, ns, l4lb, backend, sched):
    """Each allocation in turn fails: the shadow is there or not, and can be had afterwards."""
    backend.need_scheduler(sched)
    service = service_of(nat, 20)
    port = nat.fresh_port()

    def batch(l4):
        l4.set_services([genl.batch_entry(VIP, port, [f"198.51.100.{n}" for n in range(1, 20)],
                                          shadow=sched)], genl.MERGE)

    for act in (lambda l4: give(l4, service, sched), batch):
        with faults.injection(), FaultyL4lb(ns) as faulty:
            for nth in range(1, 600):
                give(l4lb, service, "none")
                with contextlib.suppress(OSError):
                    l4lb.set_services([genl.batch_removal(VIP, port)], genl.CHANGE)
                faulty.nth = nth
                try:
                    act(faulty)
                except OSError as error:
                    assert error.errno in (errno.ENOMEM, errno.EFAULT, errno.ENOBUFS), error
                hit, faulty.nth = faulty.hit, 0
                give(l4lb, service, sched)
                assert len(read(l4lb, service)["servers"]) == 20
                if not hit:
                    break
            else:
                raise AssertionError("it allocates more often than expected")


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
def test_no_memory_to_follow(nat, l4lb):
    """A real server is added and removed: the service does it, or refuses; the shadow is whole, or gone."""
    service = service_of(nat, 20)
    lost = 0
    with faults.injection():
        for nth in range(1, 100):
            give(l4lb, service, "mh")
            with faults.Fault(nth) as fault, contextlib.suppress(OSError):
                service.server("198.51.100.99", 80)
            lost += name_of(l4lb, service) is None
            if name_of(l4lb, service):
                assert len(read(l4lb, service)["servers"]) == len(service.servers())
            with contextlib.suppress(OSError):
                service.delete_server("198.51.100.99", 80)
            if not fault.hit:
                break
        else:
            raise AssertionError("it allocates more often than expected")
    assert lost


# -- bad input

@pytest.mark.smoke
def test_refused(nat, l4lb):
    service, other = service_of(nat), nat.ipvs.service(VIP, nat.fresh_port(), add=False)
    refused(lambda: give(l4lb, service, "nosuch"), errno.ENOENT, "no such scheduler")
    refused(lambda: give(l4lb, service, ""), errno.ENOENT, "no such scheduler")
    refused(lambda: give(l4lb, service, "Bad/Name"), errno.ENOENT, "no such scheduler")
    assert is_refused(lambda: give(l4lb, service, "x" * 16), errno.EINVAL)
    assert is_refused(lambda: l4lb.request(genl.SET_POLICY, [
        attr(genl.L_SERVICE, service.ident), attr(genl.L_SHADOW, b"mh")]), errno.EINVAL)
    refused(lambda: give(l4lb, other, "mh"), errno.ESRCH, "no such service")
    refused(lambda: l4lb.request(genl.SET_POLICY, [attr(genl.L_SHADOW, text("mh"))]), errno.EINVAL,
            "SERVICE is missing")
    refused(lambda: read(l4lb, service), errno.ENOENT, "no shadow")
    refused(lambda: read(l4lb, other), errno.ESRCH, "no such service")
    refused(lambda: l4lb.dump(genl.GET_SHADOW, b""), errno.EINVAL, "SERVICE is missing")
    assert is_refused(lambda: l4lb.dump(genl.GET_SHADOW, attr(genl.L_SHADOW, text("mh"))), errno.EINVAL)
    assert name_of(l4lb, service) is None
    # A policy that is refused takes the shadow with it.
    give(l4lb, service, "mh")
    refused(lambda: l4lb.request(genl.SET_POLICY, [
        attr(genl.L_SERVICE, service.ident), attr(genl.L_SHADOW, text("rr")),
        attr(genl.L_POLICY, [attr(genl.POLICY["guard"], genl.u32(9))])]), errno.ERANGE, "GUARD")
    assert name_of(l4lb, service) == "mh"
    give(l4lb, service, "none")
    give(l4lb, service, "none")
    # What comes after the shadow was made is refused, and it is gone.
    mark = nat.ipvs.service(fwmark=78)
    for n in range(1, 21):
        mark.server(f"198.51.100.{n}", 80)
    refused(lambda: l4lb.request(genl.SET_POLICY, [
        attr(genl.L_SERVICE, mark.ident), attr(genl.L_SHADOW, text("wlc")),
        attr(genl.L_POLICY, [attr(genl.POLICY["guard"], genl.u32(1))])]), errno.EINVAL, "guard")
    assert name_of(l4lb, mark) is None
    assert as_nobody(nat, [(genl.GET_SHADOW, genl.F_DUMP)], False, "L4LB") == [errno.EPERM]


def test_other_services(nat, l4lb):
    """By firewall mark, without a scheduler, without real servers."""
    mark = nat.ipvs.service(fwmark=77)
    mark.server("198.51.100.1", 80)
    bare = nat.ipvs.service(VIP, nat.fresh_port(), sched="none")
    empty = nat.ipvs.service("2001:db8::1", nat.fresh_port())
    for service, servers in (mark, 1), (bare, 0), (empty, 0):
        for sched in SCHEDULERS:
            give(l4lb, service, sched)
            found = read(l4lb, service)
            assert found["scheduler"] == sched and len(found["servers"]) == servers
            assert totals(found) == (0, 0, 0) and each(found) == [0] * servers
    with Monitor(nat.director.ns, "service") as monitor:
        give(l4lb, mark, "none")
        assert monitor.next()["event"] == "service-changed"
