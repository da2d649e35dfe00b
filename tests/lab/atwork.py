# SPDX-License-Identifier: GPL-2.0
"""Services with a setting each that keeps something of its own, flows of theirs, and what proves
that the setting was at work: for tests of what is left when all of it goes."""

import contextlib
import itertools
import threading

from . import full_nat, genl, latencies, packet, ranges
from .full_nat import Full
from .netns import join_all, wait_until
from .packet import ACK, TCP, UDP
from .ranges import Ranged
from .raw import Raw
from .sip import Sip, message

FLOWS = 4       # of each service, open from the beginning


def first_packet(raw, source, sport):
    """Of a new flow."""
    return packet.l4_packet(raw.proto, source, sport, raw.vip, raw.port, payload=b"new")


@contextlib.contextmanager
def traffic(raws, flows=None, new=first_packet):
    """Inside, packets of new flows and of FLOWS, which are pairs of one of RAWS and a client, are
    sent from both ends, as fast as possible. Yields [their number]."""
    stop = threading.Event()
    sent = [0]
    flows = flows or [(raw, raw.client()) for raw in raws for _ in range(8)]
    sources = {raw.family: client.address for raw, client in flows}

    def pump():
        old = [(raw, c.packet(ACK, b"x" * 64), c.reply_packet(ACK, b"y" * 64))
               for raw, c in flows]
        ports = itertools.cycle(range(1, 60001))
        while not stop.is_set():
            for raw, request, reply in old:
                raw.client_tap.try_send(request)
                raw.client_tap.try_send(new(raw, sources[raw.family], next(ports)))
                raw.taps[raw.numbers[0]].try_send(reply)
                sent[0] += 3
            try:
                for raw in raws:
                    raw.drain()
            except OSError:
                return      # the director has gone, and with it the other end of the cable

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        wait_until(lambda: sent[0] > 50, 20)
        yield sent
    finally:
        stop.set()
        join_all(thread)


class Work:
    """Services for both protocols and families; a subclass has something that they are."""

    cls, policy, options, protocols = Raw, {}, {}, (TCP, UDP)

    def __init__(self, lab):
        self.lab = lab
        self.raws = [self.service(proto, family) for family in (4, 6) for proto in self.protocols]
        for raw in self.raws if self.policy else ():
            with genl.L4lb(lab.director.ns) as l4lb:
                l4lb.set_policy(raw.service, **self.policy)
        self.flows = [(raw, self.begin(raw)) for raw in self.raws for _ in range(FLOWS)]

    def service(self, proto, family):
        return self.cls(self.lab, proto, family, (1, 2), **self.options)

    def begin(self, raw):
        """A client with a connection that has seen packets of both directions."""
        client = raw.client()
        client.open()
        self.reply(client)
        client.send(ACK)
        client.arrive()
        return client

    def reply(self, client):
        client.reply().answered()

    new = staticmethod(first_packet)

    def proof(self, raw, l4lb):
        raise NotImplementedError

    def at_work(self):
        with genl.L4lb(self.lab.director.ns) as l4lb:
            return all(self.proof(raw, l4lb) for raw in self.raws)

    @contextlib.contextmanager
    def traffic(self):
        """As above; inside, all services have used what they keep."""
        with traffic(self.raws, self.flows, self.new) as sent:
            wait_until(self.at_work, 20, what=f"the services' {type(self).__name__} at work")
            yield sent


class Ranges(Work):
    """Of ports and addresses."""

    cls = Ranged

    @staticmethod
    def new(raw, source, sport):
        return packet.l4_packet(raw.proto, source, sport, raw.vip, raw.first + sport % 100)

    def proof(self, raw, l4lb):
        """Connections of many ports."""
        ports = {c["vport"] for c in l4lb.conns(vip=raw.vip, protocol=raw.proto)}
        return len([port for port in ports if raw.first <= port <= raw.last]) > 20


class FullNat(Work):
    """Each connection has a port of the director."""

    cls = Full

    def proof(self, raw, l4lb):
        return len({(c["local"], c["local_port"]) for c in raw.listed()}) > 20


class Lazy(Work):
    """Connections without an entry; those that are open have one."""

    protocols, options, policy = (TCP,), {"sched": "mh"}, {"conn_state": 1}

    def begin(self, raw):
        client = super().begin(raw)
        client.reply(ACK).answered()
        return client

    def proof(self, raw, l4lb):
        return len(l4lb.conns(vip=raw.vip, vport=raw.port)) == FLOWS and \
            raw.service.stats["inpkts"] > 50


class Latency(Work):
    policy = {"latency": 1}

    def proof(self, raw, l4lb):
        found = [kind for kinds in latencies.read(l4lb, raw.service).values() for kind in kinds]
        return sum(kind.count for kind in found) > 0


class Limits(Work):
    policy = {"limit_rate": 100, "limit_burst": 20, "limit_conns": 30}

    def proof(self, raw, l4lb):
        return l4lb.limited(raw.service) > 0


class Calls(Work):
    """Persistence engine sip: a template for each call."""

    cls, protocols = Sip, (UDP,)

    def service(self, proto, family):
        return Sip(self.lab, family)

    def begin(self, raw):
        client = raw.client()
        client.number = raw.ask(f"{client.address}:{client.sport}", client=client)
        self.reply(client)
        return client

    @staticmethod
    def new(raw, source, sport):
        return packet.udp_packet(source, sport, raw.vip, raw.port, message(f"call-{sport}"))

    def proof(self, raw, l4lb):
        return len(raw.calls()) > 20


FEATURES = {"ranges": Ranges, "snat": FullNat, "lazy": Lazy, "latency": Latency, "limits": Limits,
            "sip": Calls}


def surroundings(lab, word):
    """Adds to LAB's director the addresses and routes that FEATURES need, or deletes them: WORD is
    that of ip."""
    lab.director.ns.ip(*full_nat.lines(lab, word, full_nat.pool(), full_nat.pool(family=6)),
                       *(f"route {word} local {prefix} dev lo" for prefix in ranges.PREFIX.values()))
