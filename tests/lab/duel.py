# SPDX-License-Identifier: GPL-2.0
"""Sends the same random packets through in-tree ip_vs and through l4lb: the
packets that come out, on every side, must be the same bytes.

lab/traffic.py makes the steps; lab/compare.py compares packets and lists the
intended differences. A case that differs is played once more, each packet on
its own, before it counts, and then shrunk to the fewest steps that show the
difference.
"""

import dataclasses
import select
import struct
import time

from . import packet
from .compare import Difference, compare, whole
from .netns import SLOW, run
from .packet import GRE, ICMP, ICMP6, UDP
from .topology import PHANTOM_CLIENTS, SERVERS
from .traffic import ONCE, STEPS, Case, Ends, repair_l4, sound

TICKS_LAST = 0.03       # seconds: two ticks or more
FRAGMENTS_LAST = 2      # seconds, in the director
FRAGMENT_TIMEOUTS = ("ipv4/ipfrag_time", "ipv6/ip6frag_time",
                     "netfilter/nf_conntrack_frag6_timeout")
SHRINKING_LASTS = 40    # seconds, for each difference
CONFIRMED_AT_MOST = 3   # differences that are shrunk and shown


@dataclasses.dataclass
class Play:
    """A case, or some of its steps, at addresses of its own."""
    case: Case
    trial: int
    steps: tuple
    careful: bool = False


class Station:
    """One topology, ready to be played on."""

    def __init__(self, lab):
        lab.flush()
        self.lab, ns = lab, lab.director.ns
        self.timeouts = {name: int(ns.read(f"/proc/sys/net/{name}")) for name in FRAGMENT_TIMEOUTS}
        for name in self.timeouts:
            ns.sysctl(f"net/{name}", FRAGMENTS_LAST)
        ns.forget_paths()
        self.taps = {"client": lab.tap("client")}
        self.taps.update({f"server {n}": lab.tap(SERVERS[n - 1]) for n in (1, 2, 4)})
        self.poll = select.poll()
        for tap in self.taps.values():
            self.poll.register(tap.sock, select.POLLIN)
        self._router("replace")
        for family in (4, 6):
            # Another service, so that the hooks stay registered between cases.
            lab.ipvs.service(lab.vip(family), 9, proto=UDP)

    def close(self):
        """Leave the topology as it was found."""
        self.lab.flush()
        self._router("del")
        for name, value in self.timeouts.items():
            self.lab.director.ns.sysctl(f"net/{name}", value)

    def _router(self, change):
        """In the tunnel topology, the route of servers' replies to phantom clients."""
        if self.lab.shape == "tun":
            self.lab.nodes["router"].ns.ip(*(
                f"route {change} {PHANTOM_CLIENTS[family]} via {self.lab.cip(family)}"
                for family in (4, 6)))

    def send(self, side, data, number):
        tap = self.taps["client" if side == "client" else f"server {number}"]
        six = data[:1] and data[0] >> 4 == 6
        tap.send(data, ethertype=packet.ETH_IP6 if six else packet.ETH_IP)

    def collect(self):
        """[(side, frame)] that have arrived."""
        got = []
        while self.poll.poll(0):
            for name, tap in self.taps.items():
                got += [(name, completed(frame) if offloaded else frame)
                        for frame, offloaded in tap.frames() if not noise(frame)]
        return got

    def fence(self, trial):
        """Frames that arrive until the director has processed everything sent so far."""
        source, got = f"10.254.{trial >> 8 & 255}.{trial & 255}", []
        self.send("client", packet.icmp_packet(source, self.lab.raw_vip(4, 1), 8, 0, 1), 1)
        end = time.monotonic() + 10 * SLOW
        while time.monotonic() < end:
            fresh = self.collect()
            echo = [f for f in fresh if f[1][30:34] == packet.packed(source)]
            got += [f for f in fresh if f not in echo]
            if echo:
                return got
        raise AssertionError("the director does not answer")


def completed(frame):
    """FRAME with the checksum that the device would fill in."""
    data = bytearray(frame)
    p = whole(frame)
    if p and p.proto == GRE and p.l4[:1] == b"\x80" and len(p.l4) >= 8:
        at = 14 + p.hlen + 4
        data[at:at + 2] = b"\0\0"
        data[at:at + 2] = struct.pack("!H", packet.checksum(bytes(data[at - 4:14 + len(p.raw)])))
        return bytes(data)
    return frame[:14] + bytes(repair_l4(data[14:]))


def noise(frame):
    """Is it about neighbours, multicast groups, timestamps or incomplete fragments?"""
    data = frame[14:] + bytes(60)
    if data[0] >> 4 == 4:
        at = (data[0] & 15) * 4
        return data[9] == 2 or (data[9] == ICMP and data[at:at + 2] in (b"\x0b\x01", b"\x0e\0"))
    if data[6] == packet.HOPOPTS:
        return data[40] == ICMP6 and data[48] in (130, 131, 132, 143)
    return data[6] == ICMP6 and (data[40] in (*range(130, 137), 143) or
                                 data[40:42] == b"\x03\x01")


class Player:
    """Plays cases on one module after the other."""

    def __init__(self, topologies, backend_class):
        self.topologies, self.backend_class = topologies, backend_class
        self.trial = 0
        self.sent = 0

    def fresh(self, case, steps=None, careful=False):
        self.trial += 1
        return Play(case, self.trial, tuple(range(STEPS) if steps is None else steps), careful)

    def rendered(self, play):
        ends = Ends(self.topologies[play.case.shape], play.case, play.trial)
        return ends, play.case.opening(ends) + [play.case.step(ends, i) for i in play.steps]

    def play(self, module, plays):
        """[([the frames of each step], connections)] of each of PLAYS."""
        backend = self.backend_class(module)
        backend.load()
        stations, out = {}, []
        try:
            for play in plays:
                shape = play.case.shape
                if shape not in stations:
                    stations[shape] = self.station(self.topologies[shape])
                out.append(self._one(stations[shape], play))
        finally:
            # Incomplete datagrams would get fragments of the next round.
            time.sleep(FRAGMENTS_LAST + 0.5)
            for station in stations.values():
                station.close()
            backend.unload()
        return out

    def station(self, lab):
        return Station(lab)

    def _one(self, station, play):
        case, lab = play.case, station.lab
        ends, steps = self.rendered(play)
        service = lab.ipvs.service(ends.vip, ends.port, proto=case.proto, **case.options)
        tunnel = {"tunnel": case.tunnel} if case.tunnel else {}
        for server in ends.servers:
            service.server(server, ends.dport, method=lab.method, **tunnel)
        station.collect()
        out = []
        for _, parts in steps:
            for side, data in parts:
                station.send(side, data, case.numbers[0])
                self.sent += 1
            out.append(station.fence(play.trial) if play.careful else station.collect())
        if not play.careful:
            out[-1] += station.fence(play.trial)
        # When a port is reused, ip_vs leaves the old connection to its timer, a tick later.
        time.sleep(TICKS_LAST)
        rows = {(r["proto"], r["cport"], r["vip"], r["vport"], r["server"], r["dport"], r["state"])
                for r in lab.conns(client=ends.client) if r["cport"] < ONCE}
        rows |= self.numbers(service)
        service.delete()
        return out, rows

    def numbers(self, service):
        """Further figures that must be the same, for subclasses."""
        return set()


# ---- finding, shrinking, showing ----


class Duel:
    """Finds the differences between two MODULES, as JUDGE defines them."""

    def __init__(self, player, modules=("ip_vs", "l4lb"), judge=compare):
        self.player, self.modules, self.judge = player, modules, judge
        self.seen = {}          # listed differences, how often
        self.once = []          # texts about differences that did not show again

    def differing(self, plays):
        """[(play, Difference)] of PLAYS."""
        theirs, ours = (self.player.play(module, plays) for module in self.modules)
        found = []
        for play, a, b in zip(plays, theirs, ours):
            try:
                self.judge(play.case, self.player.rendered(play), a, b, self.seen)
            except Difference as difference:
                found.append((play, difference))
        return found

    def run(self, cases):
        """Texts about the differences in CASES."""
        found = self.differing([self.player.fresh(case) for case in cases])
        again = self.differing([self.player.fresh(play.case, play.steps, careful=True)
                                for play, _ in found]) if found else []
        still = {(play.case.seed, play.case.number) for play, _ in again}
        self.once += [self.show(play, d) for play, d in found
                      if (play.case.seed, play.case.number) not in still]
        return [self.shrunk(*pair) for pair in again[:CONFIRMED_AT_MOST]] + \
            [f"and --replay {play.case.seed}:{play.case.number} ({play.case}), step {d.index}"
             for play, d in again[CONFIRMED_AT_MOST:]]

    def shrunk(self, play, difference):
        """A play with as few steps as possible: the last one; it and another one;
        otherwise those left after removing whole groups, then single ones."""
        best = play, difference
        at = difference.index - len(self.player.rendered(play)[1]) + len(play.steps)
        at = max(0, at)         # a negative one is in the opening
        steps, last = list(play.steps[:at + 1]), list(play.steps[at:at + 1])
        tries, size = [[], last] + [[i, *last] for i in steps[:at]], len(steps)
        until = time.monotonic() + SHRINKING_LASTS
        while len(steps) > 0 and time.monotonic() < until:
            still = self.differing([self.player.fresh(play.case, t, careful=True) for t in tries])
            if still:
                best = min(still, key=lambda found: len(found[0].steps))
                steps = list(best[0].steps)
            elif size == 1:
                break
            if len(steps) <= 2:
                break
            size = max(1, min(size, len(steps)) // 3)
            tries = [steps[:i] + steps[i + size:] for i in range(0, len(steps), size)]
        return self.show(*best)

    def show(self, play, difference):
        return show(self.player, play, difference, self.modules)


def show(player, play, difference, modules=("ip_vs", "l4lb")):
    """The play's token for --replay, and every packet, decoded."""
    ends, steps = player.rendered(play)
    case = play.case
    token = f"{case.seed}:{case.number}:{','.join(map(str, play.steps))}"
    lines = [f"--replay {token}   ({case})"]
    for i, (name, parts) in enumerate(steps):
        mark = "=>" if i == difference.index else "  "
        lines.append(f"{mark} {name}")
        lines += [f"       {decoded(data)}" for _, data in parts]
    for module, outcome in zip(modules, (difference.theirs, difference.ours)):
        lines.append(f"   {module}: " + ("nothing" if not outcome else ""))
        for item in outcome:
            lines.append(f"       {item}" if len(item) != 2 else
                         f"       {item[0]}: {decoded(item[1][14:])}")
    return "\n".join(lines)


def decoded(data):
    try:
        text = repr(packet.Packet(bytes(data)))
    except (ValueError, struct.error, IndexError):
        text = "<no IP packet>"
    wrong = "" if sound(data) else " (wrong sum)"
    return f"{text}{wrong}\n         {bytes(data[:120]).hex(' ', 4)}"


def cases(seed, count):
    """Enough cases of SEED for COUNT packets or more."""
    return [Case(seed, i) for i in range(-(-count // STEPS))]


def replayed(player, token, kind=Case):
    """The play that a text SEED:CASE[:STEP,...] names."""
    seed, number, *steps = token.split(":")
    only = [int(s) for s in steps[0].split(",") if s] if steps else None
    return player.fresh(kind(int(seed), int(number)), only, careful=True)


def limits_off():
    """Lifts the ICMP rate limits, which on 6.1 apply to all namespaces together."""
    for name in ("icmp_msgs_per_sec", "icmp_msgs_burst"):
        run(["sysctl", "-qw", f"net.ipv4.{name}=1000000"], check=False)
