# SPDX-License-Identifier: GPL-2.0
"""The drill: a pair of directors with thousands of open downloads, of which the master dies
and comes back. Inside a guest with a virtual clock, which no computing moves.

The network is that of tests/lab/cluster.py. In-tree ip_vs and l4lb in turn, each with both
daemons on both directors.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bed import TOP, MeasureError
from lab.cluster import PORT, VIP, Cluster, rules
from lab.netns import DeadlineError, run
from streams import BIN, EVERY, Streams
from systems import IP_VS, L4LB

# (module, sysctls of net.ipv4.vs)
SYSTEMS = {
    "ip_vs": (IP_VS, {}),
    "ip_vs tuned": (IP_VS, {"sync_threshold": "0 0", "sync_refresh_period": 10}),
    "l4lb": (L4LB, {"sync_threshold": "0 0", "sync_refresh_period": 10})}
YOUNG = 0.3         # seconds; a connection that is younger when its director dies may be lost
LONGEST = 10        # seconds that VRRP may take
BEFORE, WATCHED = 5, 17     # seconds of a curve: before the event, and in all
TIMEOUT = 7200      # of TCP connections, in the part with idle ones


class Drill:
    """Downloads through one system's pair. EVENTS are the rows of the result."""

    def __init__(self, spec, system, advert, directory):
        self.spec, self.system, self.advert = spec, system, advert
        self.settings = SYSTEMS[system][1]
        self.cluster = Cluster(directory, self.prepare, advert)
        self.streams, self.rows, self.curves = None, [], []
        self.timeout = None

    def prepare(self, director):
        director.ipvsadm("-R", text=rules())
        if self.timeout:
            director.ipvsadm("--set", str(self.timeout), "0", "0")
        director.synchronise(self.settings)
        if self.has_peers():
            director.ns.run([TOP / "build/ipvsctl", "sync", "peer", "add", director.peer])

    def has_peers(self):
        """Whether a director can ask the other one for all of its connections."""
        return self.system == "l4lb" and \
            "sync wait" in run([TOP / "build/ipvsctl", "help", "sync"], check=False).stdout

    def event(self, name, happens, number, settle):
        """HAPPENS() makes the director NUMBER the master; waits SETTLE seconds after that."""
        before, clients = self.cluster.resets(), {m: self.streams.alive(m) for m in PORT}
        self.streams.mark()
        at = happens()
        master = self.cluster.until_master(number, LONGEST, at)
        self.streams.wait(settle)
        return {"system": self.system, "advert": self.advert, "event": name, "at": at,
                "outage": master - at, "resets": self.cluster.resets() - before}, clients

    def wait_and_learn(self, opening):
        """director1 has just come back: it learns the connections, and the clients open those
        that OPENING says. Returns how long it took to learn, or waited because nothing says."""
        first, wait, began = self.cluster.directors[1], self.spec["wait"], time.monotonic()
        if self.has_peers():
            first.ns.run([TOP / "build/ipvsctl", "sync", "wait", str(wait)])
            learned = time.monotonic() - began
        else:
            self.streams.wait(wait - self.spec["refill"])
            learned = wait
        self.streams.open(opening, self.spec["refill"])
        return learned

    def judge(self, head, clients):
        """A row for each method: what was lost."""
        now = time.monotonic()
        for method, streams in clients.items():
            lost = [s for s in streams if s.died or s.last < now - EVERY - 0.5]
            young = [s for s in lost if head["at"] - s.born < YOUNG]
            stay = [s.worst for s in streams if not s.died]
            self.rows.append(head | {
                "method": method, "downloads": len(streams), "lost": len(lost) - len(young),
                "young": len(young), "slowest": max(stay, default=0.0)})
            self.streams.forget(lost)
            print(f"  {self.system}, {self.advert} s, {head['event']}, {method}: "
                  f"{len(streams):,} downloads, {len(lost):,} lost", flush=True)

    def curve(self, head, downloads):
        """Messages received around the event, as a share of those due."""
        first, due = int((head["at"] - BEFORE) / BIN), downloads / EVERY * BIN
        self.curves.append({"system": self.system, "advert": self.advert, "event": head["event"],
                            "share": [round(self.streams.bins[b] / due, 3)
                                      for b in range(first, first + round(WATCHED / BIN))]})

    def perform(self):
        spec, first = self.spec, self.cluster.directors[1]
        with self.cluster, Streams(self.cluster.client, self.cluster.servers, VIP,
                                   PORT) as self.streams:
            # The last ones are opened when the director dies.
            self.streams.open(dict.fromkeys(PORT, spec["downloads"]), spec["opening"])
            for name in ("fail-over", "fail-back"):
                over = name == "fail-over"
                if not over:
                    first.power_on(behind=True)
                    learned = self.wait_and_learn({
                        m: spec["downloads"] - len(self.streams.alive(m)) + spec["fresh"]
                        for m in PORT})
                head, clients = self.event(name, first.die if over else self.catch_up,
                                           2 if over else 1, spec["settle"])
                self.curve(head, sum(map(len, clients.values())))
                self.judge(head | ({} if over else {"learned": learned}), clients)

    def catch_up(self):
        at = time.monotonic()
        self.cluster.directors[1].catch_up()
        return at

    def perform_idle(self):
        """Sessions that are idle for long before each event; then every client asks."""
        spec, first, self.timeout = self.spec, self.cluster.directors[1], TIMEOUT
        with self.cluster, Streams(self.cluster.client, self.cluster.servers, VIP, PORT,
                                   echo=True) as self.streams:
            self.streams.open(dict.fromkeys(PORT, spec["sessions"]), 10)
            self.streams.ask()
            self.streams.wait(5)
            for name in ("fail-over", "fail-back"):
                over = name == "fail-over"
                self.streams.wait(spec["idle"])
                if not over:
                    first.power_on(behind=True)
                    learned = self.wait_and_learn({})
                head, clients = self.event(name, first.die if over else self.catch_up,
                                           2 if over else 1, 1)
                self.streams.ask()
                asked = time.monotonic()
                self.streams.wait(spec["settle"])
                self.judge_idle(head | ({} if over else {"learned": learned}), clients, asked)

    def judge_idle(self, head, clients, asked):
        for method, sessions in clients.items():
            lost = [s for s in sessions if s.died or s.last < asked]
            self.rows.append(head | {"method": method, "downloads": len(sessions),
                                     "lost": len(lost), "idle": True})
            self.streams.forget(lost)
            print(f"  {self.system}, idle, {head['event']}, {method}: {len(sessions):,} sessions, "
                  f"{len(lost):,} lost", flush=True)


def measure(spec):
    rows, curves = [], []
    for system, (director, _) in SYSTEMS.items():
        with director.loaded():
            for advert, perform in (*((a, Drill.perform) for a in spec["adverts"]),
                                    (spec["adverts"][0], Drill.perform_idle)):
                directory = tempfile.mkdtemp(prefix="l4lb-ha-")
                try:
                    drill = Drill(spec, system, advert, directory)
                    perform(drill)
                    rows += drill.rows
                    curves += drill.curves
                finally:
                    shutil.rmtree(directory, ignore_errors=True)
    return {"rows": rows, "curves": curves}


if __name__ == "__main__":
    os.chdir(TOP)
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        found = measure(wanted)
    except DeadlineError as e:
        raise MeasureError(str(e)) from e
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")
