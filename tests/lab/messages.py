# SPDX-License-Identifier: GPL-2.0
"""Netlink messages of family IPVS, complete or with one thing changed."""

import errno
import socket

from . import genl
from .genl import be16, u16
from .packet import TCP
from .spec import attr

V4, V6, OTHER = "198.51.100.150", "2001:db8:1::150", "198.51.100.151"
RIP, RIP6 = "192.0.2.20", "2001:db8:2::20"


def refused(backend, code, call):
    sentence = genl.is_refused(call, getattr(errno, code))
    if backend.is_l4lb:
        assert len(sentence) > 8, f"{code} without a sentence: {sentence!r}"
        assert "\n" not in sentence and not sentence.endswith("."), sentence
    return sentence


def full(af=socket.AF_INET, proto=TCP, addr=V4, port=80, **options):
    """The complete attribute list of a service, as a dictionary for tests to change."""
    return {genl.S_AF: u16(af), genl.S_PROTOCOL: u16(proto),
            genl.S_ADDR: genl.address(addr), genl.S_PORT: be16(port),
            **{kind: data for kind, data in (genl.attributes(
                b"".join(genl.service_options(af, **options))))}}


def svc(attrs):
    return attr(genl.SERVICE, [attr(k, v) for k, v in attrs.items()])


def changed(change, **kwargs):
    attrs = full(**kwargs)
    attrs.update(change)
    return svc({k: v for k, v in attrs.items() if v is not None})


def dest(change=None, addr=RIP, port=8080, **options):
    attrs = {genl.D_ADDR: genl.address(addr), genl.D_PORT: be16(port),
             **dict(genl.attributes(b"".join(genl.dest_options(**options))))}
    attrs.update(change or {})
    return attr(genl.DEST, [attr(k, v) for k, v in attrs.items() if v is not None])


NAME = svc({k: v for k, v in full().items() if k in (1, 2, 3, 4)})


def size(kind, data, *nests):
    """The length of an attribute; in statistics without the padding that some
    architectures put before 64-bit numbers."""
    if kind not in nests:
        return len(data)
    return len(b"".join(attr(k, v) for k, v in genl.attributes(data) if k != 11))


def new_dest(ipvs, body, command=genl.NEW_DEST):
    return ipvs.request(command, NAME + body)
