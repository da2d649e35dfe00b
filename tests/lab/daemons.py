# SPDX-License-Identifier: GPL-2.0
"""The synchronisation daemons of a namespace, by netlink family IPVS."""

import contextlib
import errno
import os
import socket
import struct

from . import genl, packet
from .genl import attr, attributes, u8, u16, u32
from .sync_group import DEVICE

MASTER, BACKUP = 1, 2
ROLE = {"master": MASTER, "backup": BACKUP}
ERROR, DONE = 2, 3      # types of netlink messages


def options(ifname=DEVICE, sync_id=0, *, maxlen=None, group=None, port=None, ttl=None):
    """The attributes that describe a daemon, except its state."""
    out = [attr(genl.DM_IFN, genl.text(ifname)), attr(genl.DM_SYNC_ID, u32(sync_id))]
    if maxlen is not None:
        out.append(attr(genl.DM_MAXLEN, u16(maxlen)))
    if group is not None:
        kind = genl.DM_GROUP6 if packet.is6(group) else genl.DM_GROUP
        out.append(attr(kind, packet.packed(group)))
    if port is not None:
        out.append(attr(genl.DM_PORT, u16(port)))
    if ttl is not None:
        out.append(attr(genl.DM_TTL, u8(ttl)))
    return out


def state(role):
    return attr(genl.DM_STATE, u32(ROLE.get(role, role)))


def request(ipvs, command, *attrs):
    """Send COMMAND with the attributes ATTRS of a daemon. ip_vs gives no answer if a thread
    that it stops had not yet run; then the dump's end, which follows, is the answer."""
    ipvs.sock.send(ipvs.message(command, attr(genl.DAEMON, list(attrs))))
    seq = ipvs.seq
    ipvs.sock.send(ipvs.message(genl.GET_DAEMON, flags=genl.F_DUMP))
    code, ended = 0, False
    while not ended:
        data = ipvs.sock.recv(1 << 16)
        while data:
            length, kind, _, number, _ = struct.unpack("=IHHII", data[:16])
            if kind == ERROR and number == seq:
                code = -struct.unpack("=i", data[16:20])[0]
            ended |= kind == DONE and number == ipvs.seq
            data = data[(length + 3) & ~3:]
    if code:
        raise genl.NetlinkError(code, "")


def start(ipvs, role, ifname=DEVICE, sync_id=0, **more):
    request(ipvs, genl.NEW_DAEMON, state(role), *options(ifname, sync_id, **more))


def start_both(ipvs, **more):
    for role in ROLE:
        start(ipvs, role, **more)


def stop(ipvs, role):
    request(ipvs, genl.DEL_DAEMON, state(role))


def stop_all(ipvs):
    for role in ROLE:
        with contextlib.suppress(genl.NetlinkError):
            stop(ipvs, role)


@contextlib.contextmanager
def running(ipvs, role, ifname=DEVICE, sync_id=0, **more):
    """A daemon that runs within the block."""
    start(ipvs, role, ifname, sync_id, **more)
    try:
        yield
    finally:
        try:
            stop(ipvs, role)
        except genl.NetlinkError as error:
            if error.errno != errno.ESRCH:      # the test has stopped it
                raise


def kinds(ipvs):
    """The attributes' numbers of each daemon, as they come."""
    return [[kind for kind, _ in attributes(nest)] for nest in _nests(ipvs)]


def _nests(ipvs):
    for command, payload in ipvs.dump(genl.GET_DAEMON):
        assert command == genl.NEW_DAEMON, f"command {command}"
        ((kind, nest),) = attributes(payload)
        assert kind == genl.DAEMON
        yield nest


def listed(ipvs):
    """The daemons as dictionaries, in the kernel's order."""
    return [_decode(dict(attributes(nest))) for nest in _nests(ipvs)]


def _decode(a):
    def number(kind):
        return int.from_bytes(a[kind], "little")
    group = socket.inet_ntop(socket.AF_INET6, a[genl.DM_GROUP6]) if genl.DM_GROUP6 in a else \
        socket.inet_ntoa(a[genl.DM_GROUP])
    return {"role": {v: k for k, v in ROLE.items()}[number(genl.DM_STATE)],
            "ifname": os.fsdecode(a[genl.DM_IFN].rstrip(b"\0")),
            "sync_id": number(genl.DM_SYNC_ID), "maxlen": number(genl.DM_MAXLEN),
            "group": group, "port": number(genl.DM_PORT), "ttl": number(genl.DM_TTL)}
