# SPDX-License-Identifier: GPL-2.0
"""ipvsctl service ... shadow and scheduler stats: figures, tables, JSON, files, and what is refused."""

import re

import pytest
from lab import genl, shadows
from lab.ctl import VIP, WEB

TAKES = 30
NO_MODULE = True        # `module` loads it
DNS = ["udp", f"{VIP}:53"]
SERVERS = ("10.0.0.11 weight 1", "10.0.0.12 weight 3", "10.0.0.13 weight 0")


@pytest.fixture
def dns(fresh):
    """Has no connection of an earlier test, whose client's port another one might choose."""
    fresh.ctl("svc add", *DNS, "scheduler rr shadow wrr", *(f"server {s}" for s in SERVERS))
    return fresh


def told(director):
    return director.json("scheduler stats", *DNS)["shadow"]


@pytest.mark.smoke
@pytest.mark.tool
def test_as_the_kernel_says(dns):
    dns.ns.datagrams((VIP, 53), 40)
    found = told(dns)
    with genl.Ipvs(dns.ns) as ipvs, genl.L4lb(dns.ns) as l4lb:
        said = shadows.read(l4lb, ipvs.service(VIP, 53, genl.packet.UDP, add=False))
    assert (found["choices"], found["agreed"], found["refused"]) == shadows.totals(said)
    assert found["service"] == f"udp:{VIP}:53" and 0 <= found["age_ms"] <= said["age"]
    assert (found["real"]["scheduler"], found["shadow"]["scheduler"]) == ("rr", "wrr")
    assert [s["server"] for s in found["servers"]] == ["10.0.0.11:53", "10.0.0.12:53", "10.0.0.13:53"]
    for side, kind in ("real", "real_"), ("shadow", ""):
        assert [s[side]["connections"] for s in found["servers"]] == shadows.each(said, f"{kind}conns")
        assert [(s[side]["active"], s[side]["inactive"]) for s in found["servers"]] == \
            shadows.loads(said, real=side == "real")


def test_figures(dns):
    """Each for its weight: rr gives the second one a third of what it should have; wrr would not."""
    dns.ns.datagrams((VIP, 53), 40)
    found = told(dns)
    assert [(s["real"]["share"], s["shadow"]["share"], s["fair"]) for s in found["servers"]] == [
        (0.5, 0.25, 0.25), (0.5, 0.75, 0.75), (0, 0, 0)]
    assert (found["shadow"]["max_over_mean"], found["shadow"]["cv"], found["shadow"]["jain"]) == (1, 0, 1)
    assert found["real"]["max_over_mean"] == 1.5 and found["real"]["jain"] == pytest.approx(0.8)
    assert found["real"]["connections"] == found["shadow"]["connections"] == 40


def test_text(dns):
    lines = dns.ctl("scheduler stats", *DNS).splitlines()
    assert lines[0].split() == ["SCHEDULER", "ROLE", "CHOICES", "AGREED", "REFUSED", "MAX/MEAN", "CV", "JAIN"]
    assert lines[1].split() == ["rr", "in", "use", "0", "-", "-", "-", "-", "-"]
    assert lines[2].split() == ["wrr", "shadow", "0", "0.00", "%", "0", "-", "-", "-"]
    dns.ns.datagrams((VIP, 53), 8)
    lines = dns.ctl("scheduler stats", *DNS).splitlines()
    assert lines[1].split() == ["rr", "in", "use", "8", "-", "-", "1.500", "0.5000", "0.8000"]
    assert lines[2].split()[-3:] == ["1.000", "0.0000", "1.0000"] and lines[3] == ""
    assert lines[4].split() == ["SERVER", "WEIGHT", "FAIR-%", "REAL-%", "ACTIVE", "INACTIVE",
                                "SHADOW-%", "ACTIVE", "INACTIVE"]
    assert lines[5].split()[:4] == ["10.0.0.11:53", "1", "25.00", "50.00"] and len(lines) == 8
    only = dns.ctl("-o scheduler,jain scheduler stats", *DNS).splitlines()
    assert [line.split() for line in only] == [["SCHEDULER", "JAIN"], ["rr", "0.8000"], ["wrr", "1.0000"]]


def test_many_servers(dns):
    with genl.Ipvs(dns.ns) as ipvs:
        service = ipvs.service(VIP, 53, genl.packet.UDP, add=False)
        for n in range(1, 23):
            service.server(f"10.0.1.{n}", 53)
    assert len(dns.ctl("scheduler stats", *DNS).splitlines()) == 3
    assert len(dns.ctl("-v scheduler stats", *DNS).splitlines()) == 3 + 2 + 25


def test_set_shown_and_kept(director):
    def shadow():
        return director.json("show")["services"][0].get("shadow")
    director.ctl("svc add", *WEB, "scheduler rr shadow mh server 10.0.0.11")
    assert "shadow mh" in director.ctl("show -o name,options") and shadow() == "mh"
    for form in ("", "-F json"):
        saved = director.ctl("save", form)
        director.ctl("svc flush --yes")
        director.ctl("restore", stdin=saved)
        assert shadow() == "mh"
    director.ctl("svc change", *WEB, "scheduler wlc")
    director.ctl("rs add", *WEB, "10.0.0.12")
    assert shadow() == "mh"
    director.ctl("svc change", *WEB, "shadow wlc ramp 30")
    assert shadow() == "wlc"
    director.ctl("svc change", *WEB, "shadow none")
    assert shadow() is None
    director.ctl("svc replace", *WEB, "scheduler rr shadow lc")
    assert shadow() == "lc"
    director.ctl("svc replace", *WEB, "scheduler rr")
    assert shadow() is None
    director.ctl("apply -", stdin=f"version: 1\nservices: [{{service: 'tcp {VIP}:80', shadow: nq}}]\n")
    assert shadow() == "nq"


def test_counted_elsewhere(dns):
    dns.ns.datagrams((VIP, 53), 4)
    assert dns.json("stats")["services"][0]["shadow"] == {
        "scheduler": "wrr", "choices": 4, "agreed": told(dns)["agreed"], "refused": 0}
    text = dns.ctl("-F prometheus stats")
    assert re.search(r'ipvs_service_shadow_choices_total\{service="udp:192.0.2.10:53",shadow="wrr"\} 4\n', text)
    assert re.search(r"ipvs_service_shadow_refused_total\{[^}]*\} 0\n", text)
    dns.ctl("stats zero", *DNS)
    assert told(dns)["choices"] == 0


def test_refused(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11")
    said = director.ctl("scheduler stats", *WEB, code=4)
    assert "it has no shadow" in said and "service change tcp 192.0.2.10:80 shadow" in said
    assert "no such service" in director.ctl("scheduler stats tcp", f"{VIP}:81", code=4)
    assert "nosuch" in director.ctl("svc change", *WEB, "shadow nosuch", code=4)
    assert "nosuch" in director.ctl("svc add tcp", f"{VIP}:82", "shadow nosuch", code=4)
    assert [s["port"] for s in director.json("show")["services"]] == [80]
    director.ctl("scheduler stats", *WEB, "more", code=2)


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_in_tree(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11")
    assert "module ip_vs does not know this command" in director.ctl("scheduler stats", *WEB, code=7)
    said = director.ctl("svc change", *WEB, "shadow mh", code=7)
    assert '"shadow mh": the services of ip_vs have no such setting' in said
