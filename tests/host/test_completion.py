# SPDX-License-Identifier: GPL-2.0
"""Completion for bash, zsh and fish: what each offers is what the program's table has, what
the program accepts, and what the kernel (which tests/unit/fake_kernel.c plays) has."""

import functools
import os
import random
import re
import shutil
import subprocess
import time

import fake
import pytest
from test_ipvsctl import IPVSCTL, SOURCES, help_text, ipvsctl, options, verbs

SHELLS = {"bash": r"""
source "$1"
while IFS= read -r COMP_LINE; do
	COMP_POINT=${#COMP_LINE} COMPREPLY=()
	_ipvsctl
	printf '%s\n' "${COMPREPLY[@]}" ==
done
""", "zsh": r"""
fpath=($1:h $fpath)
_describe() { print -rl -- ${${${described//\\:/$'\t'}%%:*}//$'\t'/:} }
_files() { print -rl -- ${PREFIX}*(N) }
autoload -U ipvsctl.zsh
while IFS= read -r line; do
	words=("${(@s: :)line}") CURRENT=$#words PREFIX=$words[-1]
	ipvsctl.zsh
	print -r -- '=='
done
""", "fish": r"""
source $argv[1]
while read -l line
	complete -C $line | string replace -r '\t.*' ''
	echo ==
end
"""}


@pytest.fixture
def proc(tmp_path):
    return fake.proc(tmp_path / "proc")


@pytest.fixture(params=SHELLS)
def offered(request, tmp_path, proc):
    """A function: what the shell offers at the end of each line, sorted."""
    shell = request.param
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ipvsctl").symlink_to(fake.program())
    (tmp_path / "here").mkdir()
    script = SOURCES / f"ipvsctl.{shell}"
    argv = {"bash": ["bash", "-c", SHELLS[shell], "bash"],
            "zsh": ["zsh", "-fc", SHELLS[shell], "zsh"],
            "fish": ["fish", "--no-config", "-c", SHELLS[shell]]}[shell]

    def run(*lines, **env):
        done = subprocess.run(
            [*argv, str(script)], input="".join(line + "\n" for line in lines), text=True,
            capture_output=True, check=False, timeout=120, cwd=tmp_path / "here",
            env=os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LANG": "C.UTF-8",
                              "HOME": str(tmp_path), "FAKE_PROC": str(proc)} | env)
        assert (done.returncode, done.stderr) == (0, "")
        found = [sorted(part.split()) for part in done.stdout.split("==\n")][:-1]
        assert len(found) == len(lines)
        return found
    run.shell, run.here = shell, tmp_path / "here"
    return run


def lists(before, *words, program=None, code=0, **env):
    """What the program itself offers after BEFORE, for the last of WORDS."""
    done = subprocess.run([program or IPVSCTL, "__complete", *before.split(), *words],
                          text=True, capture_output=True, check=False, timeout=60,
                          env=os.environ | env)
    assert (done.returncode, done.stderr) == (code, "")
    kind, *lines = done.stdout.splitlines()
    assert kind in ("words", "files")
    found = [line.split("\t")[0] for line in lines]
    assert found == sorted(set(found))
    return found


@functools.cache
def usage_of(words):
    line = re.search(rf"^  ipvsctl {words}( .*)?$", help_text(*words.split()), re.M)[1] or ""
    return re.sub(r" \[--.*", "", line)


@functools.cache
def of_verbs():
    """{"service add": the options that help shows for it alone}"""
    found = {}
    for noun, names in verbs().items():
        for verb in names or [""]:
            words = f"{noun} {verb}".strip()
            line = re.search(rf"^  ipvsctl {words}( .*)?$", help_text(*words.split()), re.M)[0]
            found[words] = set(re.findall(r"--[\w-]+", line))
    return found


def test_objects_verbs_and_options_are_offered(offered):
    """All of them, each with the options that it takes and no other."""
    longs = {option for option in options() if option[:2] == "--"}
    common = longs - set().union(*of_verbs().values())
    assert {"--json", "--netns"} <= common < longs
    several = [noun for noun, names in verbs().items() if names]
    found = offered("ipvsctl ", *(f"ipvsctl {noun} " for noun in several), "ipvsctl --",
                    *(f"ipvsctl {words} --" for words in of_verbs()))
    assert found.pop(0) == sorted([*verbs(), "help"])
    for noun in several:
        names = set(found.pop(0))
        assert names >= set(verbs()[noun]) and (noun == "stats" or names == set(verbs()[noun]))
    assert set(found.pop(0)) == longs
    for words, own in of_verbs().items():
        assert set(found.pop(0)) == (set() if words == "compat" else common | own), words


LINES = [
    ("ipvsctl se", "server service"), ("ipvsctl sched ", "compare list set show stats"),
    ("ipvsctl rs dr", "drain"), ("ipvsctl show --wa", "--watch"),
    ("ipvsctl -j timeout set tcp-", "tcp-fin"), ("ipvsctl timeout set udp 5m t", "tcp tcp-fin"),
    ("ipvsctl help sched ", "compare list set show stats"),
    ("ipvsctl svc add fwm:7 timeout ", "sctp tcp tcp-fin udp"),
    ("ipvsctl svc add fwm:7 timeout tcp 5m s", "scheduler sctp server shadow snat sync"),
    ("ipvsctl svc add fwm:7 on-", "on-drain on-idle on-loss"),
    ("ipvsctl svc add fwm:7 on-drain ", "default keep move"),
    ("ipvsctl svc add fwm:7 server 10.0.0.1 d", "dr"),
    ("ipvsctl svc add fwm:7 server 10.0.0.1 tun type ", "gre gue ipip"),
    ("ipvsctl sync start both dev eth9 g", "group"), ("ipvsctl sync set multicast ", "off on"),
    ("ipvsctl svc change fwm:4 owner web pro", "protected"), ("ipvsctl rol", "rollback"),
    ("ipvsctl svc add fwm:7 protected ", "off on"), ("ipvsctl svc change fwm:4 shadow w", "wlc wrr"),
    ("ipvsctl apply --con", "--confirm"),
    ("ipvsctl diff --ow", "--owner"), ("ipvsctl confirm ", ""),
    ("ipvsctl show sort ", "active name rate"), ("ipvsctl top sort p", "packets"),
    ("ipvsctl conn count by ", "client server service state"),
    ("ipvsctl conn count by client/24 st", "state"), ("ipvsctl conn show state LA", "LAST_ACK"),
    ("ipvsctl stats -F ", "json prometheus table"), ("ipvsctl save -F ", "ipvsadm json yaml"),
    ("ipvsctl server drain fwm:7 10.0.0.1 --then ", "delete move reset stay"),
    # What there is.
    ("ipvsctl svc delete tcp:19", "tcp:192.0.2.10:80 tcp:192.0.2.10:83"),
    ("ipvsctl svc delete f", "fwm:4 fwmark"), ("ipvsctl svc delete fwmark ", "4"),
    ("ipvsctl svc delete udp ", "192.0.2.10:81"), ("ipvsctl show vip 2", "2001:db8::a"),
    ("ipvsctl rs delete tcp:192.0.2.10:80 ", "10.0.0.11:80 10.0.0.12:80 10.0.0.13:80"),
    ("ipvsctl rs delete udp 192.0.2.10:81 10.0.0.11", "10.0.0.11:81"),
    ("ipvsctl rs drain fwmark 4 ", "10.0.0.11:0 10.0.0.12:0 10.0.0.13:0 inet inet6"),
    ("ipvsctl conn kill server 10.0.0.11:8", "10.0.0.11:80 10.0.0.11:81 10.0.0.11:82 10.0.0.11:83"),
    ("ipvsctl svc add fwm:7 scheduler w", "wlc wrr"), ("ipvsctl sched set fwm:4 r", "rr"),
    ("ipvsctl svc add fwm:7 option ", "expire shrink"),
    ("ipvsctl sync resync ", "10.0.0.2"), ("ipvsctl sync start both dev l", "lo"),
    # Nothing can follow, or the line is wrong.
    ("ipvsctl nonsense ", ""), ("ipvsctl svc nonsense ", ""), ("ipvsctl info ", ""),
    ("ipvsctl svc flush ", ""), ("ipvsctl --nonsense show ", ""), ("ipvsctl -A -t ", ""),
    ("ipvsctl --timeout ", ""), ("ipvsctl compat -A -", ""),
]


def test_lines(offered):
    for (line, words), found in zip(LINES, offered(*(line for line, _ in LINES)), strict=True):
        # Bash replaces what follows the last colon.
        cut = re.match(".*:|", line.split(" ")[-1])[0] if offered.shell == "bash" else ""
        assert found == [word.removeprefix(cut) for word in words.split()], line


def test_files(offered):
    for name in ("web.yaml", "mail.yaml"):
        (offered.here / name).touch()
    assert offered("ipvsctl apply ", "ipvsctl apply w", "ipvsctl sync set key ",
                   "ipvsctl stats --output m") == [
        ["mail.yaml", "web.yaml"], ["web.yaml"], ["mail.yaml", "none", "web.yaml"], ["mail.yaml"]]


def test_zsh_with_its_own_completion(tmp_path, proc):
    """Not with functions that stand for its own, as above."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ipvsctl").symlink_to(fake.program())
    (tmp_path / "_ipvsctl").symlink_to(SOURCES / "ipvsctl.zsh")
    (tmp_path / ".zshrc").write_text(
        f"path=({tmp_path}/bin $path) fpath=({tmp_path} $fpath) PS1='> '\n"
        "autoload -U compinit; compinit -u -D; setopt no_beep\n", "utf-8")
    tmux = ["tmux", "-L", f"l4lb-zsh-{os.getpid()}", "-f", "/dev/null"]

    def screen(keys, wanted):
        subprocess.run([*tmux, "send-keys", *keys], check=True, timeout=30)
        end = time.monotonic() + 30
        while True:
            text = subprocess.run([*tmux, "capture-pane", "-p"], check=True, timeout=30,
                                  capture_output=True, text=True).stdout
            if wanted in text:
                return
            assert time.monotonic() < end, text
            time.sleep(0.1)
    try:
        subprocess.run([*tmux, "new-session", "-d", "-x", "100", "-y", "24",
                        f"env ZDOTDIR={tmp_path} FAKE_PROC={proc} zsh -d -i"], check=True, timeout=30)
        screen([], ">")
        screen(["ipvsctl mon", "Tab"], "> ipvsctl monitor")
        screen(["C-u", "ipvsctl svc d", "Tab", "tcp:192.0.2.10:8", "Tab", "Tab"], "tcp:192.0.2.10:83")
        screen(["C-u", "ipvsctl server ", "Tab"], "-- add a server to a service")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True, timeout=30)


def grammars():
    text = (SOURCES / "words.c").read_text("utf-8")
    rows = re.findall(r'^\t\{ "([A-Z]+)",\s+(?:NULL|((?:"[^"]*"\s*)+))', text, re.M)
    return {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in rows if text}


EXAMPLES = {"ENDPOINT": "192.0.2.10:80", "SERVICE": "tcp:192.0.2.10:80", "N": "7", "DUR": "5m",
            "SRV": "10.0.0.11:80", "ADDR": "10.0.0.2", "LEN": "24", "SECONDS": "9", "IF": "lo",
            "SCHED": "rr", "SCHEDS": "rr,mh", "STATE": "CLOSE", "FLAGS": "port", "OPTION": "expire", "VALUE": "3",
            "NAME": "none", "SIZES": "1,2", "FILE": "some-file"}


def sentence(rng, usage):
    """[(word, is it written in the usage?)], at random."""
    tokens = re.findall(r"\[/LEN\]|\.\.\.|[][{}|]|[\w-]+", usage)

    def choice(at, end):
        parts, depth, first = [], 0, at
        for i in range(at, end):
            depth += (tokens[i] in "[{") - (tokens[i] in "]}")
            if tokens[i] == "|" and not depth:
                parts.append((first, i))
                first = i + 1
        return row(*rng.choice([*parts, (first, end)]))

    def row(at, end):
        out = []
        while at < end:
            after = at + 1
            while tokens[at] in "[{" and tokens[at:after].count("[") + tokens[at:after].count("{") > \
                    tokens[at:after].count("]") + tokens[at:after].count("}"):
                after += 1
            many = after < end and tokens[after] == "..."
            least = 0 if tokens[at] == "[" else 1
            for _ in range(rng.randint(least, 3 if many else 1)):
                out += choice(at + 1, after - 1) if tokens[at] in "[{" else word(tokens[at])
            at = after + many
        return out

    def word(token):
        if token == "[/LEN]":
            return []
        if token[0].islower():
            return [(token, True)]
        more = grammars().get(token)
        return sentence(rng, more) if more else [(EXAMPLES[token], False)]
    return choice(0, len(tokens))


@pytest.mark.parametrize("words", [words for words in of_verbs() if words != "compat"])
def test_every_word_of_a_usage_is_offered(words):
    """Sentences made at random from the usage: each of their written words is offered after
    those before it."""
    rng = random.Random(words)
    for _ in range(12):
        made = sentence(rng, usage_of(words))[:40]
        for place, (word, written) in enumerate(made):
            if written:
                before = [w for w, _ in made[:place]]
                assert word in lists(words, *before, word), (words, before)


@pytest.mark.parametrize("words", [words for words in of_verbs() if words != "compat"])
def test_every_word_of_a_usage_is_understood(words):
    """The program may refuse such a sentence for what it means, but not for one of its words.
    There is no module; with --dry-run nothing would be sent to one."""
    rng = random.Random(words)
    for _ in range(8):
        made = [word for word, _ in sentence(rng, usage_of(words))]
        done = ipvsctl("-n", *words.split(), *made, *(["-b"] if words == "top" else []))
        assert not re.search("unknown|needs a value|belongs to conn|not belong|unexpected",
                             done.stderr), done.stderr


def test_a_module_is_not_loaded_for_it(proc):
    """Asking for the netlink family would do that; the fake kernel says when it is asked."""
    env = {"program": fake.program(), "FAKE_PROC": str(proc), "FAKE_NONE": "1"}
    for line, words in [("svc delete", ["fwmark", "sctp", "tcp", "udp"]), ("rs delete fwm:4", []),
                        ("svc change fwm:4 option", []), ("sync resync", []), ("show vip", [])]:
        assert lists(line, "", **env) == words


def test_nothing_changes(tmp_path, proc):
    """Whatever is on the line, no file is written and nothing is said."""
    rng = random.Random(3)
    output = tmp_path / "output"
    words = ["--output", str(output), "-F", "prometheus", "stats", "svc", "flush", "--yes", "-o",
             "apply", "save", "--then", "fwm:4", "delete", "-N", "0", "compat", "-C", "", "[", "{",
             "tcp", "-", "--", "--output=x", "restore", "\n", "\N{BULLET}", "a" * 300, "[2001:db8::1"]
    for _ in range(150):
        line = [rng.choice(words) for _ in range(rng.randint(0, 9))]
        lists("", *line, rng.choice(words), program=fake.program(), FAKE_PROC=str(proc))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["proc"]
    assert len(lists("svc add fwm:7", *["weight"] * 500, "")) == 0


def test_formats_are_those_that_are_accepted(proc):
    for noun in ("stats", "save", "export"):
        for form in lists(f"{noun} -F", ""):
            assert "unknown format" not in ipvsctl(noun, "-F", form).stderr


def test_many_services_in_time(proc):
    """10,000 of them: 0.1 s is what a person waits for; a busy machine may take longer."""
    env = {"program": fake.program(), "FAKE_PROC": str(proc), "FAKE_SERVICES": "10000"}
    used = os.times().children_user
    assert len(lists("rs delete", "", **env)) > 9000
    assert os.times().children_user - used < 1


def test_scripts_are_sound():
    """Of shells that are there."""
    for shell, words in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["-n"])):
        if shutil.which(shell):
            subprocess.run([shell, *words, SOURCES / f"ipvsctl.{shell}"], check=True, timeout=60)
