# SPDX-License-Identifier: GPL-2.0
"""Packets of all sorts that a director forwards in the same way, whichever path they take."""

import time

from . import fast
from .farm import pattern
from .flows import counted, growth, image, numbers_of, one
from .packet import ACK, PSH, UDP, URG

ECE, CWR = 0x40, 0x80


def ordinary(family):
    """Arguments of packets that may begin a flow, or belong to one."""
    ip_args = [{"tos": 0xb8}, {"tos": 0x28 | 2}, {"tos": 3}]
    ip_args += [{"df": True}, {"ident": 0}] if family == 4 else [{"flow": 0x12345}]
    yield from ({"payload": pattern(n)} for n in (0, 1, 2, 333, 1300))
    yield from ({"payload": b"ip", "ip_args": args} for args in ip_args)
    yield {"payload": b"far", "ttl": 255}
    yield {"payload": b"near", "ttl": 3}


def variety(proto, family):
    """Arguments of Client.packet() and reply_packet()."""
    yield from ordinary(family)
    yield {"payload": b"wrong", "csum": 0x1234}
    if proto == UDP:
        yield {"payload": b"none", "csum": 0}
        yield {"payload": b"the length is wrong", "length": 9}
        yield {"payload": b"and again", "length": 4000}
    else:
        yield from ({"flags": ACK | more} for more in (PSH, URG, ECE, CWR))
        yield {"options": b"\1\1\x08\x0a" + b"time" * 2}
        yield {"payload": b"data that is none", "doff": 15}


def all_sorts(client, proto, family, fast_each, with_replies):
    """Send each of variety(). Return (packets that left, growth of counters)."""
    raw, out = client.raw, []
    before = numbers_of(client)
    for kwargs in variety(proto, family):
        kwargs = {"flags": ACK, **kwargs}
        with counted(raw, **fast_each):
            raw.client_tap.send(client.packet(**kwargs))
            out.append(image(one(client.arrivals)[1]))
        if with_replies:
            with counted(raw, **fast_each):
                raw.taps[1].send(client.reply_packet(**kwargs))
                out.append(image(one(lambda: raw.client_tap.take(
                    lambda p: p.dst == client.address))))
    after = numbers_of(client)
    assert before[2] == after[2]
    assert {**before[3], "expires": 0} == {**after[3], "expires": 0}
    return out, growth(before, after)


def poke(client):
    """Send a packet through both devices. Return the counters from before."""
    before = fast.read(client.raw.lab.director.ns)
    client.send(ACK, b"poke").arrive()
    if client.raw.lab.shape == "nat":
        client.reply(ACK, b"poke").answered()
    time.sleep(0.02)
    return before
