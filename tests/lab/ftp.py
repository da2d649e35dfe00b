# SPDX-License-Identifier: GPL-2.0
"""FTP, played by the test: control connections of a service, and what they announce."""

from .packet import ACK, PSH, SYN, packed, tcp_packet
from .raw import Raw, is_error

PORT = 21
DPORT = 2021        # of the real servers


def commas(address, port):
    return ",".join(map(str, (*packed(address), port >> 8, port & 255))).encode()


def told(address, port):
    """What a real server answers to PASV."""
    return b"227 Entering Passive Mode (" + commas(address, port) + b").\r\n"


class Control:
    """A control connection, which counts the bytes of both ends as those see them: SHIFT is
    what the director has added to the server's."""

    def __init__(self, raw, client=None, open_it=True):
        self.raw, self.client = raw, client or raw.client()
        self.mine, self.theirs, self.shift, self.number = 1001, 5001, 0, None
        if open_it:
            self.open()

    def open(self):
        self.client.send(SYN, seq=self.mine - 1)
        self.number, _ = self.client.arrive()
        self.client.reply(SYN | ACK, seq=self.theirs - 1, ack=self.mine).answered()
        self.client.send(ACK, seq=self.mine, ack=self.theirs)
        self.client.arrive()
        return self

    def say(self, text, again=False):
        """The client sends TEXT, which arrives as it is."""
        if again:
            self.mine -= len(text)
        self.client.send(ACK | PSH, text, seq=self.mine, ack=self.theirs + self.shift)
        _, p = self.client.arrive()
        assert (p.payload, p.seq, p.ack) == (text, self.mine, self.theirs & 0xffffffff)
        self.mine += len(text)

    def tell(self, text, want=None, again=False):
        """The server sends TEXT, and the client gets WANT; AGAIN: for the second time."""
        want = text if want is None else want
        grown = len(want) - len(text)
        if again:
            self.theirs -= len(text)
            self.shift -= grown
        self.client.reply(ACK | PSH, text, seq=self.theirs, ack=self.mine)
        p = self.client.answered()
        assert (p.src, p.sport) == (self.raw.vip, self.raw.port)
        assert (p.payload, p.seq, p.ack) == (want, self.theirs + self.shift, self.mine)
        self.theirs += len(text)
        self.shift += grown

    def talk(self):
        """Are the numbers right in both directions?"""
        self.say(b"NOOP\r\n")
        self.tell(b"200 OK\r\n")

    # -- data

    def passive(self, port, want=None, extended=None):
        """PASV (or EPSV) of the client, and its answer; WANT: the VIP's port, if another."""
        extended = self.raw.family == 6 if extended is None else extended
        want = want or port
        if extended:
            self.say(b"EPSV\r\n")
            line = b"229 Entering Extended Passive Mode (|||%d|)\r\n"
            self.tell(line % port, line % want)
        else:
            self.say(b"PASV\r\n")
            self.tell(told(self.server, port), told(self.raw.vip, want))

    def announce(self, port, address=None, extended=None):
        """PORT (or EPRT) of the client."""
        extended = self.raw.family == 6 if extended is None else extended
        address = address or self.client.address
        if extended:
            self.say(b"EPRT |%d|%s|%d|\r\n" % (1 if self.raw.family == 4 else 2, address.encode(), port))
        else:
            self.say(b"PORT " + commas(address, port) + b"\r\n")

    @property
    def server(self):
        return self.raw.address(self.number)

    def data(self, port, source=None):
        """The client opens a data connection to PORT of the VIP: the number of the server that
        gets it and the port there; (None, None): nobody does."""
        source = source or self.raw.lab.fresh_port() + 20000
        client = self.client.address
        self.raw.client_tap.send(tcp_packet(client, source, self.raw.vip, port, SYN, seq=9000))
        self.raw.fence()
        got = [(n, p) for n, tap in self.raw.taps.items()
               for p in tap.take(lambda p: p.src == client and p.sport == source)]
        if not got:
            return None, None
        (number, p), = got
        assert p.bad_checksum() is None and p.dst == self.raw.address(number)
        self.raw.taps[number].send(tcp_packet(p.dst, p.dport, client, source, SYN | ACK, seq=70, ack=9001))
        back = self.raw.client_tap.expect(lambda p: p.dst == client and p.dport == source)
        assert (back.src, back.sport) == (self.raw.vip, port)
        return number, p.dport

    def connect(self, port, sport=DPORT - 1, number=None):
        """The real server opens a data connection to PORT of the client: where it comes from."""
        number = number or self.number
        server, client = self.raw.address(number), self.client.address
        self.raw.taps[number].send(tcp_packet(server, sport, client, port, SYN, seq=9000))
        p = self.raw.client_tap.expect(lambda p: p.dst == client and p.dport == port)
        if p.src == server:
            return p.src, p.sport
        self.raw.client_tap.send(tcp_packet(client, port, p.src, p.sport, SYN | ACK, seq=70, ack=9001))
        back = self.raw.taps[number].expect(lambda q: q.src == client and q.sport == port)
        assert (back.dst, back.dport) == (server, sport)
        return p.src, p.sport

    def rows(self):
        return self.raw.lab.conns(client=self.client.address)


class Ftp(Raw):
    """An FTP service with phantom servers NUMBERS."""

    def __init__(self, lab, family=4, numbers=(1, 2), **options):
        options.setdefault("dport", DPORT if lab.shape == "nat" else None)
        super().__init__(lab, family=family, numbers=numbers, port=options.pop("port", PORT), **options)

    def control(self, client=None):
        return Control(self, client)


__all__ = ["DPORT", "PORT", "Control", "Ftp", "commas", "is_error", "told"]
