# SPDX-License-Identifier: GPL-2.0
"""An independent client of the generic-netlink family IPVS.

Messages are packed here, with the numbers in tests/specs, so that a mistake in
the library of other clients cannot stay hidden. `Genl` is the transport, `Ipvs`
adds the commands; both can send malformed messages, too.
"""

import contextlib
import errno
import os
import socket
import struct

from . import packet
from .spec import NESTED, Spec, attr, attributes  # noqa: F401 - part of this client

NETLINK_GENERIC = 16
CONTROLLER = 16         # the family that knows the others
SOL_NETLINK = 270
NETLINK_CAP_ACK, NETLINK_EXT_ACK = 10, 11
F_REQUEST, F_ACK, F_DUMP = 1, 4, 0x300
F_CAPPED, F_ACK_TLVS = 0x100, 0x200

IPVS, L4LB = Spec("ipvs"), Spec("l4lb")
NEW_SERVICE, SET_SERVICE, DEL_SERVICE, GET_SERVICE, NEW_DEST, SET_DEST, DEL_DEST, \
    GET_DEST, NEW_DAEMON, DEL_DAEMON, GET_DAEMON, SET_CONFIG, GET_CONFIG, GET_INFO, \
    ZERO, FLUSH = map(IPVS.request, IPVS.commands)
SET_INFO = IPVS.reply("get-info")

SERVICE, DEST, DAEMON, TIMEOUT_TCP, TIMEOUT_TCP_FIN, TIMEOUT_UDP = IPVS.numbers("cmd")
S_AF, S_PROTOCOL, S_ADDR, S_PORT, S_FWMARK, S_SCHED, S_FLAGS, S_TIMEOUT, S_NETMASK, \
    S_STATS, S_PE, S_STATS64 = IPVS.numbers("svc")
D_ADDR, D_PORT, D_FWD, D_WEIGHT, D_U, D_L, D_ACTIVE, D_INACT, D_PERSIST, D_STATS, \
    D_AF, D_STATS64, D_TUN_TYPE, D_TUN_PORT, D_TUN_FLAGS = IPVS.numbers("dest")
DM_STATE, DM_IFN, DM_SYNC_ID, DM_MAXLEN, DM_GROUP, DM_GROUP6, DM_PORT, DM_TTL = \
    IPVS.numbers("daemon")

STATS = tuple(IPVS.sets["stats64"])[:-1]    # the last is padding

MASQ, LOCAL, TUNNEL, ROUTE = range(4)
METHOD = {"nat": MASQ, "tun": TUNNEL, "dr": ROUTE}
PERSISTENT, HASHED, ONEPACKET = 1, 2, 4


class NetlinkError(OSError):
    """An error answer; .extack is its sentence, or '', .offset the byte of the
    request that it points to, or None."""

    def __init__(self, code, extack, offset=None):
        self.offset = offset
        super().__init__(code, f"{os.strerror(code)}: {extack}" if extack
                         else os.strerror(code))
        self.extack = extack


def u8(v):
    return struct.pack("=B", v)


def u16(v):
    return struct.pack("=H", v)


def be16(v):
    return struct.pack("!H", v)


def u32(v):
    return struct.pack("=I", v & 0xffffffff)


def text(v):
    return v.encode() + b"\0"


class Genl:
    """A generic-netlink socket in a namespace, bound to one family."""

    def __init__(self, ns, family="IPVS"):
        self.ns = ns
        self.sock = ns.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.sock.bind((0, 0))
        self.sock.settimeout(15)
        self.sock.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.seq = 0
        self.family_id = CONTROLLER
        if family:
            self.resolve(family)

    def resolve(self, family):
        self.family_id = CONTROLLER
        reply = self.request(3, attr(2, text(family)), version=2)[0]
        self.description = dict(attributes(reply[1]))
        self.family_id = struct.unpack("=H", self.description[1])[0]

    def group(self, name):
        """The number of a multicast group."""
        for _, nest in attributes(self.description[7]):
            found = dict(attributes(nest))
            if found[1] == text(name):
                return int.from_bytes(found[2], "little")
        raise KeyError(name)

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def message(self, command, payload=b"", flags=F_ACK, version=1, length=None):
        if isinstance(payload, (list, tuple)):
            payload = b"".join(payload)
        self.seq += 1
        body = struct.pack("=BBH", command, version, 0) + payload
        return struct.pack("=IHHII", 16 + len(body) if length is None else length,
                           self.family_id, F_REQUEST | flags, self.seq, 0) + body

    def request(self, command, payload=b"", flags=F_ACK, version=1):
        """Send; return [(command, payload)] of the answers, or raise."""
        self.sock.send(self.message(command, payload, flags, version))
        return self.answers(dump=flags & F_DUMP == F_DUMP)

    def dump(self, command, payload=b""):
        return self.request(command, payload, flags=F_DUMP)

    def answers(self, dump=False):
        out = []
        while True:
            data = self.sock.recv(1 << 20)
            while data:
                length, kind, flags, seq, _ = struct.unpack("=IHHII", data[:16])
                body, data = data[16:length], data[(length + 3) & ~3:]
                if seq != self.seq:
                    continue
                if kind == 2:  # NLMSG_ERROR
                    self._raise(body, flags)
                    return out
                if kind == 3:  # NLMSG_DONE
                    code = struct.unpack("=i", body[:4])[0] if len(body) >= 4 else 0
                    if code:
                        raise NetlinkError(-code, "")
                    return out
                out.append((body[0], body[4:]))
        return out

    @staticmethod
    def _raise(body, flags):
        code = -struct.unpack("=i", body[:4])[0]
        sentence, offset = "", None
        if flags & F_ACK_TLVS:
            quoted = struct.unpack("=I", body[4:8])[0]
            skip = 20 if flags & F_CAPPED else 4 + ((quoted + 3) & ~3)
            found = dict(attributes(body[skip:]))
            sentence = found.get(1, b"").rstrip(b"\0").decode(errors="replace")
            offset = int.from_bytes(found[2], "little") if 2 in found else None
        if code:
            raise NetlinkError(code, sentence, offset)


def address(a, size=16):
    raw = packet.packed(a)
    return raw + b"\0" * (size - len(raw))


def family_of(a):
    return socket.AF_INET6 if packet.is6(a) else socket.AF_INET


def ident(proto=packet.TCP, addr=None, port=0, fwmark=0, af=None):
    """The attributes that name a service."""
    if fwmark or addr is None:
        return [attr(S_AF, u16(af or socket.AF_INET)), attr(S_FWMARK, u32(fwmark))]
    return [attr(S_AF, u16(af or family_of(addr))), attr(S_PROTOCOL, u16(proto)),
            attr(S_ADDR, address(addr)), attr(S_PORT, be16(port))]


def default_netmask(af):
    return u32(128) if af == socket.AF_INET6 else b"\xff\xff\xff\xff"


def service_options(af, sched="rr", flags=0, mask=0xffffffff, timeout=0, *, netmask=None, pe=None):
    if netmask is None:
        netmask = default_netmask(af)
    elif isinstance(netmask, str):
        netmask = packet.packed(netmask)
    elif isinstance(netmask, int):
        netmask = u32(netmask)
    return [attr(S_SCHED, text(sched)), attr(S_FLAGS, u32(flags) + u32(mask)),
            attr(S_TIMEOUT, u32(timeout)), attr(S_NETMASK, netmask)] + \
        ([] if pe is None else [attr(S_PE, text(pe))])


def dest_ident(addr, port, af=True):
    out = [attr(D_ADDR, address(addr)), attr(D_PORT, be16(port))]
    if af:
        out.append(attr(D_AF, u16(family_of(addr))))
    return out


def dest_options(method=MASQ, weight=1, upper=0, lower=0, tunnel=None):
    """TUNNEL: (type, UDP port, flags), IPIP unless given."""
    out = [attr(D_FWD, u32(method)), attr(D_WEIGHT, u32(weight)),
           attr(D_U, u32(upper)), attr(D_L, u32(lower))]
    if tunnel:
        out += [attr(D_TUN_TYPE, u8(tunnel[0])), attr(D_TUN_PORT, be16(tunnel[1])),
                attr(D_TUN_FLAGS, u16(tunnel[2]))]
    return out


def decode_stats(payload):
    return {STATS[kind - 1]: int.from_bytes(value, "little")
            for kind, value in attributes(payload) if kind <= len(STATS)}


def decode_dest(payload):
    a = dict(attributes(payload))

    def number(kind):
        return int.from_bytes(a[kind], "little")

    af = number(D_AF) if D_AF in a else socket.AF_INET
    size = 16 if af == socket.AF_INET6 else 4
    return {"addr": socket.inet_ntop(af, a[D_ADDR][:size]),
            "port": int.from_bytes(a[D_PORT], "big"),
            "method": number(D_FWD), "weight": number(D_WEIGHT),
            "upper": number(D_U), "lower": number(D_L),
            "active": number(D_ACTIVE), "inactive": number(D_INACT),
            "persistent": number(D_PERSIST), "stats": decode_stats(a[D_STATS64])}


def decode_service(payload):
    a = dict(attributes(payload))
    out = {"af": int.from_bytes(a[S_AF], "little"),
           "sched": a[S_SCHED].rstrip(b"\0").decode(),
           "flags": int.from_bytes(a[S_FLAGS][:4], "little"),
           "timeout": int.from_bytes(a[S_TIMEOUT], "little"),
           "netmask": a[S_NETMASK], "stats": decode_stats(a[S_STATS64])}
    if S_PE in a:
        out["pe"] = a[S_PE].rstrip(b"\0").decode()
    if S_FWMARK in a:
        out["fwmark"] = int.from_bytes(a[S_FWMARK], "little")
    else:
        size = 16 if out["af"] == socket.AF_INET6 else 4
        out.update(proto=int.from_bytes(a[S_PROTOCOL], "little"),
                   addr=socket.inet_ntop(out["af"], a[S_ADDR][:size]),
                   port=int.from_bytes(a[S_PORT], "big"))
    return out


class Service:
    """A virtual service, by name; made by Ipvs.service()."""

    def __init__(self, ipvs, id_, af, options):
        self.ipvs, self.ident, self.af, self.options = ipvs, id_, af, options

    def _nest(self):
        return attr(SERVICE, self.ident)

    def add(self):
        self.ipvs.request(NEW_SERVICE, attr(
            SERVICE, self.ident + service_options(self.af, **self.options)))
        return self

    def edit(self, **options):
        self.options = {**self.options, **options}
        self.ipvs.request(SET_SERVICE, attr(
            SERVICE, self.ident + service_options(self.af, **self.options)))

    def delete(self):
        self.ipvs.request(DEL_SERVICE, self._nest())

    def zero(self):
        self.ipvs.request(ZERO, self._nest())

    def get(self):
        reply = self.ipvs.request(GET_SERVICE, self._nest())
        return decode_service(dict(attributes(reply[0][1]))[SERVICE])

    @property
    def stats(self):
        return self.get()["stats"]

    def server(self, addr, port=0, command=NEW_DEST, **options):
        self.ipvs.request(command, self._nest() + attr(
            DEST, dest_ident(addr, port) + dest_options(**options)))

    def edit_server(self, addr, port=0, **options):
        self.server(addr, port, command=SET_DEST, **options)

    def delete_server(self, addr, port=0):
        self.ipvs.request(DEL_DEST, self._nest() + attr(DEST, dest_ident(addr, port)))

    def servers(self):
        """The real servers in the kernel's order (newest first)."""
        return [decode_dest(dict(attributes(p))[DEST])
                for _, p in self.ipvs.dump(GET_DEST, self._nest())]

    def tunnels(self):
        """{address: (type, UDP port, flags)} of the real servers."""
        found = [dict(attributes(dict(attributes(p))[DEST])) for _, p in self.ipvs.dump(GET_DEST, self._nest())]
        return {socket.inet_ntop(socket.AF_INET, d[D_ADDR][:4]):
                (d[D_TUN_TYPE][0], int.from_bytes(d[D_TUN_PORT], "big"),
                 int.from_bytes(d[D_TUN_FLAGS], "little")) for d in found}

    def find(self, addr, port=None):
        found = [d for d in self.servers()
                 if d["addr"] == addr and port in (None, d["port"])]
        return found[0] if found else None


class Ipvs(Genl):
    """Family IPVS, command by command."""

    def service(self, addr=None, port=0, proto=packet.TCP, fwmark=0, af=None,
                *, add=True, **options):
        af = af or (family_of(addr) if addr else socket.AF_INET)
        service = Service(self, ident(proto, addr, port, fwmark, af), af, options)
        return service.add() if add else service

    def services(self):
        return [decode_service(dict(attributes(p))[SERVICE])
                for _, p in self.dump(GET_SERVICE)]

    def flush(self):
        self.request(FLUSH)

    def zero(self):
        self.request(ZERO)

    def timeouts(self, tcp=None, fin=None, udp=None):
        """Set the timeouts that are given; returns all three in seconds."""
        new = [attr(kind, u32(value)) for kind, value in
               ((TIMEOUT_TCP, tcp), (TIMEOUT_TCP_FIN, fin), (TIMEOUT_UDP, udp))
               if value is not None]
        if new:
            self.request(SET_CONFIG, new)
        got = dict(attributes(self.request(GET_CONFIG)[0][1]))
        return tuple(int.from_bytes(got[k], "little")
                     for k in (TIMEOUT_TCP, TIMEOUT_TCP_FIN, TIMEOUT_UDP))


# Family L4LB
GET_SCHEDULER, GET_OPTIONS, SET_OPTIONS, GET_POLICY, SET_POLICY, SET_SERVICES, \
    GET_SERVICES, GET_CONNS, GET_SYNC, SET_SYNC, NEW_PEER, DEL_PEER, SYNC_RESYNC, SYNC_VERIFY, \
    GET_EVENT, SET_DRAIN, GET_DRAIN, KILL_CONNS, EXPORT_CONNS, IMPORT_CONNS, LOG_CONNS, \
    TRY_SCHEDULER, GET_SHADOW, GET_LATENCY, SET_SERVER, ZERO_SERVICE = map(L4LB.request, L4LB.commands)
L_SERVICE, L_SCHEDULER, L_OPTIONS, L_POLICY, L_DESTS, L_ENTRY, L_MODE, L_LIVE, L_CONN, L_BANDS, \
    L_SYNC, L_PEER, L_PUSH, L_EVENT, L_SEQ, L_COUNT, L_PAD, \
    L_DRAIN, L_RESET, L_EXACT, L_REMOVE, L_HANDOVER, L_OWNER, L_PROTECTED, L_LIMITED, \
    L_TRIAL, L_SHADOW, L_SHADOW_STATS, L_LATENCY, L_RANGES, L_TIMEOUTS = L4LB.numbers("main")
MERGE, ADD, REPLACE, CHANGE = range(4)
# Linux 6.1 cannot send a sentence when it refuses to begin a dump, nor put one together.
SAYS_WHY = not os.uname().release.startswith("6.1.")
SO_SNDBUFFORCE = 32
SC_NAME, SC_FLAGS, SC_OPTIONS = L4LB.numbers("sched")
O_NAME, O_VALUE, O_MIN, O_MAX, O_DEFAULT, O_WHAT, O_KEY, O_FD, O_PATH, O_COUNT = L4LB.numbers("option")
POLICY = {name.removeprefix("timeout-").replace("-", "_"): a.number
          for name, a in L4LB.sets["policy"].items()}
TIMEOUTS = {name.replace("-", "_"): a.number for name, a in L4LB.sets["timeouts"].items()}
DRAIN = {name.replace("-", "_"): a for name, a in L4LB.sets["drain"].items()}
HANDOVER = {a.number: name.replace("-", "_") for name, a in L4LB.sets["handover"].items()}
CONN = {name.replace("-", "_"): a for name, a in L4LB.sets["conn"].items()}
F_TEMPLATE, F_ACTIVE, F_FAST_CLIENT, F_FAST_SERVER, F_COPY = (
    1 << n for n in range(len(L4LB.enums["conn-flags"])))


@contextlib.contextmanager
def without_connections(ns):
    """Family L4LB in NS, whose connections are ended first."""
    with L4lb(ns) as l4lb:
        l4lb.kill()
        yield l4lb


def option(name, value):
    """VALUE: a number, the 16 bytes of a key, or a file: (descriptor, its path or None)."""
    if isinstance(value, bytes):
        inner = [attr(O_KEY, value)]
    elif isinstance(value, tuple):
        inner = [attr(O_FD, struct.pack("=i", value[0]))] + [attr(O_PATH, text(p)) for p in value[1:] if p]
    else:
        inner = [attr(O_VALUE, u32(value))]
    return attr(1, [attr(O_NAME, text(name)), *inner])


def decode_scheduler(payload):
    """{"name", "flags", "options": {name: {"value", "min", ...}}}"""
    a = dict(attributes(payload))
    options = {}
    for _, nest in attributes(a[SC_OPTIONS]):
        o = dict(attributes(nest))
        options[o[O_NAME].rstrip(b"\0").decode()] = {
            **{key: int.from_bytes(o[kind], "little") for key, kind in (
                ("value", O_VALUE), ("min", O_MIN), ("max", O_MAX), ("default", O_DEFAULT))
               if kind in o},
            **({"key": True} if O_KEY in o else {}),
            **({"path": o[O_PATH].rstrip(b"\0").decode()} if O_PATH in o else {}),
            **({"count": True} if O_COUNT in o else {}),
            "what": o[O_WHAT].rstrip(b"\0").decode()}
    return {"name": a[SC_NAME].rstrip(b"\0").decode(),
            "flags": int.from_bytes(a[SC_FLAGS], "little"), "options": options}


def batch_server(addr, port=80, **options):
    """One element of DESTS."""
    return attr(1, dest_ident(addr, port) + dest_options(**options))


def claim(owner=None, protected=None, shadow=None):
    """OWNER, PROTECTED and SHADOW, those that are not None."""
    return ([] if owner is None else [attr(L_OWNER, text(owner))]) + \
        ([] if protected is None else [attr(L_PROTECTED, u8(protected))]) + \
        ([] if shadow is None else [attr(L_SHADOW, text(shadow))])


def policy_values(values):
    """Attributes of POLICY; that of snat is a pair of addresses, or 0."""
    return [attr(POLICY[k], [attr(n, packet.packed(end)) for n, end in enumerate(v or (), 1)]
                 if k == "snat" else u32(v)) for k, v in values.items()]


def batch_entry(addr=None, port=80, servers=(), proto=packet.TCP, fwmark=0, *, af=None,
                options=(), policy=None, exact=False, owner=None, protected=None, shadow=None,
                **settings):
    """An entry of SET_SERVICES. SERVERS: addresses, or results of batch_server();
    OPTIONS: (name, value). EXACT: the service has no other servers afterwards."""
    af = af or (family_of(addr) if addr else socket.AF_INET)
    inner = [attr(L_SERVICE, ident(proto, addr, port, fwmark, af) +
                  service_options(af, **settings))]
    if options:
        inner.append(attr(L_OPTIONS, [option(*o) for o in options]))
    if policy:
        inner.append(attr(L_POLICY, policy_values(policy)))
    if servers:
        inner.append(attr(L_DESTS, [s if isinstance(s, bytes) else batch_server(s)
                                    for s in servers]))
    if exact:
        inner.append(attr(L_EXACT, b""))
    inner += claim(owner, protected, shadow)
    return attr(L_ENTRY, inner)


def batch_removal(addr=None, port=80, *more, proto=packet.TCP, fwmark=0):
    """An entry that removes a service. MORE: attributes that it should not have."""
    af = family_of(addr) if addr else socket.AF_INET
    return attr(L_ENTRY, [attr(L_SERVICE, ident(proto, addr, port, fwmark, af)),
                          attr(L_REMOVE, b""), *more])


def handover(payload):
    found = {HANDOVER[kind]: value
             for kind, value in attributes(dict(attributes(payload))[L_HANDOVER])}
    return {name: value if name == "message" else int.from_bytes(value, "little")
            for name, value in found.items()}


def conn_filter(**want):
    """CONN of a request, by the spec's names; the families follow from the addresses
    unless they are given."""
    for af, names in (("server_af", ("server",)), ("af", ("client", "vip"))):
        known = [want[name] for name in names if name in want]
        if known and af not in want:
            want = {af: family_of(known[0]), **want}
    return attr(L_CONN, [attr(CONN[k].number, packet.packed(v) if CONN[k].type == "binary"
                              else CONN[k].pack(v)) for k, v in want.items()])


def decode_conn(payload, af=None):
    """A connection by the spec's names; flags are a number."""
    a = dict(attributes(payload))
    a.pop(CONN["pad"].number, None)
    out = {k: v.read(a.pop(v.number)) for k, v in CONN.items()
           if (v.format or k in ("state", "call_id")) and v.number in a}
    af = out.get("af", af)
    for k, family in (("client", af), ("vip", af), ("server", out.get("server_af", af)),
                      ("local", af)):
        if CONN[k].number in a:
            out[k] = socket.inet_ntop(family, a.pop(CONN[k].number))
    if CONN["template"].number in a:
        out["template"] = decode_conn(a.pop(CONN["template"].number), af)
    assert not a, a
    return out


class L4lb(Genl):
    """Family L4LB, command by command. Services are those of Ipvs.service()."""

    def __init__(self, ns):
        super().__init__(ns, "L4LB")

    def schedulers(self):
        found = [decode_scheduler(dict(attributes(p))[L_SCHEDULER])
                 for _, p in self.dump(GET_SCHEDULER)]
        return {s["name"]: s for s in found}

    def scheduler(self, name):
        reply = self.request(GET_SCHEDULER, attr(L_SCHEDULER, [attr(SC_NAME, text(name))]))
        return decode_scheduler(dict(attributes(reply[0][1]))[L_SCHEDULER])

    def options(self, service):
        """The answer of GET_OPTIONS about the service's scheduler."""
        reply = self.request(GET_OPTIONS, attr(L_SERVICE, service.ident))
        return decode_scheduler(dict(attributes(reply[0][1]))[L_SCHEDULER])

    def values(self, service):
        return {k: o["value"] for k, o in self.options(service)["options"].items()}

    def set(self, service, *pairs, **options):
        """PAIRS: (name, value), for names that are not Python identifiers."""
        self.request(SET_OPTIONS, attr(L_SERVICE, service.ident) + attr(
            L_OPTIONS, [option(*pair) for pair in (*pairs, *options.items())]))


    @staticmethod
    def _policy(payload):
        found = dict(attributes(dict(attributes(payload))[L_POLICY]))
        ends = [socket.inet_ntop(socket.AF_INET if len(end) == 4 else socket.AF_INET6, end)
                for _, end in attributes(found.pop(POLICY["snat"]))]
        return {name: int.from_bytes(found[kind], "little") for name, kind in POLICY.items()
                if name != "snat"} | {"snat": tuple(ends) or 0}

    def policy(self, service):
        return self.policy_of(service.ident)

    def policy_of(self, ident):
        return self._policy(self.request(GET_POLICY, attr(L_SERVICE, ident))[0][1])

    def claim(self, service, owner=None, protected=None):
        """Sets what is not None; returns (owner, protected)."""
        name = attr(L_SERVICE, service.ident)
        new = claim(owner, protected)
        if new:
            self.request(SET_POLICY, [name, *new])
        got = dict(attributes(self.request(GET_POLICY, name)[0][1]))
        return got.get(L_OWNER, b"").rstrip(b"\0").decode(), got.get(L_PROTECTED, b"\0")[0]

    def bands(self, service):
        """[(packets, bytes)] that have left in each band."""
        got = dict(attributes(self.request(GET_POLICY, attr(L_SERVICE, service.ident))[0][1]))
        return [tuple(int.from_bytes(dict(attributes(band))[kind], "little") for kind in (1, 2))
                for _, band in attributes(got.get(L_BANDS, b""))]

    def limited(self, service):
        """New connections that a limit has refused; None: it never had one."""
        got = dict(attributes(self.request(GET_POLICY, attr(L_SERVICE, service.ident))[0][1]))
        return int.from_bytes(got[L_LIMITED], "little") if L_LIMITED in got else None

    def policies(self):
        """{packed name: policy} of the services that have a policy."""
        found = self.dump(GET_POLICY)
        return {dict(attributes(p))[L_SERVICE]: self._policy(p) for _, p in found}

    def set_services(self, entries, mode=None):
        """Send packed ENTRIES in one message, whatever its size."""
        payload = b"".join(entries)
        if len(payload) > 100000:
            self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, len(payload) + 4096)
            self.sock.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        if mode is not None:
            payload = attr(L_MODE, u32(mode)) + payload
        self.request(SET_SERVICES, payload)

    def get_services(self, *name, live=False):
        """The packed entries. NAME: attributes of the services wanted."""
        filters = (attr(L_SERVICE, list(name)) if name else b"") + \
            (attr(L_LIVE, b"") if live else b"")
        return [attr(L_ENTRY | NESTED, dict(attributes(p))[L_ENTRY])
                for _, p in self.dump(GET_SERVICES, filters)]

    def conns(self, **want):
        """Connections and templates, in the kernel's order."""
        return [decode_conn(dict(attributes(p))[L_CONN])
                for _, p in self.dump(GET_CONNS, conn_filter(**want) if want else b"")]

    def conns_of(self, ident):
        """Those of one service."""
        return [decode_conn(dict(attributes(p))[L_CONN])
                for _, p in self.dump(GET_CONNS, attr(L_SERVICE, ident))]

    def drain(self, service, addr, port, *, af=None, **values):
        """VALUES: seconds, then (a word), last_weight."""
        if "then" in values:
            values["then"] = L4LB.enums["then"].index(values["then"])
        nest = [attr(DRAIN["addr"].number, packet.packed(addr)),
                attr(DRAIN["port"].number, be16(port)),
                attr(DRAIN["af"].number, u16(af or family_of(addr))),
                *(attr(DRAIN[name].number, u32(value)) for name, value in values.items())]
        self.request(SET_DRAIN, attr(L_SERVICE, service.ident) + attr(L_DRAIN, nest))

    def kill(self, reset=False, **want):
        """The number of connections and templates that were ended."""
        reply = self.request(KILL_CONNS, conn_filter(**want) + (attr(L_RESET, b"") if reset else b""))
        return int.from_bytes(dict(attributes(reply[0][1]))[L_COUNT], "little")

    def export(self):
        """[{"records", "left_out", "message"}] of all connections."""
        return [handover(payload) for _, payload in self.dump(EXPORT_CONNS)]

    def import_(self, message):
        """{"records", "no_server", "full", "unsupported"} of MESSAGE's connections."""
        reply = self.request(IMPORT_CONNS, attr(L_HANDOVER, [attr(1, message)]))
        return handover(reply[0][1])

    def drains(self):
        """[{"server", "port", "last_weight", "then", "left", "ramp"}], the last three if there are any."""
        out = []
        for _, payload in self.dump(GET_DRAIN):
            found = dict(attributes(dict(attributes(payload))[L_DRAIN]))
            af = int.from_bytes(found[DRAIN["af"].number], "little")
            addr = found[DRAIN["addr"].number][:4 if af == socket.AF_INET else 16]
            out.append({"server": socket.inet_ntop(af, addr),
                        "port": int.from_bytes(found[DRAIN["port"].number], "big"),
                        **{name: int.from_bytes(found[DRAIN[name].number], "little")
                           for name in ("last_weight", "then", "left", "ramp")
                           if DRAIN[name].number in found}})
            if "then" in out[-1]:
                out[-1]["then"] = L4LB.enums["then"][out[-1]["then"]]
        return out

    def set_policy(self, service, **values):
        self.request(SET_POLICY, attr(L_SERVICE, service.ident) + attr(
            L_POLICY, policy_values(values)))


def conns(ns, origin=False):
    """The rows of /proc/net/ip_vs_conn as dictionaries; with ORIGIN those of
    ip_vs_conn_sync, which say whether another director has announced them."""
    rows, more = [], ("origin",) if origin else ()
    for line in ns.read("/proc/net/ip_vs_conn" + ("_sync" if origin else "")).splitlines()[1:]:
        f = line.split()
        engine = dict(zip(("pe", "call"), f[9:])) if not origin else {}
        rows.append({"proto": f[0], "client": _unhex(f[1]), "cport": int(f[2], 16),
                     "vip": _unhex(f[3]), "vport": int(f[4], 16),
                     "server": _unhex(f[5]), "dport": int(f[6], 16),
                     "state": f[7], **dict(zip(more, f[8:])), "expires": int(f[8 + len(more)]), **engine})
    return rows


def _unhex(text_address):
    if ":" in text_address:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(
            socket.AF_INET6, text_address))
    return socket.inet_ntoa(bytes.fromhex(text_address))


def is_refused(call, code):
    """Run CALL, check that it fails with errno CODE, return the sentence."""
    try:
        call()
    except NetlinkError as e:
        assert e.errno == code, \
            f"{errno.errorcode.get(e.errno, e.errno)} instead of {errno.errorcode[code]}"
        return e.extack
    raise AssertionError(f"accepted, expected {errno.errorcode[code]}")
