# SPDX-License-Identifier: GPL-2.0
"""ipvsctl and the programs of scheduler bpf: paths, numbers, files, and what is said."""

import os
import re
import subprocess

import pytest
from lab import bpf, genl
from lab.ctl import IPVSCTL, VIP, WEB, knock
from lab.netns import run, wait_until

SET = ("svc change", *WEB, "option program")


@pytest.fixture
def pins(tmp_path):
    folder = tmp_path / "bpf"
    folder.mkdir()
    with bpf.pins(folder) as path:
        yield path


@pytest.fixture
def first(pins):
    """The path of a pinned program."""
    with bpf.Program(bpf.answer(0)) as program:
        return program.pin(pins / "first")


@pytest.fixture
def web(director, first):
    """A service with the pinned program."""
    director.ctl("svc add", *WEB, "scheduler bpf option program", first, "option a 3 server 10.0.0.11",
                 "server 10.0.0.12")
    return director


def number(director):
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        return l4lb.values(ipvs.service(VIP, 80, add=False))["program"]


@pytest.mark.smoke
@pytest.mark.tool
def test_a_path_is_given_shown_and_saved(web, first, tmp_path):
    present = number(web)
    assert present
    assert f"option program {first}#{present} option a 3" in web.ctl("show")
    assert web.json("show")["services"][0]["options"] == {"program": first, "a": 3}
    saved = web.ctl("save")
    assert f"program {first} a 3" in saved
    web.ctl("svc del", *WEB)
    web.ctl("restore", stdin=saved)
    assert number(web) == present and web.ctl("save") == saved
    for form in ("yaml", "json"):
        file = tmp_path / f"web.{form}"
        file.write_text(web.ctl("export" if form == "yaml" else "save -F json"), encoding="utf-8")
        assert first in file.read_text("utf-8")
        assert web.ctl("diff", str(file)).count("\n") <= 1
        web.ctl("svc change", *WEB, "option program none option a 0")
        assert number(web) == 0 and "program" not in web.ctl("show")
        web.ctl("apply", str(file))
        assert number(web) == present and web.ctl("save") == saved


def test_other_settings_leave_the_program(web, first, pins):
    """Even if its pin has gone, or has another program."""
    present = number(web)
    (pins / "first").unlink()
    web.ctl("svc change", *WEB, "option a 4 persistent 60")
    with bpf.Program(bpf.answer(1)) as other:
        other.pin(first)
        web.ctl("svc change", *WEB, "option a 5")
        assert number(web) == present
        web.ctl(*SET, first)
        assert number(web) == other.number


def test_another_pin_of_the_same_program(web, first, pins):
    """Its path is the one that was set last; that may be the only one that is left."""
    present = number(web)
    second = bpf.pin(bpf.get(first), pins / "second")
    web.ctl(*SET, second)
    assert number(web) == present
    assert f"program {second} a 3" in web.ctl("save")


def test_a_replaced_pin_is_a_difference(web, first, tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(web.ctl("export"), encoding="utf-8")
    web.ctl("diff", str(file))
    before = number(web)
    with bpf.Program(bpf.answer(1)) as other:
        other.pin(first)
        lines = web.ctl("diff", str(file), code=1, out=True).splitlines()
        told = [line for line in lines if first in line]
        assert [line.strip()[0] for line in told] == ["-", "+"]
        assert f"{first}#{before} " in told[0] and f"{first}#{other.number} " in told[1]
        web.ctl("apply", str(file))
        assert number(web) == other.number
    web.ctl("diff", str(file))


def test_a_file_whose_pin_has_gone(web, first, pins, tmp_path):
    """The service keeps its program, so that the rest of the file can be applied; a new service
    cannot have it."""
    before = number(web)
    file = tmp_path / "web.yaml"
    file.write_text(web.ctl("export"), encoding="utf-8")
    (pins / "first").unlink()
    web.ctl("diff", str(file))
    file.write_text(file.read_text("utf-8").replace("a: 3", "a: 5"), encoding="utf-8")
    web.ctl("apply", str(file))
    assert number(web) == before and "option a 5" in web.ctl("show")
    web.ctl("svc del", *WEB)
    assert "bpftool prog load" in web.ctl("apply", str(file), code=4)
    assert not web.state()


@pytest.fixture
def kept(web, tmp_path, monkeypatch):
    """With a history of its own."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "run"))
    return web


def applied(director, file, text):
    file.write_text(text, encoding="utf-8")
    director.ctl("apply", str(file))


@pytest.mark.parametrize("pinned", (True, False))
def test_rollback(kept, first, pins, tmp_path, pinned):
    """The program of before comes back, with its pin or if anything else has it. Without either
    nothing is changed."""
    before = number(kept)
    file, exported = tmp_path / "web.yaml", kept.ctl("export")
    applied(kept, file, exported.replace("a: 3", "a: 4"))
    kept.ctl("rollback")
    assert number(kept) == before and "option a 3" in kept.ctl("show")
    holder = bpf.get(first)
    assert first in exported
    applied(kept, file, exported.replace(first, "none"))
    assert number(kept) == 0
    if not pinned:
        (pins / "first").unlink()
        os.close(holder)
        wait_until(lambda: not bpf.alive(before), what="the end of the program")
        state = kept.state()
        assert "bpftool prog load" in kept.ctl("rollback", code=4)
        assert kept.state() == state
        return
    kept.ctl("rollback")
    assert number(kept) == before
    os.close(holder)


def test_an_apply_that_is_not_confirmed(kept, first, pins, tmp_path):
    """The program of before comes back, though nothing else has it any more."""
    before = number(kept)
    file = tmp_path / "web.yaml"
    with bpf.Program(bpf.answer(1)) as other:
        second = other.pin(pins / "second")
    file.write_text(kept.ctl("export").replace(first, second), encoding="utf-8")
    (pins / "first").unlink()
    kept.ctl("apply", str(file), "--confirm 1s")
    assert number(kept) != before
    wait_until(lambda: number(kept) == before, what="the program of before")
    assert first in kept.ctl("show")


def test_what_could_not_be_taken_back_is_refused(kept, first, pins, tmp_path):
    """Only root of the host can ask for a program that has no pin any more."""
    before, state = number(kept), kept.state()
    file = tmp_path / "web.yaml"
    with bpf.Program(bpf.answer(1)) as other:
        second = other.pin(pins / "second")
    file.write_text(kept.ctl("export").replace(first, second), encoding="utf-8")
    (pins / "first").unlink()
    with kept.ns.enter():
        done = run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", IPVSCTL, "apply",
                    str(file), "--confirm", "2"], check=False)
    assert done.returncode == 3 and "has lost its pin and could not be brought back" in done.stderr, done
    assert f"bpftool prog pin id {before} PATH" in done.stderr
    assert number(kept) == before and kept.state() == state
    assert "no change waits" in kept.ctl("confirm", code=4)


@pytest.mark.parametrize("word, code, said", [
    ("mine.o", 2, r"bad program \"mine.o\": write the path of its pin, at most 127 characters, no blanks"),
    ("/p'q", 2, "bad program"), ("/p\\q", 2, "bad program"), ("/p#", 2, "bad program"), ("/p#0", 2, "bad program"),
    ("/\x1b[31m", 2, "bad program"), ("/p#12", 3, "no file with this number"),
    ("./mine", 2, "bad program"), ("", 2, ""), ("-1", 2, "bad program"),
    ("/" + "x" * 127, 2, "at most 127 characters"),
    ("{pins}/absent", 4, r"absent: No such file or directory\n.*bpftool prog load FILE.o {pins}/absent type socket"),
    ("{pins}", 3, "option program"), ("{tmp}/file", 3, "option program"),
    ("{pins}/array", 3, "pin of a BPF program"),
    ("{pins}/hash", 3, "pin of a BPF program"), ("{pins}/xdp", 3, "pin of a BPF program"),
    ("4000000000", 3, "no file with this number")])
def test_what_is_refused(web, pins, tmp_path, word, code, said):
    before = web.state(), number(web)
    (tmp_path / "file").touch()
    if word.endswith("array"):
        bpf.pin(bpf.array(), pins / "array")
    if word.endswith("hash"):       # its type has the same number as that of socket filters
        bpf.pin(bpf.hash_map(), pins / "hash")
    with bpf.Program(bpf.answer(2), bpf.XDP) as wrong:
        wrong.pin(pins / "xdp")
    names = {"{pins}": str(pins), "{tmp}": str(tmp_path)}
    for name, path in names.items():
        word, said = word.replace(name, path), said.replace(name, re.escape(path))
    got = web.ctl("svc change", *WEB, "persistent 50 option program", word, code=code)
    assert re.search(said, got, re.S), got
    assert (web.state(), number(web)) == before


def test_options_that_are_no_programs(web, first):
    assert "bad budget" in web.ctl("svc change", *WEB, "option budget", first, code=2)
    assert "options with other values are: key, order, program" in web.ctl(
        "svc change", *WEB, "option programme", first, code=2)
    for count in ("otherwise", "stopped"):
        assert f"{count} of scheduler bpf is a count: leave it out" in web.ctl(
            "svc change", *WEB, f"option {count} 0", code=2)
    web.ctl("svc change", *WEB, "scheduler mh")
    assert "unknown option of scheduler mh \"program\"" in web.ctl(
        "svc change", *WEB, "option program", first, code=2)


def test_a_trial_without_a_program(web):
    web.ctl("scheduler compare", *WEB, "with bpf,mh")
    web.ctl("svc change", *WEB, "option program none")
    said = web.ctl("scheduler compare", *WEB, "with bpf,mh", code=3)
    assert "a trial of bpf asks the service's own program, and it has none" in said
    assert "option program PATH" in said


def test_counts_are_not_saved(fresh):
    fresh.ctl("svc add udp", f"{VIP}:5353", "scheduler bpf server 10.0.0.11")
    knock(fresh, 3)
    assert fresh.json(f"scheduler stats udp {VIP}:5353")["counts"]["otherwise"] == 3
    for words in ("save", "show", "-j show", "export", "save -F json"):
        assert "otherwise" not in fresh.ctl(words)
    fresh.ctl(f"svc change udp {VIP}:5353 option a 1")      # nor sent back


def notes(director):
    with director.ns.enter():
        return subprocess.run([IPVSCTL, "scheduler", "stats", *WEB], capture_output=True, text=True,
                              check=True).stderr


def test_counts_are_shown(web):
    lines = web.ctl("scheduler stats", *WEB).splitlines()
    assert lines[0].split() == ["COUNT", "VALUE", "ROLE", "WHAT"]
    assert [line.split()[:4] for line in lines[1:]] == [
        [name, "0", "in", "use"] for name in ("otherwise", "stopped")]
    got = web.json("scheduler stats", *WEB)
    assert got["counts"] == {"otherwise": 0, "stopped": 0} and got["shadow"] is None
    web.ctl("svc change", *WEB, "shadow rr")
    both = web.ctl("scheduler stats", *WEB)
    assert "otherwise" in both and "in use" in both
    other = web.json("scheduler stats", *WEB)["shadow"]["shadow"]
    assert other["scheduler"] == "rr" and other["counts"] == {}
    web.ctl("svc change", *WEB, "shadow bpf")
    assert re.findall(r"^(otherwise|stopped) +0 +shadow ", web.ctl("scheduler stats", *WEB), re.M) == [
        "otherwise", "stopped"]
    assert web.json("scheduler stats", *WEB)["shadow"]["shadow"]["counts"] == {"otherwise": 0, "stopped": 0}
    assert "no program" not in notes(web)
    web.ctl("svc change", *WEB, "option program none")
    assert "the shadow has no program: it chooses as wlc" in notes(web)
    shown = web.ctl("scheduler show bpf")
    assert re.search(r"^program +a BPF program of type socket, by the path of its pin", shown, re.M)
    assert re.search(r"^budget +50 +1 +10000 ", shown, re.M)
