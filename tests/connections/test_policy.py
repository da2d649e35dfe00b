# SPDX-License-Identifier: GPL-2.0
"""A service's policy: the messages of family L4LB that read and set it. Its effects
are tested in test_policy_packets.py."""

import errno
import socket
from pathlib import Path

import pytest
from lab import genl, shadows
from lab.genl import POLICY, attr, u16, u32
from lab.packet import SCTP, TCP, UDP

V4, V6 = "198.51.100.171", "2001:db8:1::171"
NONE = dict.fromkeys(POLICY, 0)
FORTNIGHT = 14 * 86400
MAX = dict.fromkeys(POLICY, FORTNIGHT) | {
    "on_idle": 1, "on_loss": 3, "on_drain": 2, "guard": 2, "fast_path": 3, "priority": 1, "sync": 3,
    "log": 1, "ramp": 86400, "limit_rate": 10_000_000, "limit_burst": 10_000_000,
    "limit_conns": 2**31 - 1, "limit_reply": 1, "latency": 1, "conn_state": 1,
    "las_bytes_0": 2**32 - 1, "las_bytes_1": 2**32 - 1, "las_bytes_2": 2**32 - 1}
del MAX["snat"]     # no number: test_full_nat.py
# Ends of bands must ascend: the values that each needs before it.
FIRST = {"las_bytes_1": {"las_bytes_0": 1}, "las_bytes_2": {"las_bytes_0": 1, "las_bytes_1": 2}}
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.mark.parametrize("vip", (V4, V6, 77))
def test_set_and_get(ipvs, l4lb, vip):
    s = ipvs.service(fwmark=vip, sched="rr") if vip == 77 else \
        ipvs.service(vip, 80, proto=UDP, sched="rr")
    assert l4lb.policy(s) == NONE
    for name, largest in MAX.items():
        if vip == 77 and name == "guard" or name == "conn_state":
            continue        # needs an address; TCP, and a scheduler that hashes: test_lazy.py
        values = FIRST.get(name, {}) | {name: largest}
        l4lb.set_policy(s, **values)
        assert l4lb.policy(s) == NONE | values
        l4lb.set_policy(s, **dict.fromkeys(values, 0))
    l4lb.set_policy(s, tcp=5, udp=7)
    l4lb.set_policy(s, udp=8, tcp_fin=9)
    assert l4lb.policy(s) == NONE | {"tcp": 5, "udp": 8, "tcp_fin": 9}
    # Another service is not affected.
    assert l4lb.policy(ipvs.service(V4, 81, sched="rr")) == NONE


@pytest.mark.parametrize("name", [n for n in MAX if not n.startswith("las")])
def test_out_of_range(ipvs, l4lb, name):
    """The answer names the value and its range, and nothing changes, whatever else
    the message contains."""
    s = ipvs.service(V4, 80, sched="rr")
    l4lb.set_policy(s, udp=3, tcp=3)
    before = l4lb.policy(s)
    for value in (MAX[name] + 1, 2**31, 2**32 - 1):
        for others in ({}, {"tcp": 9}, {"udp": 9}):
            sentence = genl.is_refused(
                lambda v=value, o=others: l4lb.set_policy(s, **(o | {name: v})), errno.ERANGE)
            kind = "TIMEOUT_" if MAX[name] == FORTNIGHT else ""
            assert sentence == f"policy: {kind}{name.upper()} must be 0 to {MAX[name]}"
            assert l4lb.policy(s) == before


@pytest.mark.parametrize("ends", ((2, 1, 0), (2, 2, 0), (1, 2, 2), (1, 3, 2), (0, 1, 0), (0, 0, 1),
                                  (1, 0, 2), (2**32 - 1, 1, 2)))
def test_bands_grow(ipvs, l4lb, ends):
    s = ipvs.service(V4, 80, sched="rr")
    l4lb.set_policy(s, priority=1, las_bytes_0=5)
    before = l4lb.policy(s)
    sentence = genl.is_refused(lambda: l4lb.set_policy(
        s, tcp=9, **{f"las_bytes_{n}": end for n, end in enumerate(ends)}), errno.EINVAL)
    assert "LAS_BYTES" in sentence
    assert l4lb.policy(s) == before


def test_bad_messages(ipvs, l4lb):
    s = ipvs.service(V4, 80, sched="rr")
    name, some = attr(genl.L_SERVICE, s.ident), attr(genl.L_POLICY, [attr(1, u32(5))])
    missing = attr(genl.L_SERVICE, genl.ident(addr=V4, port=99))

    def refused(code, command, payload, flags=genl.F_ACK):
        sentence = genl.is_refused(lambda: l4lb.request(command, payload, flags=flags),
                                   getattr(errno, code))
        assert len(sentence) > 8 and "\n" not in sentence, sentence
        return sentence

    assert "SERVICE is missing" in refused("EINVAL", genl.GET_POLICY, b"")
    assert "SERVICE is missing" in refused("EINVAL", genl.SET_POLICY, some)
    assert "POLICY is missing" in refused("EINVAL", genl.SET_POLICY, name)
    assert "POLICY is missing" in refused("EINVAL", genl.SET_POLICY,
                                          name + attr(genl.L_POLICY, []))
    assert "no such service" in refused("ESRCH", genl.GET_POLICY, missing)
    assert "no such service" in refused("ESRCH", genl.SET_POLICY, missing + some)
    refused("EINVAL", genl.GET_POLICY, name + some)
    for wrong in ([attr(len(POLICY) + 1, u32(0))], [attr(0, u32(0))], [attr(1, u16(5))],
                  [attr(1, u32(5) * 2)], [attr(1, [u32(5)])], b"\x05\x00\x01\x00\x07"):
        nest = attr(genl.L_POLICY, wrong) if isinstance(wrong, list) else \
            attr(genl.L_POLICY | genl.NESTED, wrong)
        refused("EINVAL", genl.SET_POLICY, name + nest)
    refused("EINVAL", genl.SET_POLICY, name + attr(genl.L_POLICY, attr(1, u32(5))))
    refused("EINVAL", genl.SET_POLICY, name + some + attr(genl.L_OPTIONS, []))
    assert l4lb.policy(s) == NONE


def seen_by_others(ipvs, service):
    """All that programs of ip_vs read: family IPVS, byte for byte, and /proc."""
    answers = [ipvs.dump(genl.GET_SERVICE), ipvs.request(genl.GET_SERVICE, attr(1, service.ident)),
               ipvs.dump(genl.GET_DEST, attr(1, service.ident)), ipvs.request(genl.GET_CONFIG),
               ipvs.request(genl.GET_INFO)]
    with ipvs.ns.enter():
        return answers, [Path(f"/proc/net/{name}").read_text("ascii") for name in (
            "ip_vs", "ip_vs_stats", "ip_vs_conn")]


@pytest.mark.smoke
@pytest.mark.parametrize("vip", (V4, V6))
def test_others_see_none_of_it(ipvs, l4lb, vip):
    """Each setting at its largest value, all together, an owner and a shadow."""
    proto = UDP if vip == V4 else TCP
    s = ipvs.service(vip, 8080, proto=proto, sched="mh", flags=genl.PERSISTENT, timeout=300)
    for n in range(1, 4):
        s.server(f"192.0.2.{20 + n}" if vip == V4 else f"2001:db8:2::{n}", 8080, weight=n)
    before = seen_by_others(ipvs, s)
    together = {name: value for name, value in MAX.items() if name != "conn_state"}
    for name in together:
        values = FIRST.get(name, {}) | {name: MAX[name]}
        l4lb.set_policy(s, **values)
        assert seen_by_others(ipvs, s) == before, name
        l4lb.set_policy(s, **dict.fromkeys(values, 0))
    together |= {f"las_bytes_{n}": n + 1 for n in range(3)}
    l4lb.set_policy(s, **together)
    l4lb.claim(s, owner="somebody", protected=1)
    shadows.give(l4lb, s, "wlc")
    assert l4lb.policy(s) == NONE | together and shadows.name_of(l4lb, s) == "wlc"
    assert seen_by_others(ipvs, s) == before
    l4lb.claim(s, protected=0)


@pytest.mark.smoke
def test_life_of_a_value(ipvs, l4lb):
    """The policy lives with the service, and commands of family IPVS do not change it."""
    s = ipvs.service(V4, 80, sched="rr")
    l4lb.set_policy(s, tcp=77)
    s.server("192.0.2.20", 80)
    s.edit_server("192.0.2.20", 80, weight=0)
    s.edit(sched="wrr", flags=genl.PERSISTENT, timeout=60)
    s.zero()
    s.delete_server("192.0.2.20", 80)
    assert l4lb.policy(s) == NONE | {"tcp": 77}
    s.delete()
    assert l4lb.policy(s.add()) == NONE


@pytest.mark.smoke
def test_dump(ipvs, l4lb):
    """Only services with a policy are listed, in more than one message."""
    assert l4lb.policies() == {}
    services = [ipvs.service(V4, port, sched="rr") for port in range(1, 401)]
    services.append(ipvs.service(V6, 53, proto=SCTP, sched="rr"))
    services.append(ipvs.service(fwmark=7, af=socket.AF_INET6, sched="rr"))
    chosen = services[1::2]
    for n, s in enumerate(chosen):
        l4lb.set_policy(s, tcp=n + 1)
    assert l4lb.policies() == {b"".join(s.ident): NONE | {"tcp": n + 1}
                              for n, s in enumerate(chosen)}
    genl.is_refused(lambda: l4lb.dump(genl.GET_POLICY, attr(genl.L_SERVICE, services[0].ident)),
                    errno.EINVAL)


def test_two_namespaces(topologies, ipvs, l4lb):
    other = topologies["dr"]
    other.flush()
    s = ipvs.service(V4, 80, sched="rr")
    other.ipvs.service(V4, 80, sched="rr")
    with genl.L4lb(other.director.ns) as theirs:
        l4lb.set_policy(s, udp=5)
        assert theirs.policy(s) == NONE
