# SPDX-License-Identifier: GPL-2.0
"""The connection table, compiled unchanged as a user-space program (tests/unit/table.c):
tries within a second interleavings that are very rare in a kernel."""

import re
import subprocess

import pytest
from simulator import ROOT, UNIT, compiled, linked, stubs

CONN = ROOT / "kernel/conn"
SOURCES = [CONN / name for name in ("bucket.c", "lookup.c", "resize.c", "sweep.c", "walk.c")]
HEADERS = [CONN / name for name in ("conn.h", "table.h", "slot.h", "defence.h",
                                        "watch.h")]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """table("1", "1000") -> its output."""
    build = tmp_path_factory.mktemp("table")
    texts = [source.read_text() for source in [*SOURCES, *HEADERS]]
    linked(build / "table", compiled(
        build, [UNIT / "table.c", UNIT / "table_size.c", *SOURCES],
        ["-include", "tests/unit/table_shim.h", "-I", stubs("table", texts)]))

    def run(*args):
        done = subprocess.run([build / "table", *args], text=True, timeout=300,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.mark.parametrize("seed", range(1, 9))
def test_at_random(table, seed):
    """Every connection is found and listed once, the newest of equal reply keys first, while
    others come and go, allocations fail and resizes are interrupted anywhere."""
    least, most, refused, listings = map(int, re.findall(r"\d+", table(str(seed), "200000")))
    assert least == 8
    assert most > 11
    assert refused
    assert listings > 100


def test_readers_race_with_resizes(table):
    """Connections that stay are found and listed at any time."""
    looks, resizes = map(int, re.findall(r"\d+", table("race", "4")))
    assert looks > 10000
    assert resizes > 1


@pytest.mark.parametrize(("n", "slices"), [
    (12_000, 4), (262_144, 4), (327_680, 8), (1_048_576, 16), (1_500_000, 32),
    (4_194_304, 64), (2_000_000_000, 64)])
def test_sweep(table, n, slices):
    """A pass looks at every connection once; a large table has it in more slices, four a
    second. Under attack a 32nd of the table is asked for what may go each second, wherever
    that is, and however large it is."""
    assert table("sweep", str(n)) == f"{slices} slices\n"


def test_sizes(table):
    """The table doubles above four used slots per bucket and shrinks below half a slot;
    afterwards about two slots per bucket are in use."""
    table("sizes", "12000")


def test_poor(table):
    """A larger table takes at most half of the available memory: for more, the kernel might
    kill a process. In the smaller table connections are found as well."""
    table("poor", "12000")


def test_equal_replies(table):
    """20,000 connections whose replies all have the same header (one client socket that
    reaches one server through as many VIPs): the newest gets them, 16 are kept in order,
    one more is refused, and a refusal costs the same however many came before."""
    costs = [[int(word) for word in table("equals", "20000").split()[1::2]] for _ in range(3)]
    first, last, other = (min(column) for column in zip(*costs, strict=True))
    assert last <= 1.5 * first
    assert last <= 10 * other
