# SPDX-License-Identifier: GPL-2.0
"""A kernel that stops answering keeps no command: each wait has an end, wherever it stops.

Every command of the program's table is run again and again, with a kernel that answers the
first N messages and no more. tests/unit/fake_netlink.c ends each wait at once and tells its
length, so that this takes no time."""

import re
import struct

import answers
import pytest
from lab import genl
from test_synopsis import usages

# Its scheduler is in use: this machine may have no modules.
FARM = "version: 1\nservices: [{service: 'tcp 192.0.2.11:80', scheduler: rr, servers: [10.0.0.11]}]\n"
# A file of `conn export` with one message, which the kernel has to judge.
CONNS = b"l4lb connections 1\n" + struct.pack("!H16x2xQ", 16, 1)
# What stands for a word of a usage.
WORDS = {"ID": "tcp 192.0.2.10:80", "SRV": "10.0.0.11", "SCHED": "rr", "IF": "lo", "ADDR": "10.0.0.9",
         "SVCOPT": "on-idle reset", "SRVOPT": "weight 3", "IPVSADM-OPTION": "-L -n", "N": "5", "KEY": "x"}
# Further words, without which a command refuses before it asks.
MORE = {"top": "-b -n 1", "service flush": "--yes", "conn kill": "--yes", "timeout set": "tcp 9",
        "sync set": "rate 9"}
# They ask nothing of this kind: they read files, those in /proc among them, or other netlink.
ALONE = {"check", "import", "confirm", "stats percpu", "fast-path no-xdp"}
# They go on with what there is: diff does not need the kernel's word on a scheduler.
GO_ON = {"doctor", "top", "diff"}
MOST = 40               # messages of a command


def words_of(command, usage, folder):
    """The shortest line that the usage allows."""
    (folder / "file").write_bytes(CONNS if command == "conn import" else FARM.encode())
    while re.search(r"\[[^][]*\]", usage):
        usage = re.sub(r"\[[^][]*\](?:\.\.\.)?", "", usage)
    usage = re.sub(r"\{([^{}|]*)[^{}]*\}", r"\1", usage).replace("...", "")
    words = " ".join(WORDS.get(word, str(folder / "file") if word == "FILE" else word)
                     for word in usage.split())
    return f"{command} {words} {MORE.get(command, '')}".split()


def farm(request):
    """A kernel with one service and one server."""
    if request.family == answers.IPVS and request.command == genl.GET_SERVICE:
        return request.reply([genl.attr(genl.SERVICE, genl.ident(addr="192.0.2.10", port=80) +
                                        genl.service_options(2))])
    if request.family == answers.IPVS and request.command == genl.GET_DEST:
        return request.reply([genl.attr(genl.DEST, genl.dest_ident("10.0.0.11", 80) + genl.dest_options())])
    if request.family == answers.L4LB and request.command == answers.COMMANDS["GET_SERVICES"]:
        return request.reply([genl.batch_entry("192.0.2.10", 80, ["10.0.0.11"])])
    return answers.kernel(request)


def silent_after(number):
    """A kernel that answers so many messages."""
    left = [number]

    def answer(request):
        left[0] -= 1
        return farm(request) if left[0] >= 0 else None
    return answer


@pytest.mark.parametrize("command, usage", usages(), ids=[command for command, _ in usages()])
def test_every_wait_has_an_end(command, usage, tmp_path):
    words, waited = words_of(command, usage, tmp_path), 0
    for number in range(MOST):
        done = answers.run(silent_after(number), "--timeout", "1", *words, stdin=FARM)
        assert done.code != answers.HANGS, (number, words)
        if not done.waits:
            break
        waited += 1
        assert all(0 < ms <= 1000 for ms in done.waits) and len(done.waits) <= 3, done.waits
        if command not in GO_ON or done.code == 9:
            assert done.code == (255 if command == "compat" else 9), (number, done.err)
            assert "did not answer within 1000 ms" in done.err
    assert number < MOST - 1
    assert (waited == 0) == (command in ALONE), (done.code, done.err)


def test_five_seconds_by_default():
    done = answers.run(silent_after(0), "show")
    assert done.code == 9 and "did not answer within 5000 ms" in done.err
    assert len(done.waits) == 1 and 4900 < done.waits[0] <= 5000
