# SPDX-License-Identifier: GPL-2.0
"""The paper's test bed, and one run in it. Inside the guest, in virtual time:

    python3 bed.py RUN-DIRECTORY

    client ------+
    .1.1-.1.250  |
                 [ switch ]---- rs1..rsN .3.1-.3.N, lo: the VIPs
    director ----+
    .2.1, VIPs .4.1-

One network, 198.18.0.0/16; with direct routing servers answer the client directly,
with NAT through the director.
Every card sends at the rate that the run's file "spec" (JSON) gives it. Reads
spec, sizes and trace; writes outcomes, and the director's counters into
"director" (JSON).
"""

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from lab import bpf  # noqa: E402
from lab.netns import Namespace, run, wait_until  # noqa: E402

NET = "198.18"
CLIENTS, DIRECTOR, SERVERS, VIPS = f"{NET}.1.1", f"{NET}.2.1", f"{NET}.3.", f"{NET}.4.1"
PORT = 80
MARK = 1
NFT = f"""table ip bench {{
	chain clients {{
		type filter hook prerouting priority mangle
		ip daddr {NET}.4.0/24 meta mark set {MARK}
	}}
}}
"""


class Bed:
    """Namespaces and shaped links for one run."""

    def __init__(self, spec):
        self.spec = spec
        self.names = ["client", "director", *(f"rs{n + 1}" for n in range(spec["servers"]))]
        run(["ip", "-batch", "-"],
            text_input="".join(f"netns add {n}\n" for n in ["switch", *self.names]))
        self.ns = {n: Namespace(n, create=False) for n in ["switch", *self.names]}
        # All namespaces share one neighbour table; each server has an entry for each client.
        for number in (3, 2, 1):
            Path(f"/proc/sys/net/ipv4/neigh/default/gc_thresh{number}").write_text(
                "16384", encoding="ascii")
        for ns in self.ns.values():
            # Packets that IPv6 sends by itself and reverse path filters would disturb.
            ns.sysctl("net/ipv6/conf/all/disable_ipv6", 1)
            ns.sysctl("net/ipv6/conf/default/disable_ipv6", 1)
            ns.sysctl("net/ipv4/conf/all/rp_filter", 0)
            ns.sysctl("net/ipv4/conf/default/rp_filter", 0)
        self._cables()
        for number, name in enumerate(self.names[2:], 1):
            self._server(name, number)
        self._client()
        self._director()

    def _rate(self, name):
        return self.spec["rate"]["client" if name == "client" else
                                 "director" if name == "director" else "server"]

    def _cables(self):
        spec, lines = self.spec, ["link add br0 type bridge", "link set br0 up"]
        run(["ip", "-batch", "-"], text_input="".join(
            f"link add eth0 netns {n} type veth peer name {n} netns switch\n"
            for n in self.names))
        for name in self.names:
            lines += [f"link set {name} master br0", f"link set {name} up"]
            self.ns[name].ip("link set lo up", "link set eth0 up")
        self.ns["switch"].ip(*lines)
        for name in self.names:
            # Network cards of that time did not segment TCP.
            for ns, device in ((self.ns[name], "eth0"), (self.ns["switch"], name)):
                ns.run(f"ethtool -K {device} tso off gso off gro off")
                ns.run(f"tc qdisc add dev {device} root netem rate {self._rate(name)} "
                       f"delay {spec['delay']} limit {spec['queue']}")

    def _client(self):
        self.ns["client"].ip(f"addr add {CLIENTS}/16 dev eth0",
                             f"route add local {NET}.1.0/24 dev lo")

    def _server(self, name, number):
        ns = self.ns[name]
        ns.ip(f"addr add {SERVERS}{number}/16 dev eth0", f"route add local {NET}.4.0/24 dev lo")
        # It accepts packets to the VIPs, but only the director answers ARP for them.
        ns.sysctl("net/ipv4/conf/all/arp_ignore", 1)
        ns.sysctl("net/ipv4/conf/all/arp_announce", 2)
        if self.spec["method"] == "nat":
            ns.ip(f"route add {NET}.1.0/24 via {DIRECTOR}")

    def _director(self):
        ns = self.ns["director"]
        ns.ip(f"addr add {DIRECTOR}/16 dev eth0", f"route add local {NET}.4.0/24 dev lo")
        ns.sysctl("net/ipv4/ip_forward", 1)
        for scope in ("all", "eth0"):
            ns.sysctl(f"net/ipv4/conf/{scope}/send_redirects", 0)

    def ipvsctl(self, *words):
        return self.ns["director"].run([self.spec["ipvsctl"], *words]).stdout

    def pinned(self, file):
        """The path of a BPF program's pin, from its object FILE."""
        folder = Path(self.spec["directory"]) / "bpf"
        folder.mkdir()
        run(["mount", "-t", "bpf", "bpf", str(folder)])
        return bpf.load(file, folder / "program")

    def add_service(self):
        words = ["service", "add"]
        if self.spec["vips"] > 1:
            self.ns["director"].run(["nft", "-f", "-"], text_input=NFT)
            words += ["fwmark", str(MARK)]
        else:
            words += ["tcp", f"{VIPS}:{PORT}"]
        words += ["scheduler", self.spec["scheduler"]]
        for name, value in self.spec["options"].items():
            # The bed's word for a second scheduler that only counts.
            words += [name] if name == "shadow" else ["option", name]
            words += [self.pinned(value) if name == "program" else value]
        if self.spec["method"] == "nat":
            words += ["latency", "on"]
        for number, weight in enumerate(self.spec["weights"], 1):
            words += ["server", f"{SERVERS}{number}", self.spec["method"], "weight", str(weight)]
        self.ipvsctl(*words)

    def start_httpd(self, name, number, address, speed):
        """Starts a model server; SPEED divides the time of processor and disk."""
        cost, slow = self.spec["server"], self.spec["slow"]
        times = (slow["from"], slow["from"] + slow["seconds"]) if number == slow.get("server") else ()
        proc = self.ns[name].popen(
            [self.spec["programs"] + "/httpd", address, str(PORT), str(number),
             self.spec["directory"] + "/sizes",
             *(str(round(n)) for n in (
                 1000 * cost["cpu_request"] / speed, cost["cpu_byte"] / speed,
                 1000 * cost["disk_seek"] / speed, cost["disk_rate"] * speed,
                 self.spec["cache"], cost["workers"], cost["backlog"],
                 *(t * 10**9 for t in times), *(slow["factor"] for _ in times[:1])))],
            stdout=subprocess.PIPE, text=True)
        if proc.stdout.readline() != "ready\n":
            raise RuntimeError(f"httpd {number} did not start")
        return proc


def perform(spec):
    if spec["servers"]:
        run(["modprobe", "l4lb"])
    bed = Bed(spec)
    if spec["servers"]:
        bed.add_service()
        farm = [bed.start_httpd(f"rs{n}", n, "0.0.0.0", spec["speeds"][n - 1])
                for n in range(1, spec["servers"] + 1)]
    else:
        farm = [bed.start_httpd("director", 1, VIPS, 1.0)]
    directory = spec["directory"]
    load = bed.ns["client"].popen(
        [spec["programs"] + "/load", directory + "/trace", directory + "/outcomes",
         CLIENTS, VIPS, str(PORT), str(spec["give_up"])])
    if load.wait():
        raise RuntimeError("load failed")
    for proc in farm:
        if proc.poll() is not None:
            raise RuntimeError("an httpd died")
    counted = {}
    if spec["servers"]:
        def service():
            return json.loads(bed.ipvsctl("-j", "stats", "show"))["services"][0]["stats"]
        # The connection counters lag by up to a second.
        wait_until(lambda: service()["conns"] >= spec["requests"], 5, step=1)
        counted = service()
        if "shadow" in spec["options"]:
            words = ("fwmark", str(MARK)) if spec["vips"] > 1 else ("tcp", f"{VIPS}:{PORT}")
            counted["shadow"] = json.loads(bed.ipvsctl("-j", "scheduler", "stats", *words))["shadow"]
    Path(directory, "director").write_text(json.dumps(counted), encoding="utf-8")
    for proc in farm:
        proc.kill()
        proc.wait()


if __name__ == "__main__":
    perform(json.loads(Path(sys.argv[1], "spec").read_text(encoding="utf-8")))
