# SPDX-License-Identifier: GPL-2.0
"""A client reuses its port: whatever the state of the old connection and of its
server, the SYN reaches a real server."""

import pytest
from lab.packet import SYN, TCP
from lab.raw import Raw
from lab.settings import setting
from lab.tcp import IN, IN_ONLY, OUT, SR
from lab.walk import way

TABLES = {"nat": {"in": IN, "out": OUT}, "dr": {"in": IN_ONLY}, "tun": {"in": IN_ONLY}}
FATES = ("stays", "drains", "is removed")
MODES = (0, 1, 2, 3)


def walks(tables):
    """{state: events that lead there from a SYN} for each state that can be reached."""
    found = {}
    for state in {*IN[SYN], SR, "ESTABLISHED", "CLOSE_WAIT", "TIME_WAIT"}:
        steps = way(tables, SR, lambda s, state=state: s == state)
        if steps is not None:
            found[state] = steps
    return found


def clients_in(raw, tables):
    """{state: a client whose connection is in it}"""
    out = {}
    for state, steps in walks(tables).items():
        client = out[state] = raw.client()
        client.open()
        for direction, flags in steps:
            if direction == "in":
                client.send(flags)
                client.arrive()
            else:
                client.reply(flags).answered()
        assert client.state == state
    return out


def lost_syns(raw, tables, fate):
    """The states in which a SYN did not reach a server."""
    clients = clients_in(raw, tables)
    if fate == "drains":
        raw.edit(1, weight=0)
    elif fate == "is removed":
        raw.remove(1)
    for client in clients.values():
        client.send(SYN)
    raw.fence()
    return {state for state, client in clients.items() if len(client.arrivals()) != 1}


def reuse(lab, family, backend, modes):
    tables = TABLES[lab.shape]
    lost = {}
    for mode in modes:
        for expire in (0, 1):
            with setting(lab, "conn_reuse_mode", mode), \
                    setting(lab, "expire_nodest_conn", expire):
                for fate in FATES:
                    raw = Raw(lab, TCP, family, (1, 2))
                    if found := lost_syns(raw, tables, fate):
                        lost[mode, expire, fate] = found
                    raw.service.delete()
    if backend.is_l4lb:
        assert lost == {}
    else:       # complaint: dropped while the removed server's connection exists
        assert {key[1:] for key in lost} == {(0, "is removed")}


@pytest.mark.smoke
def test_no_syn_is_lost(nat, family, backend):
    reuse(nat, family, backend, (1,))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_no_syn_is_lost_ever(lab, family, backend, mode):
    reuse(lab, family, backend, (mode,))
