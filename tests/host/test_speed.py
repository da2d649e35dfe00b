# SPDX-License-Identifier: GPL-2.0
"""The speed bench's own parts: what frames must look like, the report's
arithmetic, options, and the comparison of instruction counts."""

import importlib.machinery
import importlib.util
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
MEASURE = TOP / "bench/measure"


def load(path, name, directory=MEASURE):
    """Load the file PATH as module NAME, with imports from DIRECTORY: there are two modules
    "report"."""
    sys.path.insert(0, str(directory))
    try:
        loader = importlib.machinery.SourceFileLoader(name, str(path))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        shadowed = sys.modules.pop("report", None)
        loader.exec_module(module)
        sys.modules.pop("report", None)
        if shadowed:
            sys.modules["report"] = shadowed
    finally:
        sys.path.remove(str(directory))
    return module


frames = load(MEASURE / "frames.py", "bench_frames")
report = load(MEASURE / "report.py", "bench_report")
slices = load(MEASURE / "slices.py", "bench_slices")
results_file = load(MEASURE / "results.py", "bench_results")
host = load(MEASURE / "host.py", "bench_host")
speed = load(TOP / "bench/speed", "bench_speed")
instructions = load(TOP / "bench/instructions", "bench_instructions")


# -- frames


def udp4(payload=b"x" * 18, ttl=63, checksum=None):
    """A frame from 198.18.0.9:1024 to 10.1.0.1:8080."""
    length = 8 + len(payload)
    addresses = bytes((198, 18, 0, 9, 10, 1, 0, 1))
    udp = struct.pack("!HHHH", 1024, 8080, length, 0) + payload
    check = frames.summed(addresses + struct.pack("!II", length, 17) + udp)
    udp = udp[:6] + struct.pack("!H", check if checksum is None else checksum) + udp[8:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, ttl, 17, 0) + addresses
    header = header[:10] + struct.pack("!H", frames.summed(header)) + header[12:]
    return header + udp


ETHERNET = bytes.fromhex("020000020001020000000000") + b"\x08\x00"
DUE = {"lladdr": "02:00:00:02:00:01", "src": "198.18.0.9", "dst": "10.1.0.1", "dport": 8080,
       "ttl": 63, "tunnelled": False}


def test_a_frame_as_it_is_due():
    assert frames.wrong(ETHERNET + udp4(), DUE) == ""


@pytest.mark.parametrize("field, value", [
    ("dst", "10.1.0.2"), ("dport", 80), ("ttl", 64), ("lladdr", "02:00:00:02:00:02"),
    ("tunnelled", True)])
def test_each_field_is_looked_at(field, value):
    assert frames.wrong(ETHERNET + udp4(), DUE | {field: value}).startswith(f"{field} is ")


def test_wrong_checksums_are_seen():
    assert "good" in frames.wrong(ETHERNET + udp4(checksum=0x1234), DUE)
    broken = bytearray(ETHERNET + udp4())
    broken[14 + 8] -= 1     # the TTL, without the header's checksum
    assert "good" in frames.wrong(bytes(broken), DUE | {"ttl": 62})


def test_a_missing_checksum_is_no_right_one():
    """Unless it is due: pktgen's packets have none."""
    bare = ETHERNET + udp4(checksum=0)
    assert frames.wrong(bare, DUE).startswith("bare is ")
    assert frames.wrong(bare, DUE | {"bare": True}) == frames.wrong(bare, DUE | {"bare": None}) == ""
    assert frames.wrong(ETHERNET + udp4(), DUE | {"bare": True}).startswith("bare is ")


def test_a_tunnel_is_looked_into():
    inner = udp4()
    outer = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, 4, 0) + \
        bytes((10, 1, 255, 254, 10, 1, 0, 7))
    outer = outer[:10] + struct.pack("!H", frames.summed(outer)) + outer[12:]
    due = DUE | {"tunnelled": True, "outer": "10.1.0.7"}
    assert frames.wrong(ETHERNET + outer + inner, due) == ""
    assert "tunnelled" in frames.wrong(ETHERNET + inner, due)


@pytest.mark.parametrize("data", [b"", ETHERNET, ETHERNET + udp4()[:22]])
def test_what_is_no_frame(data):
    assert frames.wrong(data, DUE)


# -- the report


def row(group, what, system, values, **more):
    return {"group": group, "what": what, "system": system, "unit": "ns", "values": values} | more


def results(*rows):
    return report.Results({
        "command": "bench/speed", "date": "today", "kernel": "6.12", "vehicle": "QEMU",
        "processor": "one", "load": [0, 0], "spec": {"rounds": 3}, "rows": list(rows)})


FLOOR = row("reference", "redirect at ingress, 64 bytes", "reference", [200, 190, 230])
THEIRS = row("established", "udp4 dr, 64 bytes", "ip_vs", [1000, 900, 1200], size=64)
OURS = row("established", "udp4 dr, 64 bytes", "l4lb", [400, 500, 380], size=64)
KEY = ("established", "udp4 dr, 64 bytes")


def test_median_and_spread():
    figure = report.Figure(THEIRS)
    assert (figure.median, figure.least, figure.most) == (1000, 900, 1200)
    assert figure.spread == 30
    assert str(figure) == "1,000 ± 15 %"
    assert str(report.Figure(row("new", "x", "y", [3.14159]))) == "3.14"


def test_ratios():
    """They are ratios of the best rounds, because noise only adds time."""
    r = results(FLOOR, THEIRS, OURS)
    assert r.ratio(*KEY, "l4lb") == pytest.approx(380 / 900)
    # The time above the floor: the cheapest forwarder takes 190.
    assert r.director_ratio(*KEY, "l4lb") == pytest.approx(190 / 710)
    assert "400 ± 15 % (0.42, 0.27)" in report.render(r)
    more = [row("http", "dr", s, v) | {"unit": "requests/s"}
            for s, v in (("ip_vs", [50, 100]), ("l4lb", [80, 40]))]
    assert results(*more).ratio("http", "dr", "l4lb") == 0.8


def test_no_ratio_without_its_parts():
    assert results(THEIRS, OURS).director_ratio(*KEY, "l4lb") is None
    assert results(FLOOR, OURS).ratio(*KEY, "l4lb") is None
    # The floor is as high as ip_vs: nothing is left to compare.
    slow = FLOOR | {"values": [1000]}
    assert results(slow, THEIRS, OURS).director_ratio(*KEY, "l4lb") is None
    quick = OURS | {"values": [150]}
    assert results(FLOOR, THEIRS, quick).director_ratio(*KEY, "l4lb") is None
    # A listing has no packets, and no floor.
    both = (row("listing", "w", "ip_vs", [4000]), row("listing", "w", "l4lb", [1000]))
    r = results(FLOOR, *both)
    assert r.director_ratio("listing", "w", "l4lb") is None
    assert r.ratio("listing", "w", "l4lb") == 0.25


def test_the_floor_is_of_the_same_size():
    long = row("reference", "redirect at ingress, 1518 bytes", "reference", [300])
    theirs, ours = THEIRS | {"size": 1518}, OURS | {"size": 1518}
    r = results(FLOOR, long, theirs, ours)
    assert r.director_ratio(*KEY, "l4lb") == pytest.approx((380 - 300) / (900 - 300))


def test_a_fault_is_shown_and_compared_with_nothing():
    r = results(FLOOR, THEIRS, OURS | {"fault": "srv0 got 7 packets of 8"})
    assert r.ratio(*KEY, "l4lb") is None
    assert "FAULT" in report.render(r)


def sliced(what, system, values, **more):
    """A row with the same slices in each of three module loads."""
    return row("new", what, system, []) | {
        "unit": "redirects", "slices": [values] * 3, "tried": 40} | more


def judged(*rows):
    return slices.judge(list(rows), "ip_vs")


def test_a_sliced_row_shows_intervals_or_none():
    r = results(*judged(
        sliced("calm", "ip_vs", [2.0] * 9), sliced("calm", "l4lb", [1.5] * 9),
        sliced("wild", "ip_vs", [2.0] * 9), sliced("wild", "l4lb", [1.5, 2.5, 1.1] * 3),
        sliced("none", "ip_vs", [2.0] * 9), sliced("none", "l4lb", []),
        sliced("lost", "ip_vs", [2.0] * 9), sliced("lost", "l4lb", [], fault="7 of 8")))
    lines = {line.split("|")[1].strip(): line for line in report.render(r).splitlines()
             if line.startswith("| ")}
    assert "| 2.00 [2.00 .. 2.00] | 0.75 [0.75 .. 0.75]; 0.50 [0.50 .. 0.50] |" in lines["calm"]
    assert "too wide (0.55 .. 1.25), 27 slices" in lines["wild"]
    assert lines["none"].endswith("| too wide, no good slice of 40 |")
    assert lines["lost"].endswith("| FAULT |") and "FAULT" not in lines["none"]


def run_of(path, *rows, **more):
    """Write a results.json with the fields that --compare reads."""
    path.write_text(json.dumps({
        "kernel": "6.12.1", "vehicle": "UML, one processor", "rows": judged(*rows),
        "spec": {"new": 100, "rounds": 3, "groups": ["new"]}} | more), "utf-8")
    return path


def comparison(tmp_path, *ours):
    """bench/speed --compare of two runs, with OURS as l4lb's slices."""
    return compared(*(run_of(tmp_path / f"{number}.json", sliced("udp4 dr", "ip_vs", [2.0] * 9),
                             sliced("udp4 dr", "l4lb", values))
                      for number, values in enumerate(ours)))


def compared(*files):
    return subprocess.run([TOP / "bench/speed", "--compare", *files], capture_output=True,
                          text=True, check=False)


def test_two_runs_are_compared(tmp_path):
    done = comparison(tmp_path, [1.5, 1.51, 1.52] * 3, [1.51, 1.52, 1.53] * 3)
    assert done.returncode == 0 and "1 rows overlap, 0 are apart" in done.stdout
    done = comparison(tmp_path, [1.5] * 9, [1.6] * 9)
    assert done.returncode == 1
    assert "new: udp4 dr: l4lb: 0.750 .. 0.750, 0.800 .. 0.800: APART" in done.stdout
    # If no row can be compared, the runs do not agree.
    done = comparison(tmp_path, [1.5, 2.5, 1.1] * 3, [1.5] * 9)
    assert done.returncode == 1 and "1 are too wide to say" in done.stdout


@pytest.mark.parametrize("lost", [{}, {"fault": "7 of 8"}])
def test_a_row_of_one_run_is_missed(tmp_path, lost):
    """Whichever run lacks it: the comparison fails."""
    calm = [sliced("udp4 dr", "ip_vs", [2.0] * 9), sliced("udp4 dr", "l4lb", [1.5] * 9)]
    more = [sliced("udp4 nat", "ip_vs", [2.0] * 9), sliced("udp4 nat", "l4lb", [1.5] * 9)]
    less = [more[0], more[1] | lost] if lost else []
    files = [run_of(tmp_path / "more.json", *calm, *more),
             run_of(tmp_path / "less.json", *calm, *less)]
    for order in (files, files[::-1]):
        done = compared(*order)
        assert done.returncode == 1
        assert "new: udp4 nat: l4lb: 0.750 .. 0.750: IN ONE RUN ONLY" in done.stdout
        assert "1 rows overlap, 0 are apart" in done.stdout


@pytest.mark.parametrize("ours, theirs", [
    (dict(fault="7 of 8"), {}), ({}, dict(fault="7 of 8")), (dict(slices=[[]]), {})])
def test_a_row_without_a_figure_is_missed(tmp_path, ours, theirs):
    """Losing packets in both runs is not agreement."""
    file = run_of(tmp_path / "x.json", sliced("udp4 dr", "ip_vs", [2.0] * 9),
                  sliced("udp4 dr", "l4lb", [1.5] * 9),
                  sliced("udp4 nat", "ip_vs", [2.0] * 9) | theirs,
                  sliced("udp4 nat", "l4lb", [1.5] * 9) | ours)
    done = compared(file, file)
    assert done.returncode == 1 and "new: udp4 nat: l4lb: NO FIGURE" in done.stdout


@pytest.mark.parametrize("more, said", [
    ({"kernel": "6.1.1"}, "kernel 6.12.1 and 6.1.1"),
    ({"vehicle": "QEMU, two processors"}, "vehicle UML, one processor and QEMU"),
    ({"spec": {"new": 7, "rounds": 9, "groups": []}}, "new 100 and 7")])
def test_runs_of_two_kinds_are_not_compared(tmp_path, more, said):
    rows = sliced("udp4 dr", "ip_vs", [2.0] * 9), sliced("udp4 dr", "l4lb", [1.5] * 9)
    one, other = run_of(tmp_path / "1.json", *rows), run_of(tmp_path / "2.json", *rows, **more)
    done = compared(one, other)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


def test_groups_that_uml_has_not():
    done = subprocess.run([TOP / "bench/speed", "--kernel", "uml", "--groups", "new http"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "'http' is nothing for uml" in done.stderr


@pytest.mark.parametrize("theirs", [dict(fault="7 of 8"), dict(slices=[[]])])
def test_nothing_to_compare_with_is_no_ratio(theirs):
    r = results(*judged(sliced("udp4 dr", "ip_vs", [2.0] * 9) | theirs,
                        sliced("udp4 dr", "l4lb", [1.5] * 9)))
    assert report.cell(r, "new", "udp4 dr", "l4lb") == "no ratio to ip_vs"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [7]}', '{"rows": 7}'])
def test_what_cannot_be_compared_gets_one_line(tmp_path, text):
    bad = tmp_path / "bad.json"
    bad.write_text(text, "utf-8")
    for file in (bad, tmp_path / "missing.json"):
        done = compared(file, file)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert "wants two results.json" in done.stderr


def test_a_busy_machine_is_told():
    idle = results(FLOOR)
    busy = report.Results(idle.results | {"load": [0.5, 9.1]})
    assert "do not quote" in report.render(busy) and "do not quote" not in report.render(idle)


def test_every_system_has_its_column():
    more = row("established", "udp4 dr, 64 bytes", "l4lb fast 1", [300], size=64)
    r = results(more, OURS, THEIRS, FLOOR)
    assert r.systems("established") == ["ip_vs", "l4lb", "l4lb fast 1"]
    lines = report.render(r).splitlines()
    widths = {line.count("|") for line in lines if line.startswith("| udp4 dr")}
    assert widths == {6}


def test_a_plot_has_no_figure_that_the_table_refuses():
    r = results(*judged(sliced("udp4 dr", "ip_vs", [2.0] * 9),
                        sliced("udp4 dr", "l4lb", [1.5, 2.5, 1.1] * 3)))
    assert r.get("new", "udp4 dr", "ip_vs").drawn
    assert not r.get("new", "udp4 dr", "l4lb").drawn


def test_table_and_plots(tmp_path):
    curve = [row("flows", f"dr, {n} flows", s, [100 + n], x=n)
             for n in (1, 1000) for s in ("ip_vs", "l4lb")]
    names = report.write(results(FLOOR, THEIRS, OURS, *curve).results, tmp_path)
    assert set(names) == {"reference.png", "established.png", "flows.png"}
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert "## flows" in (tmp_path / "table.md").read_text("utf-8")


def test_one_number_of_flows_is_a_bar(tmp_path, monkeypatch):
    """A quick run has one number of flows: a line would be a point, in an empty picture."""
    drawn = []
    monkeypatch.setattr(report, "bars", lambda r, group, *rest: drawn.append(group))
    one = [row("flows", "dr, 16000 flows", s, [100], x=16_000) for s in ("ip_vs", "l4lb")]
    report.draw(results(*one), tmp_path)
    assert drawn == ["flows"]
    report.draw(results(*one, row("flows", "dr, 1 flows", "l4lb", [50], x=1)), tmp_path)
    assert drawn == ["flows"] and (tmp_path / "flows.png").exists()


# -- options


@pytest.mark.parametrize("script, words, sentence", [
    ("speed", ["--groups", "nonsense"], "no group 'nonsense'"),
    ("speed", ["--groups", ""], "name each group once"),
    ("speed", ["--groups", "new new"], "name each group once"),
    ("speed", ["--rounds", "0"], "'0' is not a number from 1 to 100"),
    ("speed", ["--rounds", "many"], "'many' is not a number"),
    ("speed", ["--kernel", "5.10"], "invalid choice: '5.10'"),
    ("instructions", ["--kernel", "uml"], "invalid choice: 'uml'"),
    ("instructions", ["surplus"], "unrecognized arguments"),
    ("bulk", ["--kernel", "uml"], "invalid choice: 'uml'"),
    ("bulk", ["--rounds", "0"], "'0' is not a number from 1 to 100"),
])
def test_bad_options_get_one_line(script, words, sentence):
    done = subprocess.run([TOP / "bench" / script, *words], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_what_a_run_measures():
    full = speed.specify(speed.parse(["--kernel", "uml"]))
    # UML has one processor, and slow system calls.
    assert full["rounds"] == 5 and not {"processors", "http"} & set(full["groups"])
    quick = speed.specify(speed.parse(["--quick"]))
    assert quick["quick"] and max(quick["flows"]) < max(full["flows"])
    # At least three loads of each module, in the groups that show most; others only by name.
    assert quick["rounds"] >= 3
    assert quick["groups"] == ["reference", "established", "flows", "new"]
    named = speed.specify(speed.parse(["--kernel", "6.12", "--quick", "--groups", "http"]))
    assert named["groups"] == ["http"]
    assert speed.specify(speed.parse(["--rounds", "7", "--quick"]))["rounds"] == 7
    assert set(speed.GROUPS) == set(report.TITLES)


class Guests:
    """A kernel whose guests answer with a row of each of their groups, or fail."""
    release = "6.12.1"

    def __init__(self):
        self.failing, self.faulty, self.measured, self.rounds = set(), set(), [], []

    def build(self):
        pass

    def measure(self, _script, spec, *_rest):
        spec = json.loads(spec)
        groups = spec["groups"]
        self.rounds.append((spec["round"], spec["only"]))
        if spec["round"] == 0:
            self.measured.append(groups)
        if self.failing & set(groups):
            raise host.BenchError("measuring failed (exit status 124)")
        return json.dumps([{"group": g, "what": "w", "system": "l4lb", "unit": "ns", "values": [1.0]}
                           | ({"fault": "lost"} if g in self.faulty else {}) for g in groups])


@pytest.fixture
def guests(monkeypatch):
    kernel = Guests()
    monkeypatch.setattr(speed, "Kernel", lambda name: kernel)
    # The bench has its own copy of the module.
    monkeypatch.setattr(speed, "BenchError", host.BenchError)
    return kernel


def test_each_round_has_its_guest(monkeypatch):
    """What a guest says of a row is one load. Rows that are too wide get more rounds, alone."""
    kernel, said = Guests(), {"ip_vs": [2.0, 2.01], "l4lb": [1.0, 1.01]}
    wild = iter([1.0, 1.4, 1.0, 1.4, *[1.2] * 40])

    def measure(_script, spec, *_rest):
        spec = json.loads(spec)
        kernel.rounds.append((spec["round"], spec["only"]))
        known = [{"group": "new", "what": what, "system": system, "unit": "redirects",
                  "values": [], "tried": 4, "slices": [[v * k for v in values]] * 2}
                 for now in [next(wild)] for system, values in said.items()
                 for what, k in (("calm", 1), ("wild", now if system == "l4lb" else 1))]
        return json.dumps([r for r in known if not spec["only"] or
                           [r["group"], r["what"]] in spec["only"]])
    monkeypatch.setattr(kernel, "measure", measure)
    spec = speed.specify(speed.parse(["--quick", "--groups", "new", "--rounds", "4"]))
    rows = {(r["what"], r["system"]): r for r in speed.Rounds(kernel, spec, 60).measure()}
    assert kernel.rounds[:4] == [(n, None) for n in range(4)]
    assert len(kernel.rounds) > 4 and all(only == [["new", "wild"]] for _, only in kernel.rounds[4:])
    calm, wild = rows["calm", "l4lb"], rows["wild", "l4lb"]
    assert (calm["kept"], calm["tried"]) == (16, 16) and calm["ratio"]["narrow"]
    assert wild["kept"] == 4 * len(kernel.rounds)


def test_groups_without_packets_have_one_guest(guests, tmp_path, monkeypatch):
    """It loads the modules as often as they need, however wide their rows are."""
    run_bench(tmp_path, "--groups", "expiry")
    wide = [{"group": "services", "what": "w", "system": system, "unit": "redirects", "values": [],
             "tried": 9, "slices": [[1.0] * 3, [1.5] * 3, [1.0] * 3]} for system in ("ip_vs", "l4lb")]
    monkeypatch.setattr(guests, "measure", lambda *_: guests.rounds.append((0, None)) or json.dumps(wide))
    spec = speed.specify(speed.parse(["--quick", "--groups", "services"]))
    rows = speed.Rounds(guests, spec, 60).measure()
    assert guests.rounds == [(0, None)] * 2 and [r["kept"] for r in rows] == [9, 9]
    assert rows[1]["ratio"]["narrow"]


def test_a_lost_additional_round_loses_nothing(monkeypatch):
    kernel = Guests()

    def measure(_script, spec, *_rest):
        number = json.loads(spec)["round"]
        if number >= 3:
            raise speed.BenchError("measuring failed")
        return json.dumps([{"group": "new", "what": "w", "system": system, "unit": "redirects",
                            "values": [], "tried": 4, "slices": [[v] * 3]}
                           for system, v in (("ip_vs", 1.0), ("l4lb", 1.0 + number % 2))])
    monkeypatch.setattr(kernel, "measure", measure)
    spec = speed.specify(speed.parse(["--quick", "--groups", "new", "--rounds", "3"]))
    assert [r["kept"] for r in speed.Rounds(kernel, spec, 60).measure()] == [9, 9]


def run_bench(out, *words):
    status = speed.bench(speed.parse(["--kernel", "uml", "--out", str(out), *words]))
    return status, [row["group"] for row in json.loads((out / "results.json").read_text("utf-8"))["rows"]]


def test_a_lost_guest_loses_its_part_only(guests, tmp_path, capsys):
    guests.failing = {"new"}
    status, groups = run_bench(tmp_path, "--groups", "established new expiry route-churn")
    assert (status, groups) == (1, ["established", "expiry"])
    assert "bench: new, route-churn: measuring failed" in capsys.readouterr().out
    assert guests.measured == [["established"], ["new", "route-churn"], ["expiry"]]


def test_a_run_goes_on_where_it_was_interrupted(guests, tmp_path):
    guests.failing = {"new"}
    words = "--groups", "established new expiry"
    run_bench(tmp_path, *words)
    guests.failing, guests.measured = set(), []
    assert run_bench(tmp_path, *words, "--resume") == (0, ["established", "new", "expiry"])
    assert guests.measured == [["new"]]
    # Now that all is there, there is nothing to go on with.
    assert not list(tmp_path.glob("part-*"))


def test_other_amounts_are_another_run(guests, tmp_path):
    guests.failing = {"new"}
    words = "--groups", "established new expiry"
    run_bench(tmp_path, *words)
    guests.measured = []
    run_bench(tmp_path, *words, "--resume", "--rounds", "7")
    # And without the option all is measured again.
    run_bench(tmp_path, *words)
    assert guests.measured == 2 * [["established"], ["new"], ["expiry"]]


def test_a_fault_is_measured_again(guests, tmp_path):
    guests.faulty = {"new"}
    words = "--groups", "established new"
    assert run_bench(tmp_path, *words)[0] == 1
    guests.faulty, guests.measured = set(), []
    assert run_bench(tmp_path, *words, "--resume")[0] == 0
    assert guests.measured == [["new"]]


def test_a_part_of_other_modules_is_not_taken(guests, tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "TOP", tmp_path)
    module = tmp_path / "build" / guests.release / "l4lb.ko"
    module.parent.mkdir(parents=True)
    guests.failing = {"expiry"}
    for content in (b"one", b"another"):
        module.write_bytes(content)
        run_bench(tmp_path / "out", "--groups", "new expiry", "--resume")
    assert guests.measured.count(["new"]) == 2


def test_no_results_of_no_guest(guests, tmp_path):
    guests.failing = {"new"}
    with pytest.raises(host.BenchError, match="no guest"):
        run_bench(tmp_path, "--groups", "new")
    assert not (tmp_path / "results.json").exists()


def test_the_barrier_of_namespaces_is_a_module():
    """What is built in cannot be loaded, and so cannot wait for namespaces that end."""
    name = re.search(r'^BARRIER, PAUSE = "(\w+)"', (MEASURE / "scale.py").read_text("utf-8"), re.M)[1]
    config = (MEASURE.parents[1] / "tests/lab/uml/base.config").read_text("utf-8")
    assert f"CONFIG_NET_{name.upper()}=m\n" in config


def test_each_group_has_a_part():
    assert sorted(g for part in speed.PARTS for g in part) == sorted(speed.GROUPS)


# -- instruction counts


def test_figures_that_agree():
    assert instructions.recorded().compare({"a": 1000, "b": 50}, {"a": 1019, "b": 49.1}) == []


@pytest.mark.parametrize("figure, sentence", [
    (1021, "a: 1021, recorded 1000 (+2.1 %)"), (979, "a: 979, recorded 1000 (-2.1 %)")])
def test_a_figure_that_is_off_either_way(figure, sentence):
    assert instructions.recorded().compare({"a": 1000}, {"a": figure}) == [sentence]


def test_figures_without_a_counterpart():
    assert instructions.recorded().compare({"a": 1, "b": 2}, {"a": 1, "c": 3}) == [
        "c: 3, of which there is no record", "b: not counted, recorded 2"]


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(instructions, "RECORD", tmp_path / "instructions.json")
    return {"6.12": {"kernel": "6.12.1", "instructions": {"a": 1000, "redirect": 10}}}


KERNEL = SimpleNamespace(name="6.12", release="6.12.1")


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"6.12": {}}',
                                  '{"6.12": {"kernel": "6.12.1", "instructions": {"a": 0}}}'])
def test_a_broken_record_is_told_first(record, text):
    """The error comes before anything is built or counted."""
    instructions.RECORD.write_text(text, "utf-8")
    with pytest.raises(sys.modules["host"].BenchError, match="is no record of instructions: "):
        instructions.recorded().read()


def test_judging(record, capsys):
    assert instructions.recorded().judge(record, KERNEL, {"a": 1001, "redirect": 10}, False) == 0
    assert "2 figures agree" in capsys.readouterr().out
    assert instructions.recorded().judge(record, KERNEL, {"a": 1100, "redirect": 10}, False) == 1
    assert "UPDATE=1" in capsys.readouterr().out
    assert instructions.recorded().judge({}, KERNEL, {"a": 1000}, False) == 1
    # Another build of the kernel has other figures, of which there is no record.
    other = SimpleNamespace(name="6.12", release="6.12.2")
    assert instructions.recorded().judge(record, other, {"a": 2000}, False) == 0
    assert "not compared" in capsys.readouterr().out
    assert not instructions.RECORD.exists()


FEW = {"redirect": 100, "ip_vs: udp4 dr new": 700, "ip_vs: udp4 dr": 500, "l4lb: udp4 dr": 300}


def test_results_from_the_record(tmp_path):
    (tmp_path / "instructions.json").write_text(json.dumps(
        {"6.12": {"kernel": "6.12.1", "instructions": FEW}}), encoding="utf-8")
    results_file.write(tmp_path)
    lines = (tmp_path / "results/counted/table.md").read_text("utf-8").splitlines()
    # 200 of 400 above the floor; rows of new flows come last.
    assert lines.index("| udp4 dr | 500 | 300 (0.50) |") < lines.index("| udp4 dr new | 700 |  |")
    assert "### Linux 6.12.1" in lines and "| redirect | 100 |" in lines
    assert (tmp_path / "results/counted/instructions.png").stat().st_size > 5000


def test_each_generator_has_a_floor_of_its_own():
    figures = {"redirect": 100, "xdp redirect": 20, "pktgen redirect": 300, "ip_vs: udp4 dr": 500,
               "ip_vs: pktgen udp4 dr": 700, "l4lb: udp4 dr": 300, "l4lb: pktgen udp4 dr": 500,
               "l4lb xdp: udp4 dr": 120}
    lines = list(results_file.instructions("6.12.1", figures))
    assert "| udp4 dr | 500 | 300 (0.50) | 120 (0.25) |" in lines
    assert "| pktgen udp4 dr | 700 | 500 (0.50) |  |" in lines


def test_recording_keeps_the_other_kernels(record):
    assert instructions.recorded().judge(record, SimpleNamespace(name="6.1", release="6.1.9"),
                              FEW, True) == 0
    written = json.loads(instructions.RECORD.read_text("utf-8"))
    assert written["6.12"]["instructions"] == {"a": 1000, "redirect": 10}
    assert written["6.1"] == {"kernel": "6.1.9", "instructions": FEW}


def test_the_table_of_counts():
    lines = list(instructions.table({"redirect": 100, "ip_vs: udp4 dr": 500.4,
                                     "l4lb: udp4 dr": 300, "l4lb: udp4 dr new": 400}))
    assert [line.split() for line in lines if line] == [
        ["redirect", "100"], ["ip_vs", "l4lb"], ["udp4", "dr", "500", "300"],
        ["udp4", "dr", "new", "400"]]


@pytest.mark.parametrize("kvm, kernel", [(True, "6.12"), (False, "uml")])
def test_an_emulator_is_not_timed_unasked(monkeypatch, kvm, kernel):
    # /dev/kvm alone proves nothing.
    lab = SimpleNamespace(kvm_works=lambda release: kvm, stock_release=lambda name: name, LabError=OSError)
    monkeypatch.setattr(speed, "lab_run", lambda: lab)
    monkeypatch.setattr(speed.os, "access", lambda path, mode: True)
    assert speed.parse([]).kernel == kernel
    assert speed.parse(["--kernel", "6.1"]).kernel == "6.1"


def test_results_have_a_row_a_line():
    results = {"date": "today", "rows": [{"a": 1, "b": [2, 3]}, {"a": "x"}], "spec": {"n": 1, "m": None},
               "none": [], "rate": 2.5}
    text = host.row_a_line(results)
    assert json.loads(text) == results
    assert '  {"a": 1, "b": [2, 3]},\n' in text and '  "n": 1,\n' in text
