# SPDX-License-Identifier: GPL-2.0
"""Connections a second, as a traffic generator with client and server ports tests a
Layer-4 switch. Inside a guest with one processor, whose clock counts instructions. The
director shares it with the timer interrupts that bring requests, like a network card's,
and with the short answers of both ends (gen/answer.c). Packets wait in a queue of
net.core.netdev_max_backlog packets; those that do not fit are lost, and not sent again.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

from bed import FAMILIES, PORT, SYN, Bed, MeasureError
from still import Awake
from systems import IP_VS, L4LB

CLIENTS, SERVERS = 7, 7
REST = 0.01             # seconds, see still.py
SETTLE = 0.5            # seconds for packets that still wait in the queue
PATIENCE = 5            # seconds without an answer after which none is expected
SHOWN = 100_000         # connections between two lines of progress
V4 = FAMILIES[4]
REFERENCE = "no director"
# (director, its fast path) by the name of a way.
WAYS = {REFERENCE: (None, None), "ip_vs": (IP_VS, None),
        **{name: (L4LB, n) for name, n in L4LB.fast_paths if n}}


@contextlib.contextmanager
def setup(name):
    """Yields a bed for that way, whose director is loaded, and the address to connect to."""
    director, fast_path = WAYS[name]
    bed = Bed(servers=SERVERS)
    with bed.stand():
        if director:
            vip = f"-t {V4.vip(1)}:{PORT}"
            director.configure(bed, [f"-A {vip} -s rr", *(
                f"-a {vip} -r {V4.server(n)}:{PORT} -m -w 1" for n in range(1, SERVERS + 1))])
            director.set_fast_path(bed, fast_path)
        bed.gen.role("srv0", "server")
        yield bed, V4.vip(1) if director else V4.server(1)


def loaded(name):
    """The director of that way, if it has one."""
    director, _ = WAYS[name]
    return director.loaded() if director else contextlib.nullcontext()


class Ladder:
    """The trials of one way."""

    def __init__(self, awake, spec, name):
        self.awake, self.spec, self.name = awake, spec, name

    def trial(self, requests, rate, closes):
        """Opens REQUESTS connections at RATE a second, and closes each at once if CLOSES; the
        row has the results of both ends. The table is empty at first."""
        with setup(self.name) as (bed, dst):
            bed.gen.role("gen0", "client-closes" if closes else "client")
            with self.awake.aside():
                result = bed.gen.send(dev="gen0", family=4, proto="tcp", tcp_flags=SYN, size=64,
                                      flows=requests, first=self.spec["first"], src=V4.clients,
                                      dst=dst, dport=PORT, clients=CLIENTS, rate=rate)
                time.sleep(SETTLE)
                end = bed.gen.result()
        client, opened = end.talks["gen0"], end.talks["srv0"].opened
        if result.unbuilt or sum(opened[1:SERVERS + 1]) != sum(opened):
            raise MeasureError(f"{self.name}: a request was not built, or went astray: {result}")
        seconds = result.ns / 1e9
        done = client.closed if closes else client.answered
        row = {"rate": rate, "offered": requests / seconds, "achieved": done / seconds,
               "opened": opened[1:SERVERS + 1]}
        print(f"  {self.name}: {'sessions' if closes else 'set up'} {row['achieved']:,.0f} of "
              f"{row['offered']:,.0f}/s", flush=True)
        return row

    def rows(self):
        for closes in (False, True)[:1 if self.name == REFERENCE else 2]:
            for rate in self.spec["sessions" if closes else "rates"]:
                row = self.trial(self.spec["requests"], rate, closes)
                yield row | {"way": self.name, "closes": closes}


def available():
    """Bytes of memory that can still be allocated."""
    words = dict(line.split()[:2] for line in
                 Path("/proc/meminfo").read_text("ascii").splitlines())
    return int(words["MemAvailable:"]) * 1024


def settled(bed, due):
    """Waits until DUE requests are answered, or no more answers come; how many are."""
    answered, moved = 0, time.monotonic()
    while answered < due and time.monotonic() < moved + PATIENCE:
        time.sleep(SETTLE / 500)
        before, answered = answered, bed.gen.result().talks["gen0"].answered
        if answered != before:
            moved = time.monotonic()
    return answered


def held(name, spec, bed, dst):
    """Opens connections until nearly all memory is used or enough are open; the results."""
    with contextlib.suppress(OSError):
        bed.ns.sysctl("net/ipv4/vs/conn_max", 0)
    bed.gen.role("gen0", "client")
    bed.gen.zero()
    before, asked, answered, slowest = available(), 0, 0, 0
    while available() > spec["reserve"] and asked < spec["most"]:
        began = time.monotonic()
        bed.gen.start(dev="gen0", family=4, proto="tcp", tcp_flags=SYN, size=64,
                      flows=spec["step"], first=asked, src=V4.clients, dst=dst, dport=PORT)
        asked += spec["step"]
        answered = settled(bed, asked)
        slowest = max(slowest, time.monotonic() - began)
        if asked % SHOWN == 0:
            print(f"  {name}: {answered:,} open, {available() >> 20} MB left", flush=True)
        if answered < asked:
            break
    return {"asked": asked, "open": answered, "slowest": slowest,
            "bytes": (before - available()) / answered}


def hold(awake, spec):
    """The connections that each way holds at once."""
    # Room for all requests of a step, which come at once.
    Path("/proc/sys/net/core/netdev_max_backlog").write_text(str(4 * spec["held"]["step"]),
                                                             encoding="ascii")
    result = {}
    for name in spec["ways"]:
        with loaded(name), setup(name) as (bed, dst), awake.aside():
            result[name] = held(name, spec["held"], bed, dst)
    return result


def climb(awake, spec):
    """The ladder of each way; connections without a director are not closed."""
    rows = []
    for name in (REFERENCE, *spec["ways"]):
        with loaded(name):
            rows += Ladder(awake, spec, name).rows()
    return {"rows": rows}


def measure(spec):
    with Awake(REST) as awake:
        return climb(awake, spec) | {"held": hold(awake, spec)}


if __name__ == "__main__":
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(measure(wanted)), encoding="utf-8")
