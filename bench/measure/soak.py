# SPDX-License-Identifier: GPL-2.0
"""Traffic at full speed while the configuration changes all the time. Inside a guest:

    python3 soak.py SPEC RESULT

SPEC is {minutes, seed, xdp}. No change affects the flows that are sent, so none of
their packets may be missing. At the end, when every connection has expired, the
module must have freed its memory.
"""

import json
import os
import random
import sys
import threading
import time
from pathlib import Path

from bed import ALL, SYN, Bed, MeasureError, Traffic, least
from scale import IPVSCTL, connections, memory
from systems import FAST_PATH, FLAG, L4LB, service_lines

KINDS = [(family, proto, method) for family in (4, 6) for proto in ("udp", "tcp")
         for method in ALL]
FLOWS, PACKETS, TIMEOUT = 5000, 40_000, 10
# Bytes. The first round allocates memory that stays; this much more after it is a leak.
LEAK = 6 << 20
# The first VIP of services that come and go.
OTHERS = 500


class Churn(threading.Thread):
    """Changes the configuration, one random step after the other."""

    def __init__(self, bed, seed, xdp):
        super().__init__()
        self.bed, self.dice = bed, random.Random(seed)
        self.over, self.count, self.fault = threading.Event(), 0, None
        self.by_xdp, self.switched = set(), 0
        self.steps = [self.weight, self.scheduler, self.server, self.services, self.batch,
                      self.fast_path, self.lists, self.neighbour, self.mtu, self.device,
                      self.firewall, self.policy, self.zero] + [self.xdp] * xdp

    def run(self):
        os.sched_setaffinity(0, {os.cpu_count() - 1})
        while not self.over.is_set() and not self.fault:
            step = self.dice.choice(self.steps)
            try:
                step()
                self.count += 1
            except (RuntimeError, OSError) as e:
                self.fault = f"{step.__name__}: {' '.join(str(e).split())}"

    def ipvsadm(self, *lines):
        self.bed.ns.run(["ipvsadm", "-R"], text_input="\n".join(lines) + "\n", timeout=300)

    def service(self):
        """A service that gets packets: its method, [flag, name], and its servers."""
        family, proto, method = self.dice.choice(KINDS)
        words = [line.split() for line in service_lines(family, proto, 1 + ALL.index(method),
                                                        method, servers=4)]
        return method, words[0][1:3], [w[4] for w in words[1:]]

    def weight(self):
        method, name, servers = self.service()
        self.ipvsadm(f"-e {' '.join(name)} -r {servers[0]} {FLAG[method]} "
                     f"-w {self.dice.randint(1, 9)}")

    def scheduler(self):
        _, name, _ = self.service()
        self.ipvsadm(f"-E {' '.join(name)} -s {self.dice.choice('rr wrr lc wlc sh mh'.split())}")

    def server(self):
        """Adds a server or changes its weight; not to 0, or sh drops the server's clients."""
        method, name, servers = self.service()
        at = f"{' '.join(name)} -r {self.dice.choice(servers[2:])}"
        done = self.bed.ns.run(["ipvsadm", "-a", *at.split(), FLAG[method]], check=False)
        if done.returncode:
            self.ipvsadm(f"-e {at} {FLAG[method]} -w {self.dice.randint(1, 3)}")

    def services(self):
        lines = list(service_lines(4, "tcp", OTHERS + self.dice.randrange(50), "nat", servers=3))
        if self.bed.ns.run(["ipvsadm", *lines[0].split()], check=False).returncode:
            self.ipvsadm(f"-D {' '.join(lines[0].split()[1:3])}")
        else:
            self.ipvsadm(*lines[1:])

    def batch(self):
        lines = [line for n in range(100)
                 for line in service_lines(4, "udp", OTHERS + 100 + n, "dr", servers=4)]
        self.bed.ns.run([IPVSCTL, "restore"], text_input="\n".join(lines) + "\n", timeout=300)
        self.ipvsadm(*(f"-D {' '.join(line.split()[1:3])}" for line in lines
                       if line.startswith("-A")))

    def fast_path(self):
        self.bed.ns.sysctl(FAST_PATH, self.dice.randrange(3))

    def lists(self):
        self.bed.ns.read("/proc/net/ip_vs_conn")
        self.bed.ns.run([IPVSCTL, "save"], timeout=300)

    def neighbour(self):
        self.bed.ns.ip("neigh replace 10.1.0.200 lladdr 02:00:00:02:00:c8 dev srv0",
                       "route replace 192.0.2.0/24 via 10.1.0.200 dev srv0",
                       "route del 192.0.2.0/24")

    def mtu(self):
        self.bed.ns.ip(f"link set srv0 mtu {self.dice.choice((8000, 9000))}")

    def device(self):
        self.bed.ns.ip("link add soak0 type veth peer name soak1", "link set soak0 name soak2",
                       "link set soak2 up", "link set soak1 up", "link del soak1")

    def firewall(self):
        self.bed.ns.run(["nft", "-f", "-"], text_input=(
            "table inet soak {\n\tchain out {\n\t\ttype filter hook postrouting priority 0;\n"
            "\t}\n}\ndelete table inet soak\n"))

    def policy(self):
        _, name, _ = self.service()
        proto = {"-u": "udp", "-t": "tcp"}[name[0]]
        self.bed.ns.run([IPVSCTL, "service", "change", proto, name[1], "fast-path",
                         self.dice.choice("default on off new".split())])

    def zero(self):
        self.ipvsadm("-Z")

    def xdp(self):
        """The clients' side, or the servers', is forwarded by XDP, or not any more."""
        device = self.dice.choice(("gen0", "srv0"))
        word = "no-xdp" if device in self.by_xdp else "xdp"
        self.bed.ns.run([IPVSCTL, "-q", "fast-path", word, "dev", device])
        self.by_xdp ^= {device}
        self.switched += 1

    def finished(self):
        """Stops, and takes off what it has attached."""
        self.over.set()
        self.join()
        if self.fault:
            raise MeasureError(self.fault)
        if self.by_xdp:
            self.bed.ns.run([IPVSCTL, "-q", "fast-path", "no-xdp", "all"])


def configure(bed):
    L4LB.configure(bed, [line for family, proto, method in KINDS
                         for line in service_lines(family, proto, 1 + ALL.index(method), method,
                                                   servers=4)])
    bed.ns.run(f"ipvsadm --set {TIMEOUT} {TIMEOUT} {TIMEOUT}")


def one_round(bed):
    """Sends packets of all kinds, of new flows and then of these in random order; how many."""
    packets = 0
    for family, proto, method in KINDS:
        traffic = Traffic(bed, family, proto, method, flows=FLOWS, scheduled=True)
        size = least(family, proto, 64)
        packets += traffic.each(size, flags=SYN).packets
        packets += traffic.random(size, PACKETS).packets
    return packets


def ended(bed):
    """Waits until all connections have expired; bytes that the allocators then use."""
    limit = time.monotonic() + 120
    while connections(bed.ns):
        if time.monotonic() > limit:
            raise MeasureError(f"{connections(bed.ns)} connections are left after 2 min")
        time.sleep(0.5)
    time.sleep(2)
    return memory()[1]


def forwarded_by_xdp(bed):
    """Packets, since the module was loaded."""
    return int(dict(line.split() for line in bed.ns.read("/proc/net/l4lb").splitlines())["xdp"])


def soak(spec):
    os.sched_setaffinity(0, {0})
    samples, packets = [], 0
    with L4LB.loaded():
        bed = Bed(servers=4)
        with bed.stand():
            configure(bed)
            one_round(bed)
            before = ended(bed)
            churn = Churn(bed, spec["seed"], spec["xdp"])
            churn.start()
            started = said = time.monotonic()
            try:
                while time.monotonic() - started < 60 * spec["minutes"] and not churn.fault:
                    packets += one_round(bed)
                    if time.monotonic() - said >= 60 or not samples:
                        said = time.monotonic()
                        samples.append([(said - started) / 60, memory()[1] - before])
                        print(f"{samples[-1][0]:5.1f} min: {packets} packets, {churn.count} changes,"
                              f" {samples[-1][1] / 1e6:+.1f} MB", flush=True)
                by_xdp = forwarded_by_xdp(bed)
            finally:
                churn.finished()
            if spec["xdp"] and not by_xdp:
                raise MeasureError("nothing was forwarded by XDP: let it run for longer")
            bed.ns.run("ipvsadm -C")
            configure(bed)
            left = ended(bed) - before
            print(f"afterwards: {left / 1e6:+.1f} MB", flush=True)
            if left > LEAK:
                raise MeasureError(f"{left} bytes more are in use than before")
    return {"packets": packets, "changes": churn.count, "switched": churn.switched,
            "by_xdp": by_xdp, "left": left, "memory": samples}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(soak(json.loads(
        Path(sys.argv[1]).read_text("utf-8")))), encoding="utf-8")
