# SPDX-License-Identifier: GPL-2.0
"""What an administrator wants, in one line of ipvsctl each, one after the other; and in a second
namespace the lines of ipvsadm for it, where it has any: the kernel is in the same state then."""

import json
import signal
import socket
import subprocess

import pytest
from lab.ctl import IPVSCTL, Director
from lab.netns import run

TAKES = 30
NO_MODULE = True        # `module` loads it

FARM, FIRST, SECOND = "tcp 192.0.2.10:80", "10.0.0.11:8080", "10.0.0.12:8080"
# (what is wanted, the line, that of ipvsadm)
LINES = [
    ("a web farm by NAT, in one line",
     "svc add tcp 192.0.2.10:80 scheduler wrr server 10.0.0.11:8080 nat weight 3 server 10.0.0.12:8080 nat",
     ["-A -t 192.0.2.10:80 -s wrr", "-a -t 192.0.2.10:80 -r 10.0.0.11:8080 -m -w 3",
      "-a -t 192.0.2.10:80 -r 10.0.0.12:8080 -m"]),
    ("direct routing, networks of clients stay together",
     "svc add tcp 192.0.2.10:443 scheduler wlc persistent 10m mask 24",
     ["-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0"]),
    ("its server", "rs add tcp 192.0.2.10:443 10.0.0.11 dr", ["-a -t 192.0.2.10:443 -r 10.0.0.11 -g"]),
    ("a service for IPv6", "svc add tcp [2001:db8::10]:443", ["-A -t [2001:db8::10]:443"]),
    ("a GUE tunnel", "rs add tcp [2001:db8::10]:443 10.0.0.21 tun type gue port 6080 csum",
     ["-a -t [2001:db8::10]:443 -r 10.0.0.21 -i --tun-type gue --tun-port 6080 --tun-csum"]),
    ("a firewall mark for IPv6", "svc add fwmark 7 inet6 scheduler sh flags fallback,port",
     ["-A -f 7 -6 -s sh -b sh-fallback,sh-port"]),
    ("DNS, packet by packet", "svc add udp 192.0.2.53:53 scheduler rr ops", ["-A -u 192.0.2.53:53 -s rr -o"]),
    ("only the weight", f"rs change {FARM} {FIRST} weight 5", [f"-e -t 192.0.2.10:80 -r {FIRST} -m -w 5"]),
    ("another scheduler under load", f"sched set {FARM} lc", ["-E -t 192.0.2.10:80 -s lc"]),
    ("maintenance", f"rs drain {FARM} {FIRST} --wait 120", [f"-e -t 192.0.2.10:80 -r {FIRST} -m -w 0"]),
    ("back in service", f"rs undrain {FARM} {FIRST}", [f"-e -t 192.0.2.10:80 -r {FIRST} -m -w 5"]),
    ("no more than that", f"rs change {FARM} {SECOND} max-conns 20000 min-conns 15000",
     [f"-e -t 192.0.2.10:80 -r {SECOND} -m -w 1 -x 20000 -y 15000"]),
    ("timeouts", "timeout set tcp 15m tcp-fin 2m udp 5m", ["--set 900 120 300"]),
]
OTHERS = "svc add tcp 198.51.100.1:80"
FILE = """\
version: 1
scope: [192.0.2.0/24]
services:
  - service: tcp 192.0.2.10:80
    scheduler: lc
    servers: [10.0.0.11:8080 weight 5, 10.0.0.13:8080]
"""


@pytest.fixture
def pair(module):
    both = Director(), Director()
    yield both
    for one in both:
        one.ns.destroy()


@pytest.fixture
def farm(fresh):
    """One with the farm, and a half-open connection to its first server."""
    fresh.ctl(LINES[0][1])
    with fresh.ns.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        client.connect_ex(("192.0.2.10", 80))
        assert fresh.json("conn show")["connections"]
        yield fresh


def test_one_line_each(pair):
    """Each leaves the kernel as the lines of ipvsadm do, which `ipvsctl compat` runs."""
    ours, theirs = pair
    for what, line, twins in LINES:
        ours.ctl(line)
        for twin in twins:
            theirs.ctl("compat", twin)
        assert ours.state() == theirs.state(), what
        assert ours.json("timeout show") == theirs.json("timeout show"), what
    assert len(ours.state()) == 5


def test_connections(farm):
    """Who uses it most; a client is cut off; a drain says that connections remain."""
    said = farm.ns.run(["sh", "-c", f"{IPVSCTL} conn count by client/24 service tcp:192.0.2.10:80 -H "
                        "| sort -k2rn | head"]).stdout
    assert said.split() == ["192.0.2.0/24", "1"]
    (conn,) = farm.json("conn show")["connections"]
    busy = f"{conn['server']}:{conn['server_port']}"
    assert busy in farm.ctl(f"rs drain {FARM} {busy} --wait 1", code=9)
    assert farm.ctl("conn kill client 192.0.2.10") == "killed 1 connections\n"
    farm.ctl(f"rs drain {FARM} {busy} --wait 120")
    # Whoever connects meanwhile gets the other server.
    assert busy not in [f"{c['server']}:{c['server_port']}" for c in farm.json("conn show")["connections"]]


def test_watching(farm):
    """Talkers for a script; rates each second; events with their time. Ctrl-C ends them."""
    said = json.loads(farm.ctl("top -b -n 1 -j"))
    assert [service["id"] for service in said["services"]] == ["tcp:192.0.2.10:80"]
    with farm.ns.enter():
        rates, events = (subprocess.Popen([IPVSCTL, *words.split()], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True)
                         for words in ("-w 1 stats rate", "monitor server load -t"))
    assert events.stderr.readline() == "ipvsctl: listening\n"
    farm.ctl(f"rs change {FARM} {SECOND} weight 9")
    assert f"weight {FARM} {SECOND} 1 -> 9\n" in events.stdout.readline()
    heads = 0
    while heads < 2:
        heads += "CONN/s" in rates.stdout.readline().replace("CONNS/s", "CONN/s")
    for process in rates, events:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0


def test_synchronisation(pair):
    ours, theirs = pair
    ours.ctl("sync start send dev d0 id 42")
    theirs.ctl("compat --start-daemon master --mcast-interface d0 --syncid 42")
    assert ours.json("sync show") == theirs.json("sync show") and ours.json("sync show")["sync"]


def test_files(farm, tmp_path):
    """What differs; what is others' stays; rules of ipvsadm move in."""
    file, rules, migrated = (tmp_path / name for name in ("lb.yaml", "ipvsadm.rules", "new.yaml"))
    file.write_text(FILE, "ascii")
    farm.ctl(OTHERS)
    farm.ctl("diff", str(file), code=1, out=True)
    farm.ctl("apply", str(file), "--prune")
    assert farm.ctl("diff", str(file), "--prune") == ""
    names = farm.ctl("-H -o name show")
    assert "198.51.100.1:80" in names and "10.0.0.13:8080" in names and "10.0.0.12" not in names
    rules.write_text(farm.ns.run(["ipvsadm", "-Sn"]).stdout, "ascii")
    farm.ns.run(["sh", "-c", f"{IPVSCTL} import {rules} >{migrated} && {IPVSCTL} check {migrated}"])
    assert farm.ctl("diff", str(migrated), "--prune") == ""


def test_elsewhere_and_what_is_wrong(farm):
    assert run([IPVSCTL, "-N", farm.ns.name, "-H", "-o", "name", "show"]).stdout == \
        farm.ctl("-H -o name show")
    assert "error: " in farm.ctl("doctor", code=1, out=True)


def test_teach_me(farm):
    done = farm.ns.run([IPVSCTL, "-v", "compat", "-a", "-t", "192.0.2.10:80", "-r", "10.0.0.14:8080",
                        "-m", "-w", "3"])
    assert done.stderr.splitlines()[0] == "ipvsctl server add tcp 192.0.2.10:80 10.0.0.14:8080 nat weight 3"
