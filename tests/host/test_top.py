# SPDX-License-Identifier: GPL-2.0
"""ipvsctl top on terminals of several sizes (tmux plays them) and without one; with a kernel
that tests/unit/fake_kernel.c plays. Its clock goes by what top waits for, so that rates and screens
are the same on a busy machine. L4LB_WRITE_DOC=1 writes the screens into doc/watching.md."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import fake
import pytest
from simulator import CACHED

TOP = Path(__file__).resolve().parents[2]
DOC = TOP / "doc/watching.md"
BAR = "\N{FULL BLOCK}"


@pytest.fixture
def proc(tmp_path):
    return fake.proc(tmp_path / "proc")


class Terminal:
    """ipvsctl top in a terminal of WIDTH columns and HEIGHT lines."""

    def __init__(self, proc, width, height, words="", program=None, **env):
        self.tmux_argv = ["tmux", "-L", f"l4lb-{os.getpid()}-{id(self)}", "-f", "/dev/null"]
        env = {"FAKE_PROC": str(proc), "LANG": "C.UTF-8", "TZ": "UTC"} | env
        assigned = " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items())
        self.status = proc / "status"
        command = (f"env {assigned} {program or fake.program()} top {words} 2>{proc}/stderr; "
                   f"echo $? >{self.status}; sleep 100")
        self.tmux("-u", "new-session", "-d", "-x", str(width), "-y", str(height), command)

    def tmux(self, *words):
        return subprocess.run([*self.tmux_argv, *words], check=True, capture_output=True,
                              text=True, timeout=30, env=os.environ | {"LANG": "C.UTF-8"}).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p").rstrip("\n")

    def keys(self, *words):
        self.tmux("send-keys", *words)

    def wait(self, fits, seconds=10):
        """The first screen that FITS (a function, or a pattern)."""
        end = time.monotonic() + seconds
        while True:
            text = self.screen()
            if re.search(fits, text, re.M) if isinstance(fits, str) else fits(text):
                # It may have been looked at while it was drawn.
                time.sleep(0.1)
                again = self.screen()
                if text.splitlines()[1:] == again.splitlines()[1:]:
                    return text
            assert time.monotonic() < end, text
            time.sleep(0.1)

    def ended(self, seconds=10):
        end = time.monotonic() + seconds
        while not self.status.exists() or not self.status.read_text("ascii"):
            assert time.monotonic() < end, self.screen()
            time.sleep(0.05)
        return int(self.status.read_text("ascii"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.tmux_argv, "kill-server"], check=False, capture_output=True)


def rows(screen):
    """The lines of services and servers, split."""
    lines = screen.splitlines()
    top = next(i for i, line in enumerate(lines) if "SERVICE" in line)
    return [line[2:].split() for line in lines[top + 1:-1] if line.strip()]


def services(screen):
    return [" ".join(row[:2]) for row in rows(screen) if row[0] in ("tcp", "udp", "sctp", "fwmark")]


BY_CONNS = ["fwmark 4", "tcp 192.0.2.10:83", "sctp 192.0.2.10:82", "udp 192.0.2.10:81",
            "tcp 192.0.2.10:80", "sctp [2001:db8::a]:85"]


def measured(screen):
    """From the second snapshot on: the kernel's own rates are twice that."""
    return re.search(r"10\.0\.0\.11:0 +500 ", screen)


def timeless(text):
    """Screens are looked at after one or more seconds of the fake kernel's clock."""
    return re.sub(r"12:\d\d:\d\d", "12:00:01", text)


def documented(name, screen):
    """The screen is the one of the page; L4LB_WRITE_DOC writes it."""
    shown = timeless("\n".join(line.rstrip() for line in screen.splitlines()))
    page = DOC.read_text("utf-8")
    found = re.search(rf"(<!-- {name} -->\n```\n)(.*?)(\n```\n)", page, re.S)
    if os.environ.get("L4LB_WRITE_DOC"):
        page = page[:found.start(2)] + shown + page[found.end(2):]
        DOC.write_text(page, "utf-8")
    else:
        assert found[2] == shown


def documented_alone(path, screen):
    """The same with a file that is the screen: it is too wide for the page."""
    shown = timeless("\n".join(line.rstrip() for line in screen.splitlines())) + "\n"
    if os.environ.get("L4LB_WRITE_DOC"):
        path.write_text(shown, "utf-8")
    else:
        assert path.read_text("utf-8") == shown


def test_an_ordinary_terminal(proc):
    with Terminal(proc, 80, 24) as t:
        screen = t.wait(measured)
        lines = screen.splitlines()
        assert re.match(r"l4lb \d\d:\d\d:\d\d  6 services  15 servers  every 1 s$", lines[0])
        assert lines[1].startswith("0 conn/s  465 active  30 inactive of 131k  in 0 p/s")
        assert lines[2] == "drops/s: none"
        assert lines[-1].startswith("q quit  s sort  / filter  p pause  ? help  Enter conns")
        assert services(screen) == BY_CONNS[:5] and max(map(len, lines)) <= 80
        assert lines[3].split() == ["SERVICE", "/", "SERVER", "CONN/s", "IN", "p/s", "IN", "B/s",
                                    "OUT", "B/s", "ACTIVE", "SHARE", "conns"]
        # A half of the first service's, a bar of half its length.
        first = next(line for line in lines if "10.0.0.11:0 " in line)
        assert first.split()[1:6] == ["500", "3.5k", "350k", "4.5M", "50"] and " 54." in first
        assert 3 <= first.count(BAR) <= 5
        documented("top 80x24", screen)
        # Reasons of drops, as soon as there are any.
        fake.proc(proc, no_dest="2 50", guard="12 10")
        t.wait(r"^drops/s: no_dest 50 guard 10$")
        t.keys("d")
        screen = t.wait(r"^  no_dest +50/s +\d{6}$")
        assert "q quit  Esc back  p pause  PgUp PgDn more" in screen
        # More of them than lines.
        assert "slow_protocol" not in screen and re.search(r"^  no_dest ", screen, re.M)
        t.keys("End")
        screen = t.wait(r"^  slow_protocol ")
        assert not re.search(r"^  no_dest ", screen, re.M) and "sync_full" in screen
        t.keys("Up")
        t.wait(lambda screen: "sync_bytes_out" in screen and "sync_full" not in screen)
        t.keys("PPage")
        t.wait(r"^  no_dest ")
        t.keys("Escape")
        t.wait(r"SERVICE / SERVER")
        t.keys("q")
        assert t.ended() == 0


def test_a_large_terminal(proc):
    with Terminal(proc, 200, 60) as t:
        screen = t.wait(measured)
        assert services(screen) == BY_CONNS
        for word in ("OUT p/s", "INACT", "SHARE"):
            assert word in screen.splitlines()[3]
        assert screen.count(BAR) > 200
        documented_alone(TOP / "doc/top-200x60.txt", screen)


def test_a_tiny_terminal(proc):
    with Terminal(proc, 20, 10) as t:
        screen = t.wait(r"fwmark 4 +916$")
        lines = screen.splitlines()
        assert max(map(len, lines)) <= 20 and len(lines) == 10
        assert lines[3].split() == ["SERVICE", "/", "CONN/s"]
        assert lines[-1] == "q quit  s sort"
        # Of servers' names, the end.
        assert lines[5].split()[0] == "<.0.11:0"
        documented("top 20x10", screen)
        # Any size is survived, and drawn at once.
        for width, height in ((10, 3), (1, 1), (300, 5), (80, 24)):
            t.tmux("resize-window", "-x", str(width), "-y", str(height))
            time.sleep(0.3)
        assert "INACT" not in t.wait(r"^l4lb .* every 1 s$") and services(t.screen()) == BY_CONNS[:5]


def test_keys(proc):
    with Terminal(proc, 120, 30) as t:
        t.wait(measured)
        t.keys("s", "s")                            # packets, bytes
        t.wait(r"SHARE bytes")
        t.keys("r")
        t.wait(lambda s: services(s) == BY_CONNS[::-1])
        t.keys("s", "s", "r")                       # active, name
        t.wait(lambda s: services(s) == [BY_CONNS[place] for place in (4, 1, 3, 2, 5, 0)])
        t.keys("s", "e")
        t.wait(lambda s: services(s) == BY_CONNS and "10.0.0.1" not in s and
               "SERVICE / SERVER" not in s)
        t.keys("/", "1", "9", "3", "BSpace", "2", ":", "8", "1")
        t.wait("nothing has this in its name")
        assert t.screen().splitlines()[-1] == "/192:81_"
        for _ in range(6):
            t.keys("BSpace")
        t.keys("0", ":", "8", "1")
        t.wait(lambda s: services(s) == ["udp 192.0.2.10:81"])
        t.keys("Escape")
        t.wait(lambda s: services(s) == BY_CONNS)
        t.keys("?")
        assert "F  at its threshold" in t.wait("^KEYS")
        t.keys("Escape", "+", "+")
        t.wait("every 3 s")


def test_filter_by_a_servers_name(proc):
    """Its services stay, with that server alone; shares are still of the whole."""
    with Terminal(proc, 120, 30) as t:
        t.wait(measured)
        t.keys("/", ".", "1", "2", ":", "8", "3", "Enter")
        screen = t.wait(lambda s: services(s) == ["tcp 192.0.2.10:83"])
        assert [row[0] for row in rows(screen)] == ["tcp", "10.0.0.12:83"]
        assert "27." in rows(screen)[1][8] and "filter: .12:83" in screen
        t.keys("/", "n", "o", "n", "e", "Enter")
        t.wait("nothing has this in its name")


def test_connections_of_a_service(proc):
    with Terminal(proc, 100, 20) as t:
        t.wait(measured)
        t.keys("Down", "Down", "Enter")
        screen = t.wait(r"^CLIENTS OF fwmark 4 AT 10\.0\.0\.12:0$")
        found = re.findall(r"^198\.51\.100\.7:(\d+) +10\.0\.0\.11:80 +ESTABLISHED +\d+ s$",
                           screen, re.M)
        # As many as fit, of a thousand.
        assert [int(p) for p in found] == list(range(40000, 40000 + len(found))) and len(found) == 15
        documented("top conns", screen)
        t.keys("Escape")
        t.wait("SERVICE / SERVER")


def test_the_old_module(proc):
    with Terminal(proc, 100, 20, FAKE_OLD="1") as t:
        screen = t.wait(measured)
        assert screen.startswith("ip_vs ") and "drops: not counted by ip_vs" in screen
        t.keys("Enter")
        t.wait("ip_vs does not say which mark")
        t.keys("Escape", "d")
        t.wait("this module has none")


def test_pause(proc):
    with Terminal(proc, 100, 20) as t:
        t.wait(measured)
        t.keys("p")
        t.wait("PAUSED")
        fake.proc(proc, header="0 70")
        time.sleep(1.6)
        assert "drops/s: none" in t.screen()
        t.keys("s")                                 # but keys work
        t.wait("SHARE packets")
        t.keys("p")
        t.wait("drops/s: header 70$")


def test_the_choice_follows_its_service(proc):
    """Whatever the order is; the first screen's first row is not a choice."""
    with Terminal(proc, 100, 12) as t:
        t.wait(measured)
        t.keys("e", "Down", "Down", "r")
        t.wait(lambda s: services(s)[0] == BY_CONNS[-1])
        t.keys("Enter")
        t.wait(r"^CLIENTS OF sctp 192\.0\.2\.10:82$")


def test_plain_ascii_and_no_colour(proc):
    with Terminal(proc, 120, 24, LANG="C", NO_COLOR="1") as t:
        screen = t.wait(measured)
        assert screen.isascii() and "####" in screen
        # Reverse and bold may stay; 3x and 4x are colours.
        assert not re.search(r"\x1b\[(?:\d+;)*[34][1-7]m", t.tmux("capture-pane", "-p", "-e"))
    with Terminal(proc, 120, 24) as t:
        t.wait(measured)
        assert re.search(r"\x1b\[(?:\d+;)*3[13]m", t.tmux("capture-pane", "-p", "-e"))


@pytest.mark.parametrize("how", ["C-c", "TERM", "module"])
def test_ends(proc, how):
    """The terminal is as before, and the failure is said after that."""
    with Terminal(proc, 80, 24) as t:
        t.wait(measured)
        if how == "C-c":
            t.keys("C-c")
        elif how == "TERM":
            pid = t.tmux("list-panes", "-F", "#{pane_pid}").strip()
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
            os.kill(int(children[0]), signal.SIGTERM)
        else:
            (proc / "net/ip_vs_stats").unlink()
        assert t.ended() == (7 if how == "module" else 0)
        said = (proc / "stderr").read_text("ascii")
        assert ("cannot read /proc/net/ip_vs_stats" in said) == (how == "module")
        assert "SERVICE" not in t.screen()


def test_many_services_within_a_second(proc):
    """10,000 services with 4 servers: read, computed and drawn again each second."""
    with Terminal(proc, 80, 24, FAKE_SERVICES="10000", FAKE_SERVERS="4") as t:
        t.wait(r"10000 services  39996 servers", 20)
        pid = t.tmux("list-panes", "-F", "#{pane_pid}").strip()
        child = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0]
        t.wait(r"^l4lb 12:00:(0[6-9]|[1-5])", 120)
        stat = Path(f"/proc/{child}/stat").read_text("ascii").split()
        cpu = (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK")
        # Time on a processor, of which a busy machine gives less; it drew at least six times.
        screens = int(t.screen().split()[1][6:])
        print("seconds of CPU:", cpu, "for", screens, "screens")
        assert cpu / screens < 0.5


def test_the_terminal_goes_away(proc):
    master, slave = pty.openpty()
    with subprocess.Popen([fake.program(), "top"], stdin=slave, stdout=slave, start_new_session=True,
                          env=os.environ | {"FAKE_PROC": str(proc), "TERM": "xterm"}) as p:
        os.close(slave)
        assert select.select([master], [], [], 10)[0]
        os.read(master, 100)
        os.close(master)
        assert p.wait(10) is not None


@pytest.mark.parametrize(("words", "why", "hint"), [
    ("top", "top needs a terminal to draw on", "try: ipvsctl top -b"),
    ("top -j", "only without its screen", "try: ipvsctl top -b -j"),
    ("top -n 3", '"top -n N" needs -b', None),
    ("top -b -n", '"-n" needs a value', None),
    ("top -b -n 0", 'bad -n "0"', None),
    ("top -b sort byte", 'unknown sort key "byte"', "did you mean: bytes"),
    ("top -b sort", '"sort" needs a value', None),
    ("top -b prot tcp", 'unknown filter "prot"', "did you mean: proto"),
    ("show -b", 'option --batch does not belong to "show"', None),
])
def test_bad_words(proc, words, why, hint):
    lines = fake.run(proc, *words.split(), code=2).splitlines()
    assert why in lines[0] and (not hint or hint in "\n".join(lines)), lines


def test_an_unknown_terminal(proc):
    master, slave = pty.openpty()
    done = subprocess.run([fake.program(), "top"], stdin=slave, stdout=slave, check=False,
                          stderr=subprocess.PIPE, text=True, timeout=30,
                          env=os.environ | {"FAKE_PROC": str(proc), "TERM": "nonsense"})
    os.close(master)
    os.close(slave)
    assert done.returncode == 2
    assert 'the terminal\'s type "nonsense" is not known' in done.stderr


# ---- without a terminal ----

def test_printed_as_text(proc):
    text = fake.run(proc, *"top -b -n 2 -w 1".split(), COLUMNS="100")
    first, second = text.split("\n\n")
    assert max(map(len, text.splitlines())) <= 100 and text.isascii()
    rates = [re.search(r"10\.0\.0\.11:0 +(\S+) ", text)[1] for text in (first, second)]
    assert rates == ["1.0k", "500"]
    few = fake.run(proc, *"top -b -n 1 proto udp sort name".split())
    assert [line.split()[0] for line in few.splitlines()[4:]] == ["udp"] + [
        f"10.0.0.1{n}:81" for n in (1, 2, 3)]


def test_printed_at_any_width(proc):
    for width in (20, 21, 29, 30, 47, 60, 79, 80, 81, 100, 132, 200, 500):
        text = fake.run(proc, *"top -b -n 1".split(), COLUMNS=str(width), LANG="C.UTF-8")
        assert max(map(len, text.splitlines())) <= width
        assert "CONN/s" in text and (BAR in text or width < 79), width


def test_services_that_come_and_go(proc):
    """One is there every other time; the others' rates do not change for that."""
    text = fake.run(proc, *"top -b -n 3 -j".split(), FAKE_COMES="3")
    docs = [json.loads(line) for line in text.splitlines()]
    assert [len(doc["services"]) for doc in docs] == [5, 6, 5]
    for doc in docs[1:]:
        rates = {s["id"]: s["rates"]["conns_per_second"] for s in doc["services"]}
        assert rates["udp:192.0.2.10:81"] == 200 + 100 + 66
        assert rates["fwm:4"] == 500 + 250 + 166
    # What is new has the rate that the kernel knows.
    new = next(s for s in docs[1]["services"] if s["id"] == "tcp:192.0.2.10:83")
    assert new["rates"]["conns_per_second"] == 2 * (400 + 200 + 133)


def test_printed_as_json(proc):
    text = fake.run(proc, *"top -b -n 3 -j sort packets".split())
    docs = [json.loads(line) for line in text.splitlines()]
    assert len(docs) == 3 and docs[0]["ipvsctl"]["backend"] == "l4lb"
    assert docs[1]["drops_per_second"]["no_dest"] == 0
    assert set(docs[1]["drops_per_second"]) == set(fake.DROPS)
    for doc in docs[1:]:
        listed = {s["id"]: s for s in doc["services"]}
        assert [s["id"] for s in doc["services"]][:2] == ["fwm:4", "tcp:192.0.2.10:83"]
        web = listed["tcp:192.0.2.10:80"]
        first = web["servers"][0]
        assert first["id"] == "10.0.0.11:80" and first["state"] == "ok"
        for key, rate in (("conns", 100), ("in_packets", 700), ("out_packets", 900),
                          ("in_bytes", 70000), ("out_bytes", 900000)):
            assert first["rates"][f"{key}_per_second"] == rate
        assert abs(sum(s["share"] for s in doc["services"]) - 1) < 1e-9
        assert abs(sum(s["share"] for s in web["servers"]) - 1) < 1e-9
        assert listed["tcp:192.0.2.10:83"]["servers"][0]["state"] == "draining"
        assert listed["sctp:[2001:db8::a]:85"] | {"rates": 0} == {
            "id": "sctp:[2001:db8::a]:85", "state": "no servers", "active": 0, "inactive": 0,
            "share": 0.0, "servers": [], "rates": 0}


def test_the_reader_goes_away(proc):
    with subprocess.Popen([fake.program(), "top", "-b"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=os.environ | {"FAKE_PROC": str(proc)}) as p:
        p.stdout.readline()
        p.stdout.close()
        assert p.wait(10) == -signal.SIGPIPE and p.stderr.read() == b""


@pytest.mark.slow      # it compiles
def test_built_without_the_screen(tmp_path, proc):
    """WITH_TOP=0 needs no ncurses, and top still prints. Only what includes
    its header is compiled again."""
    objects = tmp_path / "ipvsctl.obj"
    shutil.copytree(TOP / "build/ipvsctl.obj", objects)
    for source in (TOP / "tools/ipvsctl").glob("*.c"):
        if '"top_screen.h"' in source.read_text(encoding="utf-8"):
            (objects / f"{source.stem}.o").unlink()
    subprocess.run(["make", "-C", TOP / "tools/ipvsctl", f"O={tmp_path}", "WITH_TOP=0"],
                   check=True, capture_output=True, timeout=300, env=CACHED)
    program = tmp_path / "ipvsctl"
    needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    assert "ncurses" not in needed and "jansson" in needed
    assert "top" in subprocess.run([program, "help"], check=True, capture_output=True, text=True).stdout
