# SPDX-License-Identifier: GPL-2.0
"""Limits of what a namespace, and all together, may have: services, real servers, connections.
Each is tried one below, at, and one above it."""

import contextlib
import errno
import os
import socket
import struct
from pathlib import Path

import pytest
from lab import packet
from lab.ctl import IPVSCTL
from lab.genl import MASQ, Ipvs, L4lb, NetlinkError, batch_entry, batch_server
from lab.netns import Namespace, run, wait_until
from lab.packet import UDP
from lab.raw import Raw
from lab.rows import large
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")

ALL = Path("/sys/module/l4lb/parameters/conn_max_all")
VIP = "192.0.2.1"
RIPS = [f"198.51.100.{n}" for n in range(1, 9)]
SPACES = 8


def refused(command, *args, **kwargs):
    with pytest.raises(NetlinkError) as error:
        command(*args, **kwargs)
    assert error.value.errno == errno.ENOSPC
    return str(error.value)


@pytest.mark.smoke
def test_services_max(nat):
    with setting(nat, "services_max", 3):
        services = [nat.ipvs.service(VIP, port) for port in (1, 2, 3)]
        assert "services_max" in refused(nat.ipvs.service, VIP, 4)
        with L4lb(nat.director.ns) as l4lb:
            assert "services_max" in refused(l4lb.set_services, [batch_entry(VIP, 5)])
            l4lb.set_services([batch_entry(VIP, 3)])        # it exists already
        done = nat.director.ns.run([IPVSCTL, "service", "add", "tcp", f"{VIP}:4"], check=False)
        assert (done.returncode, done.stderr) == (
            3, f"ipvsctl: tcp {VIP}:4: service: the kernel refused: net.ipv4.vs.services_max allows no "
            "more services\n")
        assert len(nat.ipvs.services()) == 3
        services[0].edit(sched="wrr")
        services[0].delete()
        nat.ipvs.service(VIP, 4)
        refused(nat.ipvs.service, VIP, 5)
    nat.ipvs.service(VIP, 5)
    with setting(nat, "services_max", 0):
        nat.ipvs.service(VIP, 6)


@pytest.mark.smoke
def test_servers_max(nat):
    """Of all services together; a batch is refused as a whole."""
    one, two = nat.ipvs.service(VIP, 1), nat.ipvs.service(VIP, 2)
    with setting(nat, "servers_max", 3):
        one.server(RIPS[0])
        one.server(RIPS[1])
        two.server(RIPS[0])
        assert "servers_max" in refused(two.server, RIPS[1])
        with L4lb(nat.director.ns) as l4lb:
            refused(l4lb.set_services, [batch_entry(VIP, 7, [batch_server(RIPS[2])])])
        assert len(nat.ipvs.services()) == 2
        two.edit_server(RIPS[0], weight=5)
        one.delete_server(RIPS[0])
        one.server(RIPS[0])
        one.delete()
        two.server(RIPS[1])
        two.server(RIPS[2])
        refused(two.server, RIPS[3])
    two.server(RIPS[3])


def used(group):
    return int((group / "memory.current").read_text(encoding="ascii"))


@pytest.fixture
def box(tmp_path):
    """A memory cgroup that processes can enter."""
    if "memory" not in Path("/proc/cgroups").read_text(encoding="ascii"):
        pytest.skip("a kernel without the memory controller; runs on 6.12")
    run(["mount", "-t", "cgroup2", "none", str(tmp_path)])
    (tmp_path / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
    group = tmp_path / "box"
    group.mkdir()
    yield group
    (tmp_path / "cgroup.procs").write_text("0", encoding="ascii")
    group.rmdir()
    run(["umount", str(tmp_path)])


def entries(first, count):
    return [batch_entry(VIP, port, [batch_server(r) for r in RIPS])
            for port in range(first, first + count)]


def test_memory_is_charged(nat, box):
    """What an administrator of a container configures counts as the container's memory."""
    (box / "cgroup.procs").write_text("0", encoding="ascii")
    before = used(box)
    with L4lb(nat.director.ns) as l4lb:
        l4lb.set_services(entries(1, 500))
    assert used(box) - before > 500 * 8 * 500


def test_memory_at_its_limit(nat, box, log):
    """A command that needs more than its container may have fails or ends its sender, and
    changes nothing; forwarding and other administrators go on."""
    raw, many = Raw(nat, UDP), entries(1000, 8000)
    # The kernel shows where memory was asked for when it ends a process.
    with L4lb(nat.director.ns) as l4lb, log.provoked("oom|out_of_memory|memory"):
        child = os.fork()
        if not child:
            status = 0
            try:
                (box / "cgroup.procs").write_text("0", encoding="ascii")
                (box / "memory.max").write_text(str(used(box) + (16 << 20)), encoding="ascii")
                l4lb.set_services(many)
            except NetlinkError as e:
                status = e.errno
            finally:
                os._exit(status)
        ended = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(ended) or os.waitstatus_to_exitcode(ended) in \
            (errno.ENOMEM, errno.ENOBUFS, errno.EINTR), ended
        assert len(nat.ipvs.services()) == 1
        assert raw.client().open() == 1
    with L4lb(nat.director.ns) as l4lb:
        l4lb.set_services(entries(1, 10))


@pytest.fixture
def loaded(backend, topologies):
    """A function that loads the module with a limit as conn_max_all."""
    @contextlib.contextmanager
    def load(limit):
        topologies.flush()
        backend.unload()
        run(["insmod", str(backend.modules / "l4lb.ko"), f"conn_max_all={limit}"])
        backend.need_scheduler("rr")
        with contextlib.ExitStack() as stack:
            yield stack
    return load


class Site:
    """A namespace that is its own client, with a service and a real server on a device that
    takes every packet."""

    def __init__(self, stack, name):
        self.ns = Namespace(name)
        stack.callback(self.ns.destroy)
        self.ns.ip("link set lo up", "link add out type dummy", "link set out up",
                   "addr add 198.51.100.100/24 dev out", f"addr add {VIP}/32 dev lo")
        self.sock = self.ns.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        stack.callback(self.sock.close)
        self.ipvs = stack.enter_context(Ipvs(self.ns))
        self.ipvs.service(VIP, 80, proto=UDP, sched="rr").server(RIPS[0], 80, method=MASQ)

    def send(self, number, times=1):
        """TIMES datagrams of client NUMBER."""
        address = socket.inet_ntoa(struct.pack("!I", 0x0a000000 + number))
        datagram = packet.udp_packet(address, 1000, VIP, 80, b"x")
        for _ in range(times):
            # A datagram that the director drops: EPERM.
            with contextlib.suppress(PermissionError):
                self.sock.sendto(datagram, (VIP, 0))

    def flood(self, number):
        for client in range(number):
            self.send(client)

    def clients(self):
        rows = self.ns.read("/proc/net/ip_vs_conn").splitlines()[1:]
        return {int(row.split()[1], 16) - 0x0a000000 for row in rows}


def test_conn_max_all(loaded):
    """Of one namespace: connections that are proven stay, and one more is refused; one that
    may be forged makes room."""
    with loaded(3) as stack:
        site = Site(stack, "one")
        for number in (1, 2, 3):
            site.send(number, times=9)
            assert site.clients() == set(range(1, number + 1))
        site.send(4)
        assert site.clients() == {1, 2, 3}
        ALL.write_text("4", encoding="ascii")
        site.send(5)
        site.send(6)
        assert site.clients() == {1, 2, 3, 6}
        for wrong in ("-1", "2147483648", "x"):
            with pytest.raises(OSError):
                ALL.write_text(wrong, encoding="ascii")
        ALL.write_text("0", encoding="ascii")
        site.send(7)
        assert site.clients() == {1, 2, 3, 6, 7}


def test_conn_max_all_is_given_back(loaded):
    """What one namespace no longer has, or took along when it went, another may have."""
    with loaded(100) as stack:
        first, second = Site(stack, "first"), Site(stack, "second")
        first.flood(200)
        assert len(first.clients()) == 75       # and 25 are the other's
        second.flood(200)
        assert len(second.clients()) == 25
        first.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
        first.ipvs.flush()
        wait_until(lambda: not first.clients(), 5)

        def more():
            second.flood(200)
            return len(second.clients()) == 75

        wait_until(more, 5, step=0.2)
        for number in range(3):
            with contextlib.ExitStack() as brief:
                Site(brief, f"brief{number}").flood(25)
        third = Site(stack, "third")
        wait_until(lambda: third.flood(5) or third.clients(), 10, step=0.2)


@pytest.mark.parametrize("cap, flood", ((4096, 1000), large(50_000, 12_500)))
def test_eight_floods(loaded, cap, flood):
    """Floods in eight namespaces at once: together they have no more than the limit, each at
    least its share, and nobody loses a connection that is in use. Without the limit they have
    all that they were sent."""
    held = {}
    for limit in (cap, 0):
        with loaded(limit) as stack:
            sites = [Site(stack, f"flood{n}") for n in range(SPACES)]
            for client in range(20):
                sites[0].send(flood + client, times=9)
            for part in range(0, flood, 100):
                for site in sites[1:]:
                    for client in range(part, part + 100):
                        site.send(client)
            sites[0].flood(flood)
            found = [site.clients() for site in sites]
            assert found[0] >= set(range(flood, flood + 20))
            assert min(len(clients) for clients in found) >= cap // 2 // SPACES
            held[limit] = sum(len(clients) for clients in found)
    assert cap // 2 <= held[cap] <= cap
    assert held[0] == SPACES * flood + 20
