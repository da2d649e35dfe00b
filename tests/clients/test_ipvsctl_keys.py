# SPDX-License-Identifier: GPL-2.0
"""ipvsctl and the options of schedulers that have words or secrets as their value."""

import os
import re
import subprocess

import pytest
from lab import genl
from lab.ctl import IPVSCTL, VIP, WEB

TAKES = 60
NO_MODULE = True        # `module` of conftest.py loads both, one after the other
KEY, OTHER = "00112233445566778899aabbccddeeff", "ff" * 16


def values(director):
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        return l4lb.values(ipvs.service(VIP, 80, add=False))


@pytest.fixture
def keyed(director, tmp_path):
    """A service whose key came from a file; .file is that."""
    director.file = tmp_path / "key"
    director.file.write_text(KEY + "\n", encoding="ascii")
    director.file.chmod(0o600)
    director.ctl("svc add", *WEB, f"scheduler mh option order address option key {director.file} "
                 "server 10.0.0.11")
    return director


def test_words_and_numbers_of_order(director):
    for sched in ("mh", "sh", "dh"):
        director.ctl("svc add", *WEB, f"scheduler {sched} option order address")
        assert values(director)["order"] == 1
        assert "option order address" in director.ctl("show")
        assert director.json("show")["services"][0]["options"] == {"order": 1}
        director.ctl("svc change", *WEB, "option order age")
        assert values(director)["order"] == 0
        director.ctl("svc change", *WEB, "option order 1")
        assert values(director)["order"] == 1
        director.ctl("svc del", *WEB)


@pytest.mark.smoke
@pytest.mark.tool
def test_a_key_is_given_and_not_shown(keyed):
    number = values(keyed)["key"]
    assert number
    keyed.ctl("svc change", *WEB, "option key", OTHER)
    assert values(keyed)["key"] not in (0, number)
    keyed.ctl("svc change", *WEB, "option key", KEY.upper())
    assert values(keyed) == {"order": 1, "key": number}
    for shown in (keyed.ctl("show"), keyed.ctl("save"), keyed.ctl("-j show"),
                  keyed.ctl("-n svc change", *WEB, "option key", OTHER)):
        assert KEY not in shown.lower() and OTHER not in shown
    assert f"option key {number}" in keyed.ctl("show")
    keyed.ctl("svc change", *WEB, "persistent 60")
    assert values(keyed)["key"] == number
    keyed.ctl("svc change", *WEB, "option key none")
    assert values(keyed) == {"order": 1, "key": 0}


@pytest.mark.parametrize("words", ["change", "replace"])
def test_refused_as_a_whole(keyed, words):
    """The kernel refuses the key's number: the other settings stay as they are, too."""
    before = keyed.state(), values(keyed)
    assert "no key with this fingerprint" in keyed.ctl(
        f"svc {words}", *WEB, "scheduler mh flags port persistent 60 option key 7", code=3)
    assert (keyed.state(), values(keyed)) == before


def writes(director, *words):
    """The messages of family L4LB that change services, as -vv shows them."""
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-vv", *" ".join(words).split()], capture_output=True,
                              text=True, check=True)
    sent = re.findall(r"\.type = (\d+)(?:.*\n){4}.*GENERIC NETLINK HEADER.*\n +\.cmd = (\d+)",
                      done.stderr)
    assert sent
    return [int(command) for kind, command in sent if int(kind) != genl.CONTROLLER and int(command) in (
        genl.SET_OPTIONS, genl.SET_POLICY, genl.SET_SERVICES)]


@pytest.mark.parametrize("words, kind", [
    ("change option order age", genl.SET_OPTIONS), ("change on-idle reset", genl.SET_POLICY),
    ("change option order age on-idle reset", genl.SET_SERVICES),
    ("change persistent 60", genl.SET_SERVICES), ("replace scheduler mh", genl.SET_SERVICES)])
def test_one_message(keyed, words, kind):
    """So the kernel makes the whole change or none of it."""
    verb, _, rest = words.partition(" ")
    assert writes(keyed, "svc", verb, *WEB, rest) == [kind]


def test_replaced_as_a_whole(keyed):
    """What replace does not name gets its default; servers stay."""
    keyed.ctl("svc change", *WEB, "persistent 60 on-idle reset option order address")
    keyed.ctl("svc replace", *WEB, "scheduler mh")
    (service,) = keyed.json("show")["services"]
    assert values(keyed) == {"order": 0, "key": 0}
    assert not service.keys() & {"persistence", "options", "on_idle"} and service["servers"]


# free() tells of a block that holds the key, as bytes or as digits.
LEFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void free(void *block)
{
	static void (*real)(void *);
	static unsigned char key[64];
	static size_t len;
	size_t size = block ? malloc_usable_size(block) : 0;
	const char *digits = getenv("HEX");

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "free");
	while (!key[len] && digits && 2 * len < strlen(digits))
		sscanf(digits + 2 * len, "%2hhx", &key[len]), len++;
	if (len && (memmem(block, size, key, len) || memmem(block, size, digits, 2 * len)))
		fputs("left in freed memory\n", stderr);
	real(block);
}
"""


def test_no_key_is_left(director, tmp_path):
    """Memory that ipvsctl frees holds no key, whether it sends the key alone, in a message with
    all settings of a service, or in one of a megabyte that grew."""
    source, library, file, group = (tmp_path / name for name in ("a.c", "a.so", "key", "group"))
    source.write_text(LEFT, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=300)
    for path, count in ((file, 1), (group, 2)):
        path.write_text(KEY * count, encoding="ascii")
        path.chmod(0o600)
    rules = f"-A -t {VIP}:80 -s mh\n#ipvsctl option tcp {VIP}:80 key {file}\n"
    rules += "".join(f"-a -t {VIP}:80 -r 10.1.{n // 250}.{n % 250 + 1}:80 -m -w 1\n"
                     for n in range(1500))

    def run(words, stdin=None, digits=KEY):
        with director.ns.enter():
            done = subprocess.run(
                [IPVSCTL, *words.split()], capture_output=True, text=True, check=False,
                input=stdin, env=os.environ | {"LD_PRELOAD": str(library), "HEX": digits})
        assert not done.returncode, done.stderr
        return done.stderr.count("left in freed memory")
    for words in (f"svc add {' '.join(WEB)} scheduler mh option key {file}",
                  f"svc change {' '.join(WEB)} option key {file}",
                  f"svc change {' '.join(WEB)} persistent 60 option key {file}",
                  f"sync set key {group}", "sync set key none"):
        assert not run(words), words
    assert not run("restore", stdin=rules)
    assert len(director.json("show")["services"][0]["servers"]) == 1500
    # The library sees what there is: the kernel's answers have the family's name.
    assert run("svc show", digits=b"IPVS".hex())


def test_a_dump_of_messages_has_no_key(director, tmp_path):
    """-vv shows what is sent: the keys of schedulers and of the group are asterisks in it."""
    file = tmp_path / "group"
    file.write_text(OTHER * 2, encoding="ascii")
    file.chmod(0o600)
    for words in ("svc add " + " ".join(WEB) + f" scheduler mh option key {KEY}",
                  "svc change " + " ".join(WEB) + f" option key {OTHER}",
                  f"sync set key {file}", "sync set key none"):
        with director.ns.enter():
            done = subprocess.run([IPVSCTL, "-vv", *words.split()], capture_output=True,
                                  text=True, check=True)
        assert "BEGIN NETLINK MESSAGE" in done.stderr
        lines = re.findall(r"^ +((?:[0-9a-f]{2} )+)", done.stderr, re.M)
        digits = "".join(lines).replace(" ", "")
        assert KEY not in digits and OTHER not in digits
        assert ("2a" * 16 in digits) == ("none" not in words)


@pytest.mark.parametrize("form", ["json", "ipvsadm"])
def test_a_key_is_kept_but_not_carried_elsewhere(keyed, form):
    """A saved number keeps the key that is there; elsewhere the file must name the key."""
    before, text = values(keyed), keyed.ctl(f"save -F {form}")
    assert "1 unchanged" in keyed.ctl("restore", stdin=text)
    assert values(keyed) == before
    keyed.ctl("svc flush --yes")
    assert "no key with this fingerprint: give the key itself" in \
        keyed.ctl("restore", stdin=text, code=3)
    assert keyed.json("show")["services"] == []
    whole = text.replace(f'"key":{before["key"]}', f'"key":"{keyed.file}"').replace(
        f"key {before['key']}", f"key {keyed.file}")
    assert whole != text
    keyed.ctl("restore", stdin=whole)
    assert values(keyed) == before


@pytest.mark.parametrize("content, why", [
    (None, "cannot read the key file"), ("", "32 hexadecimal digits"), (KEY[:-1], "32 hexadecimal"),
    (KEY + "0", "32 hexadecimal"), (KEY + "\n" + KEY, "32 hexadecimal"),
    (KEY[:-1] + "g", "32 hexadecimal"), ("x" * 5000, "32 hexadecimal")])
def test_bad_key_files(keyed, content, why):
    before = values(keyed)
    bad = keyed.file.with_name("bad")
    if content is not None:
        bad.write_text(content, encoding="ascii")
        bad.chmod(0o600)
    assert why in keyed.ctl("svc change", *WEB, f"option key {bad}", code=2)
    assert values(keyed) == before


def test_bad_words(keyed):
    before = values(keyed)
    for words, code, why in (
            ("option order backwards", 2, 'bad order "backwards": write age or address'),
            ("option order 2", 2, 'bad order "2"'),
            ("option order " + KEY, 2, "bad order"),
            ("option key " + KEY[:-1], 2, "bad key: write 32 hexadecimal digits"),
            ("option key 7", 3, "no key with this fingerprint"),
            ("scheduler sh option key " + KEY, 2, 'unknown option of scheduler sh "key"')):
        said = keyed.ctl("svc change", *WEB, words, code=code)
        assert why in said and KEY[:-1] not in said.replace("bad order", "") or "order" in words
        assert values(keyed) == before


def test_a_key_that_others_can_read(keyed):
    keyed.file.chmod(0o644)
    keyed.ctl("svc change", *WEB, f"option key {keyed.file}")
    assert values(keyed)["key"]
