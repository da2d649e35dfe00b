# SPDX-License-Identifier: GPL-2.0
"""The output of ipvsctl: as README.md shows it, sorted, with and without colour, and
with -q."""

import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from lab.ctl import IPVSCTL, VIP
from lab.netns import wait_until

TAKES = 30
NO_MODULE = True        # `module` loads it
README = Path(__file__).resolve().parents[2] / "README.md"
ESCAPE = "\x1b["


# ---- README.md ----

def transcript():
    """[(command, its output)] of the README's section on ipvsctl."""
    section = README.read_text(encoding="utf-8").partition("\n## ipvsctl\n")[2]
    lines = re.match(r"\n((?:    .*\n)+)", section)[1].splitlines()
    steps = []
    for line in lines:
        line = line[4:]
        if line.startswith("# "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return [(command, "".join(f"{line}\n" for line in out)) for command, out in steps]


@pytest.mark.smoke
@pytest.mark.tool
def test_transcript_of_the_readme(director):  # noqa: F811
    """Each line, run by a shell, prints what README.md shows, character for character;
    except that tables pad their last column with blanks, which README.md omits."""
    steps = transcript()
    assert len(steps) == 5
    env = os.environ | {"LANG": "C.UTF-8",
                        "PATH": f"{Path(IPVSCTL).resolve().parent}:{os.environ['PATH']}"}
    for command, prints in steps:
        assert command.split()[0] == "ipvsctl"
        with director.ns.enter():
            done = subprocess.run(["sh", "-c", command], env=env, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert re.sub(" +$", "", done.stdout, flags=re.MULTILINE) == prints, command


# ---- sort ----

@contextlib.contextmanager
def conversations(ns, count, port):
    """COUNT established TCP connections with a real server on the director itself."""
    with contextlib.ExitStack() as stack:
        def tcp():
            return stack.enter_context(ns.socket(socket.AF_INET, socket.SOCK_STREAM))
        listener = tcp()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("10.0.0.1", port))
        listener.listen()
        for _ in range(count):
            client = tcp()
            client.settimeout(10)
            client.connect((VIP, port))
            stack.enter_context(listener.accept()[0])
        yield


def order(one, words):
    """The ports of the services in the order of the JSON list and of the table."""
    ports = [s["port"] for s in one.json("show", words)["services"]]
    shown = re.findall(r"^tcp \S+:(\d+)", one.ctl("show -H", words), re.MULTILINE)
    assert shown == [str(p) for p in ports]
    return ports


def test_sort(fresh):  # noqa: F811
    """By name, by active connections, or by new connections per second; largest first."""
    want = {81: 1, 82: 3, 83: 0, 84: 2}
    for port in (84, 82, 83, 81):
        fresh.ctl(f"svc add tcp {VIP}:{port} scheduler rr server 10.0.0.1")
    with contextlib.ExitStack() as stack:
        for port, count in want.items():
            stack.enter_context(conversations(fresh.ns, count, port))
        assert order(fresh, "") == order(fresh, "sort name") == [81, 82, 83, 84]
        active = {s["port"]: s["servers"][0]["active"] for s in fresh.json("show")["services"]}
        assert active == want
        assert order(fresh, "sort active") == [82, 84, 81, 83]
        assert order(fresh, "proto tcp sort active vip 192.0.2.10") == [82, 84, 81, 83]
    # Another order by rate: closed connections to other services.
    for port, count in ((83, 200), (81, 60)):
        for _ in range(count // 20):
            with conversations(fresh.ns, 20, port):
                pass
    wait_until(lambda: [r > 0 for r in rates(fresh, (83, 81))] == [True, True], 10)
    by_rate = order(fresh, "sort rate")
    assert by_rate[:2] == [83, 81], (by_rate, rates(fresh, want))


def rates(one, ports):
    found = {s["port"]: s["conns_per_second"] for s in one.json("show")["services"]}
    return [found[port] for port in ports]


# ---- count by service ----

def test_count_by_service(fresh):  # noqa: F811
    """Services that share an address or a port are told apart, and templates count for
    their service."""
    services = {f"udp {VIP}:5353": 3, "udp 192.0.2.11:5353": 2, f"udp {VIP}:54": 1}
    fresh.ns.ip("addr add 192.0.2.11/32 dev lo")
    for name in services:
        fresh.ctl(f"svc add {name} scheduler rr server 10.0.0.11 server 10.0.0.12")
    fresh.ctl(f"svc change udp {VIP}:54 persistent 50")
    for name, count in services.items():
        to, port = name.split()[1].split(":")
        fresh.ns.datagrams((to, int(port)), count)
    with_template = services | {f"udp {VIP}:54": 2}
    assert fresh.json("conn count by service") | {"ipvsctl": None} == {
        "ipvsctl": None, "connections": 7, "by": with_template}
    assert fresh.json("conn count by service server 10.0.0.12 client 192.0.2.0/24 "
                      "service", f"udp {VIP}:5353")["by"] == {f"udp {VIP}:5353": 1}
    rows = [line.rsplit(None, 1) for line in fresh.ctl("conn count by service").splitlines()]
    assert rows[0] == ["NAME", "CONNS"]
    assert {name: int(count) for name, count in rows[1:]} == with_template
    assert fresh.json("conn count by service proto tcp")["by"] == {}


# ---- quiet ----

def both(one, words, code=0):
    """(standard output, standard error)"""
    with one.ns.enter():
        done = subprocess.run([IPVSCTL, *words.split()], capture_output=True, text=True,
                              check=False, timeout=60)
    assert done.returncode == code, done
    return done.stdout, done.stderr


def test_quiet(director, tmp_path):  # noqa: F811
    """-q leaves out reports of what was done, and remarks; errors and requested listings
    are printed."""
    assert both(director, "show")[1] == "no services\n"
    assert both(director, "-q show")[1] == ""
    director.ctl(f"svc add tcp {VIP}:80 server 10.0.0.11 weight 3")
    rules = tmp_path / "rules"
    rules.write_text(director.ctl("save"), encoding="ascii")
    drain = f"rs drain tcp {VIP}:80 10.0.0.11 --wait 1"
    for words in (drain, f"restore {rules}"):
        assert both(director, words)[0]
        assert both(director, f"-q {words}") == both(director, f"{words} --quiet") == ("", "")
    assert "no such service" in both(director, f"-q svc delete tcp {VIP}:81", code=4)[1]
    assert f"tcp {VIP}:80" in both(director, "-q show")[0]


# ---- colour ----

def on_terminal(one, words, **env):
    """The output of ipvsctl on a terminal."""
    ours, theirs = os.openpty()
    with one.ns.enter():
        done = subprocess.run([IPVSCTL, *words.split()], stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=subprocess.PIPE, check=False, timeout=60,
                              env={k: v for k, v in os.environ.items() if k != "NO_COLOR"} |
                              {"TERM": "xterm", "LANG": "C.UTF-8"} | env)
    os.close(theirs)
    out = b""
    with contextlib.suppress(OSError):      # EIO: the other end is closed, all is read
        while data := os.read(ours, 65536):
            out += data
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")
    return out.decode().replace("\r\n", "\n")


def test_colour(director):  # noqa: F811
    """On a terminal, unless NO_COLOR is set and not empty; -C always and never override that."""
    director.ctl(f"svc add tcp {VIP}:80 server 10.0.0.11")
    plain = director.ctl("show", env={"NO_COLOR": ""})
    assert "10.0.0.11" in plain and ESCAPE not in plain
    assert director.ctl("show -C auto", env={"NO_COLOR": ""}) == plain
    for words, env, coloured in (
            ("show", {}, True), ("show -C auto", {}, True), ("show", {"NO_COLOR": ""}, True),
            ("show", {"NO_COLOR": "1"}, False), ("show -C auto", {"NO_COLOR": "1"}, False),
            ("show -C never", {}, False), ("show --color never", {"NO_COLOR": ""}, False),
            ("show -C always", {"NO_COLOR": "1"}, True)):
        out = on_terminal(director, words, **env)
        assert (ESCAPE in out) == coloured, (words, env, out)
        assert re.sub(r"\x1b\[[0-9;]*m", "", out) == plain, (words, env)
    for env in ({}, {"NO_COLOR": "1"}):
        assert ESCAPE in director.ctl("show -C always", env=env)
