# SPDX-License-Identifier: GPL-2.0
"""A file is applied a hundred times beside traffic: no packet is lost, and connections of
services that stay as they are see nothing of it."""

import re
import socket
import subprocess
import threading
import time

import pytest
from lab.ctl import IPVSCTL
from lab.farm import Http, http_get
from lab.netns import SLOW, join_all, run

pytestmark = pytest.mark.usefixtures("only_l4lb")
TAKES = 60
RELOADS, OPEN, OTHERS = 100, 4, 40


def endpoint(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def file(lab, family, ports, turn):
    """Two services stay; a third has other weights and another scheduler each time; of many
    others, half come and go, and half have other servers."""
    vip, (stays, changes) = lab.vip(family), ports

    def service(kind, port, scheduler, servers):
        quoted = ", ".join(f'"{server}"' for server in servers)
        return (f'- service: "{kind} {endpoint(vip, port)}"\n  scheduler: {scheduler}\n'
                f"  servers: [{quoted}]\n")

    def farm(port, weight=1):
        return [f"{endpoint(lab.rip(n, family), port)} weight {weight * n}" for n in (1, 2, 3, 4)]
    text = "version: 1\nservices:\n" + service("tcp", stays, "rr", farm(stays)) + \
        service("udp", stays, "wrr", farm(stays)) + \
        service("tcp", changes, ("wrr", "wlc")[turn], farm(changes, 1 + turn))
    for n in range(OTHERS):
        if n % 2 or n // 2 % 2 == turn:
            text += service("tcp", 20000 + n, "rr", farm(20000 + n)[turn:turn + 3])
    return text


class Stream:
    """OPEN sockets, each of which sends one numbered datagram after the other; all come back."""

    def __init__(self, lab, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sockets = [lab.client.ns.socket(family, socket.SOCK_DGRAM) for _ in range(OPEN)]
        for sock in self.sockets:
            sock.connect((address, port))
            sock.setblocking(False)
        self.sent, self.came, self.servers = [0] * OPEN, [set() for _ in range(OPEN)], set()

    def take(self):
        for n, sock in enumerate(self.sockets):
            while True:
                try:
                    server, _, number = sock.recv(100).partition(b" ")
                except BlockingIOError:
                    break
                assert int(number) not in self.came[n]
                self.came[n].add(int(number))
                self.servers.add((n, server))

    def step(self):
        for n, sock in enumerate(self.sockets):
            sock.send(b"%d" % self.sent[n])
            self.sent[n] += 1
        self.take()

    def lost(self):
        end = time.monotonic() + 5 * SLOW
        while time.monotonic() < end and sum(map(len, self.came)) < sum(self.sent):
            time.sleep(0.01)
            self.take()
        return sum(self.sent) - sum(map(len, self.came))

    def close(self):
        for sock in self.sockets:
            sock.close()


def talk(lab, address, ports, stop, seen):
    """Open connections, datagrams, and new connections, until it is to STOP."""
    stream = Stream(lab, address, ports[0])
    https = [Http(lab.client, address, ports[0]) for _ in range(OPEN)]
    try:
        names = [http.request().split()[0] for http in https]
        stream.step()
        seen["began"].set()
        while not stop.is_set():
            stream.step()
            for n, http in enumerate(https):
                assert http.request().split()[0] == names[n]
                stream.step()
            http_get(lab.client, address, ports[1])
            seen["requests"] += OPEN + 1
            stop.wait(0.05)
        seen["lost"], seen["sent"] = stream.lost(), sum(stream.sent)
        assert len(stream.servers) == OPEN
    except Exception as error:  # noqa: BLE001 - whatever it is, the test has failed
        seen["wrong"].append(error)
        seen["began"].set()
    finally:
        stream.close()
        for http in https:
            http.close()


def kept(lab, port):
    """The connections of the services that stay, and how many these and their servers had."""
    with lab.director.ns.enter():
        lines = run([IPVSCTL, "-H", "conn", "show"]).stdout.splitlines()
        stats = run([IPVSCTL, "-H", "stats"]).stdout.splitlines()
    conns = [line.split()[:5] for line in lines if f":{port} " in line]
    return sorted(conns), [re.match(r"\D*\S+ +\d+", line)[0] for line in stats
                           if f":{port} " in line]



@pytest.mark.parametrize("family", (4, 6))
def test_hundred_reloads(nat, family, tmp_path):
    ports = nat.http_port(), nat.http_port()
    some, stop, wrong = OTHERS // 4, threading.Event(), []
    seen = {"began": threading.Event(), "requests": 0, "wrong": wrong}
    files = [tmp_path / name for name in ("a.yaml", "b.yaml")]
    for turn, path in enumerate(files):
        path.write_text(file(nat, family, ports, turn), "ascii")

    def apply(path):
        with nat.director.ns.enter():
            return subprocess.run([IPVSCTL, "apply", str(path), "--prune"], check=True, text=True,
                                  capture_output=True).stdout
    apply(files[1])
    thread = threading.Thread(target=talk, args=(nat, nat.vip(family), ports, stop, seen))
    thread.start()
    try:
        assert seen["began"].wait(20 * SLOW) and not wrong, wrong
        before, began = kept(nat, ports[0]), time.monotonic()
        for n in range(RELOADS):
            said = apply(files[n % 2])
            assert f"services: {some} added, 1 changed, {some} removed, {2 * some + 2} unchanged" in said
        took = time.monotonic() - began
        after = kept(nat, ports[0])
    finally:
        stop.set()
        join_all(thread)
    assert not wrong, wrong
    print(f"{RELOADS} reloads in {took:.1f} s beside {seen['requests']} requests, {seen['sent']} datagrams")
    assert seen["lost"] == 0 and seen["sent"] > RELOADS and seen["requests"] > RELOADS
    assert len(before[0]) == 2 * OPEN
    assert after == before
