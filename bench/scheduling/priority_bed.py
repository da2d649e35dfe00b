# SPDX-License-Identifier: GPL-2.0
"""The bed of "make bench-priority", and one run in it. Inside the guest, in virtual time:

    python3 priority_bed.py RUN-DIRECTORY

    clients .1.1- ---- bottleneck ---- director ---- servers .3.1-.3.4
    198.18.0.0/17                      NAT           198.18.128.0/17

Packets to the clients wait at the director's link in four bands; the link's rate and queueing
discipline are in the run's file "spec" (JSON). Writes visits, and the director's counters into
"director" (JSON).
"""

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from lab.netns import Namespace, run  # noqa: E402

CLIENT, GATE, VIP = "198.18.1.1", "198.18.2.1", "198.18.4.1"
INSIDE, SERVER = "198.18.255.1", "198.18.131."
PORT, SERVERS = 80, 4


class Bed:
    def __init__(self, spec):
        self.spec = spec
        names = ["client", "director", "servers"]
        run(["ip", "-batch", "-"], text_input="".join(f"netns add {n}\n" for n in names) +
            "link add eth0 netns client type veth peer name eth0 netns director\n"
            "link add eth1 netns director type veth peer name eth0 netns servers\n")
        self.client, self.director, self.servers = (Namespace(n, create=False) for n in names)
        for ns in (self.client, self.director, self.servers):
            ns.sysctl("net/ipv6/conf/all/disable_ipv6", 1)
            ns.sysctl("net/ipv4/conf/all/rp_filter", 0)
            ns.sysctl("net/ipv4/conf/default/rp_filter", 0)
            ns.ip("link set lo up", "link set eth0 up")
        self.director.sysctl("net/ipv4/ip_forward", 1)
        self.client.ip(f"addr add {CLIENT}/17 dev eth0", "route add local 198.18.1.0/24 dev lo",
                       f"route add {VIP} via {GATE}")
        self.director.ip(f"addr add {GATE}/17 dev eth0", f"addr add {VIP}/32 dev lo",
                         "link set eth1 up", f"addr add {INSIDE}/17 dev eth1")
        self.servers.ip(*(f"addr add {SERVER}{n}/17 dev eth0" for n in range(1, SERVERS + 1)),
                        f"route add default via {INSIDE}")
        for ns, device in ((self.client, "eth0"), (self.director, "eth0"),
                           (self.director, "eth1"), (self.servers, "eth0")):
            ns.run(f"ethtool -K {device} tso off gso off gro off")
            ns.ip(f"link set {device} txqueuelen {spec['queue']}")
        self._link()

    def _link(self):
        """The delay of each direction at its sender; then the bottleneck."""
        spec, ns = self.spec, self.director
        self.client.run(f"tc qdisc add dev eth0 root netem delay {spec['delay']} limit 100000")
        self.servers.run(f"tc qdisc add dev eth0 root netem delay {spec['delay']} limit 100000")
        ns.run(f"tc qdisc add dev eth0 root handle 1: tbf rate {spec['rate']}bit burst 3200 "
               f"limit {100 * spec['queue']}kb")
        ns.run(f"tc qdisc add dev eth0 parent 1:1 handle 2: {spec['bands']}")
        for band in range(1, 5):
            ns.run(f"tc qdisc add dev eth0 parent 2:{band} pfifo limit {spec['queue']}")

    def ipvsctl(self, *words):
        return self.director.run([self.spec["ipvsctl"], *words]).stdout

    def serve(self):
        self.ipvsctl("service", "add", "tcp", f"{VIP}:{PORT}", "scheduler", "rr",
                     *(["priority", "las", ",".join(map(str, self.spec["ends"]))]
                       if self.spec["las"] else []),
                     *(w for n in range(1, SERVERS + 1) for w in ("server", f"{SERVER}{n}", "nat")))
        farm = []
        for n in range(1, SERVERS + 1):
            # Only the link takes time.
            farm.append(self.servers.popen(
                [self.spec["programs"] + "/httpd", f"{SERVER}{n}", str(PORT), str(n),
                 self.spec["directory"] + "/sizes", "1000", "0", "0", "1000000000",
                 "1000000000", "10000", "4096"], stdout=subprocess.PIPE, text=True))
            if farm[-1].stdout.readline() != "ready\n":
                raise RuntimeError(f"httpd {n} did not start")
        return farm


def perform(spec):
    run(["modprobe", "l4lb"])
    bed = Bed(spec)
    farm = bed.serve()
    users = spec["users"]
    load = bed.client.popen(
        [spec["programs"] + "/surge", spec["directory"] + "/visits", str(spec["count"]),
         str(users["warmup"] + users["seconds"]), str(spec["seed"]), str(spec["documents"]),
         str(spec["zipf"]), str(users["idle_least"]), str(users["idle_alpha"]),
         str(users["idle_most"]), CLIENT, str(users["addresses"]), VIP, str(PORT),
         str(users["give_up"])])
    if load.wait():
        raise RuntimeError("surge failed")
    for proc in farm:
        if proc.poll() is not None:
            raise RuntimeError("an httpd died")
    stats = json.loads(bed.ipvsctl("-j", "stats", "show"))["services"][0]
    queues = json.loads(bed.director.run("tc -s -j qdisc show dev eth0").stdout)
    Path(spec["directory"], "director").write_text(json.dumps({
        "stats": stats["stats"], "bands": stats.get("bands"),
        "queues": [{"parent": q.get("parent", "root"), "packets": q["packets"],
                    "dropped": q["drops"]} for q in queues]}), encoding="utf-8")
    for proc in farm:
        proc.kill()
        proc.wait()


if __name__ == "__main__":
    perform(json.loads(Path(sys.argv[1], "spec").read_text(encoding="utf-8")))
