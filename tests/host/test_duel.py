# SPDX-License-Identifier: GPL-2.0
"""The comparison of two modules' packets: which differences it accepts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab import duel, packet, traffic  # noqa: E402
from lab.compare import DIRECTOR, Difference, compare, headers  # noqa: E402
from lab.packet import ACK, FRAGMENT, ICMP, RST, SCTP, SYN, TCP, UDP  # noqa: E402
from lab.topology import FRONT, NETWORK, RAW_VIPS  # noqa: E402

MACS = b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0"
LAST = traffic.STEPS - 1


class Lab:
    """A topology's addresses, without the topology."""

    def __init__(self, shape):
        self.shape = shape

    def raw_vip(self, family=4, index=0):
        return FRONT[family] + str(RAW_VIPS[index])

    def phantom(self, number, family=4):
        return NETWORK[self.shape][family] + str(60 + number)

    def dip(self, family=4):
        return (FRONT if self.shape == "tun" else NETWORK[self.shape])[family] + "1"


@pytest.fixture
def player():
    return duel.Player({shape: Lab(shape) for shape in ("nat", "dr", "tun")}, None)


def case_of(method, family=4, proto=UDP):
    return traffic.Case(1, traffic.LANES.index((method, family, proto)))


def verdict(player, play, theirs, ours, *sent):
    """Names of the listed differences, or the Difference, when SENT leads to the frames
    THEIRS from ip_vs and OURS from l4lb."""
    seen, steps = {}, player.rendered(play)
    steps[1][:] = [("nothing", [])] * (len(steps[1]) - 1) + \
        [("the last", [("client", data) for data in sent])]
    player.rendered = lambda _: steps
    empty = [[] for _ in steps[1][1:]]
    try:
        compare(play.case, steps, (empty + [theirs], set()), (empty + [ours], set()), seen)
    except Difference as difference:
        return difference
    return "".join(seen)


def setting(player, method, proto=UDP):
    play = player.fresh(case_of(method, proto=proto))
    return play, player.rendered(play)[0]


def flip(frame, at):
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1:]


def test_the_same_seed_says_the_same(player):
    one, other = (player.fresh(traffic.Case(7, 3)) for _ in range(2))
    other.trial = one.trial
    assert player.rendered(one)[1] == player.rendered(other)[1]
    other.case = traffic.Case(8, 3)
    assert player.rendered(one)[1] != player.rendered(other)[1]


def test_a_replay_is_the_same_step(player):
    play = duel.replayed(player, "7:3:5,9")
    assert (play.case.seed, play.case.number, play.steps) == (7, 3, (5, 9))
    full = player.fresh(traffic.Case(7, 3))
    full.trial = play.trial
    opening = len(player.rendered(play)[1]) - 2
    steps = player.rendered(full)[1]
    assert player.rendered(play)[1][opening:] == [steps[opening + 5], steps[opening + 9]]


def test_everything_is_said():
    """Every lane, kind of packet and kind of damage occurs early."""
    player = duel.Player({shape: Lab(shape) for shape in ("nat", "dr", "tun")}, None)
    said = " ".join(name for case in duel.cases(1, len(traffic.LANES) * traffic.STEPS)
                    for name, parts in player.rendered(player.fresh(case))[1]
                    if all(len(data) <= traffic.MTU for _, data in parts))
    for words in ("cut at", "longer", "source 0.0.0.0", "scratched", "flags =", "ttl =",
                  "hop limit =", "total length =", "CRC =", "data offset =", "overlapping",
                  "one missing", "extension headers", "damaged quote", "about an error",
                  "about another flow", "wrong sum", "protocol 4", "source port 400"):
        assert words in said, words


def test_identical_and_reordered(player):
    play, e = setting(player, "nat")
    frames = [("server 1", MACS + packet.udp_packet(e.client, n, e.server, e.dport, b"x"))
              for n in (1, 2)]
    assert verdict(player, play, frames, frames[::-1], b"") == ""


@pytest.mark.parametrize("at", (0, 7, 14, 15, 18, 22, 26, 33, 34, 40, 44))
def test_every_byte_counts(player, at):
    play, e = setting(player, "nat")
    good = MACS + packet.udp_packet(e.client, 1, e.server, e.dport, b"payload")
    sent = packet.udp_packet(e.client, 1, e.vip, e.port, b"payload")
    assert verdict(player, play, [("server 1", good)], [("server 1", flip(good, at))], sent)
    assert isinstance(verdict(player, play, [("server 1", good)], [], sent), Difference)
    assert isinstance(verdict(player, play, [], [("server 1", good)], sent), Difference)
    assert isinstance(verdict(player, play, [("server 1", good)], [("server 2", good)], sent),
                      Difference)


def test_connections_count(player):
    play, _ = setting(player, "nat")
    nothing = [[] for _ in player.rendered(play)[1]]
    with pytest.raises(Difference):
        compare(play.case, player.rendered(play), (nothing, {("UDP", 1)}), (nothing, set()), {})


def test_what_an_identification_is(player):
    """An identification that the director chooses may differ, one that it passes on may not."""
    play, e = setting(player, "ipip")
    inner = packet.udp_packet(e.client, 1, e.vip, e.port, b"x")
    one, other = (MACS + packet.ip4(e.dip, e.server, packet.IPIP, inner, ident=n) for n in (1, 2))
    assert verdict(player, play, [("server 1", one)], [("server 1", other)], inner) == ""
    broken = flip(other, 24)
    assert isinstance(verdict(player, play, [("server 1", one)], [("server 1", broken)], inner),
                      Difference)
    play, e = setting(player, "nat")
    one, other = (MACS + packet.udp_packet(e.client, 1, e.server, e.dport, b"x",
                                           ip_args={"ident": n}) for n in (1, 2))
    assert isinstance(verdict(player, play, [("server 1", one)], [("server 1", other)], inner),
                      Difference)


def nat_pair(e, proto, csum):
    make = packet.udp_packet if proto == UDP else packet.sctp_packet
    extra = {"payload": b"x"} if proto == UDP else {}
    return [("server 1", MACS + make(e.client, 1, e.server, e.dport, csum=c, **extra))
            for c in (None, csum)]


def test_listed_differences(player):
    play, e = setting(player, "nat")
    theirs, ours = nat_pair(e, UDP, 0)
    sent = packet.udp_packet(e.client, 1, e.vip, e.port, b"x", csum=0)
    assert verdict(player, play, [theirs], [ours], sent) == "udp-zero"
    assert isinstance(verdict(player, play, [ours], [theirs], sent), Difference)

    wrong = packet.udp_packet(e.client, 1, e.vip, e.port, b"x", csum=99)
    assert verdict(player, play, [theirs], [], wrong) == "wrong-sum"
    assert isinstance(verdict(player, play, [], [theirs], wrong), Difference)

    play, e = setting(player, "nat", SCTP)
    theirs, ours = nat_pair(e, SCTP, 99)
    sent = packet.sctp_packet(e.client, 1, e.vip, e.port, csum=99)
    assert verdict(player, play, [theirs], [ours], sent) == "wrong-crc"
    right = packet.sctp_packet(e.client, 1, e.vip, e.port)
    assert isinstance(verdict(player, play, [theirs], [ours], right), Difference)


@pytest.mark.parametrize("wrong", (True, False))
def test_a_wrong_sum_in_fragments(player, wrong):
    play, e = setting(player, "dr", TCP)
    body = packet.tcp(e.client, e.vip, e.sport, e.port, SYN, payload=bytes(28),
                      **({"csum": 99} if wrong else {}))
    pieces = [packet.ip4(e.client, e.vip, TCP, body[at:at + 16], offset=at, mf=at < 32)
              for at in (0, 32, 16, 16)]
    theirs = [("server 1", MACS + packet.ip4(e.client, e.vip, TCP, body))]
    got = verdict(player, play, theirs, [], *pieces)
    assert got == "wrong-sum" if wrong else isinstance(got, Difference)
    assert isinstance(verdict(player, play, theirs, [], *pieces[:1], *pieces[2:]), Difference)


@pytest.mark.parametrize(("method", "listed"), (("ipip-mixed", True), ("gre", False)))
def test_what_routers_say_about_tunnels(player, method, listed):
    play, e = setting(player, method, UDP)
    quote = packet.udp_packet(e.client, e.sport, e.vip, e.port, b"x")
    news = [("client", MACS + packet.ip4(e.vip, e.client, ICMP, packet.icmp(11, 0, 0, quote)))]
    got = verdict(player, play, [], news, quote)
    assert got == "tunnel-error" if listed else isinstance(got, Difference)
    assert isinstance(verdict(player, play, news, [], quote), Difference)


def test_a_recorded_route(player):
    play, e = setting(player, "nat")

    def reply(recorded, **more):
        options = b"\7\7\x08" + packet.packed(recorded) + b"\0"
        return [("client", MACS + packet.udp_packet(
            e.vip, e.port, e.client, e.sport, b"x", ip_args={"options": options, **more}))]

    sent = reply(e.vip)[0][1][14:]
    theirs, ours = reply(e.vip), reply(DIRECTOR)
    assert verdict(player, play, theirs, ours, sent) == "record-route"
    assert isinstance(verdict(player, play, ours, theirs, sent), Difference)
    assert isinstance(verdict(player, play, theirs, reply(DIRECTOR, csum=7), sent), Difference)
    assert isinstance(verdict(player, play, theirs, reply(DIRECTOR, tos=4), sent), Difference)


def test_two_fragment_headers(player):
    play = player.fresh(case_of("nat", 6))
    e = player.rendered(play)[0]
    l4 = packet.udp(e.client, e.server, e.sport, e.dport, b"x")

    def frame(count):
        # Each says that another fragment header follows, the last one that UDP does.
        data = b"".join(bytes([FRAGMENT if n < count - 1 else UDP]) + bytes(7) for n in range(count))
        return MACS[:12] + b"\x86\xdd" + packet.ip6(
            e.client, e.server, FRAGMENT if count else UDP, data + l4)

    sent = frame(2)[14:]
    theirs, ours = ([("server 1", frame(count))] for count in (0, 1))
    assert verdict(player, play, theirs, ours, sent) == "two-fragment-headers"
    assert isinstance(verdict(player, play, theirs, ours, frame(1)[14:]), Difference)
    other = [("server 1", flip(ours[0][1], len(ours[0][1]) - 1))]
    assert isinstance(verdict(player, play, theirs, other, sent), Difference)


@pytest.mark.parametrize(("flags", "listed"), ((SYN | RST, True), (SYN, False), (RST, False)))
def test_a_connection_given_up(player, flags, listed):
    play, e = setting(player, "ipip", TCP)
    seen, steps = {}, player.rendered(play)
    sent = [packet.tcp_packet(e.client, e.sport, e.vip, e.port, f) for f in (flags, ACK)]
    steps[1][:] = [("nothing", [])] * (len(steps[1]) - 2) + \
        [("client", [("client", data)]) for data in sent]
    theirs = [("server 1", MACS + packet.ip4(e.dip, e.server, packet.IPIP, sent[1]))]
    ours = [("client", MACS + packet.tcp_packet(e.vip, e.port, e.client, e.sport, RST))]
    empty = [[] for _ in steps[1][1:]]
    try:
        compare(play.case, steps, (empty + [theirs], set()), (empty + [ours], set()), seen)
    except Difference:
        assert not listed
    else:
        assert listed and seen == {"given-up": 1}


def test_a_cut_chunk(player):
    play, e = setting(player, "nat", SCTP)
    refusal = [("client", MACS + packet.ip4(e.vip, e.client, ICMP, packet.icmp(3, 2, 0, bytes(28))))]
    for size in (12, 15, 16):
        sent = bytes(traffic.repair_l4(bytearray(packet.ip4(
            e.client, e.vip, SCTP, packet.sctp(e.sport, e.port)[:size]))))
        theirs = [("server 1", MACS + packet.ip4(e.client, e.server, SCTP, sent[20:]))]
        for outcome in (theirs, []):
            got = verdict(player, play, outcome, refusal, sent)
            assert isinstance(got, Difference) if size == 16 else got == "short-chunk"


def test_authentication_in_a_quote(player):
    play = player.fresh(case_of("nat", 6))
    e = player.rendered(play)[0]

    def frame(kind, ttl, more=b""):
        quote = packet.ip6(e.client, e.server, kind, bytes(24)) + more
        return MACS[:12] + b"\x86\xdd" + packet.icmp_packet(
            e.server, e.client, 1, 0, payload=quote, ttl=ttl)

    ours = [("client", frame(packet.AH, 63))]
    assert verdict(player, play, [], ours, frame(packet.AH, 64)[14:]) == "authentication"
    assert isinstance(verdict(player, play, [], [("client", frame(UDP, 63))],
                              frame(UDP, 64)[14:]), Difference)
    assert isinstance(verdict(player, play, [], [("client", frame(packet.AH, 63, b"x"))],
                              frame(packet.AH, 64)[14:]), Difference)


def test_authentication_further_in():
    def chain(*kinds):
        data = bytes(16)
        return bytes([0x60, 0, 0, 0, 0, 0, kinds[0], 64]) + bytes(32) + b"".join(
            bytes([k]) + bytes(7) for k in kinds[1:]) + data
    assert headers(chain(FRAGMENT, packet.AH, 60, 6)) == [FRAGMENT, packet.AH]
    assert headers(chain(packet.DSTOPTS, FRAGMENT, 6, 0)) == [packet.DSTOPTS, FRAGMENT, 6]
    assert headers(chain(FRAGMENT)[:41]) == [FRAGMENT]


@pytest.mark.parametrize("side", ("client", "server 1"))
def test_quoted_sum(player, side):
    play, e = setting(player, "nat", TCP)
    ends = (e.vip, e.client) if side == "client" else (e.client, e.server)
    pair = []
    for csum in (0x1234, None):
        quote = packet.tcp_packet(ends[1], e.dport, ends[0], 1, ACK, csum=csum)
        pair.append([(side, MACS + packet.ip4(*ends, ICMP, packet.icmp(3, 3, 0, quote)))])
    sent = pair[1][0][1][14:]
    assert verdict(player, play, *pair, sent) == "quoted-sum"
    frame = pair[1][0][1]
    assert isinstance(verdict(player, play, pair[0], [(side, flip(frame, 37))], sent), Difference)


def test_tunnelled_fragments(player):
    play, e = setting(player, "ipip")
    inner = packet.udp_packet(e.client, 1, e.vip, e.port, bytes(range(200)) * 3)
    whole = packet.ip4(e.dip, e.server, packet.IPIP, inner)
    cut = [("server 1", MACS + part) for part in packet.fragment4(whole, 300)]
    ours = [("server 1", MACS + whole)]
    assert verdict(player, play, cut, ours, inner) == "tunnelled-fragments"
    assert isinstance(verdict(player, play, cut[:-1], ours, inner), Difference)
    cut[1] = (cut[1][0], flip(cut[1][1], 100))
    assert isinstance(verdict(player, play, cut, ours, inner), Difference)


def test_a_difference_is_shown_whole(player):
    play, _ = setting(player, "gue", TCP)
    text = duel.show(player, play, Difference(3, [], [("client", MACS + bytes(20))]))
    assert text.startswith(f"--replay 1:{play.case.number}:0,1,2")
    assert text.count("=>") == 1 and "ip_vs: nothing" in text and "no IP packet" in text
