# SPDX-License-Identifier: GPL-2.0
"""Scheduler bpf with real programs: whom they choose, what misbehaving ones cannot do, and how
they come and go."""

import errno
import itertools
import os
import socket
import subprocess
import threading
import time
from collections import Counter

import pytest
from lab import bpf, genl, packet
from lab.cost import bounded
from lab.ctl import IPVSCTL
from lab.flows import asked
from lab.genl import is_refused
from lab.netns import Namespace, run, wait_until
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.rows import large
from lab.settings import setting
from lab.shadows import give, read, totals
from lab.trials import attempt, chosen

FOUR = (1, 2, 3, 4)
ROW, ROWS = 24, 76      # struct l4lb_bpf_server, and where the first one is
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture(autouse=True)
def loaded(backend):
    backend.need_scheduler("bpf")


@pytest.fixture
def l4lb(dr):
    with genl.L4lb(dr.director.ns) as one:
        yield one


def service(lab, l4lb, instructions=None, family=4, numbers=FOUR, **options):
    """A service whose program has INSTRUCTIONS."""
    raw = Raw(lab, UDP, family, numbers, sched="bpf", **options)
    l4lb.set(raw.service, budget=10000)     # busy machines and debug kernels are slow
    if instructions:
        give_program(l4lb, raw, instructions)
    return raw


def give_program(l4lb, raw, instructions, path="/a/pin"):
    with bpf.Program(instructions) as program:
        l4lb.set(raw.service, program=(program.fd, path))
        return program.number


def counts(l4lb, raw):
    values = l4lb.values(raw.service)
    return values["otherwise"], values["stopped"]


def fallen_back(l4lb, raw, flows=12):
    """FLOWS choices, none of which is the program's: as the least loaded of four."""
    before, _ = counts(l4lb, raw)
    got = asked(raw, flows)
    assert counts(l4lb, raw)[0] == before + flows
    return got


@pytest.mark.smoke
@pytest.mark.parametrize("family", (4, 6))
def test_a_program_chooses(dr, l4lb, family):
    raw = service(dr, l4lb, family=family)
    assert Counter(fallen_back(l4lb, raw)) == dict.fromkeys(FOUR, 3)
    for index in (0, 2):
        number = give_program(l4lb, raw, bpf.answer(index))
        assert asked(raw, 8) == [FOUR[index]] * 8
        shown = l4lb.options(raw.service)["options"]["program"]
        assert (shown["value"], shown["path"]) == (number, "/a/pin")
    assert counts(l4lb, raw) == (12, 0)
    l4lb.set(raw.service, program=0)
    assert l4lb.options(raw.service)["options"]["program"]["path"] == ""
    assert set(fallen_back(l4lb, raw)) >= {2, 4}


@pytest.mark.parametrize("index", (-1, 4, 2**31 - 1, -2**31))
def test_no_server_has_that_index(dr, l4lb, index):
    """Nobody is refused."""
    raw = service(dr, l4lb, bpf.answer(index))
    assert None not in fallen_back(l4lb, raw)


def test_servers_that_may_not_be_chosen(dr, l4lb):
    raw = service(dr, l4lb, bpf.answer(1))
    raw.edit(2, weight=0)
    assert set(fallen_back(l4lb, raw)) == {1, 3, 4}
    raw.edit(2, weight=1, upper=1)
    assert asked(raw, 1) == [2]
    assert 2 not in fallen_back(l4lb, raw)
    for number in FOUR:
        raw.edit(number, weight=0)
    assert fallen_back(l4lb, raw, 2) == [None] * 2


def test_chance(dr, l4lb):
    """Half of its answers are no server's: those go elsewhere."""
    raw = service(dr, l4lb, bpf.chance(8))
    got = asked(raw, 400)
    assert set(got) == set(FOUR)
    assert 140 < counts(l4lb, raw)[0] < 260


@pytest.mark.parametrize("family", (4, 6))
def test_what_it_reads(dr, l4lb, family):
    """Each field, as the index that is chosen."""
    raw = service(dr, l4lb, family=family)
    raw.edit(3, weight=2)
    give_program(l4lb, raw, bpf.word(0))
    assert None not in fallen_back(l4lb, raw, 4)        # four real servers: none has index 4
    for option in "abcdefgh":
        give_program(l4lb, raw, bpf.word(44 + 4 * (ord(option) - ord("a"))))
        l4lb.set(raw.service, (option, 3))
        assert asked(raw, 2) == [4, 4]
        l4lb.set(raw.service, (option, 0))
        assert asked(raw, 2) == [1, 1]
    give_program(l4lb, raw, bpf.word(ROWS + 2 * ROW))           # the third one's weight
    assert asked(raw, 2) == [3, 3]
    for number, usable in ((4, 1), (4, 0)):
        raw.edit(number, weight=usable)
        give_program(l4lb, raw, bpf.word(ROWS + 3 * ROW + 4))
        assert asked(raw, 1) == [1 + usable]
    give_program(l4lb, raw, bpf.word(ROWS + 4 * ROW))           # behind what there is
    assert None not in fallen_back(l4lb, raw, 2)


def test_counts_of_connections(dr, l4lb):
    """The program sees each new connection: its index grows to the last server, then none has it."""
    raw = service(dr, l4lb, bpf.word(ROWS + 12), numbers=FOUR[:1])      # total of the first
    for number in FOUR[1:]:
        raw.add(number)
    assert asked(raw, 1) == [1]
    assert asked(raw, 3) == [2] * 3
    client = raw.client()
    give_program(l4lb, raw, bpf.answer(0))
    assert client.open() == 1
    give_program(l4lb, raw, bpf.word(ROWS + 12))
    assert asked(raw, 2) == [3] * 2


def test_another_program_under_traffic(dr, l4lb):
    """No connection is lost, and none is moved."""
    raw = service(dr, l4lb, bpf.answer(0))
    clients = []
    for turn in range(60):
        give_program(l4lb, raw, bpf.answer(turn % 4))
        clients.append((raw.client(), FOUR[turn % 4]))
        assert clients[-1][0].open() == FOUR[turn % 4]
    for client, number in clients:
        client.send(0, b"more")
        assert client.arrive()[0] == number
    assert counts(l4lb, raw) == (0, 0)


def loop(rounds):
    """A program that takes so many rounds, and chooses the first."""
    return bpf.mov(1, rounds) + bpf.insn(0x07, 1, imm=-1) + bpf.insn(0x55, 1, off=-2) + bpf.answer(0)


def test_a_slow_program_is_stopped(dr, l4lb, log):
    """It is said once; setting the program again tries it again."""
    raw = service(dr, l4lb, loop(200_000))
    l4lb.set(raw.service, budget=1)
    log.seen.clear()
    assert 1 in asked(raw, 1)
    got = asked(raw, 30)
    fallen, stopped = counts(l4lb, raw)
    assert stopped == 1 and fallen >= 20 and None not in got
    said = [text for _, text in log.refresh() if "takes more than 1 us for a choice" in text]
    assert len(said) == 1
    give_program(l4lb, raw, bpf.answer(2))
    l4lb.set(raw.service, budget=10000)
    assert asked(raw, 3) == [3] * 3
    assert counts(l4lb, raw) == (fallen, 0)


def slow_choices(lab, l4lb):
    """A service that takes about a millisecond for each choice, and may."""
    raw = service(lab, l4lb, loop(100_000))
    l4lb.set(raw.service, budget=10_000)
    return raw


def test_a_trial_is_killed(dr, l4lb):
    """Millions of slow choices end with the program that asked for them."""
    raw = slow_choices(dr, l4lb)
    with dr.director.ns.enter():
        process = subprocess.Popen([IPVSCTL, "--timeout", "60", "scheduler", "compare", f"udp:{raw.vip}:{raw.port}",
                                    "with", "bpf", "flows", "4194304"], stdout=subprocess.DEVNULL)
    time.sleep(1)
    assert process.poll() is None
    assert is_refused(lambda: attempt(l4lb, raw.service, "rr", 1), errno.EBUSY) or not genl.SAYS_WHY
    process.kill()
    process.wait(timeout=5)
    assert sum(chosen(attempt(l4lb, raw.service, "rr", 10))) == 10


def test_a_trial_ends_after_thirty_seconds(dr, l4lb):
    """It says for how many flows it had the time."""
    raw, began = slow_choices(dr, l4lb), time.monotonic()
    found = attempt(l4lb, raw.service, "bpf", 4_194_304)
    assert 29 <= time.monotonic() - began <= 45
    assert 0 < found["flows"] < 4_194_304
    assert sum(chosen(found)) == found["flows"]


def newcomers(raw, first, count):
    """First packets of clients that nobody has seen."""
    return [packet.udp_packet(f"100.{64 + (n >> 16)}.{n >> 8 & 255}.{n & 255}", 1024 + n % 60000, raw.vip,
                              raw.port, b"x") for n in range(first, first + count)]


@pytest.mark.parametrize("many", (2_000, large(100_000)))
def test_many_clients(dr, l4lb, many):
    """Each new client is one choice, which costs no more than the first ones'."""
    raw, seen = service(dr, l4lb, bpf.chance(4)), itertools.count()
    few = many // 10

    def seconds(count):
        packets = newcomers(raw, next(seen) * many, count)
        began = time.monotonic()
        raw.send_all(packets)
        return (time.monotonic() - began) / count
    with setting(dr, "conn_max", 0):
        bounded(3, lambda: seconds(many), lambda: seconds(few))
        conns = sum(raw.dest(n)["stats"]["conns"] for n in FOUR)
        assert conns >= many + few and conns % (many + few) == 0 and counts(l4lb, raw) == (0, 0)


def test_the_shadows_program_is_stopped(dr, l4lb):
    """It has the service's program, and counts of its own."""
    raw = service(dr, l4lb, loop(200_000))
    give(l4lb, raw.service, "bpf")
    assert read(l4lb, raw.service)["counts"] == {"otherwise": 0, "stopped": 0}
    l4lb.set(raw.service, budget=1)
    assert None not in asked(raw, 31)
    shadow = read(l4lb, raw.service)
    assert shadow["counts"]["stopped"] == 1 and 20 <= shadow["counts"]["otherwise"] <= 31
    give(l4lb, raw.service, "rr")
    assert not read(l4lb, raw.service)["counts"] and counts(l4lb, raw)[1] == 1


MAC, NET = 0, 1
R1_IS_THE_SKB = bpf.insn(0xbf, 1, 6)


@pytest.mark.parametrize("instructions", [
    pytest.param(R1_IS_THE_SKB + bpf.call(46), id="socket-cookie"),
    pytest.param(R1_IS_THE_SKB + bpf.call(47), id="socket-uid"),
    *(pytest.param(R1_IS_THE_SKB + bpf.mov(2, 0) + bpf.insn(0xbf, 3, 10) + bpf.insn(0x07, 3, imm=-8) +
                   bpf.mov(4, 4) + bpf.mov(5, start) + bpf.call(68), id=f"bytes-relative-{start}")
      for start in (MAC, NET)),
    *(pytest.param(bpf.insn(0x20, imm=at), id=f"load-{at}") for at in (
        0, 72, 4096, 2**31 - 1, -0x100000, -0x200000, -0x200000 + 4000, -0x1000, -0x1000 + 28, -0x1000 + 40)),
    *(pytest.param(bpf.insn(0x61, 0, 6, off=at), id=f"context-{at}") for at in (
        0, 4, 8, 16, 20, 24, 36, 40)),
    pytest.param(bpf.mov(2, 7) + bpf.insn(0x63, 6, 2, off=48) + bpf.insn(0x63, 6, 2, off=64), id="control-block")])
def test_what_programs_of_this_type_may_do(dr, l4lb, instructions):
    """There is no socket and no device behind what they read: none of it stops the kernel. (LD_ABS
    from outside, and the packet's length and header, are no index.)"""
    raw = service(dr, l4lb, bpf.insn(0xbf, 6, 1) + instructions + bpf.answer(1))
    got = asked(raw, 3)
    # A load from outside ends the program with 0.
    assert got in ([2] * 3, [1] * 3)


def refused(call, code):
    return genl.is_refused(call, code)


def test_files_that_are_refused(dr, l4lb, tmp_path):
    raw = service(dr, l4lb, bpf.answer(1))
    other = service(dr, l4lb, numbers=(1,))
    (tmp_path / "file").touch()
    with bpf.Program(bpf.answer(2), bpf.XDP) as wrong, open(tmp_path / "file", "rb") as file, \
            socket.socket() as sock:
        array = bpf.array()
        for fd, code in ((wrong.fd, errno.EINVAL), (file.fileno(), errno.EINVAL), (array, errno.EINVAL),
                         (sock.fileno(), errno.EINVAL), (-1, errno.EBADF), (2**31 - 1, errno.EBADF)):
            assert refused(lambda n=fd: l4lb.set(raw.service, program=(n, "/p")), code) == \
                "option program must be a BPF program of type socket, by the path of its pin"
        os.close(array)
    present = l4lb.values(raw.service)["program"]
    for value in (present + 1000000, 1 if present != 1 else 2):
        assert "no file with this number" in refused(
            lambda n=value: l4lb.set(raw.service, program=n), errno.EINVAL)
    assert "no file with this number" in refused(
        lambda: l4lb.set(other.service, program=present), errno.EINVAL)
    with bpf.Program(bpf.answer(2)) as good:
        assert "option budget is no file" in refused(
            lambda: l4lb.set(raw.service, budget=(good.fd,)), errno.EINVAL)
        refused(lambda: l4lb.set(raw.service, program=(good.fd, "/" + 127 * "x")), errno.EINVAL)
        for path in ("/a b", "/a\n-A -t 10.9.9.9:80", "/a#1", '/"', "/\x1b[31m", "/\\", "/'", "/\x7f"):
            assert "PATH must be printable" in refused(
                lambda p=path: l4lb.set(raw.service, program=(good.fd, p)), errno.EINVAL)
    for count in ("otherwise", "stopped"):
        assert refused(lambda n=count: l4lb.set(raw.service, (n, 0)), errno.EINVAL) == \
            f"{count} is a count: leave it out"
    assert asked(raw, 3) == [2] * 3         # nothing has changed
    l4lb.set(raw.service, program=present)  # what a listing has can be sent back
    assert asked(raw, 3) == [2] * 3


def test_a_program_in_a_batch(dr, l4lb):
    """A listing can be sent back to the service that has it, and a batch is all or nothing."""
    raw = service(dr, l4lb, bpf.answer(1))
    listed = l4lb.get_services()
    before = l4lb.values(raw.service)
    l4lb.set_services(listed, genl.REPLACE)
    assert l4lb.values(raw.service) == before and asked(raw, 2) == [2, 2]
    with bpf.Program(bpf.answer(2)) as program:
        entry = genl.batch_entry(raw.vip, raw.port, proto=UDP, sched="bpf",
                                 options=[("program", (program.fd, "/new"))])
        bad = genl.batch_entry(raw.vip, raw.port + 1, proto=UDP, sched="bpf", options=[("program", 7)])
        assert "no file with this number" in refused(lambda: l4lb.set_services([entry, bad]), errno.EINVAL)
        assert l4lb.values(raw.service) == before and asked(raw, 2) == [2, 2]
        l4lb.set_services([entry])
        assert l4lb.options(raw.service)["options"]["program"]["path"] == "/new"
    assert asked(raw, 2) == [3, 3]


@pytest.mark.parametrize("spoilt", ["value", "twice", "order", "batch"])
def test_nothing_refused_keeps_a_program(dr, l4lb, spoilt):
    """A good program beside something that is refused."""
    raw = service(dr, l4lb, bpf.answer(1))
    with bpf.Program(bpf.answer(2)) as program:
        number, value = program.number, (program.fd, "/new")
        if spoilt == "batch":
            entries = [genl.batch_entry(raw.vip, raw.port + n, proto=UDP, sched="bpf", options=options)
                       for n, options in ((0, [("program", value)]), (1, [("budget", 0)]))]
            refused(lambda: l4lb.set_services(entries), errno.ERANGE)
        else:
            more = {"value": ("budget", 0), "twice": ("program", value), "order": ("order", 1)}[spoilt]
            refused(lambda: l4lb.set(raw.service, ("program", value), more),
                    errno.ERANGE if spoilt == "value" else errno.EINVAL)
    gone(number)
    assert asked(raw, 2) == [2, 2]


class Coming(threading.Thread):
    """One new client after the other, until the block ends."""

    def __init__(self, raw):
        super().__init__(daemon=True)
        self.raw, self.over, self.sent = raw, threading.Event(), 0

    def run(self):
        while not self.over.is_set():
            self.raw.client_tap.send(self.raw.client().packet())
            self.sent += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def test_exchanged_while_clients_come(dr, l4lb):
    """Programs and servers' weights are exchanged, and none is refused."""
    raw = service(dr, l4lb, bpf.answer(0))
    before = raw.service.stats["conns"]
    with Coming(raw) as clients:
        for turn in range(100):
            give_program(l4lb, raw, bpf.answer(turn % 5 - 1))
            raw.edit(1 + turn % 4, weight=1 + turn % 3)
            wait_until(lambda seen=clients.sent: clients.sent > seen + 1 or not clients.is_alive())
    raw.fence()
    assert clients.sent > 200 and raw.service.stats["conns"] - before == clients.sent


def gone(number):
    wait_until(lambda: not bpf.alive(number), what="the end of the program")


def test_programs_are_released(dr, l4lb):
    """With the service, with another program, and with its namespace; not before."""
    raw = service(dr, l4lb)
    first = give_program(l4lb, raw, bpf.answer(0))
    assert bpf.alive(first)
    second = give_program(l4lb, raw, bpf.answer(1))
    gone(first)
    assert bpf.alive(second)
    raw.service.edit(sched="rr")
    gone(second)
    third = give_program(l4lb, service(dr, l4lb, numbers=(1,)), bpf.answer(0))
    dr.flush()
    gone(third)
    ns = Namespace("bpfends")
    with genl.Ipvs(ns) as ipvs, genl.L4lb(ns) as own, bpf.Program(bpf.answer(0)) as program:
        own.set(ipvs.service("192.0.2.1", 80, sched="bpf"), program=(program.fd, "/x"))
        fourth = program.number
    assert bpf.alive(fourth)
    ns.destroy()
    gone(fourth)


def test_the_module_goes_at_once(dr, l4lb, backend):
    """Pools of the service and of its shadow wait for their readers when it is removed."""
    raw = service(dr, l4lb, bpf.answer(1))
    give(l4lb, raw.service, "bpf")
    number = give_program(l4lb, raw, bpf.answer(0))
    assert asked(raw, 5) == [1] * 5
    raw.service.delete()
    run(["rmmod", backend.prefix + "bpf"])
    assert not bpf.alive(number)
    backend.need_scheduler("bpf")


def test_more_than_1024_servers(dr, l4lb):
    raw = service(dr, l4lb, bpf.answer(0))
    for n in range(1020):
        raw.service.server(f"10.77.{n >> 8}.{n & 255}", 80, weight=0)
    assert asked(raw, 3) == [1] * 3
    raw.service.server("10.77.255.1", 80, weight=0)
    assert None not in fallen_back(l4lb, raw, 8)


def test_a_shadow_and_a_trial_have_the_services_program(dr, l4lb):
    raw = service(dr, l4lb, bpf.answer(2))
    assert chosen(attempt(l4lb, raw.service, "bpf", 40)) == [0, 0, 40, 0]
    give(l4lb, raw.service, "bpf")
    for index in (2, 0):
        give_program(l4lb, raw, bpf.answer(index))
        before = totals(read(l4lb, raw.service))
        assert asked(raw, 6) == [FOUR[index]] * 6
        after = totals(read(l4lb, raw.service))
        assert [b - a for a, b in zip(before, after, strict=True)] == [6, 6, 0]
    # Another scheduler's service has no program to try, and without one it is not bpf.
    for other in (Raw(dr, UDP, 4, FOUR, sched="rr"), service(dr, l4lb)):
        sentence = refused(lambda o=other: attempt(l4lb, o.service, "bpf", 40), errno.ENODATA)
        assert not genl.SAYS_WHY or "lacks this scheduler or its file" in sentence


@pytest.mark.parametrize("name", ("least", "rendezvous"))
def test_the_examples(dr, l4lb, tmp_path, name):
    """As their README says: compiled, loaded and pinned with bpftool, and used."""
    raw = Raw(dr, TCP, 4, FOUR, sched="bpf")
    with bpf.program_of(bpf.compiled(name, tmp_path)) as program:
        l4lb.set(raw.service, program=program)
    if name == "least":
        assert asked(raw, 8) == 2 * [4, 3, 2, 1]      # as wlc
    else:
        clients = [dr.client_address() for _ in range(30)]
        got = [asked(raw, 3, client) for client in clients]
        assert all(len(set(each)) == 1 for each in got)
        assert {each[0] for each in got} == set(FOUR)
    assert counts(l4lb, raw) == (0, 0)
