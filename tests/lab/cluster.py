# SPDX-License-Identifier: GPL-2.0
"""Two directors before four real servers. keepalived makes one of them the master; a director
can lose its power, and come back. IPv4; all three forwarding methods at once, by port.

    client .2 ----+                                      +---- rs1 .11
                  |          +--- director1 .3 ---+      +---- rs2 .12
         [ 198.51.100.0/24 ]-+         | sync0    +-[ 192.0.2.0/24 ]
                  |          +--- director2 .4 ---+      +---- rs3 .13
                  +-------------- router .254 -----------+---- rs4 .14

The master has the VIP 198.51.100.100, and 192.0.2.1, by which the servers' answers leave with
NAT; with the other methods they leave by the router. The switches are bridges of the router, so
that a director's death takes no device from the other one.
"""

import contextlib
import os
import re
import select
import signal
import threading
import time
from pathlib import Path

from .keepalived import Keepalived, block
from .netns import Namespace, run, wait_until

FRONT, BACK, WIRE = "198.51.100.", "192.0.2.", "172.31.0."
VIP, GATE, CLIENT, ROUTER = FRONT + "100", BACK + "1", FRONT + "2", "254"
SERVERS = ("rs1", "rs2", "rs3", "rs4")
PORT = {"nat": 80, "dr": 81, "tun": 82}
# (device, the switch's port, bridge, network) of a director's links.
LINKS = (("eth0", "front", "br0", FRONT), ("eth1", "back", "br1", BACK),
         ("sync0", "wire", "br2", WIRE))
# BEHIND is added to the priority while a director does not know the connections yet.
PRIORITY, BEHIND = {1: 150, 2: 100}, -60
QUIET = {"net/ipv6/conf/all/disable_ipv6": 1, "net/ipv6/conf/default/disable_ipv6": 1,
         "net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/default/rp_filter": 0,
         "net/ipv4/conf/all/send_redirects": 0, "net/ipv4/conf/default/send_redirects": 0}
RESETS = """table inet resets {
	counter seen { }
	chain in { type filter hook prerouting priority -300; tcp flags rst counter name seen; }
}
"""


def server(number):
    return BACK + str(10 + number)


class Director:
    """One of the two; ns is None while it has no power."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"director{number}"
        self.peer = WIRE + str(2 + 3 - number)      # the other one's address between the two
        self.home = cluster.directory / self.name
        self.home.mkdir()
        self.ready, self.fifo = self.home / "ready", self.home / "fifo"
        os.mkfifo(self.fifo)
        self.ns = self.keepalived = None

    def power_on(self, behind=False):
        """Starts it with an empty memory. BEHIND: it must not become master while the other one
        is alive, until catch_up()."""
        self.ns = Namespace(self.cluster.prefix + self.name)
        for name, value in QUIET.items():
            self.ns.sysctl(name, value)
        self.ns.sysctl("net/ipv4/ip_forward", 1)
        self.cluster.connect(self)
        self.cluster.prepare(self)
        for stale in self.home.glob("*pid"):
            stale.unlink()
        self.ready.write_text(f"{BEHIND if behind else 0}\n", encoding="ascii")
        self.keepalived = Keepalived(
            self.ns, self.home, block("track_file ready", f'file "{self.ready}"'), self._vrrp(),
            options=f" vrrp_version 3\n vrrp_notify_fifo {self.fifo}", vrrp=True)
        self.keepalived.__enter__()

    def _vrrp(self):
        return block("vrrp_instance pair", "interface eth0", "state BACKUP",
                     "virtual_router_id 51", f"priority {PRIORITY[self.number]}",
                     f"advert_int {self.cluster.advert}",
                     block("track_file", "ready weight 1"),
                     block("virtual_ipaddress", f"{VIP}/32 dev eth0", f"{GATE}/32 dev eth1"))

    def catch_up(self):
        """It may be master from now on."""
        self.ready.write_text("0\n", encoding="ascii")

    def die(self):
        """All links at once, without a word; then everything that runs, and its memory.
        Returns when that was."""
        at = time.monotonic()
        self.ns.ip(*(f"link set {device} down" for device, *_ in LINKS))
        self._end()
        return at

    def _end(self):
        if not self.ns:
            return
        for pid in run(["ip", "netns", "pids", self.ns.name]).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if self.keepalived:
            self.keepalived.__exit__()
        self.cluster.disconnect(self)
        self.ns.destroy()
        self.ns = self.keepalived = None

    def power_off(self):
        """At the end of it all."""
        self._end()

    def ipvsadm(self, *words, text=None):
        return self.ns.run(["ipvsadm", *words], text_input=text).stdout

    def synchronise(self, settings):
        """Both daemons, with the sysctls SETTINGS of net.ipv4.vs."""
        for name, value in settings.items():
            self.ns.sysctl(f"net/ipv4/vs/{name}", value)
        for role in ("master", "backup"):
            self.ipvsadm("--start-daemon", role, "--mcast-interface", "sync0", "--syncid", "7")


class Watch(threading.Thread):
    """Reads what the keepalived of each director reports: (when, director's number, state)."""

    def __init__(self, fifos):
        super().__init__(daemon=True)
        # Open for writing, too: otherwise a keepalived's end would be the end of the file.
        self.number = {os.open(path, os.O_RDWR | os.O_NONBLOCK): number
                       for number, path in fifos.items()}
        self.events, self.ended = [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            for fd in select.select(list(self.number), [], [], 0.3)[0]:
                at = time.monotonic()
                for state in re.findall(r'INSTANCE "pair" (\w+)', os.read(fd, 4096).decode()):
                    self.events.append((at, self.number[fd], state))

    def stop(self):
        self.ended.set()
        self.join()
        for fd in self.number:
            os.close(fd)


class Cluster:
    """The network of the drawing above; a context manager. PREPARE(director) is called when a
    director gets power, before its keepalived starts: it configures services and
    synchronisation. ADVERT: seconds between VRRP's messages."""

    def __init__(self, directory, prepare, advert=0.1, prefix=""):
        self.directory, self.prepare = Path(directory), prepare
        self.advert, self.prefix = advert, prefix
        self.router = self.client = self.watch = None
        self.servers = []
        self.directors = {n: Director(self, n) for n in PRIORITY}

    def __enter__(self):
        try:
            self._build()
            self.watch = Watch({n: d.fifo for n, d in self.directors.items()})
            self.watch.start()
            for director in self.directors.values():
                director.power_on()
            self.until_master(1, 20)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for director in self.directors.values():
            director.power_off()
        if self.watch:
            self.watch.stop()
        for ns in (self.client, self.router, *self.servers):
            if ns:
                ns.destroy()

    def _build(self):
        self.router, self.client = (Namespace(self.prefix + n) for n in ("router", "client"))
        self.servers = [Namespace(self.prefix + name) for name in SERVERS]
        for ns in (self.router, self.client, *self.servers):
            for name, value in QUIET.items():
                ns.sysctl(name, value)
            ns.ip("link set lo up")
        self.router.sysctl("net/ipv4/ip_forward", 1)
        for number, net in enumerate((FRONT, BACK, WIRE)):
            # An address of its own: otherwise it changes when a port comes or goes.
            self.router.ip(f"link add br{number} address 02:00:00:00:00:f{number} type bridge",
                           f"link set br{number} up")
            if net != WIRE:
                self.router.ip(f"addr add {net}{ROUTER}/24 dev br{number}")
        self._cable(self.client, "eth0", "client", "br0")
        self.client.ip(f"addr add {CLIENT}/24 dev eth0")
        for number, ns in enumerate(self.servers, 1):
            self._cable(ns, "eth0", SERVERS[number - 1], "br1")
            ns.sysctl("net/ipv4/conf/all/arp_ignore", 1)
            ns.sysctl("net/ipv4/conf/all/arp_announce", 2)
            ns.ip(f"addr add {server(number)}/24 dev eth0", f"addr add {VIP}/32 dev lo",
                  "link set tunl0 up", f"route add default via {GATE}",
                  f"route add default via {BACK}{ROUTER} table 10",
                  f"rule add from {VIP}/32 lookup 10")
        for ns in (self.client, *self.servers):
            ns.nft(RESETS)

    def _cable(self, ns, device, port, bridge, mac=""):
        """DEVICE of NS to PORT of the router's BRIDGE."""
        self.router.ip(f"link add {port} type veth peer name {device} {mac} netns {ns.name}",
                       f"link set {port} master {bridge}", f"link set {port} up")
        ns.ip(f"link set {device} up")

    def connect(self, director):
        number, ns = director.number, director.ns
        ns.ip("link set lo up")
        for digit, (device, port, bridge, net) in enumerate(LINKS):
            self._cable(ns, device, f"{port}{number}", bridge,
                        f"address 02:00:00:00:0{number}:0{digit}")
            ns.ip(f"addr add {net}{2 + number}/24 dev {device}")
        for device, port, *_ in LINKS:
            wait_until(lambda d=device, p=f"{port}{number}": ns.is_running(d) and
                       self.router.is_running(p), 10,
                       f"{director.name}'s {device} is up")

    def disconnect(self, director):
        """The kernel takes a namespace's devices away later: a new one needs their names."""
        for _, port, *_ in LINKS:
            self.router.run(["ip", "link", "del", f"{port}{director.number}"], check=False)

    def became_master(self, number, since=0.0):
        """When the director became the master after SINCE, or None."""
        return next((at for at, n, state in self.watch.events
                     if at >= since and (n, state) == (number, "MASTER")), None)

    def until_master(self, number, deadline, since=0.0):
        return wait_until(lambda: self.became_master(number, since), deadline,
                          f"director{number} is the master")

    def resets(self):
        """How many TCP resets have reached the client and the servers."""
        return sum(int(re.search(r"packets (\d+)", ns.nft("list counters"))[1])
                   for ns in (self.client, *self.servers))


def rules(scheduler="rr"):
    """A service for each method, as `ipvsadm -R` reads it."""
    flag = {"nat": "-m", "dr": "-g", "tun": "-i"}
    lines = []
    for method, port in PORT.items():
        lines.append(f"-A -t {VIP}:{port} -s {scheduler}")
        lines += [f"-a -t {VIP}:{port} -r {server(n)}:{port} {flag[method]} -w 1"
                  for n in range(1, len(SERVERS) + 1)]
    return "\n".join(lines) + "\n"
