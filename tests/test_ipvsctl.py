# SPDX-License-Identifier: GPL-2.0
"""ipvsctl against a kernel: l4lb in all tests, in-tree ip_vs in some.

What the kernel holds afterwards is read back with our own netlink client
(lab.genl), not with ipvsctl. Starting a program is slow on an emulated
machine, so a test starts few of them and the tests without packets share one
namespace.
"""

import itertools
import json
import os
import socket
import subprocess

import pytest
from conftest import Backend, both_modules
from lab import genl
from lab.netns import Namespace, run, wait_until

TAKES = 250
NO_MODULE = True        # `module` below loads both, one after the other
IPVSCTL = os.environ.get("L4LB_IPVSCTL", "build/ipvsctl")
VIP = "192.0.2.10"
WEB = ["tcp", f"{VIP}:80"]


@pytest.fixture(scope="module")
def module(request):
    with Backend(getattr(request, "param", "l4lb")).alone(("rr", "wrr", "lc", "wlc")) as which:
        yield which


class Director:
    _number = itertools.count()

    def __init__(self):
        self.ns = Namespace(f"ctl{next(self._number)}")
        self.ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
                   "addr add 10.0.0.1/24 dev d0", "addr add 192.0.2.10/32 dev lo")

    def ctl(self, *words, stdin=None, code=0, env=None):
        """Runs ipvsctl; words may hold several. Returns its output."""
        argv = [IPVSCTL, *" ".join(words).split()]
        with self.ns.enter():
            done = subprocess.run(argv, capture_output=True, text=True, check=False,
                                  timeout=60, input=stdin,
                                  env=os.environ | {"LANG": "C.UTF-8"} | (env or {}))
        assert done.returncode == code, f"{argv}: {done.returncode}\n{done.stderr}"
        if code and "-j" not in argv:
            assert done.stderr.startswith("ipvsctl: ")
            for line in done.stderr.splitlines()[1:]:
                assert line.startswith("  ")
        return done.stderr if code else done.stdout

    def json(self, *words, **kwargs):
        return json.loads(self.ctl("-j", *words, **kwargs))

    def build(self, lines):
        for line in lines.splitlines():
            self.ctl(line)

    def state(self):
        """Everything configured, as another program sees it."""
        out = []
        with genl.Ipvs(self.ns) as ipvs:
            for got in ipvs.services():
                name = {k: got[k] for k in ("addr", "port", "proto", "fwmark", "af") if k in got}
                servers = ipvs.service(**name, add=False).servers()
                del got["stats"]
                for server in servers:
                    del server["stats"]
                out.append((str(name), got, sorted(servers, key=str)))
        return sorted(out, key=str)


@pytest.fixture(scope="module")
def shared(module):
    one = Director()
    yield one
    one.ns.destroy()


@pytest.fixture
def director(shared):
    """An empty configuration, in a namespace where nothing has been forwarded."""
    with genl.Ipvs(shared.ns) as ipvs:
        ipvs.flush()
        ipvs.timeouts(900, 120, 300)
    return shared


@pytest.fixture
def fresh(module):
    """A namespace of the test's own, for those that send packets."""
    one = Director()
    yield one
    one.ns.destroy()


@pytest.mark.smoke
@both_modules
def test_one_line_makes_a_farm(director):
    director.ctl("svc add tcp 192.0.2.10:80 scheduler wrr "
                 "server 10.0.0.11:8080 nat weight 3 server 10.0.0.12:8080 nat")
    with genl.Ipvs(director.ns) as ipvs:
        (service,) = ipvs.services()
        servers = ipvs.service(VIP, 80, add=False).servers()
    assert service["sched"] == "wrr"
    assert sorted((d["addr"], d["port"], d["weight"], d["method"]) for d in servers) == [
        ("10.0.0.11", 8080, 3, genl.MASQ), ("10.0.0.12", 8080, 1, genl.MASQ)]


def test_every_option_arrives(director):
    for line in ("svc add tcp 192.0.2.10:443 scheduler wlc persistent 10m mask 24",
                 "rs add tcp:192.0.2.10:443 10.0.0.11 dr",
                 "svc add udp 192.0.2.10:53 scheduler rr ops",
                 "svc add tcp [2001:db8::10]:443 scheduler lc persistent 120 mask 64",
                 "rs add tcp [2001:db8::10]:443 [2001:db8::21] tun",
                 "svc add fwmark 7 scheduler rr",
                 "rs add fwm:7 10.0.0.9:8080 nat weight 0 max-conns 100 min-conns 50",
                 "svc add fwmark 7 inet6"):
        director.ctl(line)
    assert director.ns.run(["ipvsadm", "-Sn"]).stdout == """\
-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0
-a -t 192.0.2.10:443 -r 10.0.0.11:443 -g -w 1
-A -u 192.0.2.10:53 -s rr -o
-A -t [2001:db8::10]:443 -s lc -p 120 -M 64
-a -t [2001:db8::10]:443 -r [2001:db8::21]:443 -i -w 1 --tun-type ipip
-A -f 7 -s rr
-a -f 7 -r 10.0.0.9:8080 -m -w 0
-A -f 7 -6 -s wlc
"""
    show = director.json("show")
    assert show["ipvsctl"]["schema"] == 1
    mark = next(s for s in show["services"] if s["id"] == "fwm:7")
    assert mark["servers"] == [{
        "id": "10.0.0.9:8080", "address": "10.0.0.9", "port": 8080, "forward": "nat",
        "weight": 0, "active": 0, "inactive": 0, "persistent": 0, "max_conns": 100,
        "min_conns": 50, "conns_per_second": 0, "state": "draining"}]


def only(before, after):
    """The fields that differ, with their new values."""
    return {k: after[k] for k in after if after[k] != before[k]}


def test_server_change_changes_what_is_named_only(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11 nat weight 5 max-conns 60 "
                 "min-conns 20")
    for words, want in (("weight 7", {"weight": 7}), ("dr", {"method": genl.ROUTE}),
                        ("max-conns 900", {"upper": 900}), ("min-conns 3", {"lower": 3}),
                        ("tun weight 0", {"method": genl.TUNNEL, "weight": 0})):
        (_, _, (before,)), = director.state()
        director.ctl("rs change", *WEB, "10.0.0.11", words)
        (_, _, (after,)), = director.state()
        assert only(before, after) == want, words


def test_service_change_changes_what_is_named_only(director):
    director.ctl("svc add", *WEB, "scheduler sh persistent 10m mask 24 flags flag-1")
    for words, want in (("scheduler mh", {"sched": "mh"}), ("persistent 77", {"timeout": 77}),
                        ("mask 16", {"netmask": b"\xff\xff\0\0"}),
                        ("flags flag-2", {"flags": 0x13}),
                        ("no-persistent", {"flags": 0x12, "timeout": 0,
                                           "netmask": b"\xff\xff\xff\xff"}),
                        ("persistent", {"flags": 0x13, "timeout": 300}),
                        ("flags none", {"flags": 0x3})):
        (_, before, _), = director.state()
        director.ctl("svc change", *WEB, words)
        (_, after, _), = director.state()
        assert only(before, after) == want, words


def test_replace_sets_everything_and_takes_defaults(director):
    director.ctl("svc replace", *WEB, "scheduler rr persistent 60")
    director.ctl("rs replace", *WEB, "10.0.0.11 dr weight 4")
    director.ctl("svc replace", *WEB)
    director.ctl("rs replace", *WEB, "10.0.0.11")
    assert director.ctl("save") == (
        "-A -t 192.0.2.10:80 -s wlc\n-a -t 192.0.2.10:80 -r 10.0.0.11:80 -m -w 1\n")


@both_modules
def test_refusals_change_nothing_and_say_why(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11:8080 server 10.0.0.12")
    before = director.state()
    for words, code, why in (
            ("svc add tcp 192.0.2.10:80", 5, "already exists (scheduler rr, 2 servers)"),
            ("svc add tcp 192.0.2.11:80 scheduler wlcc", 4, 'scheduler "wlcc" not found'),
            ("svc change tcp 192.0.2.10:80 scheduler wlcc", 4, "did you mean: wlc"),
            ("svc change tcp 192.0.2.10:81 scheduler rr", 4, "nearest: tcp 192.0.2.10:80"),
            ("svc delete tcp 192.0.2.10:81", 4, "no such service"),
            ("sched set udp 192.0.2.10:80 rr", 4, "no such service"),
            ("rs add tcp 192.0.2.10:81 10.0.0.11", 4, "no such service"),
            ("rs add tcp 192.0.2.10:80 10.0.0.11:8080", 5, "10.0.0.11:8080 already exists"),
            ("rs change tcp 192.0.2.10:80 10.0.0.13 weight 1", 4,
             "it has: 10.0.0.11:8080 10.0.0.12:80"),
            ("rs delete tcp 192.0.2.10:80 10.0.0.13", 4, "no server 10.0.0.13:80"),
            ("rs drain tcp 192.0.2.10:80 10.0.0.13", 4, "no server"),
            ("rs change tcp 192.0.2.10:80 10.0.0.11:8080 dr", 2, "cannot change the port"),
            ("rs change tcp 192.0.2.10:80 10.0.0.11:8080 min-conns 5", 2, "needs a max-conns"),
            ("rs drain tcp 192.0.2.10:80 10.0.0.11:8080 --kill", 7, "no command that drops"),
            ("rs undrain tcp 192.0.2.10:80 10.0.0.11:99", 4, "no server"),
            ("stats zero tcp 192.0.2.10:81", 4, "no such service"),
            ("show tcp 192.0.2.10:81", 4, "no such service"),
            ("rs show tcp 192.0.2.10:80 10.0.0.13", 4, "no server"),
            ("service flush", 2, "would delete 1 service"),
    ):
        assert why in director.ctl(words, code=code), words
        assert director.state() == before, words
    error = json.loads(director.ctl("-j svc delete tcp 192.0.2.10:81", code=4))["error"]
    assert (error["code"], error["errno"], error["object"]) == (
        4, "ESRCH", "tcp:192.0.2.10:81")


@both_modules
def test_a_refused_server_takes_the_service_back(director):
    """The broadcast address of a connected network: only the kernel can know."""
    said = director.ctl("svc add", *WEB, "server 10.0.0.11 server 10.0.0.255", code=3)
    assert "10.0.0.255" in said and "nothing has changed" in said
    assert not director.json("show")["services"]
    said = director.ctl("svc add", *WEB, "scheduler wlcc server 10.0.0.11", code=4)
    assert "available:" in said and not director.json("show")["services"]


@both_modules
def test_the_kernels_own_sentence_is_shown(director, module):
    director.ctl("svc add", *WEB)
    said = director.ctl("rs add", *WEB, "10.0.0.255", code=3)
    if module.is_l4lb:
        with genl.Ipvs(director.ns) as ipvs, pytest.raises(genl.NetlinkError) as refusal:
            ipvs.service(VIP, 80, add=False).server("10.0.0.255", 80)
        assert refusal.value.extack and refusal.value.extack in said
    else:
        assert "neither local nor a unicast address" in said


def test_lo_down_is_named(module):
    ns = Namespace("ctl-lo")
    try:
        done = ns.run([IPVSCTL, "svc", "add", *WEB, "server", "10.0.0.11"], check=False)
        assert done.returncode == 3
        assert "try: ip link set lo up" in done.stderr
        assert not json.loads(ns.run([IPVSCTL, "-j", "show"]).stdout)["services"]
    finally:
        ns.destroy()


@both_modules
def test_unprivileged_caller(director):
    director.ctl("svc add", *WEB)
    for words in (["show"], ["svc", "add", "tcp", "192.0.2.11:80"], ["restore"]):
        done = director.ns.run(["setpriv", "--reuid", "65534", "--regid", "65534",
                                "--clear-groups", IPVSCTL, *words], check=False,
                               text_input="-A -t 192.0.2.12:80\n")
        assert done.returncode == 6, done.stderr
        assert "CAP_NET_ADMIN" in done.stderr and "sudo" in done.stderr
    assert len(director.json("show")["services"]) == 1


def test_dry_run_changes_nothing_and_says_what(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11:8080 weight 3")
    before = director.state()
    for words, said in (
            ("svc add tcp 192.0.2.11:80 server 10.0.0.11",
             "would add service tcp 192.0.2.11:80 scheduler wlc\n"
             "would add server tcp 192.0.2.11:80 10.0.0.11:80 nat weight 1\n"),
            ("rs change tcp 192.0.2.10:80 10.0.0.11:8080 weight 9",
             "would set server tcp 192.0.2.10:80 10.0.0.11:8080 nat weight 9\n"),
            ("rs drain tcp 192.0.2.10:80 10.0.0.11:8080 --wait",
             "would set server tcp 192.0.2.10:80 10.0.0.11:8080 nat weight 0\n"),
            ("svc delete tcp 192.0.2.10:80", "would delete service tcp 192.0.2.10:80\n"),
            ("svc flush", "would delete every service\n"),
            ("timeout set tcp 99", "would set timeout tcp 99\n"),
            ("stats zero", "would zero the counters of everything\n")):
        assert director.ctl("-n", words) == said
        assert director.state() == before
    assert director.json("-n svc delete tcp 192.0.2.10:80")["plan"] == [
        "delete service tcp 192.0.2.10:80"]
    director.ctl("-n svc add", *WEB, code=5)
    director.ctl("-n rs add", *WEB, "10.0.0.11:8080", code=5)
    director.ctl("-n svc delete tcp 192.0.2.10:81", code=4)
    assert director.json("timeout")["timeouts"]["tcp"] == 900


def test_delete_and_flush(director):
    director.ctl("svc add", *WEB, "server 10.0.0.11 server 10.0.0.12")
    director.ctl("rs delete", *WEB, "10.0.0.11")
    director.ctl("rs delete", *WEB, "10.0.0.11 --if-exists")
    assert len(director.json("show")["services"][0]["servers"]) == 1
    director.ctl("svc rm", *WEB)
    director.ctl("svc delete --if-exists", *WEB)
    director.ctl("rs delete --if-exists", *WEB, "10.0.0.11")
    director.ctl("svc flush")
    director.ctl("svc add", *WEB)
    director.ctl("svc flush --yes")
    assert not director.json("show")["services"]


def knock(director, count=1, port=5353):
    """COUNT UDP connections from the director itself."""
    for _ in range(count):
        with director.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"x", (VIP, port))


@pytest.fixture
def udp(fresh):
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12")
    return fresh


@pytest.mark.timer
@both_modules
def test_drain_waits_and_undrain_restores(udp):
    server = ["udp:192.0.2.10:5353", "10.0.0.11"]
    udp.ctl("rs change", *server, "weight 6")
    knock(udp, 2)
    udp.ctl("timeout set udp 3")
    said = udp.ctl("rs drain", *server, "--wait 1", code=9)
    assert "after 1 s still 0 active, 1 inactive" in said
    knock(udp, 4)
    shown = udp.json("rs show", *server)["services"][0]["servers"][0]
    assert (shown["weight"], shown["state"], shown["inactive"]) == (0, "draining", 1)
    udp.ctl("rs undrain", *server)
    assert udp.json("rs show", *server)["services"][0]["servers"][0]["weight"] == 6
    udp.ctl("rs change", *server, "weight 0")
    assert "not known" in udp.ctl("rs undrain", *server, code=2)
    udp.ctl("rs undrain", *server, "weight 2")
    assert udp.json("rs show", *server)["services"][0]["servers"][0]["weight"] == 2


def test_drain_of_an_idle_server_is_done_at_once(director):
    director.ctl("svc add", *WEB, "server 10.0.0.11 weight 3")
    done = director.json("rs drain", *WEB, "10.0.0.11 --wait")["drain"]
    assert done == {"service": "tcp:192.0.2.10:80", "server": "10.0.0.11:80",
                    "weight_before": 3, "active": 0, "inactive": 0, "persistent": 0}


def as_nobody(director, *words):
    """ipvsctl's output for a user who may read the file in /proc only."""
    return director.ns.run(["setpriv", "--reuid", "65534", "--clear-groups", IPVSCTL,
                            *" ".join(words).split()]).stdout


@pytest.mark.smoke
@both_modules
def test_connections_are_listed_filtered_and_counted(udp):
    knock(udp, 6)
    conns = udp.json("conn show")["connections"]
    assert len(conns) == 6
    assert {c["server"] for c in conns} == {"10.0.0.11", "10.0.0.12"}
    for c in conns:
        assert (c["protocol"], c["vip"], c["vport"], c["state"]) == (
            "udp", VIP, 5353, "UDP")
        assert 0 < c["expires"] <= 300 and not c["template"] and c["client_port"]
    for words, n in (("server 10.0.0.11", 3), ("server 10.0.0.11:5353", 3),
                     ("server 10.0.0.11:1", 0), ("state udp", 6), ("proto tcp", 0),
                     ("service udp:192.0.2.10:5353", 6), ("service udp:192.0.2.10:54", 0),
                     ("client 192.0.2.0/24", 6), ("client 198.51.100.0/24", 0),
                     ("template", 0), ("limit 2", 2), ("limit 9", 6)):
        assert len(udp.json("conn show", words)["connections"]) == n, words
    assert len(udp.json("-6 conn show")["connections"]) == 0
    text = udp.ctl("conn show").splitlines()
    assert text[0].split() == ["CLIENT", "SERVICE", "SERVER", "STATE", "EXPIRES"]
    assert len(text) == 7 and "udp 192.0.2.10:5353" in text[1]
    assert len(udp.ctl("conn show -H").splitlines()) == 6
    assert udp.ctl("conn count") == "6\n"
    assert udp.json("conn count by server")["by"] == {"10.0.0.11:5353": 3,
                                                      "10.0.0.12:5353": 3}
    assert udp.json("conn count by client/24 server 10.0.0.11")["by"] == {"192.0.2.0/24": 3}
    # Any user may read the list, as with ip_vs.
    assert as_nobody(udp, "conn count") == "6\n"


def test_persistence_templates_are_told_apart(fresh):
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr persistent 50 server 10.0.0.11")
    knock(fresh, 2)
    conns = fresh.json("conn show")["connections"]
    assert sorted(c["template"] for c in conns) == [False, False, True]
    assert len(fresh.json("conn show template")["connections"]) == 1
    shown = fresh.json("show")["services"][0]["servers"][0]
    assert (shown["inactive"], shown["persistent"]) == (2, 1)


def test_the_kernel_filters_as_ipvsctl_does(fresh):
    """By netlink and from the file: the same lines for every filter."""
    fresh.ns.ip("addr add 2001:db8::1/64 dev d0 nodad", "addr add 2001:db8::10/128 dev lo nodad")
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12:53")
    fresh.ctl("svc add udp 192.0.2.10:54 scheduler rr persistent 50 server 10.0.0.11:5353")
    fresh.ctl("svc add udp [2001:db8::10]:5353 scheduler rr server [2001:db8::11]:53")
    knock(fresh, 4)
    knock(fresh, 2, port=54)
    with fresh.ns.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("2001:db8::10", 5353))

    def lines(text):
        """Without the seconds that are left."""
        return [line.split()[:-1] for line in text.replace("  template", "").splitlines()]

    for i, (words, n) in enumerate((
            ("", 8), ("-4", 7), ("-6", 1), ("service udp:192.0.2.10:5353", 4),
            ("service udp:192.0.2.10:54", 3), ("service udp:192.0.2.10:55", 0),
            ("service udp:192.0.2.10:0", 7), ("service tcp:192.0.2.10:5353", 0),
            ("service udp:[2001:db8::10]:5353", 1), ("-4 service udp:[2001:db8::10]:5353", 0),
            ("server 10.0.0.11", 5), ("server 10.0.0.11:5353", 5), ("server 10.0.0.12:53", 2),
            ("server [2001:db8::11]", 1), ("server [2001:db8::11]:54", 0),
            ("client 192.0.2.10", 7), ("client 192.0.2.0/24", 7), ("client 192.0.2.255/24", 7),
            ("client 0.0.0.0/0", 7), ("client ::/0", 1), ("client 10.0.0.0/8", 0),
            ("-6 client 192.0.2.0/24", 0), ("client 2001:db8::/32", 1),
            ("state udp", 7), ("state none", 1), ("state C-SENT", 0), ("proto udp", 8),
            ("proto sctp", 0), ("proto tcp service udp:192.0.2.10:54", 0), ("template", 1),
            ("template service udp:192.0.2.10:54 server 10.0.0.11 state NONE", 1),
            ("client 192.0.2.0/24 server 10.0.0.11 service udp:192.0.2.10:5353 proto udp", 2))):
        verb = ("show -H", "count")[i % 2]
        mine, file = fresh.ctl("conn", verb, words), as_nobody(fresh, "conn", verb, words)
        if verb == "count":
            assert mine == file == f"{n}\n", words
        else:
            assert lines(mine) == lines(file) and len(lines(mine)) == n, words
    assert len(fresh.ctl("conn show -H limit 3").splitlines()) == 3
    assert fresh.json("conn count by state")["by"] == \
        json.loads(as_nobody(fresh, "-j conn count by state"))["by"] == {"UDP": 7, "NONE": 1}


def test_what_only_netlink_says(fresh):
    """More keys with -j, and which mark a connection came by."""
    fresh.ctl("svc add fwmark 7 scheduler rr persistent 50 server 10.0.0.11 nat")
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.12 dr")
    knock(fresh, 1)
    with fresh.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, 36, 7)      # SO_MARK
        for port in (5354, 5355):
            s.sendto(b"x", (VIP, port))
    known = {}
    for c in fresh.json("conn show")["connections"]:
        known[c.get("vport"), c["template"]] = {k: c.get(k) for k in (
            "forward", "fwmark", "fast_path", "holders", "vip", "protocol")}
    marked = {"forward": "nat", "fwmark": 7, "fast_path": "no", "holders": None, "vip": VIP,
              "protocol": "udp"}
    assert known == {
        (5353, False): {**marked, "forward": "dr", "fwmark": None},
        (5354, False): marked, (5355, False): marked,
        (None, True): {"forward": "nat", "fwmark": 7, "fast_path": None, "holders": 2,
                       "vip": None, "protocol": None}}
    for words, n in (("fwmark 7", 3), ("fwmark 8", 0), ("fwm:7", 3), ("fwm6:7", 0),
                     ("fwmark 7 template", 1), ("fwmark 7 proto udp", 2)):
        assert fresh.ctl("conn count service", words) == f"{n}\n", words
    plain = json.loads(as_nobody(fresh, "-j conn show"))["connections"]
    assert len(plain) == 4
    assert not any({"forward", "fast_path", "holders"} & set(c) for c in plain)
    with pytest.raises(RuntimeError, match="exit 2"):
        as_nobody(fresh, "conn show service fwmark 7")
    assert "fwmark 7" in fresh.ctl("conn show template")


@both_modules
def test_a_mark_in_the_file(fresh, module):
    """In-tree ip_vs cannot be asked for a mark, and says so."""
    if module.is_l4lb:
        assert fresh.ctl("conn count service fwmark 7") == "0\n"
    else:
        assert "does not say which mark" in fresh.ctl("conn count service fwmark 7", code=2)


def test_limit_of_a_long_list(fresh):
    """The rest is not read, and the next listing has all of it."""
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12")
    knock(fresh, 700)       # some by a port that another had
    every = as_nobody(fresh, "conn count")
    assert int(every) > 600
    for _ in range(2):
        assert len(fresh.ctl("conn show -H limit 5").splitlines()) == 5
        assert fresh.ctl("conn count") == every


def test_ipv6_connections(fresh):
    fresh.ns.ip("addr add 2001:db8::1/64 dev d0 nodad", "addr add 2001:db8::10/128 dev lo nodad")
    fresh.ctl("svc add udp [2001:db8::10]:5353 scheduler rr server [2001:db8::11]:53")
    with fresh.ns.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("2001:db8::10", 5353))
    (conn,) = fresh.json("-6 conn show service udp:[2001:db8::10]:5353")["connections"]
    assert (conn["vip"], conn["vport"], conn["server"], conn["server_port"]) == (
        "2001:db8::10", 5353, "2001:db8::11", 53)
    assert "[2001:db8::11]:53" in fresh.ctl("conn show -6 server [2001:db8::11]")


@pytest.mark.timer
@both_modules
def test_stats_count_rate_and_zero(udp):
    knock(udp, 4)
    wait_until(lambda: udp.json("stats")["total"]["conns"] == 4, 10, "totals")
    stats = udp.json("stats")
    (service,) = stats["services"]
    assert service["stats"]["conns"] == service["stats"]["in_packets"] == 4
    assert service["stats"]["in_bytes"] == 4 * 29
    assert [s["stats"]["conns"] for s in service["servers"]] == [2, 2]
    assert sum(c["conns"] for c in udp.json("stats percpu")["cpus"] if c["cpu"] != "all") == 4
    rows = [line.split() for line in udp.ctl("stats").splitlines()]
    assert rows[1][:3] == ["all", "4", "4"] and rows[2][2:4] == ["4", "4"]
    assert udp.ctl("stats rate").splitlines()[0].split()[3] == "CONN/s"
    assert udp.ctl("stats show udp:192.0.2.10:5353 rate").splitlines()[0].split()[3] == \
        "CONN/s"
    assert json.loads(udp.ctl("stats -F json"))["total"]["conns"] == 4
    udp.ctl("stats zero udp:192.0.2.10:5353")
    assert udp.json("stats")["services"][0]["stats"]["conns"] == 0
    udp.ctl("stats zero")
    assert udp.json("stats")["total"]["conns"] == 0


def test_timeouts_keep_what_is_not_named(director):
    assert director.json("timeout")["timeouts"] == {"tcp": 900, "tcp_fin": 120, "udp": 300}
    director.ctl("timeout set tcp 20m udp 90s")
    assert director.json("timeout show")["timeouts"] == {"tcp": 1200, "tcp_fin": 120,
                                                         "udp": 90}
    assert director.ctl("timeout") == "tcp 1200  tcp-fin 120  udp 90  (seconds)\n"


def test_overload_is_shown(udp):
    udp.ctl("rs change udp:192.0.2.10:5353 10.0.0.11 max-conns 1")
    knock(udp, 2)
    assert udp.json("show overloaded")["services"][0]["servers"][0]["state"] == "overloaded"
    assert "overloaded (1 max)" in udp.ctl("show")


@both_modules
def test_info_names_the_backend_and_its_limits(director, module):
    info = director.json("info")["info"]
    assert info["backend"] == module.name and info["ipvs_abi"] == "1.2.1"
    assert info["kernel"] == os.uname().release and info["table_size"] >= 256
    assert any("dropped" in limit for limit in info["limits"])
    assert any("error number only" in limit for limit in info["limits"]) == \
        (not module.is_l4lb)
    assert f"backend     {module.name}" in director.ctl("info")
    if module.is_l4lb:
        version = run(["modinfo", "-F", "version",
                       str(module.modules / "l4lb.ko")]).stdout.strip()
        assert info["backend_version"] == (version or None)


@both_modules
def test_schedulers_are_listed(director):
    director.ctl("svc add", *WEB, "scheduler wrr")
    known = {s["name"]: s for s in director.json("sched list")["schedulers"]}
    assert {"rr", "wrr", "lc", "wlc"} <= set(known)
    assert known["wrr"]["loaded"] and known["wrr"]["services"] == 1
    assert all(s["description"] for s in known.values())
    assert "wrr" in director.ctl("scheduler list -H")
    director.ctl("sched set", *WEB, "lc")
    assert director.json("show")["services"][0]["scheduler"] == "lc"


def test_filters_columns_and_order(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11")
    director.ctl("svc add udp 192.0.2.20:53 scheduler lc server 10.0.0.11 weight 0")
    director.ctl("svc add tcp [2001:db8::10]:80 scheduler rr")
    director.ctl("svc add fwmark 3 scheduler rr server 10.0.0.12")

    def ids(words):
        return [s["id"] for s in director.json("show", words)["services"]]
    web, dns, web6 = "tcp:192.0.2.10:80", "udp:192.0.2.20:53", "tcp:[2001:db8::10]:80"
    assert ids("") == [web, dns, web6, "fwm:3"]
    assert ids("proto tcp") == [web, web6] and ids("vip 192.0.2.16/28") == [dns]
    assert ids("port 80 -6") == [web6] and ids("scheduler lc") == [dns]
    assert ids("down") == [dns, web6] and ids("-4 scheduler rr") == [web, "fwm:3"]
    assert director.ctl("show -H -o name,weight", "vip 192.0.2.10") == (
        "tcp 192.0.2.10:80 \n└─10.0.0.11:80         1\n")
    plain = director.ctl("show vip 192.0.2.10", env={"LANG": "C", "LC_ALL": "C"})
    assert "`-10.0.0.11:80" in plain and plain.isascii() and "\x1b" not in plain
    assert "\x1b[" in director.ctl("show -C always")
    assert "unknown column" in director.ctl("show -o nme", code=2)


def test_sort_by_active_connections(fresh):
    """Those that are being opened are active."""
    for port in (80, 81, 82):
        fresh.ctl(f"svc add tcp {VIP}:{port} scheduler rr server 10.0.0.11:{port}")
    for port in (81, 82, 82):
        with fresh.ns.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.setblocking(False)
            s.connect_ex((VIP, port))
    services = fresh.json("show sort active")["services"]
    assert [(s["port"], s["servers"][0]["active"]) for s in services] == \
        [(82, 2), (81, 1), (80, 0)]


FULL = """\
svc add tcp 192.0.2.10:443 persistent 10m mask 24 server 10.0.0.11 dr weight 7 \
server 10.0.0.12 dr max-conns 70000 min-conns 50
svc add udp 192.0.2.10:53 scheduler rr ops server 10.0.0.11:5353
svc add tcp [2001:db8::10]:0 scheduler wrr persistent 120 mask 64 server [2001:db8::21] tun \
type gue port 6080 remcsum
svc add fwmark 7 scheduler sh flags flag-1,port server 10.0.0.9 weight 0
svc add fwmark 7 inet6"""


def values(director, service=None):
    """The options of a service as the kernel has them; of WEB if none is given."""
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as own:
        return own.values(service or ipvs.service(VIP, 80, add=False))


DAY = 86400
DEFAULTS = {"expire": DAY, "entries": 16384, "shrink": DAY}


@pytest.mark.smoke
def test_options_are_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "scheduler lblcr option expire 300 option shrink 60 "
                 "server 10.0.0.11")
    assert values(director) == DEFAULTS | {"expire": 300, "shrink": 60}
    assert "option expire 300 option shrink 60" in director.ctl("show")
    assert "option expire 300 option shrink 60" in director.ctl("service show", *WEB)
    for words in ("show", "show tcp:192.0.2.10:80", "save -F json"):
        assert director.json(words)["services"][0]["options"] == {"expire": 300, "shrink": 60}
    director.ctl("svc change", *WEB, "option expire 400")
    assert values(director) == DEFAULTS | {"expire": 400, "shrink": 60}
    director.ctl("svc change", *WEB, "persistent 60")
    director.ctl("svc change", *WEB, "scheduler lblcr")
    director.ctl("rs change", *WEB, "10.0.0.11 weight 4")
    assert values(director) == DEFAULTS | {"expire": 400, "shrink": 60}
    # The default is not shown, and named again it is a value like another.
    director.ctl("svc change", *WEB, "option shrink", str(DAY), "option entries 7")
    assert director.json("show")["services"][0]["options"] == {"expire": 400, "entries": 7}
    # Another scheduler's own; what is named is the new one's.
    director.ctl("svc change", *WEB, "scheduler lblc option entries 8")
    assert values(director) == {"expire": DAY, "entries": 8}
    director.ctl("sched set", *WEB, "lblcr")
    assert values(director) == DEFAULTS
    director.ctl("svc change", *WEB, "option entries 9")
    director.ctl("svc replace", *WEB, "scheduler lblcr option expire 5")
    assert values(director) == DEFAULTS | {"expire": 5}
    director.ctl("svc replace", *WEB, "scheduler lblcr")
    assert values(director) == DEFAULTS
    assert "options" not in director.json("show")["services"][0]


def test_only_the_option_is_sent(director):
    """The settings of the service are not written again, by which a change that
    another program makes at the same time would be lost."""
    director.ctl("svc add", *WEB, "scheduler lblc")
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-vv", "svc", "change", *WEB, "option", "expire", "5"],
                              capture_output=True, text=True, check=True)
    _, sent = done.stderr.split("set service tcp 192.0.2.10:80 scheduler lblc option expire 5\n")
    assert sent.count("BEGIN NETLINK MESSAGE") == 3     # get options, set them, get policy
    assert values(director)["expire"] == 5


def test_bad_options_change_nothing(director):
    director.ctl("svc add", *WEB, "scheduler lblcr option expire 300")
    director.ctl("svc add udp 192.0.2.20:53 scheduler rr")
    before, had = director.state(), values(director)
    new = "svc add tcp 192.0.2.30:80 server 10.0.0.11 "
    for words, code, why in (
            ("scheduler lblc option expyre 5", 2,
             'unknown option of scheduler lblc "expyre"; known: expire entries'),
            ("scheduler lblc option shrink 5", 2, "known: expire entries"),
            ("scheduler lblc option expire 0", 2,
             'bad expire "0": write a whole number from 1 to 1209600 (seconds idle'),
            ("scheduler lblc option expire 1209601", 2, 'bad expire "1209601"'),
            ("scheduler lblc option expire 5 option entries 65537", 2, 'bad entries "65537"'),
            ("scheduler rr option expire 5", 2, "scheduler rr has no options"),
            ("option expire 5", 2, "scheduler wlc has no options"),
            ("scheduler nosuch option expire 5", 4, 'scheduler "nosuch" not found')):
        add = new.replace(" server", f" {words} server")
        change = f"svc change tcp 192.0.2.10:80 {words}"
        lines = [add, "-n " + add, change] if "scheduler" in words else [add]
        for line in lines:
            assert why in director.ctl(line, code=code), line
            assert (director.state(), values(director)) == (before, had), line
    assert "did you mean: expire" in director.ctl(
        "svc change tcp 192.0.2.10:80 option expyre 5", code=2)
    director.ctl("svc change udp 192.0.2.20:53 option expire 5", code=2)
    director.ctl("svc change tcp 192.0.2.10:81 option expire 5", code=4)
    assert director.ctl("-n svc change tcp 192.0.2.10:80 option entries 5") == \
        "would set service tcp 192.0.2.10:80 scheduler lblcr option expire 300 option entries 5\n"
    assert (director.state(), values(director)) == (before, had)


@pytest.mark.parametrize("form", ["json", "ipvsadm", "show"])
def test_options_are_saved_and_restored(director, form, tmp_path):
    director.build("svc add tcp 192.0.2.10:80 scheduler lblcr option expire 5 option entries 6\n"
                   "svc add fwmark 7 inet6 scheduler lblc option entries 8\n"
                   "svc add tcp 192.0.2.30:80 scheduler lblc\n")

    def saved():
        return director.ctl("-j show" if form == "show" else f"save -F {form}")

    def options():
        return {s["id"]: s.get("options") for s in director.json("show")["services"]}
    before, text = options(), saved()
    assert before == {"tcp:192.0.2.10:80": {"expire": 5, "entries": 6},
                      "fwm6:7": {"entries": 8}, "tcp:192.0.2.30:80": None}
    director.ctl("svc flush --yes")
    assert "services: 3 added" in director.ctl("restore", stdin=text)
    assert options() == before and saved() == text
    assert "0 added, 0 changed, 3 already so" in director.ctl("restore", stdin=text)
    # What the file does not name is at its default, what it names is set again.
    director.ctl("svc change tcp 192.0.2.30:80 option expire 9")
    director.ctl("svc change fwm6:7 option entries 9")
    assert "0 added, 2 changed, 1 already so" in director.ctl("restore", stdin=text)
    assert options() == before
    # A file with a mistake is read to its end first.
    bad = text.replace("192.0.2.10", "192.0.2.44").replace("entries", "enties")
    director.ctl("svc change tcp 192.0.2.30:80 option expire 9")
    assert 'unknown option of scheduler lblcr "enties"' in director.ctl(
        "restore", stdin=bad, code=2)
    assert options() == before | {"tcp:192.0.2.30:80": {"expire": 9}}


def test_ipvsadm_stops_at_saved_options(director):
    """It knows neither options nor comments; by then it has everything else."""
    director.build("svc add tcp 192.0.2.10:80 scheduler lblc option expire 5\n"
                   "svc add tcp 192.0.2.11:80 scheduler rr server 10.0.0.11\n")
    rules = director.ctl("save")
    known, own = rules.splitlines(True)[:-1], rules.splitlines(True)[-1]
    assert own == "#ipvsctl option tcp 192.0.2.10:80 expire 5\n"
    director.ctl("svc flush --yes")
    assert director.ns.run(["ipvsadm", "-R"], text_input=rules, check=False).returncode
    assert director.ctl("save") == "".join(known)


@both_modules
def test_ip_vs_has_no_options(director, module):
    """It says so in one line, and knows its schedulers all the same."""
    rules = "-A -t 192.0.2.10:80 -s lblc\n#ipvsctl option tcp:192.0.2.10:80 expire 5\n"
    if module.is_l4lb:
        director.ctl("restore", stdin=rules)
        assert values(director)["expire"] == 5
        return
    for words in ("svc add tcp 192.0.2.10:80 scheduler lblc option expire 5", "restore"):
        said = director.ctl(words, code=7, stdin=rules if words == "restore" else None)
        assert "option expire: the schedulers of ip_vs have no options" in said
    assert not director.json("show")["services"]
    director.ctl("svc add", *WEB, "scheduler rr")
    director.ctl("svc change", *WEB, "option expire 5", code=7)
    assert director.ctl("sched show rr") == "rr: round robin: each server in turn\n"
    assert "not found" in director.ctl("sched show nosuch", code=4)
    # Flags are its own affair.
    director.ctl("svc change", *WEB, "flags port")
    director.ctl("svc change", *WEB, "scheduler lc")
    assert director.json("show")["services"][0]["flags"] == ["flag-2"]


# -- what a service does otherwise than its namespace

def policy(director):
    """Of WEB, as the kernel has it; what is not the default."""
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as own:
        found = own.policy(ipvs.service(VIP, 80, add=False))
    return {name: value for name, value in found.items() if value}


POLICY = "timeout tcp 7200 udp 30 on-idle reset on-loss move on-drain keep guard drop"


def test_bands_are_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "priority las 16K,1M server 10.0.0.11")
    assert policy(director) == {"priority": 1, "las_bytes_0": 16384, "las_bytes_1": 1 << 20}
    assert "priority las 16K,1M" in director.ctl("show")
    service = director.json("save -F json")["services"][0]
    assert (service["priority"], service["las_bytes"]) == ("las", [16384, 1 << 20])
    assert director.json("stats")["services"][0]["bands"] == [
        {"below": end, "out_packets": 0, "out_bytes": 0} for end in (16384, 1 << 20, None)]
    rows = [line.split("  ")[0].strip(" ├└─│") for line in director.ctl("stats").splitlines()]
    assert rows[-3:] == ["band 0, below 16K", "band 1, below 1M", "band 2, the rest"]
    for form in ("", "-F json"):
        saved = director.ctl("save", form)
        before = policy(director)
        director.ctl("svc flush --yes")
        director.ctl("restore", stdin=saved)
        assert policy(director) == before
    director.ctl("svc change", *WEB, "priority las")
    assert policy(director) == {"priority": 1}
    ends = [b["below"] for b in director.json("stats")["services"][0]["bands"]]
    assert ends == [16 << 10, 128 << 10, 1 << 20, None]
    director.ctl("svc change", *WEB, "priority off")
    assert policy(director) == {}


@pytest.mark.smoke
def test_policy_is_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "scheduler rr timeout tcp 2h udp 30s on-idle reset on-loss move "
                 "on-drain keep guard drop server 10.0.0.11")
    everything = {"tcp": 7200, "udp": 30, "on_idle": 1, "on_loss": 2, "on_drain": 1, "guard": 2}
    assert policy(director) == everything
    assert POLICY in director.ctl("show")
    for words in ("show tcp:192.0.2.10:80", "save -F json"):
        assert {k: v for k, v in director.json(words)["services"][0].items()
                if k in ("timeout", "on_idle", "on_loss", "on_drain", "guard")} == {
            "timeout": {"tcp": 7200, "udp": 30}, "on_idle": "reset", "on_loss": "move",
            "on_drain": "keep", "guard": "drop"}
    director.ctl("svc change", *WEB, "persistent 60")
    director.ns.run("ipvsadm -E -t 192.0.2.10:80 -s wlc")
    assert policy(director) == everything
    director.ctl("svc change", *WEB, "timeout udp default tcp-fin 9 guard off scheduler rr")
    assert policy(director) == {"tcp": 7200, "tcp_fin": 9, "on_idle": 1, "on_loss": 2,
                                "on_drain": 1}
    director.ctl("svc replace", *WEB, "on-loss reset")
    assert policy(director) == {"on_loss": 3}
    director.ctl("svc replace", *WEB)
    assert policy(director) == {} and "on_loss" not in director.json("show")["services"][0]


def test_only_the_policy_is_sent(director):
    director.ctl("svc add", *WEB, "scheduler rr")
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-vv", "svc", "change", *WEB, "guard", "drop"],
                              capture_output=True, text=True, check=True)
    _, sent = done.stderr.split("set service tcp 192.0.2.10:80 scheduler rr guard drop\n")
    # get options, get policy, set policy
    assert sent.count("BEGIN NETLINK MESSAGE") == 3
    assert policy(director) == {"guard": 2}


@pytest.mark.parametrize("form", ["save -F json", "save", "-j show"])
def test_policy_is_saved_and_restored(director, form):
    rules = ("-A -t 192.0.2.10:80 -s rr\n-A -f 7 -6 -s rr\n-A -t 192.0.2.30:80 -s rr\n"
             f"#ipvsctl service tcp 192.0.2.10:80 {POLICY}\n"
             "#ipvsctl service fwm6:7 timeout sctp 5\n")
    director.ctl("restore", stdin=rules)
    before, text = policy(director), director.ctl(form)
    assert len(before) == 6
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as own:
        ipvs.flush()
        assert "services: 3 added" in director.ctl("restore", stdin=text)
        assert policy(director) == before and director.ctl(form) == text
        mark = ipvs.service(fwmark=7, af=socket.AF_INET6, add=False)
        own.set_policy(mark, sctp=6)
        own.set_policy(ipvs.service("192.0.2.30", 80, add=False), guard=2)
        assert "0 added, 2 changed, 1 already so" in director.ctl("restore", stdin=text)
        assert own.policy(mark)["sctp"] == 5 and len(own.policies()) == 2


@both_modules
def test_ip_vs_has_no_policy(director, module):
    """It says so in one line."""
    rules = "-A -t 192.0.2.10:80 -s rr\n#ipvsctl service tcp:192.0.2.10:80 on-loss move\n"
    if module.is_l4lb:
        director.ctl("restore", stdin=rules)
        assert policy(director) == {"on_loss": 2}
        return
    for words in ("svc add tcp 192.0.2.10:80 scheduler rr on-loss move", "restore"):
        said = director.ctl(words, code=7, stdin=rules if words == "restore" else None)
        assert '"on-loss move": the services of ip_vs have no such setting' in said
    assert not director.json("show")["services"]
    director.ctl("svc add", *WEB, "scheduler rr on-loss default")
    director.ctl("svc change", *WEB, "guard drop", code=7)
    director.ctl("svc change", *WEB, "guard off")


def test_schedulers_are_described(director):
    known = {s["name"]: s for s in director.json("sched list")["schedulers"]}
    assert known["rr"]["options"] == known["rr"]["flags"] == []
    for name in ("lblcr", "mh"):
        one = director.json("scheduler show", name)["scheduler"]
        assert one["loaded"] and one["name"] == name
    assert one["flags"] == ["fallback", "port"] and one["options"] == []
    lblcr = director.json("scheduler show lblcr")["scheduler"]
    assert lblcr["options"][2] == {
        "name": "shrink", "default": DAY, "min": 1, "max": 14 * DAY,
        "what": "seconds without a change until a set loses a server"}
    listed = director.ctl("scheduler list").splitlines()
    (row,) = [line for line in listed if line.startswith("lblcr ")]
    assert "expire entries shrink" in row
    text = director.ctl("scheduler show lblcr").splitlines()
    assert text[0].startswith("lblcr: locality")
    assert text[1].split() == ["OPTION", "DEFAULT", "MIN", "MAX", "WHAT"]
    assert text[2].split()[:4] == ["expire", "86400", "1", "1209600"]
    assert director.ctl("scheduler show sh").splitlines()[1] == "flags: fallback,port"
    assert "not found" in director.ctl("scheduler show nosuch", code=4)
    assert director.ctl("scheduler show") == director.ctl("scheduler list")


def test_flags_go_with_their_scheduler(director):
    director.ctl("svc add", *WEB, "scheduler sh flags fallback,port persistent 60 "
                 "server 10.0.0.11")
    before = director.state()
    for words, why in (("flags flag-3", "scheduler sh does not have flags flag-3; it has: "
                        "fallback,port"),
                       ("scheduler rr flags port", "scheduler rr does not have flags flag-2; "
                        "it has: none")):
        assert why in director.ctl("svc change", *WEB, words, code=2)
        assert director.state() == before
    director.ctl("svc change", *WEB, "scheduler mh")
    assert director.json("show")["services"][0]["flags"] == ["fallback", "port"]
    director.ctl("svc change", *WEB, "scheduler rr")
    got = director.json("show")["services"][0]
    assert (got["scheduler"], got["flags"], got["persistent"]) == ("rr", [], 60)
    director.ctl("svc change", *WEB, "scheduler sh flags port")
    director.ctl("sched set", *WEB, "wlc")
    assert director.json("show")["services"][0]["flags"] == []
    for words in ("svc change tcp 192.0.2.10:80 flags fallback",
                  "svc add tcp 192.0.2.11:80 scheduler rr flags flag-1",
                  "svc replace tcp 192.0.2.11:80 flags flag-1"):
        assert "does not have flags flag-1" in director.ctl(words, code=2)
    # A file is checked as a whole.
    rules = "-A -t 192.0.2.30:80 -s rr\n-A -t 192.0.2.31:80 -s rr -b flag-2\n"
    assert "scheduler rr does not have flags flag-2" in director.ctl(
        "restore", stdin=rules, code=2)
    assert len(director.json("show")["services"]) == 1


@pytest.mark.smoke
@pytest.mark.parametrize("form", ["json", "ipvsadm"])
def test_save_and_restore_round_trip(director, form, tmp_path):
    director.build(FULL)
    file = tmp_path / "saved"
    saved = director.ctl("save -F", form)
    director.ctl("save -F", form, "-o", str(file))
    assert file.read_text(encoding="utf-8") == saved
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]
    before = director.state()
    director.ctl("svc flush --yes")
    said = director.ctl("restore", str(file))
    assert "services: 5 added, 0 changed, 0 already so" in said
    assert director.state() == before and director.ctl("save -F", form) == saved
    again = director.json("restore", stdin=saved)["restore"]
    assert again == {"dry_run": False,
                     "services": {"added": 0, "changed": 0, "unchanged": 5, "not_in_file": 0},
                     "servers": {"added": 0, "changed": 0, "unchanged": 5, "not_in_file": 0}}


@pytest.mark.parametrize("change", ("weight 5", "max-conns 10", "min-conns 4",
                                    "type gue port 6081", "remcsum"))
def test_restore_sees_each_difference(director, change):
    """Of a server, and nothing else."""
    director.ctl("svc add", *WEB, "server 10.0.0.11 tun type gue port 6080 csum weight 2 "
                 "max-conns 9 min-conns 3")
    saved = director.ctl("save")
    director.ctl("rs change tcp:192.0.2.10:80 10.0.0.11", change)
    assert director.ctl("save") != saved
    director.ctl("restore", stdin=saved)
    assert director.ctl("save") == saved


@pytest.mark.smoke
@both_modules
def test_restore_reads_what_ipvsadm_wrote(director):
    director.build(FULL)
    # ipvsadm -S leaves the thresholds out.
    director.ctl("rs change tcp:192.0.2.10:443 10.0.0.12 max-conns 0 min-conns 0")
    before, rules = director.state(), director.ns.run(["ipvsadm", "-Sn"]).stdout
    director.ctl("svc flush --yes")
    director.ctl("restore", stdin=rules)
    assert director.state() == before
    assert director.ctl("save") == rules


def test_ipvsadm_reads_what_save_wrote(director):
    director.build(FULL.replace("70000", "60000"))
    before, rules = director.state(), director.ctl("save")
    director.ctl("svc flush --yes")
    director.ns.run(["ipvsadm", "-R"], text_input=rules)
    assert director.state() == before


def test_restore_of_what_show_prints(director):
    director.build(FULL)
    before, shown = director.state(), director.ctl("-j show")
    director.ctl("svc flush --yes")
    director.ctl("restore", stdin=shown)
    assert director.state() == before


def test_restore_merges_and_keeps_what_the_file_does_not_name(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11 weight 2 server 10.0.0.19")
    director.ctl("svc add udp 192.0.2.20:53")
    rules = ("-A -t 192.0.2.10:80 -s wrr\n-a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 5\n"
             "-a -t 192.0.2.10:80 -r 10.0.0.12 -m\n-A -t 192.0.2.30:80\n")
    before = director.state()
    dry = director.ctl("-n restore", stdin=rules)
    assert "would set service tcp 192.0.2.10:80 scheduler wrr" in dry
    dry = director.json("-n restore", stdin=rules)
    assert dry["restore"]["dry_run"] and len(dry["plan"]) == 4
    assert director.state() == before
    said = director.ctl("restore", stdin=rules)
    assert "services: 1 added, 1 changed, 0 already so" in said
    assert "servers:  1 added, 1 changed, 0 already so" in said
    assert "1 services, and 1 servers" in said
    assert director.ctl("save") == (
        "-A -t 192.0.2.10:80 -s wrr\n-a -t 192.0.2.10:80 -r 10.0.0.11:80 -m -w 5\n"
        "-a -t 192.0.2.10:80 -r 10.0.0.12:80 -m -w 1\n"
        "-a -t 192.0.2.10:80 -r 10.0.0.19:80 -m -w 1\n"
        "-A -t 192.0.2.30:80 -s wlc\n-A -u 192.0.2.20:53 -s wlc\n")


def test_a_bad_file_changes_nothing(director):
    director.ctl("svc add", *WEB)
    before = director.state()
    good = "-A -t 192.0.2.30:80 -s rr\n"
    for bad, code, why in (("-A -t 192.0.2.31:80 -s wlcc\n", 4, "wlcc"),
                           ("-A -t 192.0.2.31:99999\n", 2, "bad port"),
                           ("-C\n", 2, '"-C" is not')):
        assert why in director.ctl("restore", stdin=good + bad, code=code)
        assert director.state() == before


REFUSED = ("-A -t 192.0.2.30:80 -s rr\n-a -t 192.0.2.30:80 -r 10.0.0.255 -m\n"
           "-A -t 192.0.2.31:80\n")


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_a_refusal_in_the_middle_says_how_far_it_came(director):
    said = director.ctl("restore", stdin=REFUSED, code=8)
    assert "10.0.0.255" in said and "applied 1 of 3 changes" in said
    fixed = REFUSED.replace("10.0.0.255", "10.0.0.12")
    assert "services: 1 added, 0 changed, 1 already so" in director.ctl("restore", stdin=fixed)


def test_a_refused_restore_changes_nothing_and_names_the_line(director, tmp_path):
    director.ctl("svc add", *WEB, "server 10.0.0.11")
    before = director.state()
    file = tmp_path / "rules"
    bad = REFUSED.splitlines()
    for place in range(3):
        lines = ["-A -t 192.0.2.10:80 -s rr", "-a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 9",
                 "-A -t 192.0.2.40:80", "-a -t 192.0.2.40:80 -r 10.0.0.12 -m"]
        lines[2 * place:2 * place] = bad
        file.write_text("# a comment\n" + "\n".join(lines) + "\n", encoding="ascii")
        said = director.ctl("restore", str(file), code=3)
        assert said.splitlines()[0] == (
            f"ipvsctl: {file}:{2 * place + 3}: tcp 192.0.2.30:80: server 10.0.0.255: the kernel "
            "refused: the real server's address must be unicast")
        assert said.splitlines()[1:] == ["  nothing was changed"]
        assert director.state() == before
    file.write_text(REFUSED.replace("10.0.0.255", "10.0.0.12"), encoding="ascii")
    assert "services: 2 added, 0 changed, 0 already so" in director.ctl("restore", str(file))


def test_another_namespace_is_reached_by_name_pid_and_path(director):
    director.ctl("svc add", *WEB)
    sleeper = director.ns.popen(["sleep", "60"])
    try:
        for where in (director.ns.name, str(sleeper.pid), f"/run/netns/{director.ns.name}"):
            out = run([IPVSCTL, "-N", where, "-j", "show"]).stdout
            assert len(json.loads(out)["services"]) == 1
        assert "udp" not in run([IPVSCTL, "-N", director.ns.name, "conn", "show"]).stdout
    finally:
        sleeper.kill()
        sleeper.wait()
    director.ctl("svc flush --yes")


def test_a_thousand_servers(director):
    """Listings span many netlink messages."""
    rules = "-A -t 192.0.2.10:80 -s rr\n" + "".join(
        f"-a -t 192.0.2.10:80 -r 10.1.{n // 250}.{n % 250 + 1}:80 -m -w {n}\n"
        for n in range(1000))
    director.ctl("restore", stdin=rules)
    assert director.ctl("save") == rules
    assert len(director.json("show")["services"][0]["servers"]) == 1000
    assert "1000 already so" in director.ctl("restore", stdin=rules)


def test_a_service_with_more_servers_than_one_entry_holds(director):
    """What is wrong is found far into the message, too."""
    lines = ["-A -t 192.0.2.10:80 -s rr"] + [
        f"-a -t 192.0.2.10:80 -r 10.1.{n // 250}.{n % 250 + 1}:80 -m -w {n}" for n in range(3000)]
    lines[2500] = "-a -t 192.0.2.10:80 -r 10.0.0.255 -m"
    said = director.ctl("restore", stdin="\n".join(lines), code=3)
    assert "standard input:2501: tcp 192.0.2.10:80: server 10.0.0.255" in said
    assert director.state() == []


def test_verbose_names_each_change(director):
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-v", "svc", "add", *WEB, "server", "10.0.0.11"],
                              capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "add service tcp 192.0.2.10:80 scheduler wlc",
        "add server tcp 192.0.2.10:80 10.0.0.11:80 nat weight 1"]
