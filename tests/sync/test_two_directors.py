# SPDX-License-Identifier: GPL-2.0
"""Two directors announce their connections to each other. The clients' traffic moves from
one to the other and back, and no connection notices."""

import contextlib
import time

import pytest
from lab import genl
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.second import announcing
from lab.talk import WAITS, Flow, Listeners

CONNECTIONS = 40
FTP = 21


class Pair:
    """A topology's director and a second one, each with both daemons."""

    def __init__(self, lab, other, family, **options):
        self.lab, self.other = lab, other
        self.vip, self.port = lab.vip(family), lab.fresh_port()
        self.both = ((lab.director.ns, lab.ipvs), (other.ns, other.ipvs))
        self.listener = Listeners(lab.servers[:1], self.port, family)
        self.services = [ipvs.service(self.vip, self.port, sched="rr", **options)
                         for _, ipvs in self.both]
        for service in self.services:
            service.server(lab.rip(1, family), self.port, method=lab.method)

    def open(self, count):
        return [Flow(self.lab, self.listener, (self.vip, self.port)) for _ in range(count)]

    def rows(self, ns, **want):
        return [r for r in genl.conns(ns, origin=True)
                if r["vip"] == self.vip and r["vport"] == self.port and r["cport"]
                and all(r[k] == v for k, v in want.items())]

    def knows(self, ns, flows, *states):
        """Waits until NS has FLOWS in one of STATES."""
        ports = {f.port for f in flows}
        wait_until(lambda: ports <= {r["cport"] for r in self.rows(ns) if r["state"] in states},
                   WAITS, what=f"{len(flows)} connections {states} in {ns}")


@contextlib.contextmanager
def pair(lab, family, **options):
    with announcing(lab) as other:
        one = Pair(lab, other, family, **options)
        with contextlib.closing(one.listener):
            yield one


def lose_memory(lab, pairs):
    """The first director forgets all connections, and has its service again."""
    ns = lab.director.ns
    ns.sysctl("net.ipv4.vs.expire_nodest_conn", 1)
    lab.ipvs.flush()
    wait_until(lambda: not pairs.rows(ns), WAITS, what="no connections")
    ns.sysctl("net.ipv4.vs.expire_nodest_conn", 0)
    lab.ipvs.service(pairs.vip, pairs.port, sched="rr").server(
        lab.rip(1, 4), pairs.port, method=lab.method)


@pytest.fixture
def first(lab):
    return lab.director.ns


@pytest.mark.dear
@pytest.mark.smoke
def test_takeover_and_back(lab, first, family):
    """Downloads go on; what ends at one director ends at the other, too."""
    with pair(lab, family) as pairs:
        flows = pairs.open(CONNECTIONS)
        for flow in flows:
            flow.talk(3)
        pairs.knows(pairs.other.ns, flows, "ESTABLISHED")
        assert {r["origin"] for r in pairs.rows(pairs.other.ns)} == {"SYNC"}
        pairs.other.take_over()
        for flow in flows:
            flow.talk(3)
        new, over = pairs.open(10), flows[:10]
        for flow in new:
            flow.talk(4)
        for flow in over:
            flow.close()
        alive = flows[10:] + new
        pairs.knows(first, alive, "ESTABLISHED")
        pairs.knows(first, over, "FIN_WAIT", "TIME_WAIT", "CLOSE_WAIT", "LAST_ACK", "CLOSE")
        pairs.other.take_over(back=True)
        for flow in alive:
            flow.talk(3)
        for (ns, _), service in zip(pairs.both, pairs.services, strict=True):
            dest = service.find(lab.rip(1, family), pairs.port)
            states = [r["state"] for r in pairs.rows(ns)]
            assert dest["active"] == states.count("ESTABLISHED") == len(alive), ns
            assert dest["active"] + dest["inactive"] == len(states)
        for flow in alive:
            flow.close()


@pytest.mark.dear
def test_persistent(lab, family):
    """The template comes along: after the takeover a client's next connection goes to the
    server of its first one, though the second director would choose the other."""
    with pair(lab, family, flags=PERSISTENT, timeout=300) as pairs:
        flows = pairs.open(3)
        for flow in flows:
            flow.talk(3)
        pairs.knows(pairs.other.ns, flows, "ESTABLISHED")
        templates = [r for r in genl.conns(pairs.other.ns, origin=True) if not r["cport"]]
        assert [(r["vip"], r["server"], r["origin"]) for r in templates] == [
            (pairs.vip, lab.rip(1, family), "SYNC")]
        pairs.services[1].server(lab.rip(2, family), pairs.port, weight=100, method=lab.method)
        pairs.other.take_over()
        more = pairs.open(3)
        for flow in flows + more:
            flow.talk(2)
            flow.close()


@pytest.mark.timer
def test_comes_back_with_nothing(lab, first, only_l4lb):
    """The first director dies and comes back with an empty table: it learns every connection
    in use from the second one, though none of them changes its state."""
    with pair(lab, 4) as pairs:
        # By which the second one announces; its namespace ends with the test.
        pairs.other.ns.sysctl("net.ipv4.vs.sync_refresh_period", 1)
        flows = pairs.open(CONNECTIONS)
        for flow in flows:
            flow.talk(3)
        pairs.knows(pairs.other.ns, flows, "ESTABLISHED")
        pairs.other.take_over()
        for flow in flows:
            flow.talk()
        # The second director announces what it has taken over; that is not what is tested.
        time.sleep(3)
        lose_memory(lab, pairs)

        def known():
            for flow in flows:
                flow.talk()
            return {f.port for f in flows} <= {r["cport"] for r in pairs.rows(
                first, state="ESTABLISHED", origin="SYNC")}
        # Times of announcements have units of 15 seconds.
        wait_until(known, 2 * WAITS, what="all connections are known again", step=0.5)
        pairs.other.take_over(back=True)
        for flow in flows:
            flow.talk(3)
            flow.close()


class Session:
    """FTP: the control connection of a client, whose server says where it can be reached."""

    def __init__(self, lab, family):
        self.lab, self.family, self.vip = lab, family, lab.vip(family)
        self.listener = Listeners(lab.servers[:1], FTP, family)
        self.control = Flow(lab, self.listener, (self.vip, FTP))

    def ask(self, request, answer):
        for sender, receiver, line in ((self.control.client, self.control.server, request),
                                       (self.control.server, self.control.client, answer)):
            sender.sendall(line)
            assert receiver.recv(100) == line

    def data(self, port):
        """A data connection to PORT of the server."""
        self.ask(b"EPSV\r\n", b"229 Yes (|||%d|)\r\n" % port)
        with contextlib.closing(Listeners(self.lab.servers[:1], port, self.family)) as listener:
            return Flow(self.lab, listener, (self.vip, port))

    def close(self):
        self.listener.close()
        self.control.close()


@pytest.mark.dear
@pytest.mark.usefixtures("only_l4lb", "ftp_helper")
def test_transfer(nat, family):
    """A transfer by FTP through NAT goes on, and its client begins the next one: EPSV is answered
    with the same port, so nothing is shifted. With ip_vs it does, too, but its module stays in use
    for longer than the end of this file waits."""
    with announcing(nat) as other:
        for ipvs in nat.ipvs, other.ipvs:
            service = ipvs.service(nat.vip(family), FTP, sched="rr")
            service.server(nat.rip(1, family), FTP, method=nat.method)
        with contextlib.closing(Session(nat, family)) as session:
            data = session.data(50000)
            data.talk(3)
            ports = {session.control.port, data.port}
            wait_until(lambda: ports <= {r["cport"] for r in genl.conns(other.ns)
                                         if r["state"] == "ESTABLISHED"}, WAITS, what="both connections")
            other.take_over()
            data.talk(3)
            for flow in data, session.data(50001):
                flow.talk(3)
                flow.close()
