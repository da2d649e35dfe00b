# SPDX-License-Identifier: GPL-2.0
"""One of two guests with a cable between them, each with a director of a pair: the section of
doc/high-availability.md about replacing ip_vs is followed, while connections are open.
Clients and servers are in the first guest. tests/lab/interop starts both; this file is not
collected otherwise."""

import contextlib
import os
import re
import time

import pytest
from lab import daemons, genl
from lab.backend import Backend
from lab.guide import TOP, page, steps
from lab.netns import wait_until
from lab.second import HIGH, MAC, Second
from lab.sync_group import DEVICE, up
from lab.talk import Flow, Listeners
from lab.two_guests import COUNT, HERE, NUMBER, OTHER, ask, find_end, lines, meet, tell, wires

PAGE = page("high-availability")
SECTION = re.search(r"^## Replacing an ip_vs pair.*?(?=^## |\Z)", PAGE, re.M | re.S)[0]
KIND = " two guests"
EXCHANGE = re.compile(r"^    lsmod .*rmmod ip_vs && modprobe l4lb$", re.M)
ID = 7
WIRE_MAC = f"02:00:00:00:5d:0{NUMBER}"
PATIENCE = 120      # seconds until a director knows all connections
PORT = 4000
MORE = max(COUNT // 10, 3)      # connections of each family that are opened at a time
FAMILIES = (4, 6)


def orders():
    """{number of a paragraph: [(director's number, command or None, what it prints)]}. None: the
    modules are exchanged."""
    found = {}
    for number, text in re.findall(r"^\*\*(\d)\. (.*?)(?=^\*\*\d\. |\Z)", SECTION, re.M | re.S):
        found[int(number)] = said = []
        for n, part in enumerate(EXCHANGE.split(text)):
            if n:
                said.append((said[-1][0], None, ""))
            said += [(int(machine[-1]), command, wanted)
                     for machine, command, wanted in steps(part, KIND)]
    return found


ORDERS = orders()


@pytest.fixture(scope="session", autouse=True)
def end():
    find_end()


class Director:
    """This guest's one."""

    def __init__(self, lab, ns):
        self.lab, self.ns, self.module = lab, ns, "ip_vs"

    def configure(self):
        """As ip_vs's pair is before the guide begins."""
        with genl.Ipvs(self.ns) as ipvs:
            for family in FAMILIES:
                port = PORT + family
                service = ipvs.service(self.lab.vip(family), port, sched="rr")
                for n in (1, 2):
                    service.server(self.lab.rip(n, family), port, method=self.lab.method)
            daemons.start(ipvs, ("master", "backup")[NUMBER], DEVICE, ID)

    def exchange(self, to):
        Backend(self.module).unload()
        Backend(to).load()
        self.module = to

    def do(self, command, wanted):
        if command is None:
            self.exchange("l4lb")
            return
        done = self.ns.run(["bash", "-c", command], check=False, timeout=100)
        assert (done.returncode, done.stdout + done.stderr) == (0, wanted), command

    def established(self):
        return {(row["vport"], row["cport"]) for row in genl.conns(self.ns)
                if row["state"] == "ESTABLISHED"}

    def reset(self):
        with contextlib.suppress(genl.NetlinkError), genl.Ipvs(self.ns) as ipvs:
            daemons.stop_all(ipvs)
            ipvs.flush()
        if self.module == "l4lb":
            self.ns.run(["ipvsctl", "sync", "peer", "delete", OTHER[4]], check=False)
        if self.module != "ip_vs":
            self.exchange("ip_vs")


class Near(Second):
    """The second director as the guest of clients and servers sees it."""

    def __init__(self, lab):
        self.lab, self.ns = lab, None
        self.mac = f"{MAC}0" if lab.shape == "nat" else f"{MAC}1"


class Far(Second):
    """The second director, in its own guest."""

    def __init__(self, lab):
        super().__init__(lab)
        self.settle()


@contextlib.contextmanager
def director_of(lab):
    """(this guest's director, what moves the VIP or None)"""
    far, near = (Far(lab), None) if NUMBER else (None, Near(lab))
    if far:
        ends = [(far.ns, lab.back, f"{MAC}1")] + \
            ([(far.ns, "eth0", f"{MAC}0")] if lab.shape == "nat" else [])
    else:
        client = lab.client.ns
        ends = [(lab.topo.nodes["router"].ns, "second", HIGH)] + \
            ([(client, "eth9", "02:00:00:00:5e:00")] if lab.shape == "nat" else [])
    ns = far.ns if far else lab.director.ns
    with contextlib.ExitStack() as stack:
        if far:
            stack.callback(far.ns.destroy)
        stack.enter_context(wires((ns, DEVICE, WIRE_MAC), *ends))
        ns.ip(*lines(DEVICE))
        wait_until(lambda: up(ns, DEVICE), 10, what=f"{DEVICE} up")
        try:
            if near:
                near.connect_neighbours()
                near.take_over(back=True)
            else:
                far.connect()
            yield Director(lab, ns), near
        finally:
            if near:
                near.leave()


class Clients:
    """Open connections through the pair, in the first guest."""

    def __init__(self, lab):
        self.lab, self.flows = lab, []
        self.listeners = {family: Listeners(lab.servers[:2], PORT + family, family)
                          for family in FAMILIES}

    def open(self, count):
        for family, listeners in self.listeners.items():
            for _ in range(count):
                flow = Flow(self.lab, listeners, (self.lab.vip(family), PORT + family))
                flow.talk()
                self.flows.append((PORT + family, flow))

    def talk(self):
        for _, flow in self.flows:
            flow.talk()

    def names(self):
        return [[port, flow.port] for port, flow in self.flows]

    def close(self):
        for _, flow in self.flows:
            flow.close()
        for listeners in self.listeners.values():
            listeners.close()


class Play:
    """The section, paragraph by paragraph; both guests play it together."""

    def __init__(self, lab, director, near):
        self.director, self.near, self.name = director, near, f"replace-{lab.shape}"
        self.clients = None if NUMBER else Clients(lab)
        self.then = {2: self.more, 3: lambda: self.known(2), 4: self.fail_over,
                     6: self.fail_back}

    def play(self):
        meet(f"{self.name}-ready")
        self.more()
        for paragraph, said in sorted(ORDERS.items()):
            for n, (machine, command, wanted) in enumerate(said):
                if machine == NUMBER + 1:
                    self.director.do(command, wanted)
                meet(f"{self.name}-{paragraph}-{n}")
                self.talk()
            self.then.get(paragraph, lambda: None)()

    def talk(self):
        if self.clients:
            self.clients.talk()

    def more(self):
        if self.clients:
            self.clients.open(MORE)

    def known(self, machine):
        """All open connections are known to director MACHINE."""
        flows, done = f"{self.name}-flows-{machine}", f"{self.name}-known-{machine}"
        if self.clients:
            tell(flows, self.clients.names())
        if machine == NUMBER + 1:
            wanted = {tuple(one) for one in (self.clients.names() if self.clients else
                                             ask(flows))}
            wait_until(lambda: self.talk() or wanted <= self.director.established(), PATIENCE,
                       what=f"all {len(wanted)} connections at director{machine}")
            tell(done)
        elif self.clients:
            end = time.monotonic() + PATIENCE
            while not (HERE / f"{done}-{1 - NUMBER}").exists() and time.monotonic() < end:
                self.talk()
        if machine != NUMBER + 1:
            ask(done)

    def fail_over(self):
        if self.near:
            self.near.take_over()
            self.talk()
            self.more()

    def fail_back(self):
        self.known(1)
        if self.near:
            self.near.take_over(back=True)
            self.talk()
            self.more()
            self.talk()


def test_replace(lab, monkeypatch):
    """Every connection that was opened goes on to the end."""
    monkeypatch.setenv("PATH", f"{TOP / 'build'}:{os.environ['PATH']}")
    assert sorted(ORDERS) == [1, 2, 3, 4, 5, 6]
    assert [sum(not command for _, command, _ in said) for said in ORDERS.values()] == \
        [0, 1, 0, 0, 1, 0]
    with director_of(lab) as (director, near):
        play = Play(lab, director, near)
        try:
            director.configure()
            play.play()
        finally:
            director.reset()
            if play.clients:
                play.clients.close()
            meet(f"{play.name}-end")
