# SPDX-License-Identifier: GPL-2.0
"""ipvsctl with a module l4lb that is older than it: a command that the module lacks is told in one
line, with what to do; what can be done without it is done. The kernel answers EOPNOTSUPP to an
unknown command, EINVAL to an unknown attribute and ENOENT to an unknown family."""

import errno
import re

import answers
import pytest
from lab import genl
from test_no_answer import ALONE, CONNS, FARM, farm, words_of
from test_synopsis import usages

NAMES = {number: name for name, number in answers.COMMANDS.items()}
HINT = ("  it is older than this ipvsctl: ipvsctl info shows both versions\n"
        "  try: install both of one version, and load that module\n")


def lacks(*names):
    """A module without these commands of family L4LB."""
    def answer(request):
        if request.family == answers.L4LB and NAMES[request.command] in names:
            return request.error(errno.EOPNOTSUPP)
        return farm(request)
    return answer


def told(done, command, about):
    """It has succeeded, or says what is missing and what to do."""
    missing = 2 if command == "compat" else 7       # as ipvsadm
    assert done.code in (0, 1, missing), (about, done.code, done.err)
    if done.code == missing:
        first, *more = done.err.splitlines(keepends=True)
        assert re.match(r"ipvsctl: .*\b(module|of) l4lb\b", first) and HINT in done.err, (about, done.err)
        assert all(line.startswith("  ") for line in more), done.err


@pytest.mark.parametrize("command, usage", usages(), ids=[command for command, _ in usages()])
def test_each_command_without_each_of_the_modules(command, usage, tmp_path):
    words = words_of(command, usage, tmp_path)
    sent = {NAMES[one.command] for one in answers.run(farm, *words, stdin=FARM).requests
            if one.family == answers.L4LB}
    for name in sent:
        told(answers.run(lacks(name), *words, stdin=FARM), command, (name, words))


@pytest.mark.parametrize("command, usage", [
    # These read files and devices, and there are none.
    row for row in usages() if row[0] not in {*ALONE, "rollback", "fast-path xdp"}], ids=lambda row: row)
def test_each_command_without_the_family(command, usage, tmp_path):
    def answer(request):
        return answers.kernel(request, {"IPVS": answers.IPVS}) if request.family == answers.CONTROL \
            else farm(request)
    words = words_of(command, usage, tmp_path)
    told(answers.run(answer, *words, stdin=FARM), command, words)


TEXTS = {
    "monitor": ("GET_EVENT", "the module l4lb tells no events"),
    "conn log": ("LOG_CONNS", "conn log: the module l4lb keeps no log of connections"),
    "conn export -": ("EXPORT_CONNS", "conn export: the module l4lb cannot hand its connections over"),
    "conn import FILE": (
        "IMPORT_CONNS", "importing the connections: the module l4lb does not know this command"),
    "conn kill --yes": ("KILL_CONNS", "conn kill: the module l4lb has no command that ends connections"),
    "apply FARM": ("SET_SERVICES", "setting the services: the module l4lb does not know this command"),
    "server drain tcp 192.0.2.10:80 10.0.0.11 --deadline 9": (
        "SET_DRAIN", "tcp 192.0.2.10:80: 10.0.0.11:80: the module l4lb does not know this command"),
    "scheduler stats tcp 192.0.2.10:80": (
        "GET_SHADOW", "tcp 192.0.2.10:80: the shadow: the module l4lb does not know this command"),
}


@pytest.mark.parametrize("line", TEXTS)
def test_what_is_said(line, tmp_path):
    name, text = TEXTS[line]
    (tmp_path / "FILE").write_bytes(CONNS)
    (tmp_path / "FARM").write_text(FARM, "ascii")
    words = [str(tmp_path / word) if word.isupper() else word for word in line.split()]
    done = answers.run(lacks(name), *words)
    assert done.code == 7 and done.err.startswith(f"ipvsctl: {text}\n{HINT}")


@pytest.mark.parametrize("command, group", [("monitor", "events"), ("conn log", "log")])
def test_no_such_group(command, group):
    """Both listen where the group is, and say so where it is not."""
    assert answers.run(farm, *command.split()).listens
    done = answers.run(lambda request: answers.kernel(request, groups={"events", "log"} - {group}),
                       *command.split())
    assert done.code == 7 and HINT in done.err and not done.listens


def test_ranges():
    """A module that does not know the flag for them is asked without it, and each listing works."""
    def answer(request):
        if request.family == answers.L4LB and request.command == answers.COMMANDS["GET_SERVICES"] and \
                genl.L_RANGES in dict(genl.attributes(request.payload)):
            return request.error(errno.EINVAL)
        return farm(request)
    done = answers.run(answer, "save")
    assert done.code == 0 and done.out == answers.run(farm, "save").out != ""
    assert len([one for one in done.requests if one.command == answers.COMMANDS["GET_SERVICES"] and
                one.family == answers.L4LB]) == 2


def test_drains_are_left_out():
    """A server with weight 0, of which an older module cannot say more."""
    def answer(request):
        if request.family == answers.L4LB and request.command == answers.COMMANDS["GET_SERVICES"]:
            return request.reply([genl.batch_entry("192.0.2.10", 80, [
                genl.batch_server("10.0.0.11", 80, weight=0)])])
        return lacks("GET_DRAIN")(request)
    done = answers.run(answer, "show")
    assert (done.code, done.err) == (0, "") and "draining" in done.out
    assert answers.COMMANDS["GET_DRAIN"] in [one.command for one in done.requests
                                             if one.family == answers.L4LB]


def test_a_module_that_says_why_is_not_old():
    """EOPNOTSUPP also stands for settings that exclude each other."""
    def answer(request):
        if request.family == answers.L4LB and request.command == answers.COMMANDS["SET_POLICY"]:
            return request.error(errno.EOPNOTSUPP, "policy: ON_IDLE does not work with this")
        return farm(request)
    done = answers.run(answer, "service", "change", "tcp", "192.0.2.10:80", "on-idle", "reset")
    assert done.code == 7 and done.err == (
        "ipvsctl: tcp 192.0.2.10:80: service: the kernel refused: policy: ON_IDLE does not work with this\n")


def test_a_scheduler_of_which_the_module_does_not_tell(tmp_path):
    """The kernel judges it when it is set."""
    (tmp_path / "file").write_text(FARM.replace("rr", "hrw"), "ascii")
    done = answers.run(lacks("GET_SCHEDULER"), "apply", str(tmp_path / "file"))
    assert done.code == 0, done.err
    assert "SET_SERVICES" in [NAMES[one.command] for one in done.requests if one.family == answers.L4LB]
