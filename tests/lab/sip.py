# SPDX-License-Identifier: GPL-2.0
"""SIP messages, and what a service with persistence engine sip does with them."""

from .genl import PERSISTENT
from .packet import UDP
from .raw import Raw

START = b"INVITE sip:bob@example.com SIP/2.0\r\n"
FIELDS = (b"Via: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK776asdhds\r\nMax-Forwards: 70\r\n"
          b"To: Bob <sip:bob@example.com>\r\nFrom: Alice <sip:alice@example.com>;tag=1928\r\n")
REST = b"CSeq: 314159 INVITE\r\nContent-Length: 0\r\n\r\n"


def message(call, name=b"Call-ID: "):
    """A request with Call-ID CALL; None: without."""
    call = call.encode() if isinstance(call, str) else call
    return START + FIELDS + (b"" if call is None else name + call + b"\r\n") + REST


class Sip(Raw):
    """A service with the engine, and phantom servers NUMBERS."""

    def __init__(self, lab, family=4, numbers=(1, 2), flags=0, **options):
        options.setdefault("timeout", 300)
        options.setdefault("pe", "sip")
        super().__init__(lab, UDP, family, numbers, flags=PERSISTENT | flags, **options)

    def ask(self, call, address=None, client=None, name=b"Call-ID: "):
        """The server that gets a message with CALL, from a new port of ADDRESS or from CLIENT;
        None: none gets it, and the sender is told nothing."""
        return self.ask_raw(message(call, name), address, client)

    def ask_raw(self, payload, address=None, client=None):
        client = client or self.client(address)
        client.send(payload=payload)
        self.fence()
        got = client.arrivals()
        assert len(got) < 2, got
        for _, p in got:
            assert p.bad_checksum() is None
        return got[0][0] if got else None

    def calls(self, **want):
        """{Call-ID: server's number} of the templates."""
        numbers = {self.address(n): n for n in self.taps}
        return {row.get("call"): numbers[row["server"]]
                for row in self.lab.conns(vip=self.vip, cport=0, **want)
                if row["vport"] == self.port}
