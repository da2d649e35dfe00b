# SPDX-License-Identifier: GPL-2.0
"""Scheduler bpf with real programs: whom they choose, what misbehaving ones cannot do, and how
they come and go."""

import errno
import os
import socket
from collections import Counter

import pytest
from lab import bpf, genl
from lab.flows import asked
from lab.netns import Namespace, wait_until
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.shadows import give
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
                "this is no BPF program of type \"socket filter\": load it with type socket"
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


def test_a_shadow_and_a_trial_have_the_services_program(dr, l4lb):
    raw = service(dr, l4lb, bpf.answer(2))
    assert chosen(attempt(l4lb, raw.service, "bpf", 40)) == [0, 0, 40, 0]
    give(l4lb, raw.service, "bpf")
    asked(raw, 6)
    assert counts(l4lb, raw) == (0, 0)
    give_program(l4lb, raw, bpf.answer(0))
    assert asked(raw, 6) == [1] * 6
    # Another scheduler's service has no program to try.
    rr = Raw(dr, UDP, 4, FOUR, sched="rr")
    assert chosen(attempt(l4lb, rr.service, "bpf", 40)) == [10, 10, 10, 10]


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
