# SPDX-License-Identifier: GPL-2.0
"""Tracepoints: their fields, and that they tell what happened, once each. The plain UML kernel
has none."""

import os
import re
import socket

import pytest
from lab import genl
from lab.ctl import IPVSCTL
from lab.netns import Namespace, run, wait_until
from lab.packet import SYN, UDP
from lab.ranges import PREFIX, Ranged
from lab.raw import Raw
from lab.tracing import lines, mounted, tracing

pytestmark = [pytest.mark.emulated, pytest.mark.smoke, pytest.mark.usefixtures("only_l4lb")]

ADDRESSES = "caddr[16] vaddr[16] daddr[16] cport vport dport"
CONN = f"netns fwmark af proto {ADDRESSES} method state why copy template idle_ms"
# Programs rely on them: a name that was given stays.
FIELDS = {
    "l4lb_pick": f"netns fwmark af proto {ADDRESSES} chosen weight active total",
    "l4lb_conn_new": CONN,
    "l4lb_conn_end": CONN,
    "l4lb_drop": "netns reason",
    "l4lb_pool": "netns fwmark af proto vaddr[16] vport n prefix_len last_port",
    "l4lb_event": "netns what count fwmark af proto vaddr[16] daddr[16] vport dport "
                  "prefix_len last_port",
}
NO_DEST = 2                     # reason
KILLED = 5                      # why
ADDED, WEIGHT = 5, 8            # what


def inode(ns):
    return os.stat(f"/run/netns/{ns.name}").st_ino


def mapped(address):
    return address if ":" in address else f"::ffff:{address}"


def fields(text):
    """{name: value} of a line; a port stands behind its address."""
    return {name: value for name, value in re.findall(r"(\w+)=(\S+(?: \d+(?=\s|$))?)", text)}


def named(event, number):
    """The fields of each EVENT in the namespace with this NUMBER."""
    found = [fields(text) for name, text in lines() if name == event]
    return [f for f in found if f["netns"] == str(number)]


def of(event, ns):
    return named(event, inode(ns))


def test_fields(nat):
    folder = mounted() / "events/l4lb"
    found = {}
    for event in folder.iterdir():
        if event.is_dir():
            text = (event / "format").read_text("ascii")
            names = re.findall(r"field:[^;]*?(\w+(?:\[\d+\])?);", text)
            found[event.name] = " ".join(n for n in names if not n.startswith("common_"))
    assert found == FIELDS


@pytest.mark.parametrize("shape", ("nat", "tun"))
def test_a_connection(topologies, shape, family, proto):
    lab = topologies[shape]
    lab.flush()
    raw = Raw(lab, proto, family)
    with tracing("l4lb"):
        client = raw.client()
        number = client.open()
        run([IPVSCTL, "-N", lab.director.ns.name, "-q", "conn", "kill", "--yes"])
    ends = {"client": f"{mapped(client.address)} {client.sport}",
            "vip": f"{mapped(raw.vip)} {raw.port}", "proto": str(proto),
            "server": f"{mapped(raw.address(number))} {raw.dport}"}
    (pick,) = of("l4lb_pick", lab.director.ns)
    (new,) = of("l4lb_conn_new", lab.director.ns)
    (end,) = of("l4lb_conn_end", lab.director.ns)
    for event in pick, new, end:
        assert event.items() >= ends.items(), event
    assert pick["chosen"] == pick["weight"] == "1"
    assert (new["why"], new["copy"], new["template"]) == ("0", "0", "0")
    assert end["why"] == str(KILLED) and end["method"] == str(lab.method)
    assert int(end["idle_ms"]) < 60_000


def test_nobody_is_there(nat):
    """A choice of none, and the packet's drop."""
    raw = Raw(nat, UDP, numbers=())
    with tracing("l4lb"):
        raw.client().send(SYN)
        raw.fence()
    (pick,) = of("l4lb_pick", nat.director.ns)
    assert (pick["chosen"], pick["server"], pick["weight"]) == ("0", ":: 0", "0")
    assert [f["reason"] for f in of("l4lb_drop", nat.director.ns)] == [str(NO_DEST)]
    assert of("l4lb_conn_new", nat.director.ns) == []


def test_changes(nat):
    """A server comes and changes its weight: two events, and as many sets to choose from."""
    port = nat.fresh_port()
    service = nat.ipvs.service(nat.vip(4), port, sched="wrr")
    with tracing("l4lb"):
        service.server(nat.rip(1, 4), port, method=nat.method)
        service.edit_server(nat.rip(1, 4), port, method=nat.method, weight=7)
    ns, vip = nat.director.ns, f"{mapped(nat.vip(4))} {port}"
    events = of("l4lb_event", ns)
    assert [int(f["what"]) for f in events] == [ADDED, WEIGHT]
    assert {(f["vip"], f["server"]) for f in events} == {(vip, f"{mapped(nat.rip(1, 4))} {port}")}
    pools = of("l4lb_pool", ns)
    assert [(f["vip"], f["n"]) for f in pools] == [(vip, "1")] * 2
    assert {(f["prefix_len"], f["last_port"]) for f in events + pools} == {("0", "0")}


def test_ranges(nat, family):
    """Two that begin with the same address and port, and end with others."""
    address, _, length = PREFIX[family].partition("/")
    first = 20000
    names = {(f"{address}/{length}", first + 9), (f"{address}/{length}", first + 99),
             (f"{address}/{int(length) + 1}", first + 99)}
    with tracing("l4lb"):
        for name, last in sorted(names):
            Ranged(nat, UDP, family, (1,), prefix=name, first=first, last=last)
    seen = of("l4lb_event", nat.director.ns), of("l4lb_pool", nat.director.ns)
    vip = f"{mapped(address)} {first}"
    for told in seen:
        assert {f["vip"] for f in told} == {vip}
        assert {(int(f["prefix_len"]), int(f["last_port"])) for f in told} == {
            (int(name.partition("/")[2]), last) for name, last in names}


def test_a_namespace_ends(backend, module_life):
    """Neither its connections are told, there may be millions, nor its services."""
    backend.need_scheduler("rr")
    before = backend.refcount()
    ns = Namespace("trace-end")
    ns.ip("link set lo up", "addr add 192.0.2.7/32 dev lo")
    with tracing("l4lb"):
        with genl.Ipvs(ns) as ipvs:
            service = ipvs.service("192.0.2.7", 53, proto=UDP, sched="rr")
            service.server("127.0.0.1", 53, method=genl.MASQ)
            with ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.sendto(b"x", ("192.0.2.7", 53))
        number = inode(ns)
        assert len(named("l4lb_conn_new", number)) == 1
        events = len(named("l4lb_event", number))
        ns.destroy()
        wait_until(lambda: backend.refcount() == before, 20, what="the namespace's end")
    assert named("l4lb_conn_end", number) == []
    assert len(named("l4lb_event", number)) == events == 2


def test_unload(nat, topologies, backend):
    """The module can be unloaded while they are on."""
    with tracing("l4lb"):
        assert Raw(nat, UDP).client().open()
        assert of("l4lb_pick", nat.director.ns)
        topologies.flush()
        backend.unload()
        backend.load()
        wait_until(lambda: (mounted() / "events/l4lb/l4lb_pick").exists(), 5)
        assert Raw(nat, UDP).client().open()
