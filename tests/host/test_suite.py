# SPDX-License-Identifier: GPL-2.0
"""The suite's verdicts: which failures are forgiven, which never are, and lost guests."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from lab import guests, history, stages, verdict  # noqa: E402

loader = importlib.machinery.SourceFileLoader("lab_suite", str(TOP / "tests/lab/suite"))
suite = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(suite)

A, B = "tests/test_a.py", "tests/test_b.py"
A1, A2, B1 = f"{A}::test_1", f"{A}::test_2[v4]", f"{B}::test_1"
TESTS = [A1, A2, B1]

# Replaces tests/lab/run: the n-th guest does what the n-th entry of turns.json says.
GUEST = f"""#!{sys.executable}
import json, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as out:
    out.write(json.dumps(sys.argv[1:]) + "\\n")
turns = json.loads((here / "turns.json").read_text())
def asked(*_):
    tell(turn["asked"])
    print("another guest")
    sys.exit(0)
def tell(events):
    for event in events:
        out.write(json.dumps(event) + "\\n")
turn = turns[min(len((here / "calls").read_text().splitlines()), len(turns)) - 1]
path = next(a.partition("=")[2] for a in sys.argv if a.startswith("--events="))
out = open(here.parent / path, "a", buffering=1)
if "asked" in turn:
    signal.signal(signal.SIGUSR1, asked)
tell(turn["events"])
time.sleep(turn.get("sleep", 0))
print("the guest's last words")
sys.exit(turn["status"])
"""


def passed(test):
    return [{"test": test}, {"test": test, "when": "call", "outcome": "passed", "seconds": 0.1,
                             "text": ""}]


def failed(test, when="call", text="E   assert 0"):
    before = passed(test) if when == "teardown" else [{"test": test}]
    return [*before, {"test": test, "when": when, "outcome": "failed", "seconds": 0.1,
                      "text": text}]


def skipped(test):
    return [{"test": test}, {"test": test, "when": "setup", "outcome": "skipped", "seconds": 0,
                             "text": "no second CPU"}]


def file(name, *tests, ends=True):
    return [{"file": name, "tests": len(tests)}, *(e for t in tests for e in t)] + \
        ([{"file": name, "ends": True}] if ends else [])


WELL = file(A, passed(A1), passed(A2)) + file(B, passed(B1))
WRONG = file(A, passed(A1), passed(A2)) + file(B, failed(B1))
ALONE = file(B, passed(B1))


class Bench:
    """The suite with fake guests, which follow a script."""

    def __init__(self, tmp_path, monkeypatch, capsys):
        self.path, self.capsys = tmp_path, capsys
        self.lab = tmp_path / "lab"
        self.lab.mkdir()
        (self.lab / "run").write_text(GUEST, encoding="utf-8")
        (self.lab / "run").chmod(0o755)
        for module in (stages, guests, verdict):
            monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
        (tmp_path / "results").mkdir()
        for module in (stages, guests):
            monkeypatch.setattr(module, "TOP", tmp_path)
        monkeypatch.setattr(stages, "LAB", self.lab)
        monkeypatch.setattr(guests, "SILENCE", -58)
        monkeypatch.setattr(stages.Stage, "build", lambda stage: None)
        monkeypatch.setattr(stages.Stage, "kernel", lambda stage: "6.12")
        monkeypatch.setattr(stages.Stage, "tests", lambda stage: list(self.tests))
        self.tests = TESTS
        self.history = tmp_path / "history.json"

    def run(self, *turns, more=(), part=False):
        """Whether all is well; self.record has the JSON record, self.said the output."""
        (self.lab / "turns.json").write_text(json.dumps(
            [{"events": events, "status": status, **dict(rest)} for events, status, *rest in turns]
        ), encoding="utf-8")
        selection = stages.Selection("everyday", 77, more=more)
        options = SimpleNamespace(stages=[stages.Stage("uml", selection)], slots=1, timeout=30,
                                  once=False, part=part, pattern="")
        one = suite.Suite(options, history.History(self.history))
        one.run()
        good = one.results()
        self.said = self.capsys.readouterr().out
        self.record = json.loads((self.path / "results/uml.json").read_text("utf-8"))
        return good

    def counts(self):
        return tuple(self.record[key] for key in ("passed", "failed", "skipped"))

    def calls(self):
        return [json.loads(line) for line in
                (self.lab / "calls").read_text("utf-8").splitlines()]

    def cases(self):
        root = ElementTree.parse(self.path / "results/junit.xml").getroot()
        return {f"{c.get('classname')}::{c.get('name')}": [e.tag for e in c]
                for c in root.iter("testcase")}


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    return Bench(tmp_path, monkeypatch, capsys)


def test_all_is_well(bench):
    assert bench.run((WELL, 0))
    assert bench.counts() == (3, 0, 0) and len(bench.calls()) == 1
    assert bench.said.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    assert "seed 77" in bench.said and "--seed=77" in bench.calls()[0]
    # A line for each file, with the estimated time left.
    lines = [line for line in bench.said.splitlines() if "test_a.py" in line]
    assert len(lines) == 1 and "2 passed" in lines[0] and "min left" in lines[0]
    assert bench.cases() == {"tests.test_a::test_1": [], "tests.test_a::test_2[v4]": [],
                             "tests.test_b::test_1": []}


def test_what_failed_by_chance_is_unsteady(bench):
    """Repeated alone, then with the files before it; with the same arguments and kind of guest."""
    more = ("--fast-path", "2")
    assert bench.run((WRONG, 1), (ALONE, 0), (WELL, 0), more=more)
    assert bench.counts() == (3, 0, 0) and bench.record["unsteady"] == [B1]
    assert f"unsteady: {B1}" in bench.said
    first, *again = bench.calls()
    assert len(again) == 2 and A not in again[0] and B in again[0]
    assert again[1][again[1].index(A) + 1] == B
    for call in again:
        call[:] = [a for a in call if a not in (A, B)]
        first = [a for a in first if a not in (A, B)]
        assert [a for a in first if not a.startswith(("--share", "--order", "--events"))] == \
            [a for a in call if not a.startswith("--events")]


def test_what_is_repeated():
    """On the host nothing before a file is to blame."""
    outcomes = guests.Outcomes()
    outcomes.files = {1: [A, B, "c", "d", "e"], 2: ["f", "g"]}
    outcomes.failures = [guests.Failure(f"{name}::x", "call", "", guest)
                         for name, guest in (("d", 1), (B, 1), ("f", 2))]
    assert verdict.repetitions(outcomes, True) == {1: [[B, "d"], [A, B, "c", "d"]], 2: [["f"], ["f"]]}
    assert verdict.repetitions(outcomes, False) == {1: [[B, "d"]] * 2, 2: [["f"]] * 2}


@pytest.mark.parametrize("turns", [
    [(WRONG, 1), (file(B, failed(B1)), 1)],
    [(WRONG, 1), (ALONE, 0), (WRONG, 1)],
    [(WRONG, 1), (ALONE, 0), (file(A, passed(A1), failed(A2)) + file(B, passed(B1)), 1)],
    [(WRONG, 1), (ALONE, 123)],
    [(WRONG, 1), ([], 125)],
    [(WRONG, 1), ([], 5)],
    [(WRONG, 1), (file(B, skipped(B1)), 0)],
], ids=("again", "at last", "another", "a splat", "no guest", "nothing ran", "skipped"))
def test_what_fails_in_a_repetition_has_failed(bench, turns):
    assert not bench.run(*turns)
    assert bench.record["failed"] >= 1 and not bench.record["unsteady"]
    assert len(bench.calls()) == len(turns)


LEAK = "leaked by test_a: unreferenced object 0x66b2c800 (size 192):"


@pytest.mark.parametrize("turn", [
    (file(A, passed(A1), passed(A2)) + file(B, failed(B1, "teardown", LEAK)), 1),
    (file(A, passed(A1), passed(A2)) + file(B, failed(B1, "setup")), 1),
    (file(A, passed(A1), passed(A2)) + file(B, failed(B1, "call", "Failed: Timeout >60.0s")), 1),
    (WELL, 123),
    (WRONG, 123),
    (WELL, 124),
    (WELL, 2),
    (WELL, 1),
], ids=("leak", "setup", "hang", "splat", "splat and test", "out of time", "pytest", "untold"))
def test_never_forgiven(bench, turn):
    """And not repeated either."""
    assert not bench.run(turn, (WELL, 0), (WELL, 0))
    assert bench.record["failed"] == 1 + (turn == (WRONG, 123)) and len(bench.calls()) == 1


def test_many_failures_are_no_chance(bench):
    tests = [f"{A}::test_{n}" for n in range(4)]
    bench.tests = tests
    assert not bench.run((file(A, *map(failed, tests)), 1))
    assert bench.counts() == (0, 4, 0) and len(bench.calls()) == 1


def test_a_lost_guest(bench):
    """The running test has failed, and so have the tests of its file that did not run;
    another guest takes the files not begun."""
    assert not bench.run((file(A, [{"test": A1}], ends=False), 125),
                         (file(B, passed(B1)), 0))
    assert bench.counts() == (1, 2, 0) and len(bench.calls()) == 2
    assert "the guest's last words" in bench.said
    assert f"{A}: 1 tests did not run" in bench.said
    assert bench.cases()["tests.test_a::test_1"] == ["failure"]


def test_a_guest_that_says_nothing_is_stopped(bench):
    """After two seconds of the host's clock: nothing in the guest can be relied on."""
    assert not bench.run((file(A, [{"test": A1}], ends=False), 0, ("sleep", 20)),
                         (file(B, passed(B1)), 0))
    assert bench.counts() == (1, 2, 0)
    assert "no end after 2 s" in bench.said


def test_a_guest_that_is_asked_may_go_on(bench):
    """tests/lab/run boots another one if the emulator was to blame: it repeats the file."""
    bench.run((file(A, [{"test": A1}], ends=False), 0, ("sleep", 20),
               ("asked", file(A, passed(A1), passed(A2)) + file(B, passed(B1)))))
    assert bench.counts() == (3, 0, 0), bench.said
    assert "no end" not in bench.said


def test_a_test_with_a_limit_of_its_own_is_not_stopped(bench):
    bench.run((file(A, [{"test": A1, "limit": 64}], ends=False), 0, ("sleep", 4)),
              (file(B, passed(B1)), 0))
    assert "the guest was stopped" not in bench.said


def test_a_test_that_no_guest_ran_has_failed(bench):
    assert not bench.run((file(A, passed(A1), passed(A2)), 0))
    assert bench.counts() == (2, 1, 0)


def test_a_stage_without_tests_has_failed(bench):
    """Its marks are wrong. Only with -k may a stage have no tests."""
    bench.tests = []
    assert not bench.run()
    assert bench.counts() == (0, 1, 0) and "no test is selected" in bench.said


@pytest.mark.parametrize("error", [stages.StageError, ValueError])
def test_a_build_that_breaks_has_failed(bench, monkeypatch, error):
    """The suite ends, whatever kind of error it is."""
    def build(_stage):
        raise error("no such thing")

    monkeypatch.setattr(stages.Stage, "build", build)
    assert not bench.run()
    assert bench.counts() == (0, 1, 0) and "no such thing" in bench.said


def test_unsteady_twice_in_ten_runs(bench):
    chance = [(WRONG, 1), (WELL, 0), (WELL, 0)]
    assert bench.run(*chance)
    for _ in range(8):
        (bench.lab / "calls").unlink()
        assert bench.run((WELL, 0))
    (bench.lab / "calls").unlink()
    assert not bench.run(*chance)
    assert bench.counts() == (2, 1, 0) and "unsteady twice or more in the last 10" in bench.said
    # Forgotten after ten more runs.
    for _ in range(10):
        (bench.lab / "calls").unlink()
        assert bench.run((WELL, 0))
    (bench.lab / "calls").unlink()
    assert bench.run(*chance)


def test_part_of_the_tests_is_not_remembered_as_a_run(bench):
    for _ in range(3):
        assert bench.run((WRONG, 1), (WELL, 0), (WELL, 0), part=True)
        (bench.lab / "calls").unlink()


def test_skipped_tests_say_why(bench):
    assert bench.run((file(A, passed(A1), passed(A2)) + file(B, skipped(B1)), 0))
    assert bench.counts() == (2, 0, 1) and bench.cases()["tests.test_b::test_1"] == ["skipped"]


def test_building_leaves_the_results_alone(bench, monkeypatch):
    """"make demo" builds for 6.12 between "make test" and the sum in .ci/run."""
    assert bench.run((WELL, 0))
    monkeypatch.setattr(suite.sys, "argv", ["suite", "--build-only", "uml"])
    monkeypatch.setattr(suite, "History", lambda: history.History(bench.history))
    assert suite.main() == 0
    assert verdict.total() and bench.cases()["tests.test_a::test_1"] == []


def call(*argv):
    return subprocess.run([TOP / "tests/lab/suite", *argv], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=60)


@pytest.mark.parametrize(("argv", "says"), [
    (["5.4"], "no stage '5.4': there are host, uml, uml-6.1, virtual-time, virtual-time-6.1, 6.12, 6.1, debug"),
    (["--tier", "tiny"], "invalid choice: 'tiny'"),
    (["--seed", "x"], "invalid int value: 'x'"),
])
def test_refuses(argv, says):
    done = call(*argv)
    assert done.returncode == 2 and says in done.stderr.splitlines()[-1]


def guest_tests(tmp_path, body, *argv):
    """Runs pytest on BODY with the guests' plugins; (status, events, output)."""
    (tmp_path / "test_it.py").write_text(body, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "lab.events", "-p", "lab.rows",
         "-p", "lab.share", "-p", "no:cacheprovider", f"--rootdir={tmp_path}",
         f"--events={tmp_path}/events", str(tmp_path), *argv], capture_output=True, text=True,
        env=stages.os.environ | {"PYTHONPATH": str(TOP / "tests")}, check=False, timeout=60)
    lines = (tmp_path / "events").read_text("utf-8").splitlines()
    return done.returncode, [json.loads(line) for line in lines], done.stdout


def test_events(tmp_path):
    status, events, _ = guest_tests(tmp_path, """
import pytest
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.fixture
def late():
    yield
    assert 0, "late"
def test_late(late): pass
@pytest.mark.skip(reason="why not")
def test_not(): pass
""")
    assert status == 1
    assert events[0] == {"file": "test_it.py", "tests": 4}
    assert events[-1] == {"file": "test_it.py", "ends": True}
    ends = [(e["test"][12:], e["when"], e["outcome"]) for e in events if "when" in e]
    assert ends == [("test_good", "call", "passed"), ("test_bad", "call", "failed"),
                    ("test_late", "call", "passed"), ("test_late", "teardown", "failed"),
                    ("test_not", "setup", "skipped")]
    assert "assert 1 == 2" in next(e["text"] for e in events if e.get("outcome") == "failed")


def test_a_test_that_hangs_ends_with_a_stack(tmp_path):
    status, events, out = guest_tests(
        tmp_path, "import time\ndef forever():\n    time.sleep(60)\n"
        "def test_hangs(): forever()\ndef test_next(): pass\n", "--timeout=1")
    assert status == 1
    text = next(e["text"] for e in events if e.get("outcome") == "failed")
    assert "def forever" in text and guests.TIMEOUT.search(text)
    assert events[-2]["outcome"] == "passed", "the next test runs"


ROWS = """
import pytest
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c,d", [(1, 2), (3, 4), (5, 6)])
def test_it(a, b, c, d): pass
@pytest.mark.parametrize("x", range(9))
def test_all_values(x): pass
@pytest.mark.each
@pytest.mark.parametrize("y", range(3))
def test_each_value(y): pass
@pytest.mark.dear
@pytest.mark.parametrize("v", range(3))
@pytest.mark.parametrize("w", range(3))
def test_dear(v, w): pass
"""


@pytest.mark.parametrize(("how", "most"), [("all", 27), ("pairs", 12), ("each", 3), ("few", 3)])
def test_rows(tmp_path, how, most):
    """The rows that run contain every pair, or every value, of the rows left out."""
    _, events, _ = guest_tests(tmp_path, ROWS, f"--rows={how}")
    ended = [e["test"] for e in events if "when" in e]
    assert sum("::test_each_value" in test for test in ended) == 3
    assert sum("::test_dear" in test for test in ended) == {"all": 9, "few": 1}.get(how, 3)
    ran = [test.partition("[")[2][:-1] for test in ended
           if "::test_each_value" not in test and "::test_dear" not in test]
    if how == "few":
        assert len(ran) == 2 and "-" in ran[0] and "-" not in ran[1]
        return
    assert sum("-" not in name for name in ran) == (4 if how == "each" else 9)
    rows = [name.split("-") for name in ran if "-" in name]     # (c, d), b, a
    assert len(rows) <= most
    first, b, a = ({(r[0], r[1]) for r in rows}, {r[2] for r in rows}, {r[3] for r in rows})
    assert (len(first), len(b), len(a)) == (3, 3, 3)
    if how != "each":
        assert len({(r[2], r[3]) for r in rows}) == len({(r[0], r[2]) for r in rows}) == 9


@pytest.mark.parametrize("name, files", [
    ("host", ["tests/host/test_specs.py", "tests/host/test_duel.py"]),
    ("uml", ["tests/clients/test_proc.py", "tests/icmp/test_icmp.py"])], ids=("host", "uml"))
def test_pytest_runs_a_company_in_its_order(name, files):
    stage = stages.Stage(name, stages.Selection("everyday", 1))
    done = subprocess.run([*stage.pytest(files), "--collect-only"], cwd=TOP, text=True,
                          env=stages.os.environ | stage.environment(), capture_output=True,
                          check=False, timeout=60)
    said = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    assert done.returncode == 0 and list(dict.fromkeys(said)) == files, done.stderr


def test_a_file_that_cannot_be_imported_is_missed(tmp_path, monkeypatch):
    """Although other files can be imported."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_good.py").write_text("def test_good(): pass\n", "utf-8")
    stage = stages.Stage("uml", stages.Selection("everyday", 1))
    monkeypatch.setattr(stages, "TOP", tmp_path)
    monkeypatch.setattr(stage, "pytest", lambda: [sys.executable, "-m", "pytest", "-q", "tests"])
    assert stage.tests() == ["tests/test_good.py::test_good"]
    (tests / "test_bad.py").write_text("import nowhere\n", "utf-8")
    with pytest.raises(stages.StageError, match="No module named 'nowhere'"):
        stage.tests()


def test_a_second_guest_waits_for_stages_that_are_built(tmp_path):
    """Otherwise the longest stage might begin only after the others have ended."""
    selection = stages.Selection("smoke", 1)
    options = SimpleNamespace(stages=[stages.Stage(name, selection) for name in ("debug", "6.1")],
                              slots=2)
    one = suite.Suite(options, history.History(tmp_path / "history.json"))
    debug, stock = one.runs
    for run in one.runs:
        run.tests = TESTS
    debug.ready = True
    assert one.next_run() is debug
    debug.guests.append(SimpleNamespace(file=A))
    debug.outcomes.files[1] = [A]
    assert one.next_run() is None
    stock.ready = True
    assert one.next_run() is stock
    stock.guests.append(SimpleNamespace(file=A))
    stock.outcomes.files[1] = [A]
    assert one.next_run() is debug


def test_history_survives_damage(tmp_path):
    path = tmp_path / "history.json"
    path.write_text("{", encoding="utf-8")
    kept = history.History(path)
    kept.took("uml", A, 12.3456)
    kept.save()
    assert history.History(path).seconds("uml") == {A: 12.35}
