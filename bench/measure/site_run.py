# SPDX-License-Identifier: GPL-2.0
"""A site of one server or a cluster under web benchmarks. Inside a guest with one processor,
whose clock counts instructions.

    client .1.2 ----+---------------------+ front
                    |                     |
                 [ fw .1.1/.2.1 ]      (without it the client is on the switch)
                    |
    director .2.10 -[ switch 198.18.2.0/24 ]- rs1..rs4 .2.11-.2.14, VIP .2.100 on lo

Direct routing. A single site is rs1 without the director. Each server has a share of the
processor (cgroup): four have four times as much as one, and client and director have the
rest.
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bed import TOP, MeasureError
from lab.netns import run, wait_until
from network import Network
from still import Awake
from systems import IP_VS, L4LB

SERVERS = 4
PATIENCE = 600          # seconds that a tool may take beyond twice its run
PAGE = 2504             # bytes, the paper's
SWITCH, FAR = "198.18.2.", "198.18.1."
VIP = f"{SWITCH}100"
CGROUP = Path("/sys/fs/cgroup")
NGINX = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid {home}/pid;
error_log {home}/error.log;
events {{ worker_connections 16384; }}
http {{
	access_log off;
	client_body_temp_path {home}/body;
	proxy_temp_path {home}/proxy;
	fastcgi_temp_path {home}/fastcgi;
	uwsgi_temp_path {home}/uwsgi;
	scgi_temp_path {home}/scgi;
	keepalive_requests 1000000;
	server {{ listen 80 backlog=4096; root {home}; }}
}}
"""
FIREWALL = """\
table inet site {
	chain onward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		ct state invalid drop
		ip daddr 198.18.2.0/24 tcp dport 80 ct state new accept
	}
}
"""
# (director, its fast path); a single site has none.
WAYS = {"single": (None, None), "ip_vs": (IP_VS, None), "l4lb": (L4LB, 1)}


class Group:
    """A cgroup, with a share of a processor."""

    def __init__(self, name, share=None):
        self.path = CGROUP / name
        self.path.mkdir(exist_ok=True)
        if share:
            (self.path / "cpu.max").write_text(f"{round(share * 100_000)} 100000", "ascii")

    def popen(self, ns, argv, **kwargs):
        with ns.enter():
            return subprocess.Popen(
                ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs; ulimit -n 65536; exec "$@"',
                 "sh", *argv], **kwargs)

    def seconds(self):
        """Processor time used so far."""
        words = dict(line.split() for line in
                     (self.path / "cpu.stat").read_text("ascii").splitlines())
        return int(words["usage_usec"]) / 1e6


class Site(Network):
    """Network, servers, and the firewall if there is one; direct() adds the service."""

    def __init__(self, spec, firewall):
        self.spec, self.firewall = spec, firewall
        names = ["client", "switch", "director", *(f"rs{n}" for n in range(1, SERVERS + 1))]
        names += ["fw"] if firewall else []
        super().__init__("site", names)
        self.directory = Path("/run/site")

    def _cable(self, name, address):
        switch = self.ns["switch"]
        switch.ip(f"link add {name} type veth peer name eth0 netns {self.ns[name].name}",
                  f"link set {name} master br0", f"link set {name} up")
        self.ns[name].ip("link set eth0 up", f"addr add {address}/24 dev eth0")

    def _build(self):
        self.ns["switch"].ip("link add br0 type bridge", "link set br0 up")
        self._cable("director", f"{SWITCH}10")
        self.ns["director"].sysctl("net/ipv4/ip_forward", 1)
        self.ns["director"].sysctl("net/ipv4/conf/all/send_redirects", 0)
        self.ns["director"].sysctl("net/ipv4/conf/eth0/send_redirects", 0)
        self.ns["director"].ip(f"addr add {VIP}/32 dev eth0")
        client = self.ns["client"]
        if self.firewall:
            self._cable("fw", f"{SWITCH}1")
            fw = self.ns["fw"]
            fw.ip(f"link add eth1 type veth peer name eth0 netns {client.name}",
                  "link set eth1 up", f"addr add {FAR}1/24 dev eth1")
            fw.sysctl("net/ipv4/ip_forward", 1)
            client.ip("link set eth0 up", f"addr add {FAR}2/24 dev eth0",
                      f"route add default via {FAR}1")
            fw.run(["nft", "-f", "-"], text_input=FIREWALL)
        else:
            self._cable("client", f"{SWITCH}2")
        client.sysctl("net/ipv4/ip_local_port_range", "1024 65535")
        client.sysctl("net/ipv4/tcp_tw_reuse", 1)
        for n in range(1, SERVERS + 1):
            ns = self.ns[f"rs{n}"]
            self._cable(f"rs{n}", f"{SWITCH}{10 + n}")
            ns.sysctl("net/ipv4/conf/all/arp_ignore", 1)
            ns.sysctl("net/ipv4/conf/all/arp_announce", 2)
            ns.sysctl("net/core/somaxconn", 4096)
            ns.ip(f"addr add {VIP}/32 dev lo")
            if self.firewall:
                ns.ip(f"route add {FAR}0/24 via {SWITCH}1")
        if self.firewall:
            self.ns["director"].ip(f"route add {FAR}0/24 via {SWITCH}1")
        self._serve()

    def _serve(self):
        self.groups = {}
        for n in range(1, SERVERS + 1):
            home = self.directory / f"rs{n}"
            home.mkdir(parents=True, exist_ok=True)
            (home / "index.html").write_text("x" * PAGE, encoding="ascii")
            conf = home / "nginx.conf"
            conf.write_text(NGINX.format(home=home), encoding="ascii")
            (home / "pid").unlink(missing_ok=True)
            self.groups[n] = Group(f"rs{n}", self.spec["share"])
            self.procs.append(self.groups[n].popen(
                self.ns[f"rs{n}"], ["nginx", "-e", str(home / "error.log"), "-p", str(home),
                                    "-c", str(conf)], stderr=subprocess.DEVNULL))
            wait_until(lambda home=home: (home / "pid").exists() and
                       (home / "pid").read_text("ascii"), 60, f"nginx {n} is up")

    def direct(self, director, fast_path):
        words = [f"-A -t {VIP}:80 -s rr", *(
            f"-a -t {VIP}:80 -r {SWITCH}{10 + n}:80 -g -w 1" for n in range(1, SERVERS + 1))]
        ns = self.ns["director"]
        ns.run(["ipvsadm", "-R"], text_input="\n".join(words) + "\n")
        if fast_path is not None:
            ns.sysctl("net/ipv4/vs/fast_path", fast_path)


# -- tools: (command, function that reads its output)


def found(pattern, text, what):
    m = re.search(pattern, text)
    if not m:
        raise MeasureError(f"{what} says nothing of {pattern!r}: {text.strip()[-200:]}")
    return float(m[1])


def ab(url, spec):
    # More requests than fit into that time, but few: ab allocates memory for each.
    most = max(50_000, 3000 * spec["seconds"])
    argv = ["ab", "-q", "-r", "-s", "30", "-t", str(spec["seconds"]), "-n", str(most),
            "-c", str(spec["together"]), url]

    def read(text):
        return {"rate": found(r"Requests per second:\s+([\d.]+)", text, "ab"),
                "failed": found(r"Failed requests:\s+(\d+)", text, "ab"),
                "ms": found(r"Time per request:\s+([\d.]+) \[ms\] \(mean\)", text, "ab")}
    return argv, read


def wrk(url, spec):
    argv = ["wrk", "-t1", f"-c{spec['together']}", f"-d{spec['seconds']}s", "--timeout", "30s",
            "-H", "Connection: close", "--latency", url]

    def read(text):
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)",
                           text)
        wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        unit = {"us": 1e-3, "ms": 1, "s": 1e3}
        m = re.search(r"Latency\s+([\d.]+)(us|ms|s)\b", text)
        return {"rate": found(r"Requests/sec:\s+([\d.]+)", text, "wrk"),
                "failed": sum(int(n) for m in (errors, wrong) if m for n in m.groups()),
                "ms": float(m[1]) * unit[m[2]] if m else None}
    return argv, read


def httperf(url, spec, rate):
    host = url.split("/")[2]
    conns = max(int(rate * spec["seconds"]), 10)
    argv = ["httperf", "--hog", f"--server={host}", "--uri=/", f"--rate={rate}",
            f"--num-conns={conns}", f"--num-calls={spec['calls']}", "--timeout=30"]

    def read(text):
        errors = found(r"Errors: total (\d+)", text, "httperf")
        errors += sum(int(n) for n in re.findall(r"[1345]xx=(\d+)", text))
        return {"rate": found(r"Request rate: ([\d.]+)", text, "httperf") *
                found(r"Total: .* replies (\d+)", text, "httperf") /
                max(found(r"Total: .* requests (\d+)", text, "httperf"), 1),
                "failed": errors, "asked": rate * spec["calls"],
                "ms": found(r"Reply time \[ms\]: response ([\d.]+)", text, "httperf")}
    return argv, read


def vmstat(text):
    """Means of interrupts, switches and idle time, without the first line (since boot)."""
    lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()][1:]
    heads = next(line.split() for line in text.splitlines() if " in " in line)
    return {name: statistics.fmean(int(line[heads.index(name)]) for line in lines)
            for name in ("in", "cs", "id")} if lines else {}


def used(site, tool, awake):
    """Processor seconds so far by user; awake: idle ones."""
    return {"client": tool.seconds(), "awake": awake.seconds(),
            **{f"rs{n}": g.seconds() for n, g in site.groups.items()}}


def tried(site, argv, read, log, awake):
    """Runs a tool; LOG keeps its output and vmstat's."""
    tool = Group("client")
    before = used(site, tool, awake)
    watch = subprocess.Popen(["vmstat", "-n", "1"], stdout=subprocess.PIPE, text=True)
    began = time.monotonic()
    proc = tool.popen(site.ns["client"], argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      text=True)
    try:
        said, _ = proc.communicate(timeout=PATIENCE + 2 * site.spec["seconds"])
    finally:
        proc.kill()
        watch.terminate()
    machine = watch.communicate()[0]
    took = time.monotonic() - began
    log.write_text(f"$ {' '.join(argv)}\n{said}\n$ vmstat -n 1\n{machine}", encoding="utf-8")
    if any(server.poll() is not None for server in site.procs):
        raise MeasureError("an nginx died")
    if proc.returncode:
        raise MeasureError(f"{argv[0]}: exit status {proc.returncode}: {said.strip()[-200:]}")
    now = used(site, tool, awake)
    busy = {k: (now[k] - before[k]) / took for k in now}
    return read(said) | {"took": took, "busy": busy,
                         "vmstat": vmstat(machine) | {"id": 100 * busy.pop("awake")}}


def measure(spec):
    if not (CGROUP / "cgroup.controllers").exists():
        run(["mount", "-t", "cgroup2", "cgroup2", str(CGROUP)])
    (CGROUP / "cgroup.subtree_control").write_text("+cpu", "ascii")
    rows = []
    # A program is slow when it is loaded for the first time.
    for argv in (["ab", "-V"], ["wrk", "-v"], ["httperf", "--version"], ["nginx", "-v"]):
        run(argv, check=False)
    with Awake() as awake:
        for network in ("lan", "fwl"):
            for way in spec["ways"][network]:
                director, fast_path = WAYS[way]
                with director.loaded() if director else contextlib.nullcontext(), \
                        Site(spec, network == "fwl") as site:
                    if director:
                        site.direct(director, fast_path)
                    one(site, way, network, rows, awake)
    return rows


def one(site, way, network, rows, awake):
    spec, cluster = site.spec, "sg" if way == "single" else "cl"
    url = f"http://{VIP if WAYS[way][0] else SWITCH + '11'}/"
    tools = [("ab", *ab(url, spec)), ("wr", *wrk(url, spec))]
    # httperf gets rates around the one that keeps all servers busy.
    tools += [("hp", *httperf(url, spec, rate)) for rate in spec["rates"][cluster]]
    for name, argv, read in tools:
        # Loads the page, the tool and the servers' programs into memory.
        if name != "hp":
            site.ns["client"].run(["ab", "-q", "-n", "50", "-c", "5", url])
        log = Path(spec["logs"]) / (
            f"{name}-{cluster}-{network}{'' if way in ('single', 'l4lb') else '.' + way}"
            f"{'.' + argv[4].split('=')[1] if name == 'hp' else ''}.log")
        row = {"tool": name, "way": way, "network": network}
        try:
            row |= tried(site, argv, read, log, awake)
        except (MeasureError, subprocess.TimeoutExpired) as e:
            row["fault"] = " ".join(str(e).split())
        rows.append(row)
        print(f"  {name}-{cluster}-{network} {way}: "
              + (f"{row['rate']:,.1f} requests/s, {row['failed']:.0f} failed" if "rate" in row
                 else row["fault"]), flush=True)


if __name__ == "__main__":
    os.chdir(TOP)
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(measure(wanted)), encoding="utf-8")
