# SPDX-License-Identifier: GPL-2.0
"""Calls of SIPp, a real SIP client, to SIPp as a server, through persistence engine sip."""

import re

import pytest
from lab import genl
from lab.genl import ONEPACKET, PERSISTENT
from lab.netns import SLOW, wait_until
from lab.packet import UDP

PORT = 5060
CALLS = 40


pytestmark = pytest.mark.usefixtures("sip_engine")


def sipp(node, folder, *options):
    return node.ns.popen(["sipp", *options, "-nostdin", "-nd"], cwd=folder)


@pytest.fixture
def servers(nat, family, tmp_path):
    """A SIP server on each real server."""
    started = []
    for number in (1, 2):
        folder = tmp_path / f"rs{number}"
        folder.mkdir()
        node = nat.topo.servers[number - 1]
        started.append(sipp(node, folder, "-sn", "uas", "-i", nat.rip(number, family), "-p", str(PORT),
                            "-trace_logs"))
        wait_until(lambda n=node: f":{PORT:04X} " in n.ns.read("/proc/net/udp6" if family == 6 else
                                                                "/proc/net/udp"), 10, what="a SIP server")
    yield
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("sockets", "flags"), [("un", 0), ("u1", ONEPACKET), ("u1", 0)],
                         ids=("socket-each", "one-packet", "one-socket"))
def test_calls(nat, family, servers, tmp_path, sockets, flags):
    """Each call succeeds: all its messages get to one server, and the answers to the client.
    Calls are spread, unless they are one flow."""
    vip = nat.vip(family)
    service = nat.ipvs.service(vip, PORT, proto=UDP, sched="rr", flags=PERSISTENT | flags, timeout=60,
                               pe="sip")
    for number in (1, 2):
        service.server(nat.rip(number, family), PORT, method=genl.MASQ)
    before = {None, *(row.get("call") for row in nat.conns(vip=vip, cport=0))}
    target = f"[{vip}]:{PORT}" if family == 6 else f"{vip}:{PORT}"
    client = sipp(nat.topo.client, tmp_path, "-sn", "uac", target, "-t", sockets, "-i", nat.cip(family),
                  "-m", str(CALLS), "-r", "40", "-d", "10", "-timeout", str(int(30 * SLOW)),
                  "-max_socket", "500", "-trace_err", "-cid_str", "%u-%p@%s")
    assert client.wait(timeout=60 * SLOW) == 0, [p.read_text() for p in tmp_path.glob("*errors.log")]
    rows = [row for row in nat.conns(vip=vip, cport=0) if row.get("call") not in before]
    share = {n: sum(row["server"] == nat.rip(n, family) for row in rows) for n in (1, 2)}
    if sockets == "u1" and not flags:
        assert sorted(share.values()) == [0, 1]
    else:
        assert share == {1: CALLS // 2, 2: CALLS // 2}
        assert len({row["call"] for row in rows}) == CALLS
        assert all(re.fullmatch(r"\S+@\S+", row["call"]) for row in rows)
    service.delete()
