# SPDX-License-Identifier: GPL-2.0
"""ipvsctl and services with a range of addresses and ports."""

import json
import time

import pytest
from lab import genl, ranges
from lab.ctl import Director
from lab.monitor import ConnLog, Monitor
from lab.netns import wait_until
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.usefixtures("only_l4lb")
ID = "tcp 192.0.2.0/28:8000-8100"
WORD = "tcp:192.0.2.0/28:8000-8100"
SIX = "udp [2001:db8::]/64:5000-5099"


@pytest.fixture
def director(backend):
    director = Director()
    yield director
    director.ctl("service flush --yes")
    director.ns.destroy()


def ipvsadm(director, words):
    return director.ns.run(["ipvsadm", *words.split()]).stdout


def servers(director, name=ID):
    found = director.json("service show", name)["services"]
    assert len(found) == 1
    return {s["id"]: (s["weight"], s["forward"]) for s in found[0]["servers"]}


def test_life_of_a_service(director):
    """Every command that names a service: add, show, change, drain, zero, delete."""
    director.ctl("service add", ID, "scheduler mh limit-conns 500 server 10.0.0.11 nat",
                 "server 10.0.0.12:9000 nat weight 3")
    assert servers(director) == {"10.0.0.11:0": (1, "nat"), "10.0.0.12:9000": (3, "nat")}
    director.ctl("server add", ID, "10.0.0.13 dr weight 2")
    director.ctl("server change", ID, "10.0.0.13 weight 5")
    director.ctl("server delete", ID, "10.0.0.12:9000")
    assert servers(director) == {"10.0.0.11:0": (1, "nat"), "10.0.0.13:0": (5, "dr")}
    director.ctl("server drain", WORD, "10.0.0.13 --deadline 1h --then delete")
    shown = director.json("service show", WORD)["services"][0]
    assert (shown["address"], shown["prefix"], shown["port"], shown["last_port"], shown["id"]) == (
        "192.0.2.0", 28, 8000, 8100, WORD)
    assert shown["servers"][1]["drain"]["weight_before"] == 5
    director.ctl("server undrain", ID, "10.0.0.13")
    director.ctl("service change", ID, "scheduler wrr persistent 10m timeout tcp 1h")
    shown = director.json("service show", ID)["services"][0]
    assert (shown["scheduler"], shown["persistent"], shown["limit_conns"]) == ("wrr", 600, 500)
    director.ctl("service replace", ID, "scheduler lc")
    assert director.json("service show", ID)["services"][0]["persistent"] is None
    director.ctl("stats show", ID)
    director.ctl("stats zero", ID)
    director.ctl("conn show service", ID)
    assert ID in director.ctl("service show")
    director.ctl("service delete", ID)
    assert not ranges.listed(director.ns)
    assert "no such service" in director.ctl("service delete", ID, code=4)


@pytest.mark.parametrize(("words", "why"), [
    ("tcp 192.0.2.1/28:80", "not the first address"),
    ("tcp 192.0.2.0/0:80", "from 1 to 32"), ("tcp 192.0.2.0/33:80", "from 1 to 32"),
    ("udp [2001:db8::]/129:80", "from 1 to 128"), ("tcp 192.0.2.1:90-80", "before the first"),
    ("tcp 192.0.2.1:0-80", "not port 0"), ("tcp 192.0.2.1/32:80", "no range"),
    ("tcp 192.0.2.1:80-80", "no range"), ("tcp 192.0.2.1:80-65536", "from 1 to 65535"),
    ("tcp 192.0.2.1:80-", "bad last port"), ("tcp 192.0.2.0/28", "the port is missing"),
    ("udp 192.0.2.0/28:80 ops", "single address and port"),
    ("udp 192.0.2.0/28:80 persistent 60 pe sip", "single address and port"),
    ("tcp 192.0.2.0/28:80 scheduler mh conn-state lazy", "single address and port"),
    ("tcp 192.0.2.0/28:80 guard drop", "not for a prefix"),
    ("tcp 192.0.2.0/28:80 server 192.0.2.5", "one of the service's"),
    ("tcp 192.0.2.0/28:80 server 10.0.0.11:80 dr", "cannot change the port"),
    ("tcp 224.0.0.0/8:80", "clients can connect"),
])
def test_refused(director, words, why):
    """One line, before anything is sent."""
    said = director.ctl("service add", words, code=2)
    assert why in said.splitlines()[0]
    assert not ranges.listed(director.ns)


def test_refused_by_the_kernel(director):
    director.ctl("service add", ID)
    assert "already exists" in director.ctl("service add", ID, code=5)
    said = director.ctl("service add tcp 192.0.2.0/28:8050-8200", code=3)
    assert "cross each other" in said
    director.ctl("service add tcp 192.0.2.0/28:8050-8060")
    director.ctl("service add tcp 192.0.2.0:8000")
    names = [s["id"] for s in director.json("service show")["services"]]
    assert names == ["tcp:192.0.2.0:8000", WORD, "tcp:192.0.2.0/28:8050-8060"]
    assert [s["id"] for s in director.json("service show port 8055")["services"]] == names[1:]
    assert [s["id"] for s in director.json("service show vip 192.0.2.7")["services"]] == names[1:]
    assert len(director.json("service show vip 192.0.0.0/16")["services"]) == 3


@pytest.mark.parametrize("form", ("json", "yaml"))
def test_round_trip(director, form, tmp_path):
    """What is saved is restored; apply of an export changes nothing."""
    director.ctl("service add", ID, "scheduler mh owner web server 10.0.0.11 nat weight 4")
    director.ctl("service add", SIX, "persistent 5m server [2001:db8:1::1] dr")
    director.ctl("service add udp 192.0.2.0/24:53 server 10.0.0.12 tun")
    director.ctl("service add tcp 192.0.2.10:80 server 10.0.0.12 nat")
    before = director.json("service show")["services"]
    file = tmp_path / "saved"
    director.ctl("save -F json -o" if form == "json" else "export -o", str(file))
    if form == "yaml":
        assert f"service: {ID}" in file.read_text()
        director.ctl("diff", str(file))
    director.ctl("service flush --yes")
    director.ctl("restore" if form == "json" else "apply", str(file))
    after = director.json("service show")["services"]
    for one in before + after:
        one.pop("conns_per_second")
    assert after == before
    director.ctl("diff", str(file))


def test_a_file_changes_a_range(director, tmp_path):
    """The old range goes and one that crosses it comes, in one batch; back again by rollback."""
    file = tmp_path / "file.yaml"

    def apply(last):
        file.write_text(f"version: 1\nservices:\n- service: tcp 192.0.2.0/28:{last - 100}-{last}\n"
                        "  servers: [10.0.0.11]\n")
        director.ctl("check", str(file))
        director.ctl("apply --prune", str(file))
        assert ranges.listed(director.ns) == [(6, "192.0.2.0/28", last - 100, last)]
    apply(8100)
    apply(8150)
    file.write_text(json.dumps({"services": [{
        "protocol": "tcp", "address": "192.0.2.0", "prefix": 28, "port": 7000, "last_port": 7001,
        "servers": [{"address": "10.0.0.11", "port": 0}]}], "ipvsctl": {"schema": 1}}))
    director.ctl("apply --prune", str(file))
    assert ranges.listed(director.ns) == [(6, "192.0.2.0/28", 7000, 7001)]


def test_programs_that_do_not_know_it(director):
    """ipvsadm does not list it, saves and restores beside it, and clears it."""
    director.ctl("service add", ID, "server 10.0.0.11 nat")
    director.ctl("service add tcp 192.0.2.10:80 server 10.0.0.12 nat")
    saved = ipvsadm(director, "-Sn")
    assert "8000" not in saved and "192.0.2.10:80" in saved
    said = director.ctl("save -F ipvsadm")
    assert "8000" not in said
    ipvsadm(director, "-Z")
    assert ranges.listed(director.ns)
    ipvsadm(director, "-C")
    assert not ranges.listed(director.ns)


def test_connections_of_a_range(director):
    """Those of an exact service inside it are not among them, and are not killed with them."""
    director.ns.run("ip route add local 192.0.2.0/28 dev lo")
    director.ctl("service add udp 192.0.2.0/28:5000-5099 server 10.0.0.11 nat")
    director.ctl("service add udp 192.0.2.1:5001 server 10.0.0.11 nat")
    director.ns.datagrams(("192.0.2.1", 5001), 1)
    director.ns.datagrams(("192.0.2.1", 5002), 1)
    director.ns.datagrams(("192.0.2.9", 5001), 1)
    found = director.json("conn show service udp 192.0.2.0/28:5000-5099")["connections"]
    assert len(found) == 2
    director.ctl("conn kill service udp 192.0.2.0/28:5000-5099")
    assert len(director.json("conn show")["connections"]) == 1


def test_doctor(director):
    """It looks at the first address, and names the route that is missing."""
    director.ctl("service add", ID, "server 10.0.0.11 nat")
    said = director.ctl("doctor", code=1, out=True)
    assert "ip route add local 192.0.2.0/28 dev lo" in said
    director.ns.run("ip route add local 192.0.2.0/28 dev lo")
    said = director.ctl("doctor", code=1, out=True)
    assert "on no device" not in said


def test_many_at_once(director, tmp_path):
    """Ten thousand ranges in a file: one batch, and back."""
    file = tmp_path / "many.yaml"
    file.write_text("version: 1\nservices:\n" + "".join(
        f"- service: udp 198.18.0.0/24:{2 * n + 1}-{2 * n + 2}\n" for n in range(10000)))
    director.ctl("apply", str(file))
    assert len(ranges.listed(director.ns)) == 10000
    director.ctl("diff", str(file))
    with genl.L4lb(director.ns) as l4lb:
        l4lb.set_services([ranges.removal("198.18.0.0/24", 2 * n + 1, 2 * n + 2, 17)
                           for n in range(0, 10000, 2)])
    assert len(ranges.listed(director.ns)) == 5000


UDP_ID, UDP_WORD = "udp 192.0.2.0/28:5000-5099", "udp:192.0.2.0/28:5000-5099"


@pytest.fixture
def counting(director):
    """A range beside another one that begins alike, which has no traffic."""
    director.ns.run("ip route add local 192.0.2.0/28 dev lo")
    director.ctl("service add", UDP_ID, "scheduler rr shadow wrr latency on log on timeout udp 1",
                 "server 10.0.0.11 nat server 10.0.0.12 nat")
    director.ctl("service add udp 192.0.2.0/28:5000-5009 server 10.0.0.13 nat")
    return director


def talk(director, count=6):
    for n in range(count):
        director.ns.datagrams((f"192.0.2.{n + 2}", 5010 + n), 1)


def of_range(services, key="id"):
    (found,) = [s for s in services if s[key] == UDP_WORD]
    return found


def test_monitor(director):
    """Each event names all of the range, whatever it is about."""
    with Monitor(director.ns) as monitor:
        director.ctl("service add", ID)
        director.ctl("server add", ID, "10.0.0.11 nat weight 3")
        director.ctl("server change", ID, "10.0.0.11 weight 5")
        director.ctl("service change", ID, "scheduler lc")
        director.ctl("service add tcp 192.0.2.0/28:8000-8010")
        director.ctl("service delete", ID)
        told = [monitor.next() for _ in range(6)]
    assert [(t["event"], t["service"]) for t in told] == [
        ("service-added", WORD), ("server-added", WORD), ("weight", WORD), ("scheduler", WORD),
        ("service-added", "tcp:192.0.2.0/28:8000-8010"), ("service-deleted", WORD)]


def test_metrics(counting):
    talk(counting)
    found = {(s.name, s.labels.get("server")): s.value for family in
             text_string_to_metric_families(counting.ctl("stats -F prometheus"))
             for s in family.samples if s.labels.get("service") == UDP_WORD and "le" not in s.labels}
    assert found["ipvs_service_connections_total", None] == 6
    assert found["ipvs_server_weight", "10.0.0.11:0"] == 1
    assert found["ipvs_service_shadow_choices_total", None] == 6
    assert ("ipvs_server_answer_failed_total", "10.0.0.11:0") in found


def test_top(counting):
    talk(counting)
    shown = [line.split() for line in counting.ctl("top -b -n 1").splitlines()]
    assert UDP_ID.split() in [line[:2] for line in shown]
    doc = json.loads(counting.ctl("-j top -b -n 1").splitlines()[0])
    assert {s["id"] for s in doc["services"]} == {UDP_WORD, "udp:192.0.2.0/28:5000-5009"}


@pytest.mark.waits
def test_statistics(counting):
    """Counters, the shadow's and those of answers are those of the range that was asked for."""
    talk(counting)
    shadow = counting.json("scheduler stats", UDP_ID)["shadow"]
    assert (shadow["service"], shadow["choices"]) == (UDP_WORD, 6)
    wait_until(lambda: of_range(counting.json("stats latency")["services"])["answer"]["unanswered"]
               == 6, 10, what="nobody to answer")
    assert len(counting.json("stats", UDP_ID, "latency")["services"]) == 1
    assert UDP_ID.split() in [line.split()[:2] for line in counting.ctl("stats latency").splitlines()]
    found = of_range(counting.json("stats")["services"])
    assert (found["stats"]["conns"], found["shadow"]["scheduler"]) == (6, "wrr")


def test_compare(counting):
    found = counting.json("scheduler compare", UDP_ID, "with rr,mh flows 100")["comparison"]
    assert found["service"] == UDP_WORD
    assert [[s["server"] for s in t["servers"]] for t in found["trials"]] == [
        ["10.0.0.11:0", "10.0.0.12:0"]] * 2
    talk(counting)
    live = counting.json("scheduler compare", UDP_ID, "with mh clients live")["comparison"]
    assert [t["live"] for t in live["trials"]] == [6]


@pytest.mark.waits
def test_log(counting):
    """A record has the address and port that the client used; a filter by service passes what
    is in the range."""
    counting.ctl("service change udp 192.0.2.0/28:5000-5009 log on timeout udp 1")
    counting.ctl("service add udp 192.0.2.0/28:5200-5209 log on timeout udp 1 server 10.0.0.13 nat")
    with ConnLog(counting.ns, "service", *UDP_ID.split()) as log:
        for port in (5200, 5003):
            counting.ns.datagrams(("192.0.2.2", port), 1)
        talk(counting)
        told = [log.next(30) for _ in range(7)]
        assert {(t["vip"], t["vport"]) for t in told} == {
            ("192.0.2.2", 5003), *((f"192.0.2.{n + 2}", 5010 + n) for n in range(6))}
        log.quiet()


@pytest.mark.waits
def test_ramp(director):
    other = "udp 192.0.2.0/28:5000-5009"
    for name, seconds in ((UDP_ID, 5), (other, 4)):
        director.ctl("service add", name, f"scheduler wlc ramp {seconds} server 10.0.0.11 nat")
    time.sleep(5.1)     # services that are not new
    director.ctl("server add", UDP_ID, "10.0.0.14 nat")
    found = {s["id"]: s for s in director.json("service show")["services"]}
    one, beside = found[UDP_WORD], found["udp:192.0.2.0/28:5000-5009"]
    assert (one["ramp"], beside["ramp"]) == (5, 4)
    assert [s["state"] for s in one["servers"]] == ["ok", "ramping"]
    assert [s["state"] for s in beside["servers"]] == ["ok"]
