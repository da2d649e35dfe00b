# SPDX-License-Identifier: GPL-2.0
"""Fixtures for tests of connection synchronisation: a director with a peer."""

import contextlib

import pytest
from lab import daemons, genl, sync_wire
from lab.netns import wait_until
from lab.sync_group import GROUP, Receiver, Sender, cable

NEW = 3     # seconds that a connection has before it has a state


class Side:
    """A director, and a namespace at the other end of its cable."""

    def __init__(self, lab, peer):
        self.lab, self.ns, self.peer = lab, lab.director.ns, peer
        self.ipvs = lab.ipvs

    def master(self, **options):
        return daemons.running(self.ipvs, "master", **options)

    def backup(self, **options):
        return daemons.running(self.ipvs, "backup", **options)

    def receiver(self, group=GROUP[4], port=sync_wire.PORT):
        return Receiver(self.peer, group, port)

    def sender(self, group=GROUP[4], port=sync_wire.PORT, **options):
        return Sender(self.peer, group, port, **options)

    def rows(self, **want):
        """The connections with their origins."""
        return [c for c in genl.conns(self.ns, origin=True)
                if all(c[k] == v for k, v in want.items())]

    def row(self, record, deadline=5):
        """Waits for the only row of RECORD's connection or template. A copy is in the table a
        moment before it has the record's state and time."""
        want = {"client": record.client, "cport": record.cport, "vip": record.vip,
                "vport": record.vport}
        (row,) = wait_until(lambda: [r for r in self.rows(**want)
                                     if r["state"] != "NONE" or
                                     (record.state_name == "NONE" and
                                      (r["expires"] > NEW or record.timeout <= NEW))],
                            deadline, what=f"a row of {record}")
        return row

    def unread(self):
        """Bytes that wait in the sockets of the group's port."""
        return sum(int(line.split()[4].split(":")[1], 16)
                   for line in self.ns.read("/proc/net/udp").splitlines()[1:]
                   if line.split()[1].endswith(f":{sync_wire.PORT:04X}"))


@pytest.fixture(scope="module")
def side_of(topologies, module_life):
    """side_of(lab): its Side; the cable stays until the file ends."""
    peers = {}
    with contextlib.ExitStack() as stack:
        def side(lab):
            if lab.topo not in peers:
                peers[lab.topo] = stack.enter_context(cable(lab.director.ns))
            return Side(lab, peers[lab.topo])
        yield side


@pytest.fixture
def side(nat, side_of):
    one = side_of(nat)
    yield one
    daemons.stop_all(nat.ipvs)
