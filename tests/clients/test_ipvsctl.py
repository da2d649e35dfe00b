# SPDX-License-Identifier: GPL-2.0
"""ipvsctl against a kernel: l4lb in all tests, in-tree ip_vs in some.

What the kernel holds afterwards is read back with our own netlink client
(lab.genl), not with ipvsctl. Starting a program is slow on an emulated
machine, so a test starts few of them and the tests without packets share one
namespace.
"""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import IPVSCTL, VIP, WEB, knock
from lab.netns import Namespace, run, wait_until

TAKES = 250
NO_MODULE = True        # `module` below loads both, one after the other


@pytest.mark.smoke
@pytest.mark.tool
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


def contents(folder):
    return {str(path): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


NOBODY = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@" <$INPUT'


def test_unprivileged_caller_and_files(fresh, tmp_path, monkeypatch):
    """Each command says so; the kernel's state stays, and so do the files of apply and drain."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    farm = "version: 1\nservices: [{service: 'udp 192.0.2.10:5353', servers: [10.0.0.11]}]\n"
    fresh.ctl("apply -", stdin=farm)
    knock(fresh)
    fresh.ctl("rs drain udp 192.0.2.10:5353 10.0.0.11")
    fresh.ctl("conn export", str(tmp_path / "connections"))
    for name, text in {"file": farm, "other": farm.replace("11]", "12]"), "nothing": "",
                       "rules": "-A -t 192.0.2.12:80\n"}.items():
        (tmp_path / name).write_text(text, "ascii")
    before, folders = fresh.state(), (tmp_path / "state", Path("/run/ipvsctl"))
    files = [contents(folder) for folder in folders]
    assert len(files[0]) == 2 and len(before) == 1 and len(before[0][2]) == 1
    for words, file in (
            ("show", ""), ("svc add tcp 192.0.2.11:80", ""), ("restore", "rules"),
            ("apply -", "other"), ("apply - --confirm 9", "other"), ("-n apply -", "other"),
            ("diff -", "file"), ("rollback", ""), ("confirm", ""), ("export", ""), ("save", ""),
            ("conn kill --yes", ""), ("conn export -", ""), ("conn import -", "connections"),
            ("conn log", ""), ("monitor", ""), ("top -b -n 1", ""), ("timeout set tcp 99", ""),
            ("svc flush --yes", ""), ("rs drain udp 192.0.2.10:5353 10.0.0.11", "")):
        monkeypatch.setenv("INPUT", str(tmp_path / (file or "nothing")))
        done = fresh.ns.run(["sh", "-c", NOBODY, "sh", IPVSCTL, *words.split()], check=False)
        out = "l4lb connections 1\n" if words == "conn export -" else ""    # the head of the file
        assert (done.returncode, done.stdout) == (6, out), (words, done.stderr)
        assert re.search("not permitted|Permission denied", done.stderr), done.stderr
        assert "\n  try: sudo ipvsctl " in done.stderr
    assert fresh.state() == before
    assert [contents(folder) for folder in folders] == files
    assert len(fresh.json("conn show")["connections"]) == 1


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


@pytest.mark.timer
@both_modules
def test_drain_waits_and_undrain_restores(udp, module):
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
    if module.is_l4lb:      # it keeps the last weight, whoever set 0
        udp.ctl("rs undrain", *server)
        assert udp.json("rs show", *server)["services"][0]["servers"][0]["weight"] == 6
        udp.ctl("rs delete", *server)
        udp.ctl("rs add", "udp:192.0.2.10:5353", "10.0.0.13 weight 0")
        server[1] = "10.0.0.13"
    assert "not known" in udp.ctl("rs undrain", *server, code=2)
    udp.ctl("rs undrain", *server, "weight 2")
    assert udp.json("rs show", *server)["services"][0]["servers"][0]["weight"] == 2


@pytest.mark.timer
@both_modules
def test_drain_waits_without_asking(udp, module):
    """The module's event ends the wait; in-tree ip_vs has none, and is asked twice a second."""
    server = ["udp:192.0.2.10:5353", "10.0.0.11"]
    udp.ctl("timeout set udp 20")
    knock(udp, 4)
    with udp.ns.enter():
        began = time.monotonic()
        done = run([IPVSCTL, "-vv", "server", "drain", *server, "--wait", "60"], check=False)
        took = time.monotonic() - began
    udp.ctl("timeout set udp 300")
    assert done.returncode == 0 and "weight 1 -> 0; 0 active, 0 inactive" in done.stdout
    asked = done.stderr.count("BEGIN NETLINK MESSAGE")
    # Without the event the module would be asked after 25 s.
    assert 15 < took < (24 if module.is_l4lb else 30)
    assert 0 < asked < 50 if module.is_l4lb else asked > 60, asked


@pytest.mark.timer
def test_drain_waits_beyond_its_deadline(udp):
    """The event has come with the deadline; that the last connection ends, no other one says."""
    server = ["udp:192.0.2.10:5353", "10.0.0.11"]
    udp.ctl("timeout set udp 20")
    knock(udp, 4)
    began = time.monotonic()
    said = udp.ctl("rs drain", *server, "--deadline 2 --wait 300")
    udp.ctl("timeout set udp 300")
    assert "0 active, 0 inactive" in said and 15 < time.monotonic() - began < 40


@pytest.mark.timer
def test_drain_that_somebody_takes_back(udp):
    server = ["udp:192.0.2.10:5353", "10.0.0.11"]
    knock(udp, 4)
    with udp.ns.enter():
        waiting = subprocess.Popen([IPVSCTL, "server", "drain", *server, "--wait", "60"],
                                   stderr=subprocess.PIPE, text=True)
    wait_until(lambda: not udp.json("rs show", *server)["services"][0]["servers"][0]["weight"], 5)
    udp.ctl("rs change", *server, "weight 3")
    assert waiting.wait(10) == 3
    assert "10.0.0.11:5353 is not drained any more: it has weight 3" in waiting.stderr.read()


def test_drain_of_an_idle_server_is_done_at_once(director):
    director.ctl("svc add", *WEB, "server 10.0.0.11 weight 3")
    done = director.json("rs drain", *WEB, "10.0.0.11 --wait")["drain"]
    assert done == {"service": "tcp:192.0.2.10:80", "server": "10.0.0.11:80",
                    "weight_before": 3, "active": 0, "inactive": 0, "persistent": 0}


@pytest.mark.waits
@pytest.mark.parametrize("module", ["l4lb", "ip_vs"], indirect=True)
def test_drain_with_an_end(udp, module):
    """It is shown, saved and restored; ip_vs has none."""
    server = ["udp:192.0.2.10:5353", "10.0.0.11"]
    if not module.is_l4lb:
        said = udp.ctl("rs drain", *server, "--deadline 1m", code=7)
        assert "ip_vs has no drains that end by themselves" in said
        return
    udp.ctl("rs change", *server, "weight 6")
    knock(udp, 2)
    udp.ctl("rs drain", *server, "--deadline 2m --then delete")
    shown = udp.json("rs show", *server)["services"][0]["servers"][0]
    assert 110 < shown["drain"].pop("seconds_left") <= 120
    assert shown["drain"] == {"weight_before": 6, "then": "delete"}
    assert re.search(r"draining \(1\d\d s, then delete\)", udp.ctl("show"))
    saved = udp.ctl("save -F json")
    udp.ctl("svc flush --yes")
    udp.ctl("restore", stdin=saved)
    (drain,) = [s["drain"] for s in udp.json("show")["services"][0]["servers"] if "drain" in s]
    assert 100 < drain.pop("seconds_left") <= 120
    assert drain == {"weight_before": 6, "then": "delete"}
    udp.ctl("rs undrain", *server)
    assert udp.json("rs show", *server)["services"][0]["servers"][0]["weight"] == 6
    knock(udp, 4)
    said = udp.ctl("rs drain", *server, "--deadline 2 --then move --wait 20")
    assert "weight 6 -> 0" in said
    assert len(udp.json("show")["services"][0]["servers"]) == 1


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
    assert "1000 unchanged" in director.ctl("restore", stdin=rules)


def test_a_service_with_more_servers_than_one_entry_holds(director):
    """An error is found, and its line named, far into the message, too."""
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
