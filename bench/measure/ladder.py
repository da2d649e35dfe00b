# SPDX-License-Identifier: GPL-2.0
"""Connections a second, as a traffic generator with client and server ports tests a
Layer-4 switch. Inside a guest with two processors: the first sends, and all else, which
is the director and the little that both ends' answers take (gen/answer.c), is the
second's. Between them is a queue of net.core.netdev_max_backlog packets; what does not
fit is lost, and not tried again.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

from bed import FAMILIES, PORT, SYN, Bed, MeasureError
from systems import IP_VS, L4LB

from lab.netns import run

CLIENTS, SERVERS = 7, 7
SETTLE = 0.5            # seconds in which what still waits is dealt with
PATIENCE = 5            # seconds after which nobody answers any more
SHOWN = 100_000         # connections after which there is a line of progress
V4 = FAMILIES[4]
REFERENCE = "no director"
# (director, its fast path) by the name of a way.
WAYS = {REFERENCE: (None, None), "ip_vs": (IP_VS, None),
        **{name: (L4LB, n) for name, n in L4LB.fast_paths if n}}
# What the receive path of a device hands to the second processor.
STEER = "mount -t sysfs sys /sys && for f in /sys/class/net/*/queues/rx-0/rps_cpus; " \
        "do echo 2 >$f; done"


@contextlib.contextmanager
def setup(name):
    """A bed in which connections go that way; where to."""
    director, fast_path = WAYS[name]
    with director.loaded() if director else contextlib.nullcontext():
        bed = Bed(servers=SERVERS)
        with bed.stand():
            run(["unshare", "-m", "sh", "-ec", STEER])
            if director:
                vip = f"-t {V4.vip(1)}:{PORT}"
                director.configure(bed, [f"-A {vip} -s rr", *(
                    f"-a {vip} -r {V4.server(n)}:{PORT} -m -w 1"
                    for n in range(1, SERVERS + 1))])
                director.set_fast_path(bed, fast_path)
            bed.gen.role("srv0", "server")
            yield bed, V4.vip(1) if director else V4.server(1)


def trial(name, requests, rate, closes):
    """REQUESTS connections at RATE a second, each closed at once if CLOSES; what came of
    them, seen from both ends. It begins with an empty table."""
    with setup(name) as (bed, dst):
        bed.gen.role("gen0", "client-closes" if closes else "client")
        result = bed.gen.send(dev="gen0", family=4, proto="tcp", tcp_flags=SYN, size=64,
                              flows=requests, src=V4.clients, dst=dst, dport=PORT,
                              clients=CLIENTS, rate=rate)
        time.sleep(SETTLE)
        end = bed.gen.result()
        client, opened = end.talks["gen0"], end.talks["srv0"].opened
        if result.unbuilt or sum(opened[1:SERVERS + 1]) != sum(opened):
            raise MeasureError(f"{name}: a request was not built, or went astray: {result}")
        seconds = result.ns / 1e9
        done = client.closed if closes else client.answered
        return {"rate": rate, "offered": requests / seconds, "achieved": done / seconds,
                "requests": requests, "done": done, "answered": client.answered,
                "refused": client.refused, "opened": opened[1:SERVERS + 1]}


def takes(row):
    """Was all of it asked for, and all but a fiftieth answered?"""
    return row["achieved"] >= 0.98 * row["offered"] and row["offered"] >= 0.9 * row["rate"]


def capacity(name, spec):
    """The most a second, found by asking for more until a fiftieth is lost, and is lost
    again when the same is asked for once more: a pause of the machine is not the director's."""
    best, rate = 0, spec["lowest"]
    while rate <= spec["highest"]:
        for _ in range(2):
            row = trial(name, int(rate * spec["probe"]), rate, False)
            best = max(best, row["achieved"])
            print(f"  {name}: {row['achieved']:,.0f} of {row['offered']:,.0f}/s", flush=True)
            if takes(row):
                break
        else:
            break
        rate = int(rate * spec["growth"])
    return best


def available():
    """Bytes of memory that could still be given away."""
    words = dict(line.split()[:2] for line in
                 Path("/proc/meminfo").read_text("ascii").splitlines())
    return int(words["MemAvailable:"]) * 1024


def settled(bed, due):
    """How many are answered when DUE are, or when no more come for a while."""
    answered, moved = 0, time.monotonic()
    while answered < due and time.monotonic() < moved + PATIENCE:
        time.sleep(SETTLE / 50)
        before, answered = answered, bed.gen.result().talks["gen0"].answered
        if answered != before:
            moved = time.monotonic()
    return answered


def held(name, spec):
    """How many are open at once when there is no more memory to speak of."""
    with setup(name) as (bed, dst):
        with contextlib.suppress(OSError):
            bed.ns.sysctl("net/ipv4/vs/conn_max", 0)
        bed.gen.role("gen0", "client")
        bed.gen.zero()
        before, asked, answered, slowest = available(), 0, 0, 0
        while available() > spec["reserve"] and asked < spec["most"]:
            bed.gen.start(dev="gen0", family=4, proto="tcp", tcp_flags=SYN, size=64,
                          flows=spec["step"], first=asked, src=V4.clients, dst=dst, dport=PORT)
            asked += spec["step"]
            began = time.monotonic()
            answered = settled(bed, asked)
            slowest = max(slowest, time.monotonic() - began)
            if asked % SHOWN == 0:
                print(f"  {name}: {answered:,} open, {available() >> 20} MB left", flush=True)
            if answered < asked:
                break
        return {"asked": asked, "open": answered, "slowest": slowest,
                "bytes": (before - available()) / answered}


def hold(spec):
    """Each way's connections at once."""
    # What is asked for at once waits its turn, instead of being lost.
    Path("/proc/sys/net/core/netdev_max_backlog").write_text(str(4 * spec["held"]["step"]),
                                                             encoding="ascii")
    return {name: held(name, spec["held"]) for name in spec["ways"]}


def scales(spec, most):
    """What the paper's rates are multiplied with, by what each way takes at MOST: 1 if they
    can be offered; and if ip_vs is not at its limit within them, or they cannot, what puts
    its limit where the paper's director had its."""
    absolute = spec["absolute"] and most[REFERENCE] > spec["rates"][-1]
    beyond = most["ip_vs"] > spec["rates"][-1] or not absolute
    return [1.0] * absolute + [most["ip_vs"] / spec["limit"]] * beyond


def climb(spec):
    """What each way takes, and the ladder."""
    most = {name: capacity(name, spec) for name in (REFERENCE, *spec["ways"])}
    result = {"capacity": most, "scales": scales(spec, most), "rows": []}
    steps = [(scale, rate) for scale in result["scales"] for rate in spec["rates"]]
    for number in range(spec["rounds"]):
        for closes in (False, True):
            for scale, rate in steps:
                for name in spec["ways"][::1 if number % 2 == 0 else -1]:
                    row = trial(name, spec["requests"], int(rate * scale), closes)
                    result["rows"].append(row | {"way": name, "closes": closes, "scale": scale,
                                                 "step": rate, "round": number})
                    print(f"  {number + 1}: {name}: {'sessions' if closes else 'set up'} "
                          f"{row['achieved']:,.0f} of {row['offered']:,.0f}/s", flush=True)
    return result


def measure(spec):
    os.sched_setaffinity(0, {0})
    result = climb(spec) if "climb" in spec["parts"] else {}
    return result | ({"held": hold(spec)} if "hold" in spec["parts"] else {})


if __name__ == "__main__":
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(measure(wanted)), encoding="utf-8")
