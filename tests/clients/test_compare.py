# SPDX-License-Identifier: GPL-2.0
"""ipvsctl scheduler compare: figures, tables, JSON, and what is refused."""

import math
import re
import sys
from pathlib import Path

import pytest
from lab import genl, trials
from lab.ctl import IPVSCTL, VIP, WEB

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench/scheduling"))

import trials_bed  # noqa: E402

TAKES = 20
NO_MODULE = True        # `module` loads it
SERVERS = ("10.0.0.11 weight 1", "10.0.0.12 weight 3", "10.0.0.13 weight 0")


def compare(director, *words, **kwargs):
    return director.json("scheduler compare", *WEB, *words, **kwargs)["comparison"]


@pytest.fixture
def web(director):
    director.ctl("svc add", *WEB, "scheduler rr", *(f"server {s}" for s in SERVERS))
    return director


@pytest.mark.smoke
@pytest.mark.tool
def test_as_the_kernel_says(web):
    found = compare(web, "with rr,wrr,mh flows 1000 hold 10 seed 5 clients 50")
    assert {k: found[k] for k in ("service", "flows", "hold", "seed", "clients")} == {
        "service": f"tcp:{VIP}:80", "flows": 1000, "hold": 10, "seed": 5, "clients": 50}
    assert [t["scheduler"] for t in found["trials"]] == ["rr", "wrr", "mh"]
    with genl.Ipvs(web.ns) as ipvs, genl.L4lb(web.ns) as l4lb:
        for trial in found["trials"]:
            said = trials.attempt(l4lb, ipvs.service(VIP, 80, add=False), trial["scheduler"], 1000,
                                  hold=10, seed=5, clients=50)
            assert [s["chosen"] for s in trial["servers"]] == trials.chosen(said)
            assert trial["refused"] == said["refused"] == 0
    assert [s["server"] for s in found["trials"][0]["servers"]] == [
        "10.0.0.11:80", "10.0.0.12:80", "10.0.0.13:80"]


def test_figures(web):
    """Each for its weight: rr gives the second one a third of what it should have."""
    rr, wrr = compare(web, "with rr,wrr flows 4000")["trials"]
    assert [(s["chosen"], s["share"], s["fair"]) for s in rr["servers"]] == [
        (2000, 0.5, 0.25), (2000, 0.5, 0.75), (0, 0, 0)]
    got = 2000, 2000 / 3
    mean = sum(got) / 2
    assert rr["max_over_mean"] == pytest.approx(2000 / mean)
    assert rr["cv"] == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in got) / 2) / mean)
    assert rr["jain"] == pytest.approx(sum(got) ** 2 / (2 * sum(x * x for x in got)))
    assert (wrr["max_over_mean"], wrr["cv"], wrr["jain"]) == (1, 0, 1)


def test_without(web):
    mh, rr = compare(web, "with mh,rr flows 3000 without 10.0.0.12")["trials"]
    assert mh["lost"] == mh["servers"][1]["chosen"] and 0 <= mh["moved"] < 1500
    assert rr["lost"] == 1500 and rr["moved"] is None
    assert compare(web, "with rr flows 1 without 10.0.0.12:80")["without"] == "10.0.0.12:80"


def test_live_clients(fresh):
    """The only client, whose flows all go to one server, as the kernel says."""
    dns = "udp", f"{VIP}:53"
    fresh.ctl("svc add", *dns, "scheduler rr", *(f"server {s}" for s in SERVERS[:2]))
    said = fresh.ctl("scheduler compare", *dns, "with sh clients live", code=4)
    assert said.splitlines() == [
        f"ipvsctl: udp {VIP}:53: it has no connections whose clients could begin more",
        "  try: the command without clients live, for invented ones"]
    fresh.ns.datagrams((VIP, 53), 12)
    found = fresh.json("scheduler compare", *dns, "with sh,rr flows 1000 clients live")["comparison"]
    assert (found["clients"], found["flows"]) == (0, 1000)
    assert [t["live"] for t in found["trials"]] == [12, 12]
    sh, rr = ([s["chosen"] for s in t["servers"]] for t in found["trials"])
    assert sorted(sh) == [0, 1000] and rr == [500, 500]
    (rr,) = fresh.json("scheduler compare", *dns, "with rr")["comparison"]["trials"]
    assert "live" not in rr


def test_nothing_was_chosen(web):
    for number in (11, 12):
        web.ctl("rs change", *WEB, f"10.0.0.{number} weight 0")
    (rr,) = compare(web, "with rr flows 10")["trials"]
    assert (rr["refused"], rr["jain"], rr["cv"], rr["max_over_mean"]) == (10, None, None, None)
    assert re.search(r"^rr +- +- +- +10 ", web.ctl("scheduler compare", *WEB, "with rr flows 10"), re.M)


def test_text(web):
    lines = web.ctl("scheduler compare", *WEB, "with rr,mh flows 400 without 10.0.0.11").splitlines()
    assert lines[0].split() == ["SCHEDULER", "MAX/MEAN", "CV", "JAIN", "REFUSED", "LOST", "MOVED",
                                "P50-NS", "P99-NS"]
    assert lines[1].split()[:8] == ["rr", "1.500", "0.5000", "0.8000", "0", "50.00", "%", "-"]
    assert lines[3] == "" and lines[4].split() == ["SERVER", "WEIGHT", "FAIR-%", "rr", "mh"]
    assert lines[5].split()[:4] == ["10.0.0.11:80", "1", "25.00", "50.00"]
    assert len(lines) == 8
    assert "LOST" not in web.ctl("scheduler compare", *WEB, "with rr")
    only = web.ctl("-o scheduler,jain scheduler compare", *WEB, "with rr").splitlines()
    assert [line.split() for line in only] == [["SCHEDULER", "JAIN"], ["rr", "0.8000"]]


def test_many_servers(web):
    with genl.Ipvs(web.ns) as ipvs:
        service = ipvs.service(VIP, 80, add=False)
        for n in range(1, 23):
            service.server(f"10.0.1.{n}", 80)
    assert len(web.ctl("scheduler compare", *WEB, "with rr").splitlines()) == 2
    assert len(web.ctl("-v scheduler compare", *WEB, "with rr").splitlines()) == 2 + 2 + 25


def test_all_that_are_loaded(web):
    with genl.L4lb(web.ns) as l4lb:
        loaded = set(l4lb.schedulers()) - {"none"}
    assert {t["scheduler"] for t in compare(web, "flows 10")["trials"]} == loaded >= {"rr"}


def test_bench(director):
    """One pool of `make bench-schedulers COMPARE=...`; each pool leaves nothing for the next."""
    spec = {"names": ["rr", "mh"], "flows": 4000, "seed": 1}
    for weights in (4, 2, 1, 1), (1,):
        found = trials_bed.compare(
            lambda *words: director.ns.run([str(TOP / IPVSCTL), *words]).stdout, spec,
            {"weights": weights, "hold": 100})
        rr, mh = found["trials"]
        assert [s["weight"] for s in mh["servers"]] == list(weights)
        assert {s["share"] for s in rr["servers"]} == {1 / len(weights)} and rr["moved"] is None
        assert mh["lost"] == mh["servers"][0]["chosen"] and mh["moved"] < 400
        assert found["without"] == "10.0.0.1:80" and found["hold"] == 100
    assert director.json("svc show")["services"] == []


def test_refused(web):
    for words, code, why in (
            ("with nosuch", 4, "nosuch"), ("without 10.0.0.99", 4, "no server 10.0.0.99"),
            ("without 10.0.0.11:81", 4, "no server 10.0.0.11:81")):
        assert why in web.ctl("scheduler compare", *WEB, words, code=code)
    assert "no such service" in web.ctl("scheduler compare", "tcp", f"{VIP}:81", code=4)
    web.ctl("svc add tcp", f"{VIP}:82 scheduler rr")
    assert "no real servers" in web.ctl("scheduler compare tcp", f"{VIP}:82 with rr", code=4)


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_in_tree(web):
    for words in "with rr", "":
        said = web.ctl("scheduler compare", *WEB, words, code=7)
        assert "module ip_vs does not know this command" in said
