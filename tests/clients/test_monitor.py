# SPDX-License-Identifier: GPL-2.0
"""ipvsctl monitor: a line for each event that the module tells."""

import json
import signal
import subprocess
import time

import pytest
from lab import genl, packet
from lab.backend import both_modules
from lab.ctl import IPVSCTL, VIP, WEB, knock
from lab.guide import screen
from lab.monitor import Monitor
from lab.netns import wait_until

NO_MODULE = True


@pytest.mark.smoke
def test_commands_of_family_ipvs(director):
    """As ipvsadm and keepalived send them. What was before the monitor it does not show."""
    with genl.Ipvs(director.ns) as ipvs:
        ipvs.service(VIP, 81, proto=packet.TCP, sched="rr").delete()
    with Monitor(director.ns) as monitor, genl.Ipvs(director.ns) as ipvs:
        assert monitor.head["monitor"] == ["service", "server", "load", "drain", "table", "peer"]
        service = ipvs.service(VIP, 80, proto=packet.TCP, sched="rr")
        assert monitor.next() == {"event": "service-added", "service": f"tcp:{VIP}:80",
                                  "scheduler": "rr"}
        service.server("10.0.0.11", 80, weight=3)
        assert monitor.next() == {"event": "server-added", "service": f"tcp:{VIP}:80",
                                  "server": "10.0.0.11:80", "weight": 3, "active": 0,
                                  "inactive": 0, "persistent": 0}
        service.edit_server("10.0.0.11", 80, weight=5)
        said = monitor.next()
        assert (said["event"], said["weight_before"], said["weight"]) == ("weight", 3, 5)
        service.edit_server("10.0.0.11", 80, weight=5)      # nothing changes
        service.edit_server("10.0.0.11", 80, weight=5, upper=9)
        assert monitor.events(1) == ["server-changed"]
        service.edit(sched="wlc")
        said = monitor.next()
        assert (said["event"], said["scheduler"]) == ("scheduler", "wlc")
        service.delete_server("10.0.0.11", 80)
        assert monitor.events(1) == ["server-deleted"]
        ipvs.flush()
        assert monitor.events(1) == ["service-deleted"]
        monitor.quiet()


def test_commands_of_family_l4lb(director):
    """A batch tells what it changes, in order, and nothing if it changes nothing or fails."""
    one, two = (genl.batch_server(f"10.0.0.{n}", weight=n) for n in (1, 2))
    with Monitor(director.ns) as monitor, genl.L4lb(director.ns) as l4lb:
        entry = genl.batch_entry(VIP, 80, [one, two], sched="rr")
        l4lb.set_services([entry])
        assert monitor.events(3) == ["service-added", "server-added", "server-added"]
        l4lb.set_services([entry])
        genl.is_refused(lambda: l4lb.set_services(
            [genl.batch_entry(VIP, 81, [one], sched="rr"),
             genl.batch_entry(VIP, 80, [genl.batch_server("224.0.0.1")], sched="rr")]), 22)
        l4lb.set_services([genl.batch_entry(VIP, 80, [genl.batch_server("10.0.0.2", weight=9)],
                                            sched="rr")], genl.REPLACE)
        assert monitor.events(2) == ["server-deleted", "weight"]
        l4lb.set_services([genl.batch_entry(VIP, 80, sched="wrr", policy={"tcp": 99})])
        assert monitor.events(1) == ["scheduler"]
        l4lb.set_services([genl.batch_entry(VIP, 80, sched="wrr")])
        assert monitor.events(1) == ["service-changed"]
        director.ctl("svc change", *WEB, "on-loss move")
        assert monitor.events(1) == ["service-changed"]
        monitor.quiet()


@pytest.mark.waits
def test_overloaded_and_drained(fresh):
    """Once for each change, though each connection crosses a threshold."""
    fresh.ctl("svc add udp", f"{VIP}:5353", "scheduler rr server 10.0.0.11 max-conns 3 min-conns 3")
    fresh.ctl("timeout set udp 1")
    with Monitor(fresh.ns, "load", "drain") as monitor:
        knock(fresh, 3)
        said = monitor.next()
        assert (said["event"], said["server"], said["active"] + said["inactive"]) == \
            ("overloaded", "10.0.0.11:5353", 3)
        assert monitor.events(1) == ["relieved"]
        fresh.ctl("rs change udp", f"{VIP}:5353", "10.0.0.11 weight 0")
        said = monitor.next()
        assert (said["event"], said["active"] + said["inactive"]) == ("drained", 0)
        monitor.quiet()
        fresh.ctl("rs change udp", f"{VIP}:5353", "10.0.0.11 weight 1")
        fresh.ctl("rs change udp", f"{VIP}:5353", "10.0.0.11 weight 0")
        assert monitor.events(1) == ["drained"]


@pytest.mark.waits
def test_full(fresh):
    fresh.ctl("svc add udp", f"{VIP}:5353", "scheduler rr server 10.0.0.11")
    fresh.ns.sysctl("net/ipv4/vs/conn_max", 4)
    with Monitor(fresh.ns, "table") as monitor:
        knock(fresh, 4)
        monitor.quiet()
        knock(fresh, 1)
        assert monitor.next() == {"event": "full", "connections": 4}
        said = monitor.next()
        assert said["event"] == "room"
        monitor.quiet()


def test_loss_is_counted(fresh):
    """A listener that does not read hears how many events it missed, and what there is now."""
    rounds, servers = 40, 500
    with Monitor(fresh.ns, "server") as monitor, genl.L4lb(fresh.ns) as l4lb:
        def change(weight):
            l4lb.set_services([genl.batch_entry(VIP, 80, [
                genl.batch_server(f"10.1.{n >> 8}.{n & 255}", weight=weight)
                for n in range(servers)], sched="rr")])

        change(1)
        assert monitor.events(servers) == ["server-added"] * servers
        monitor.process.send_signal(signal.SIGSTOP)
        for n in range(rounds):
            change(2 + n)
        monitor.process.send_signal(signal.SIGCONT)
        seen, lost = 0, 0
        while seen + lost < rounds * servers:
            said = monitor.next()
            seen += said["event"] == "weight"
            lost += said["events"] if said["event"] == "lost" else 0
        assert 0 < lost < rounds * servers
        assert seen + lost == rounds * servers
        listed = [monitor.next() for _ in range(servers)]
        assert {(s["event"], s["weight"]) for s in listed} == {("is", rounds + 1)}
        change(1)
        assert monitor.events(servers) == ["weight"] * servers


def test_ten_thousand(fresh):
    """Who reads misses none of 10,000 events."""
    servers, rounds = 500, 20
    with Monitor(fresh.ns) as monitor, genl.L4lb(fresh.ns) as l4lb:
        start = time.monotonic()
        for n in range(rounds):
            l4lb.set_services([genl.batch_entry(VIP, 80, [
                genl.batch_server(f"10.1.{i >> 8}.{i & 255}", weight=1 + n)
                for i in range(servers)], sched="rr")])
        events = monitor.events(rounds * servers + 1)
        print(f"{len(events)} events in {time.monotonic() - start:.2f} s")
        assert (events.count("weight"), events.count("server-added")) == \
            ((rounds - 1) * servers, servers)


def listen(director, *words):
    with director.ns.enter():
        process = subprocess.Popen([IPVSCTL, *words], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
    first = process.stdout if "-j" in words else process.stderr
    return process, first.readline()


def test_text(director):
    """A line in words, with the time; the end by ctrl-C is no error. The screens of the page."""
    text, first = listen(director, "monitor", "-t")
    assert first == "ipvsctl: listening\n"
    objects, head = listen(director, "-j", "monitor")
    assert json.loads(head)["monitor"]
    changes = ("svc add tcp 192.0.2.10:80 scheduler rr server 10.0.0.11 nat weight 3",
               "rs change tcp 192.0.2.10:80 10.0.0.11 weight 4",
               "sched set tcp 192.0.2.10:80 wlc",
               "rs drain tcp 192.0.2.10:80 10.0.0.11")
    for change in changes:
        director.ctl(change)
    lines = [text.stdout.readline() for _ in range(6)]
    director.ctl("svc delete tcp 192.0.2.10:80")        # not before its server is drained
    lines = [line.split(" ", 1) for line in (*lines, text.stdout.readline())]
    assert all(len(time) == len("2026-11-25T22:57:04.123456+0000") for time, _ in lines)
    said = [line for _, line in lines]
    assert said[:3] == [
        f"service-added tcp {VIP}:80 scheduler rr\n",
        f"server-added tcp {VIP}:80 10.0.0.11:80 weight 3 active 0 inactive 0 persistent 0\n",
        f"weight tcp {VIP}:80 10.0.0.11:80 3 -> 4\n"]
    lines = [objects.stdout.readline() for _ in said]
    for process in text, objects:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    print(f"doc/watching.md has to show:\n{''.join((first, *said))}\n{lines[2]}", end="")
    assert screen("watching", "monitor") == "".join((first, *said))
    assert screen("watching", "monitor -j") == lines[2]
    assert [json.loads(line)["event"] for line in lines] == [line.split()[0] for line in said]


def test_reader_goes(director):
    """It ends with the program that reads it, though nothing happens."""
    with director.ns.enter():
        process = subprocess.Popen([IPVSCTL, "-j", "monitor"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    wait_until(lambda: process.poll() is not None, 10, what="the end")
    process.stderr.close()


@both_modules
def test_what_in_tree_says(director, module):
    if module.is_l4lb:
        assert 'unknown class of events "servr"' in director.ctl("monitor servr", code=2)
        return
    said = director.ctl("monitor", code=7)
    assert said.startswith("ipvsctl: the module ip_vs tells no events\n  ")
