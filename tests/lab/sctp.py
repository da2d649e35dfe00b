# SPDX-License-Identifier: GPL-2.0
"""SCTP: the states of an association, and real associations through a director."""

import contextlib
import random
import socket

from . import walk
from .farm import pattern
from .netns import run, wait_until
from .packet import (
    ABORT,
    COOKIE_ACK,
    COOKIE_ECHO,
    CWR,
    DATA,
    ECNE,
    ERROR,
    HEARTBEAT,
    HEARTBEAT_ACK,
    INIT,
    INIT_ACK,
    SACK,
    SCTP,
    SHUTDOWN,
    SHUTDOWN_ACK,
    SHUTDOWN_COMPLETE,
)

I1, IN, CS, CR, CW, CO, CE, ES, SS, SR, SA, RJ, CL = STATES = (
    "INIT1", "INIT", "C-SENT", "C-REPLIED", "C-WAIT", "COOKIE", "C-ECHOED", "ESTABLISHED",
    "S-SENT", "S-RECEIVED", "S-ACK-SENT", "REJECTED", "CLOSED")
TIMEOUT = {**dict.fromkeys(STATES, 61), I1: 4, RJ: 4, ES: 900}


def to(state, *sources):
    return dict.fromkeys(sources, state)


# {chunk: {state: next state}}; states not listed do not change.
CLIENT = {DATA: {}, INIT: to(IN, I1, RJ, CL), INIT_ACK: {**to(CW, I1, IN), CW: CO},
          COOKIE_ECHO: {CS: CR, I1: IN}, COOKIE_ACK: {CE: ES}, SHUTDOWN: {ES: SR},
          SHUTDOWN_ACK: {**to(CL, SS, SA), I1: IN}, SHUTDOWN_COMPLETE: to(CL, I1, IN, SA),
          ERROR: {CE: CL}, ABORT: {**to(CL, *STATES), CW: RJ}}
SERVER = {DATA: {}, INIT: {**to(CW, *STATES), ES: ES}, INIT_ACK: to(CS, I1, IN),
          COOKIE_ECHO: to(CE, I1, IN, CS, CR, CW, CO),
          COOKIE_ACK: to(ES, I1, IN, CS, CR, CW, CO, CE),
          SHUTDOWN: to(SS, I1, IN, CS, CR, CW, CO, CE, ES),
          SHUTDOWN_ACK: to(SA, I1, IN, CS, CR, SS, SR), SHUTDOWN_COMPLETE: {},
          ERROR: to(CL, I1, IN, CS, CR), ABORT: {**to(CL, *STATES), I1: RJ}}
CLIENT_ALONE = {DATA: {CW: ES}, INIT: to(IN, I1, CS, CR, CW, RJ, CL),
                INIT_ACK: to(CE, I1, IN, CS, CR, CW), COOKIE_ECHO: to(ES, I1, IN, CS, CR, CW),
                COOKIE_ACK: to(ES, CS, CR, CO, CE), SHUTDOWN: {ES: SR},
                SHUTDOWN_ACK: {**to(CL, ES, SS, SA), I1: IN},
                SHUTDOWN_COMPLETE: to(CL, I1, IN, CS, CR, SR, SA), ERROR: {},
                ABORT: {**to(CL, *STATES), CW: RJ}}
# Except that an INIT on a closed association makes a new one.
TABLES = {"nat": {"in": CLIENT | {INIT: CLIENT[INIT] | {CL: I1}}, "out": SERVER},
          "dr": {"in": CLIENT_ALONE | {INIT: CLIENT_ALONE[INIT] | {CL: I1}}}}
# {chunk: packets in which it decides, as their chunks}
DRESSED = {DATA: ((DATA,), (SACK,), (HEARTBEAT,), (HEARTBEAT_ACK,), (ECNE,), (CWR,), (0xc1,),
                  (SACK, ABORT)),
           COOKIE_ECHO: ((COOKIE_ECHO,), (COOKIE_ECHO, DATA)),
           COOKIE_ACK: ((COOKIE_ACK,), (COOKIE_ACK, SACK)),
           ABORT: ((ABORT,), (COOKIE_ECHO, ABORT), (COOKIE_ACK, ABORT))}


class Walker(walk.Walker):
    """An association."""

    PROTO, TIMEOUT, ACTIVE = SCTP, TIMEOUT, (ES,)

    def __init__(self, lab, family):
        super().__init__(lab, family, TABLES["nat" if lab.shape == "nat" else "dr"], I1)

    def arguments(self, event, dressed):
        return dressed or (event,), b"x" * random.randrange(40)


@contextlib.contextmanager
def device_computes(lab, on):
    """Inside, whether the director's devices compute the CRC instead of the sender."""
    def switch(to):
        for device in {"eth0", lab.back}:
            lab.director.ns.run(f"ethtool -K {device} tx-checksum-sctp {to}")
    switch("on" if on else "off")
    try:
        yield
    finally:
        switch("on")


def associate(lab, family, server=None, clients=20, *, prepare=None, **options):
    """SERVER(number): the server's address for the director; OPTIONS: of the servers.
    PREPARE(service) returns the addresses that servers may see."""
    server = server or (lambda number: lab.rip(number, family))
    shape, port = lab.shape, lab.fresh_port()
    dport = port + 20000 if shape == "nat" else port
    lab.flush()
    run(["modprobe", "sctp"])
    before = errors(lab)
    service = lab.ipvs.service(lab.vip(family), port, proto=SCTP, sched="rr")
    servers = []
    for number, node in enumerate(lab.servers, 1):
        service.server(server(number), dport, method=lab.method, **options)
        servers.append(listener(node.ns, family, lab.rip(number, family) if shape == "nat"
                                else lab.vip(family), dport))
    seen = prepare(service) if prepare else {lab.cip(family)}
    for n in range(clients):
        client = lab.client.ns.socket(FAMILY[family], socket.SOCK_STREAM, socket.IPPROTO_SCTP)
        client.settimeout(10)
        client.bind((lab.cip(family), 0))
        client.connect((lab.vip(family), port))
        at_server, peer = servers[n % 4].accept()
        assert peer[0] in seen
        at_server.settimeout(10)
        # The last needs several segments: the sender leaves segmentation to its device.
        for size in (1, 2, 3, 1000 + n, 60000):
            for here, there in ((client, at_server), (at_server, client)):
                here.sendall(pattern(size))
                assert received(there, size) == pattern(size)
        client.close()
        assert at_server.recv(10) == b""
        at_server.close()
    for sock in servers:
        sock.close()
    wait_until(lambda: {r["state"] for r in lab.conns(vip=lab.vip(family), vport=port)} <=
               {CL, SA, SR}, 10, what="associations closed")
    assert [d["active"] for d in service.servers()] == [0] * 4
    assert errors(lab) == before


FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def listener(ns, family, address, port):
    sock = ns.socket(FAMILY[family], socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    # Bound to one address each, associations do not announce further ones.
    sock.bind((address, port))
    sock.listen(8)
    sock.settimeout(10)
    return sock


def errors(lab):
    """Each host's counts of packets with a wrong checksum, and of "out of the blue" ones."""
    names = ("SctpChecksumErrors", "SctpOutOfBlues")
    lines = [line.split() for node in lab.nodes.values()
             for line in node.ns.read("/proc/net/sctp/snmp").splitlines()]
    return [int(value) for name, value in lines if name in names]


def received(sock, size):
    got = b""
    while len(got) < size:
        got += sock.recv(65536)
    return got
