# SPDX-License-Identifier: GPL-2.0
"""TCP connections of which the test has both ends."""

import select
import socket

WAITS = 20          # seconds


class Listeners:
    """The same port on several servers, with one accept() for all."""

    def __init__(self, nodes, port, family):
        self.family = socket.AF_INET if family == 4 else socket.AF_INET6
        self.socks = []
        for node in nodes:
            sock = node.ns.socket(self.family, socket.SOCK_STREAM)
            self.socks.append(sock)
            sock.bind(("", port))
            sock.listen(256)

    def accept(self):
        """(socket, address) of the next connection."""
        ready, _, _ = select.select(self.socks, [], [], WAITS)
        assert ready, "no connection has arrived at a server"
        return ready[0].accept()

    def close(self):
        for sock in self.socks:
            sock.close()


class Flow:
    """A connection through a director."""

    def __init__(self, lab, listeners, to):
        self.client = lab.client.ns.socket(listeners.family, socket.SOCK_STREAM)
        self.client.settimeout(WAITS)
        self.client.connect(to)
        self.server, _ = listeners.accept()
        self.server.settimeout(WAITS)
        self.port = self.client.getsockname()[1]

    def talk(self, rounds=1):
        """A request and an answer of two segments, ROUNDS times."""
        for n in range(rounds):
            for sender, receiver, data in ((self.client, self.server, b"request %d" % n),
                                           (self.server, self.client, b"answer" * 400)):
                sender.sendall(data)
                got = b""
                while len(got) < len(data):
                    part = receiver.recv(4096)
                    assert part, "the other end has closed it"
                    got += part
                assert got == data

    def close(self):
        self.client.close()
        self.server.close()
