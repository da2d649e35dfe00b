# SPDX-License-Identifier: GPL-2.0
"""The configuration file of apply: mistakes, with line, column and a way out; no module."""

import json
import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from test_ipvsctl import has_backend, ipvsctl, needs_preload

WEB = "version: 1\nservices:\n- service: tcp 192.0.2.10:80\n"
MARK = "version: 1\nservices:\n- service: fwmark 7\n"
# The file, the place of the mistake, a part of the message, a part of the hint.
BAD = {
    "no file": ("", "", "the file is empty", None),
    "no version": ("services: []\n", "1:1", "the file needs: version: 1", None),
    "another version": ("version: 2\nservices: []\n", "1:10", "reads version 1 only", None),
    "no services": ("version: 1\n", "1:1", 'needs the key "services"', None),
    "nothing for services": ("version: 1\nservices:\n", "2:1", "write [] for none", None),
    "a list": ("- a\n", "1:1", "must be keys and values, not a list", None),
    "a word": ("hello\n", "1:1", "must be keys and values, not one value", None),
    "unknown key": ("version: 1\nservces: []\n", "2:1", 'unknown key "servces"',
                    "did you mean: services"),
    "unknown key of a service": (WEB + "  shceduler: rr\n", "4:3", 'unknown key "shceduler"',
                                 "did you mean: scheduler"),
    "unknown key of a server": (
        WEB + "  servers:\n  - {address: 10.0.0.12:8080, wieght: 1}\n", "5:31",
        'unknown key "wieght"', "did you mean: weight"),
    "unknown option of a server": (WEB + "  servers: [10.0.0.1 wieght 3]\n", "4:13",
                                   'unknown server option "wieght"', "did you mean: weight"),
    "unknown kind of timeout": (MARK + "  timeout: {tpc: 5}\n", "4:13", 'unknown key "tpc"',
                                "did you mean: tcp"),
    "unknown default": ("version: 1\ndefaults: {shed: rr}\nservices: []\n", "2:12",
                        'unknown key "shed"', None),
    "a bad default": ("version: 1\ndefaults: {weight: x}\nservices: []\n", "2:20",
                      'bad weight "x"', None),
    "a key twice": (WEB + "  mask: 24\n  mask: 25\n", "5:3",
                    'key "mask" is named twice: first in line 4', None),
    "a key twice, spelled differently": (
        MARK + "  on-idle: reset\n  on_idle: reset\n", "5:3", "named twice: first in line 4", None),
    "a service twice": (WEB + "- service: tcp:192.0.2.10:80\n", "4:3",
                        "the service is named twice: first in line 3", None),
    "a server twice": (WEB + "  servers:\n  - 10.0.0.2\n  - 10.0.0.1\n  - 10.0.0.3\n"
                       "  - 10.0.0.1:80 weight 5\n", "8:5",
                       "the server is named twice: first in line 6", None),
    "no name": ("version: 1\nservices:\n- scheduler: rr\n", "3:3", 'needs the key "service"', None),
    "an address without port": ("version: 1\nservices:\n- service: tcp 192.0.2.10\n", "3:12",
                                "the port is missing", "try: tcp 192.0.2.10:80"),
    "a host's name": (WEB + "  servers: [www.example.com]\n", "4:13",
                      'bad address "www.example.com"', "try:"),
    "another protocol": ("version: 1\nservices:\n- service: tpc 192.0.2.10:80\n", "3:12",
                         '"tpc" does not name a service', "did you mean: tcp"),
    "names that differ": ("version: 1\nservices:\n- {id: 'tcp:192.0.2.10:80', protocol: udp, "
                          "address: 192.0.2.10, port: 80}\n", "3:8", "other keys say", None),
    "an empty server": (WEB + "  servers: [' ']\n", "4:13", "a value is missing", None),
    "an empty method": (WEB + "  servers: [{address: 10.0.0.1, forward: ''}]\n", "4:42", "a value is missing", None),
    "an empty flag": (WEB + "  flags: [flag-1, '']\n", "4:19", '"flags" needs a value', None),
    "an empty number": (WEB + "  persistent: ''\n", "4:15", '"persistent" needs a value', None),
    "no address": (WEB + "  servers: [{weight: 3}]\n", "4:13", 'needs the key "address"', None),
    "a word for a number": (WEB + "  servers:\n  - {address: 10.0.0.1, weight: high}\n", "5:33",
                            'bad weight "high"', None),
    "a list for a number": (WEB + "  servers:\n  - {address: 10.0.0.1, weight: [3]}\n", "5:33",
                            "weight must be one value, not a list", None),
    "a negative number": (WEB + "  servers: [10.0.0.1 weight -1]\n", "4:13", 'bad weight "-1"', None),
    "a hexadecimal number": (WEB + "  servers: [10.0.0.1 weight 0x10]\n", "4:13", "bad weight", None),
    "a time too long": (WEB + "  persistent: 32d\n", "4:15", 'bad time "32d"', None),
    "no truth": ("version: 1\nservices:\n- service: udp 192.0.2.10:53\n  ops: maybe\n", "4:8",
                 '"ops" must be true or false', None),
    "text for a list": (WEB + "  servers: 10.0.0.1\n", "4:12", "must be a list, not one value", None),
    "a map for a list": (WEB + "  servers: {a: b}\n", "4:12", "must be a list, not keys", None),
    "an unknown flag": (WEB + "  scheduler: sh\n  flags: [prot]\n", "5:10", 'unknown flag "prot"',
                        "did you mean: port"),
    "a mask alone": (WEB + "  mask: 24\n", "3:3", "mask groups persistent clients",
                     "try: add: persistent 300"),
    "a port behind dr": (WEB + "  servers: [10.0.0.1:8080 dr]\n", "4:13",
                         "direct routing cannot change the port", "try: nat"),
    "a tunnel's port": (WEB + "  servers:\n  - address: 10.0.0.1\n    forward: tun\n"
                        "    tunnel: {type: ipip, port: 6080}\n", "5:5",
                        "only a gue tunnel has a port", None),
    "no value": (WEB + "  scheduler:\n", "4:13", '"scheduler" needs a value', None),
    "two values": (WEB + "  scheduler: rr wrr\n", "4:14", "", None),
    "a bad network": ("version: 1\nscope: [192.0.2.0/33]\nservices: []\n", "2:9", "", None),
    "no network": ("version: 1\nscope: []\nservices: []\n", "2:8", "scope is empty", None),
    "XDP as one value": ("version: 1\nxdp: eth0\nservices: []\n", "2:6", "must be a list", None),
    "no device": ('version: 1\nxdp: ["eth 0"]\nservices: []\n', "2:7", "is no name of a device", None),
    "a long device": ("version: 1\nxdp: [a2345678901234567]\nservices: []\n", "2:7",
                      "is no name of a device", None),
    "a device twice": ("version: 1\nxdp: [eth0, eth1, eth0]\nservices: []\n", "2:19",
                       "eth0 is named twice", None),
    "an anchor": ("version: &v 1\nservices: []\n", "1:10", "anchors", None),
    "an alias": ("version: 1\nservices: [*v]\n", "2:12", "aliases", None),
    "a tag": ("version: !!int 1\nservices: []\n", "1:10", "tags", None),
    "a merge key": (WEB + "  <<: {mask: 24}\n", "4:3", "merge keys", None),
    "two documents": ("version: 1\nservices: []\n---\nversion: 1\n", "3:1", "second document", None),
    "deep": ("version: 1\nservices: " + "[" * 1000 + "\n", "2:16", "more than 6 levels", None),
    "many keys": ("".join(f"k{n}: 1\n" for n in range(70)), "65:1", "more than 64 keys", None),
    "a tab": ("version: 1\nservices:\n\t- service: fwm:7\n", "3:", "a tab begins this line", None),
    "a bracket that stays open": ("version: 1\nservices: [\n", "3:1", "not YAML or JSON", None),
    "a NUL": ("version: 1\nser\0vices: []\n", "2:4", "a NUL byte is here", None),
    "an escaped NUL": ('version: 1\nservices: ["a\\0b"]\n', "2:12", "a NUL character", None),
    "half a character": (b"version: 1\nservices: [\xc3]\n", "2:13", "not a text file in UTF-8", None),
    "UTF-16": ("version: 1\nservices: []\n".encode("utf-16-le"), "1:2", "not a text file", None),
    "JSON cut off": ('{"version": 1, "services": [{"service": "fwm:7"', "", "not YAML or JSON", None),
}


def check(text, tmp_path, *options):
    file = tmp_path / "lb.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ipvsctl(*options, "check", str(file)), str(file)


@pytest.mark.parametrize("name", BAD)
def test_mistakes(name, tmp_path):
    """One line names the place and the reason; the line of the file follows, with a caret."""
    text, place, why, hint = BAD[name]
    done, file = check(text, tmp_path)
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 2 and not done.stdout
    assert first.startswith(f"ipvsctl: {file}:{place}") and why in first
    assert all(line.startswith("  ") for line in rest)
    assert hint is None or any(hint in line for line in rest)
    found = re.search(r":(\d+):(\d+): ", first)
    shown = [line for line in rest if re.match(r" *\d* \| ", line)]
    if shown:
        assert shown[0].lstrip().startswith(f"{found[1]} | ")
        assert shown[1] == " " * 8 + "| " + " " * (min(int(found[2]), len(shown[0])) - 1) + "^"
    said = json.loads(check(text, tmp_path, "-j")[0].stderr)["error"]
    assert said["code"] == 2 and said["message"] in first
    if found:
        assert (said["line"], said["column"]) == (int(found[1]), int(found[2]))


GOOD = {
    "the grammar": """\
version: 1
scope: [192.0.2.0/24, "2001:db8::/32"]
timeouts: {tcp: 15m, tcp-fin: 2m, udp: 5m}
xdp: [eth0, bond0.7]
defaults: {scheduler: wlc, forward: nat, weight: 1}
services:
  - service: tcp 192.0.2.10:80
    scheduler: wrr
    persistent: 10m
    mask: 24
    servers:
      - 10.0.0.11:8080 weight 3          # the short form
      - {address: 10.0.0.12:8080, weight: 1, max-conns: 20000}
  - service: fwmark 7
    servers: [10.0.0.21 dr, 10.0.0.22 tun type gue port 6080]
""",
    "JSON": json.dumps({"version": 1, "services": [
        {"service": "tcp 192.0.2.10:80", "servers": ["10.0.0.1", {"address": "10.0.0.2"}]}]}),
    "what save -F json writes": json.dumps({"ipvsctl": {"schema": 1}, "services": [
        {"id": "fwm6:7", "family": "inet6", "fwmark": 7, "scheduler": "sh", "flags": ["port"],
         "persistent": None, "options": {"order": 1}, "timeout": {"tcp_fin": 9}, "priority": "las",
         "las_bytes": [16384, 131072], "servers": [
             {"id": "[2001:db8::1]:0", "address": "2001:db8::1", "port": 0, "forward": "tun",
              "tunnel": {"type": "gue", "port": 6080, "csum": True}, "weight": 1,
              "max_conns": 0, "min_conns": 0}]}]}),
    "CRLF": "version: 1\r\nservices:\r\n- service: fwmark 7\r\n  scheduler: rr\r\n",
    "nothing": "version: 1\nservices: []\n",
    "IPv6 without brackets": "version: 1\nservices:\n- service: udp [2001:db8::1]:53\n"
                             "  servers: [{address: \"2001:db8::2\"}, {address: 2001:db8::3, port: 53}]\n",
    "no end of line": "version: 1\nservices: []",
    "comments": "# ours\n---\nversion: 1 # one\nservices: [] \n...\n",
    "a tab behind a value": "version: 1\t\nservices: []\n",
    "quotes": "version: '1'\nservices: [{service: \"fwmark 7\", guard: \"off\", ops: on}]\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_files(name, tmp_path):
    done, file = check(GOOD[name], tmp_path)
    assert done.returncode == 0 and done.stdout.startswith(f"{file}: good: "), done.stderr


def test_counts():
    done = ipvsctl("-j", "check", "-", stdin=GOOD["the grammar"])
    assert json.loads(done.stdout)["check"] == {"services": 2, "servers": 4}


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
@pytest.mark.parametrize("words", ["apply -", "diff -", "-n apply - --prune", "restore -"])
def test_a_good_file_gets_as_far_as_the_missing_module(words):
    done = ipvsctl(*words.split(), stdin=GOOD["the grammar"])
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize("words, why", [
    ("check", "no file named"), ("apply", "no file named"), ("diff", "no file named"),
    ("apply a b", 'unexpected word "b"'),
    ("check none.yaml", "cannot read none.yaml: No such file or directory\n"
                        "  try: the path of a file that exists"),
    ("check /", "cannot read /: Is a directory\n  try: a file in this directory"),
    ("check /etc/hosts/x", "cannot read /etc/hosts/x: Not a directory\n  try: the path of"),
    ("show --prune", "--prune does not belong"), ("check a --prune", "--prune does not belong"),
    ("save -F xml", 'unknown format "xml"'), ("export -F ymal", 'unknown format "ymal"')])
def test_words(words, why):
    done = ipvsctl(*words.split())
    assert done.returncode == 2 and why in done.stderr


def test_large_files(tmp_path):
    """Refused by their size, at once; standard input, at the limit. Rules may be larger."""
    file = tmp_path / "large"
    for size, verb, limit in (9, "check", 8), (9, "diff", 8), (100, "diff", 8), (100, "check", 64):
        with file.open("wb") as f:
            f.truncate(size << 20)
        began = time.monotonic()
        done = ipvsctl(verb, str(file))
        assert done.returncode == 2 and f"is too large: more than {limit} MiB" in done.stderr
        assert time.monotonic() - began < 2
    done = ipvsctl("check", "-", stdin="# " + "x" * (8 << 20))
    assert done.returncode == 2 and "standard input is too large" in done.stderr


def test_many_servers(tmp_path):
    """As many as there may be are read in seconds, even in one service; not one more."""
    lines = "".join(f"  - 10.{n >> 16}.{n >> 8 & 255}.{n & 255}\n" for n in range(1, 65537))
    done, _ = check(WEB + "  servers:\n" + lines, tmp_path)
    assert done.returncode == 0 and "65536 servers" in done.stdout
    done, _ = check(WEB + "  servers:\n" + lines + "  - 10.200.0.1\n", tmp_path)
    assert done.returncode == 2 and ":65541:5: more than 65536 servers" in done.stderr


def test_anchors_are_no_bomb(tmp_path):
    """A few lines would stand for gigabytes; the first anchor is refused."""
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    done, _ = check(text, tmp_path)
    assert done.returncode == 2 and ":1:4: anchors" in done.stderr


def test_damaged_files(tmp_path):
    """Bytes are lost, doubled, replaced, cut off: the answer is a verdict, soon."""
    rng = random.Random(7)
    odd = b'\0\t\r\n -:?,[]{}#&*!|>\'"%@`~<=\xff\xc3\xe2\x80\xa8\\'
    for _ in range(300):
        text = bytearray(rng.choice(list(GOOD.values())).encode())
        for _ in range(rng.randint(1, 6)):
            at, n = rng.randrange(len(text) or 1), rng.randint(1, 9)
            text[at:at + rng.choice((0, 1, n))] = rng.choice((b"", bytes(rng.choices(odd, k=n)), text[at:at + n] * 3))
        if rng.random() < 0.2:
            del text[rng.randrange(len(text) or 1):]
        began = time.monotonic()
        done, _ = check(bytes(text), tmp_path)
        assert done.returncode in (0, 2) and bool(done.stderr) == bool(done.returncode), bytes(text)
        assert time.monotonic() - began < 5


@needs_preload
def test_a_file_that_changes_while_it_is_read(tmp_path):
    """An editor may have written a part of it."""
    file = tmp_path / "lb.yaml"
    file.write_text(GOOD["the grammar"], encoding="ascii")
    source = tmp_path / "change.c"
    source.write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
size_t fread(void *p, size_t size, size_t n, FILE *f)
{
	size_t (*real)(void *, size_t, size_t, FILE *) = dlsym(RTLD_NEXT, "fread");
	size_t got = real(p, size, n, f);
	FILE *more = fopen(getenv("CHANGED"), "a");

	if (more) {
		fputs("# more\\n", more);
		fclose(more);
	}
	return got;
}
""", encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "change.so", source], check=True)
    done = ipvsctl("check", str(file), env={"LD_PRELOAD": f"{tmp_path}/change.so", "CHANGED": str(file)})
    assert done.returncode == 2 and "was changed while it was read" in done.stderr


def test_secrets_are_not_shown(tmp_path):
    """A key with a mistake in it, and any mistake in a line that has a key."""
    key = "00112233445566778899aabbccddee"
    for line in (f"  options: {{key: {key}fg}}", f"  options: {{key: {key}ff, expier: x}}"):
        done, file = check(MARK + line + "\n", tmp_path)
        assert done.returncode == 2 and f"{file}:4:" in done.stderr and key[:8] not in done.stderr


def test_a_long_line_that_is_not_shown(tmp_path):
    """It has a key in it, or bytes that are no text."""
    for line in (f"  options: {{key: {'0' * 32}, {' ' * 90}expire: []}}", f"  x: \xc3{'x' * 90}"):
        done, file = check((MARK + line + "\n").encode("latin-1"), tmp_path)
        assert done.returncode == 2 and f"{file}:4:" in done.stderr and "|" not in done.stderr


def test_no_control_characters(tmp_path):
    """The excerpt cannot steer the terminal."""
    done, _ = check("version: 1\nservices: [] # \x1b[2J\x9b2J\nx: 1\n".replace("x:", "x\x7f:"), tmp_path)
    assert done.returncode == 2 and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)


@pytest.mark.parametrize("page", ["doc/configuration.md", "tools/ipvsctl/ipvsctl.8"])
def test_examples_of_the_documents(page, tmp_path):
    text = (Path(__file__).resolve().parents[2] / page).read_text(encoding="utf-8")
    found = re.findall(r"^```yaml\n(.*?)^```$|^\.Bd -literal[^\n]*\n(version: 1.*?)^\.Ed$", text, re.M | re.S)
    assert found
    for example in found:
        done, _ = check("".join(example), tmp_path)
        assert done.returncode == 0, done.stderr
