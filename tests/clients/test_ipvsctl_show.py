# SPDX-License-Identifier: GPL-2.0
"""ipvsctl against a kernel: l4lb in all tests, in-tree ip_vs in some.

What the kernel holds afterwards is read back with our own netlink client
(lab.genl), not with ipvsctl. Starting a program is slow on an emulated
machine, so a test starts few of them and the tests without packets share one
namespace.
"""

import json
import os
import socket

import pytest
from lab.backend import both_modules
from lab.ctl import IPVSCTL, VIP, WEB, knock
from lab.netns import run, wait_until

TAKES = 250
NO_MODULE = True        # `module` below loads both, one after the other


def as_nobody(director, *words):
    """ipvsctl's output for a user with access to the file in /proc only."""
    return director.ns.run(["setpriv", "--reuid", "65534", "--clear-groups", IPVSCTL,
                            *" ".join(words).split()]).stdout


@pytest.mark.smoke
@pytest.mark.tool
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
    """Every filter prints the same lines from netlink and from /proc."""
    fresh.ns.ip("addr add 2001:db8::1/64 dev d0 nodad", "addr add 2001:db8::10/128 dev lo nodad")
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12:53")
    fresh.ctl("svc add udp 192.0.2.10:54 scheduler rr persistent 50 server 10.0.0.11:5353")
    fresh.ctl("svc add udp [2001:db8::10]:5353 scheduler rr server [2001:db8::11]:53")
    knock(fresh, 4)
    knock(fresh, 2, port=54)
    with fresh.ns.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("2001:db8::10", 5353))

    def lines(text):
        """The words of each line, without the remaining seconds."""
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
    """More keys with -j, among them the mark of a connection's service."""
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
    """In-tree ip_vs does not report marks; ipvsctl says so."""
    if module.is_l4lb:
        assert fresh.ctl("conn count service fwmark 7") == "0\n"
    else:
        assert "does not say which mark" in fresh.ctl("conn count service fwmark 7", code=2)


def test_limit_of_a_long_list(fresh):
    """The rest of the list is not read, and the next listing is complete."""
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12")
    knock(fresh, 700)       # some reuse a source port
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
    assert (info["limits"] == []) == module.is_l4lb
    for words in "error number only", "no conn kill", "no monitor":
        assert any(words in limit for limit in info["limits"]) == (not module.is_l4lb), words
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
    """Half-open connections count as active."""
    for port in (80, 81, 82):
        fresh.ctl(f"svc add tcp {VIP}:{port} scheduler rr server 10.0.0.11:{port}")
    for port in (81, 82, 82):
        with fresh.ns.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.setblocking(False)
            s.connect_ex((VIP, port))
    services = fresh.json("show sort active")["services"]
    assert [(s["port"], s["servers"][0]["active"]) for s in services] == \
        [(82, 2), (81, 1), (80, 0)]
