# SPDX-License-Identifier: GPL-2.0
"""What the kernel refuses of a file is shown in the file, as what the program itself refuses:
line, column, the line's text and a caret."""

import errno
import json
import re

import answers
import pytest
from lab import genl

FILE = """\
version: 1
services:
- service: udp 192.0.2.10:53
  servers: [10.0.0.11]
- service: tcp 192.0.2.10:80
  scheduler: wrr
  servers:
    - 10.0.0.11 weight 1
    -   10.0.0.12 weight 2
    - {address: 10.0.0.13, weight: 3}
"""
WHY = "neither local nor a unicast address"


def refuses(code, what, sentence=WHY):
    """A kernel that refuses the services where WHAT, an address, is in the message."""
    def answer(request):
        if request.family == answers.L4LB and request.command == answers.COMMANDS["SET_SERVICES"]:
            return request.error(code, sentence, request.data.index(genl.address(what)))
        return answers.kernel(request)
    return answer


@pytest.mark.parametrize("verb", ["apply", "restore"])
@pytest.mark.parametrize("server, line, column, shown", [
    ("10.0.0.12", 9, 9, "    -   10.0.0.12 weight 2"),
    ("10.0.0.13", 10, 17, "    - {address: 10.0.0.13, weight: 3}")], ids=["word", "key"])
def test_a_server(verb, server, line, column, shown, tmp_path):
    file = tmp_path / "lb.yaml"
    file.write_text(FILE, "ascii")
    done = answers.run(refuses(errno.EINVAL, server), verb, str(file))
    assert done.code == 3
    assert done.err == (f"ipvsctl: {file}:{line}:{column}: tcp 192.0.2.10:80: server {server}: "
                        f"the kernel refused: {WHY}\n  {line:5} | {shown}\n        | {'^':>{column}}\n"
                        "  nothing was changed\n")


def test_where_check_would_point(tmp_path):
    """A mistake in the same entry that needs no kernel to find it."""
    server = "10.0.0.12"
    file = tmp_path / "lb.yaml"
    file.write_text(FILE, "ascii")
    refused = answers.run(refuses(errno.EINVAL, server), "apply", str(file)).err.splitlines()
    file.write_text(FILE.replace(server, server.replace("10.0.0", "224.0.0")), "ascii")
    checked = answers.run(answers.kernel, "check", str(file))
    assert checked.code == 2
    place = re.compile(rf"{file}:(\d+):(\d+): ")
    assert place.search(refused[0]).groups() == place.search(checked.err).groups()
    assert refused[2] == checked.err.splitlines()[2]


def test_a_service(tmp_path):
    file = tmp_path / "lb.yaml"
    file.write_text(FILE.replace("udp 192.0.2.10:53", "udp 192.0.2.9:53"), "ascii")
    done = answers.run(refuses(errno.ENOSPC, "192.0.2.10", "no room for a service"), "apply", str(file))
    assert done.code == 3
    assert done.err.splitlines() == [
        f"ipvsctl: {file}:5:3: tcp 192.0.2.10:80: service: the kernel refused: no room for a service",
        "      5 | - service: tcp 192.0.2.10:80", "        |   ^", "  nothing was changed"]


def test_json():
    done = answers.run(refuses(errno.EINVAL, "10.0.0.12"), "-j", "apply", "-", stdin=FILE)
    error = json.loads(done.err)["error"]
    assert (error["line"], error["column"], error["code"], error["errno"]) == (9, 9, 3, "EINVAL")
    assert error["object"] == "standard input:9:9: tcp 192.0.2.10:80"


def test_rules_have_lines_only():
    rules = "-A -t 192.0.2.10:80 -s rr\n-a -t 192.0.2.10:80 -r 10.0.0.12:80 -m\n"
    done = answers.run(refuses(errno.EINVAL, "10.0.0.12"), "restore", stdin=rules)
    assert done.err == ("ipvsctl: standard input:2: tcp 192.0.2.10:80: server 10.0.0.12: the kernel "
                        f"refused: {WHY}\n  nothing was changed\n")


def test_no_place_in_the_message():
    """The kernel's answer does not say what it is about."""
    def answer(request):
        if request.command == answers.COMMANDS["SET_SERVICES"] and request.family == answers.L4LB:
            return request.error(errno.ENOMEM)
        return answers.kernel(request)
    done = answers.run(answer, "apply", "-", stdin=FILE)
    assert done.err == "ipvsctl: setting the services: the kernel is out of memory\n  nothing was changed\n"


def test_a_line_with_a_key_is_not_shown(tmp_path):
    (tmp_path / "secret").write_text("00" * 16 + "\n", "ascii")
    (tmp_path / "secret").chmod(0o600)
    text = ("version: 1\nservices:\n- {service: 'tcp 192.0.2.10:80', scheduler: mh, options: "
            f"{{key: {tmp_path}/secret}}, servers: []}}\n")
    done = answers.run(refuses(errno.ENOSPC, "192.0.2.10", "no room"), "apply", "-", stdin=text)
    assert done.err.startswith("ipvsctl: standard input:3:3: ") and " | " not in done.err, done.err
