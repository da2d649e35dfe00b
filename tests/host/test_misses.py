# SPDX-License-Identifier: GPL-2.0
"""bench-misses: the cache model of the QEMU plugin, with made-up traces, and the evaluation
of the plugin's reports."""

import ctypes
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
MEASURE = TOP / "bench/measure"
LINE = 64
L1_SETS, L1_WAYS = 64, 8
LLC_SETS, LLC_WAYS = 1024, 16
LLC_LINES = LLC_SETS * LLC_WAYS


def load():
    sys.path.insert(0, str(MEASURE))
    try:
        loader = importlib.machinery.SourceFileLoader("bench_misses", str(TOP / "bench/misses"))
        module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader("bench_misses", loader))
        loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(MEASURE))


misses = load()


def test_only_the_recorded_number_of_packets_is_recorded():
    done = subprocess.run([TOP / "bench/misses", "--packets", "1000", "--update"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "leave out --packets" in done.stderr


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("accesses", "l1", "llc", "transfers")]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.so"
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    "-o", path, MEASURE / "model.c"], check=True)
    lib = ctypes.CDLL(str(path))
    lib.model_new.restype = ctypes.c_void_p
    lib.model_free.argtypes = [ctypes.c_void_p]
    lib.model_access.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint,
                                 ctypes.c_bool]
    lib.model_counts.argtypes, lib.model_counts.restype = [ctypes.c_void_p, ctypes.c_uint], Counts
    lib.model_set.argtypes, lib.model_set.restype = [ctypes.c_uint64], ctypes.c_uint
    return lib


class Model:
    def __init__(self, lib):
        self.lib = lib
        self.handle = lib.model_new(2)
        self.seen = {0: (0,) * 4, 1: (0,) * 4}

    def read(self, address, cpu=0, size=8):
        self.lib.model_access(self.handle, cpu, address, size, False)

    def write(self, address, cpu=0, size=8):
        self.lib.model_access(self.handle, cpu, address, size, True)

    def counts(self, cpu=0):
        """(accesses, first level, last level, transfers) since the last call."""
        c = self.lib.model_counts(self.handle, cpu)
        now = (c.accesses, c.l1, c.llc, c.transfers)
        since = tuple(n - b for n, b in zip(now, self.seen[cpu]))
        self.seen[cpu] = now
        return since

    def same_set(self, count):
        """Addresses of lines in one set of the last level, but different sets of the first."""
        found, line = [], 0
        while len(found) < count:
            if self.lib.model_set(line * LINE) == 5:
                found.append(line * LINE)
            line += 1
        return found


@pytest.fixture
def model(library):
    m = Model(library)
    yield m
    library.model_free(m.handle)


# -- one processor


def test_walking_lines_misses_each_once(model):
    for n in range(1000):
        model.read(n * LINE)
    assert model.counts() == (1000, 1000, 1000, 0)


def test_a_line_is_64_bytes(model):
    for offset in range(0, 64, 8):
        model.read(4096 + offset)
    assert model.counts() == (8, 1, 1, 0)
    model.read(4096 + 60)       # the last 4 bytes are in the next line
    assert model.counts() == (2, 1, 1, 0)


def test_what_fits_the_first_level_stays(model):
    lines = L1_SETS * L1_WAYS
    for n in range(lines):
        model.read(n * LINE)
    model.counts()
    for n in range(lines):
        model.read(n * LINE)
    assert model.counts() == (lines, 0, 0, 0)


def test_the_first_level_drops_what_was_used_least_recently(model):
    way = L1_SETS * LINE
    for n in range(L1_WAYS):
        model.read(n * way)
    model.read(0)               # no longer the oldest
    model.read(L1_WAYS * way)   # evicts line 1
    model.counts()
    model.read(0)
    assert model.counts() == (1, 0, 0, 0)
    model.read(way)             # line 1, still in the last level
    assert model.counts() == (1, 1, 0, 0)


def test_a_set_of_the_last_level_holds_sixteen(model):
    addresses = model.same_set(LLC_WAYS)
    for _ in range(3):
        for address in addresses:
            model.read(address)
    assert model.counts()[2] == LLC_WAYS


def test_the_seventeenth_takes_the_place_of_the_oldest(model):
    addresses = model.same_set(LLC_WAYS + 1)
    for address in addresses:
        model.read(address)
    model.counts()
    for address in addresses[1:]:
        model.read(address)
    assert model.counts()[2] == 0
    model.read(addresses[0])
    # The first level has not kept it either.
    assert model.counts() == (1, 1, 1, 0)


def test_a_hit_of_the_first_level_keeps_a_line_in_the_last(model):
    addresses = model.same_set(4 * LLC_WAYS)
    model.read(addresses[0])
    for address in addresses[1:]:
        model.read(address)
        model.read(addresses[0])
    assert model.counts()[2] == len(addresses)


def test_the_last_level_holds_a_megabyte(model):
    assert LLC_LINES * LINE == 1 << 20
    for _ in range(2):
        for n in range(LLC_LINES):
            model.read(n * LINE)
    assert model.counts()[2] == LLC_LINES
    # Twice that size, read in turn, never hits.
    for _ in range(2):
        for n in range(2 * LLC_LINES):
            model.read((1 << 30) + n * LINE)
    assert model.counts()[2] == 4 * LLC_LINES


def test_sets_are_used_evenly(library):
    """Also by structures that are a page, or a huge page, apart."""
    for stride in (64, 4096, 1 << 16, 1 << 21):
        sets = [library.model_set(n * stride) for n in range(LLC_SETS)]
        assert len(set(sets)) >= (LLC_SETS if stride <= 1 << 16 else LLC_SETS // 8)


# -- two processors


def test_a_write_takes_the_line_from_the_other(model):
    model.read(0, cpu=0)
    model.read(0, cpu=1)
    # The last level has it for both, and no processor has written it.
    assert model.counts(0) == (1, 1, 1, 0) and model.counts(1) == (1, 1, 0, 0)
    model.write(0, cpu=1)
    assert model.counts(1) == (1, 0, 0, 1)
    model.read(0, cpu=0)
    assert model.counts(0) == (1, 1, 0, 1)
    # Both have it again.
    model.read(0, cpu=0)
    model.read(0, cpu=1)
    assert model.counts(0) == (1, 0, 0, 0) and model.counts(1) == (1, 0, 0, 0)


def test_a_line_of_ones_own_is_never_transferred(model):
    for _ in range(100):
        for cpu in (0, 1):
            model.write(cpu * LINE, cpu)
            model.read(cpu * LINE, cpu)
    assert model.counts(0) == (200, 1, 1, 0) and model.counts(1) == (200, 1, 1, 0)


def test_false_sharing_is_transferred_each_time(model):
    for _ in range(100):
        for cpu in (0, 1):
            model.write(cpu * 8, cpu)
    # The first write takes the line from no other processor.
    assert model.counts(0)[3] == 99 and model.counts(1)[3] == 100


def test_reading_in_order_to_write_asks_once(model):
    model.write(0, cpu=0)
    model.counts(0)
    model.read(0, cpu=1)
    model.write(0, cpu=1)
    assert model.counts(1) == (2, 1, 0, 1)
    # Not after another access in between: then others may have read the line.
    model.read(0, cpu=0)
    model.read(LINE, cpu=0)
    model.write(0, cpu=0)
    assert model.counts(0)[3] == 2


def test_a_line_that_the_first_level_had_no_room_for_is_still_the_others(model):
    model.write(0, cpu=0)
    for n in range(1, 2 * L1_WAYS):
        model.read(n * L1_SETS * LINE, cpu=0)
    model.read(0, cpu=1)
    assert model.counts(1) == (1, 1, 0, 1)


def test_what_the_last_level_drops_is_nobodys(model):
    addresses = model.same_set(LLC_WAYS + 1)
    model.write(addresses[0], cpu=0)
    for address in addresses[1:]:
        model.read(address, cpu=1)
    model.counts(1)
    model.read(addresses[0], cpu=1)
    assert model.counts(1) == (1, 1, 1, 0)
    model.counts(0)
    model.read(addresses[1], cpu=0)
    model.read(addresses[0], cpu=0)
    assert model.counts(0)[1] == 2


def test_numbers_of_processors(library):
    assert not library.model_new(0) and not library.model_new(9)


# -- reports


REPORTS = [{"name": "", "packets": 100}, {"name": "l4lb: one flow", "packets": 200}]


def test_figures_of_reports():
    assert misses.figures(REPORTS, "9 9 9 9\n1000 300 20 2\n") == {
        "l4lb: one flow: first level": 1.5, "l4lb: one flow: last level": 0.1,
        "l4lb: one flow: transfers": 0.01}


def test_a_report_that_is_missing():
    with pytest.raises(misses.BenchError, match="wrote 1 reports of 2"):
        misses.figures(REPORTS, "9 9 9 9\n")


def test_the_table():
    lines = list(misses.table({"l4lb: one flow: first level": 1.5,
                               "l4lb: one flow: last level": 0.1,
                               "l4lb: one flow: transfers": 0.0}))
    assert lines[-1].split() == ["l4lb:", "one", "flow", "1.50", "0.10", "0.00"]


@pytest.mark.parametrize("was, now, agree", [
    (0, 0.1, True), (0, 0.11, False), (1, 1.09, True), (1, 0.89, False),
    (10, 10.5, True), (10, 10.51, False), (10, 9.49, False)])
def test_what_may_differ(was, now, agree):
    assert (not misses.recorded().compare({"a": was}, {"a": now})) == agree


def test_judging_and_recording(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(misses, "RECORD", tmp_path / "misses.json")
    kernel = SimpleNamespace(name="6.12", release="6.12.1")
    record = {"6.12": {"kernel": "6.12.1", "misses": {"a: last level": 2}}}
    judge = misses.recorded().judge
    assert judge(record, kernel, {"a: last level": 2.05}, False) == 0
    assert judge(record, kernel, {"a: last level": 3}, False) == 1
    said = capsys.readouterr().out
    assert "a: last level: 3, recorded 2 (+1.00)" in said and "make bench-misses UPDATE=1" in said
    (tmp_path / "instructions.json").write_text("{}", encoding="utf-8")
    counted = {f"l4lb: one flow: {kind}": n for kind, n in zip(misses.KINDS, (3.5, 2, 0.25))}
    assert judge(record, kernel, misses.steady(counted), True) == 0
    written = json.loads((tmp_path / "misses.json").read_text("utf-8"))
    assert written["6.12"]["misses"] == {"l4lb: one flow: last level": 2,
                                         "l4lb: one flow: transfers": 0.25}
    assert "| l4lb: one flow | 2.00 | 0.25 |" in (
        tmp_path / "results/counted/table.md").read_text("utf-8").splitlines()
    assert (tmp_path / "results/counted/misses.png").stat().st_size > 5000


def test_bad_options_get_one_line():
    done = subprocess.run([TOP / "bench/misses", "--packets", "none"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2
    assert "'none' is not a number" in done.stderr and done.stderr.count("\n") == 1
