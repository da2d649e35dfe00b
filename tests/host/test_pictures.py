# SPDX-License-Identifier: GPL-2.0
"""The pictures of bench/results: each fits on a screen, each experiment has one, and none hides
its own data. The figures in README.md and RESULTS.md are those recorded."""

import json
import re
import struct
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "bench/results"
sys.path.append(str(TOP / "bench/measure"))

import pages  # noqa: E402
import results  # noqa: E402

WIDTH, HEIGHT, BYTES = 1200, 800, 100_000
PICTURES = sorted(RESULTS.glob("**/*.png"))
PAGE = (TOP / "bench/RESULTS.md").read_text("utf-8")
README = (TOP / "README.md").read_text("utf-8")


def pixels(path):
    """Width and height that the head of a PNG file says."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def links(text):
    return [TOP / "bench" / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: str(path.relative_to(RESULTS)))
def test_a_picture_fits_on_a_screen(path):
    width, height = pixels(path)
    assert width <= WIDTH and height <= HEIGHT, f"{width} x {height} pixels"
    assert path.stat().st_size < BYTES


def test_each_picture_has_its_table_and_its_link():
    assert set(PICTURES) == {path for path in links(PAGE) if path.suffix == ".png"}
    assert [p for p in PICTURES if not (p.parent / "table.md").exists()] == []


def test_the_links_lead_somewhere():
    assert [path for path in links(PAGE) if not path.exists()] == []


def test_each_experiment_has_figures_and_a_picture():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    for line in rows:
        _, experiment, figures, plots, _ = line.split("|")
        assert "table" in figures or "the same" in figures, experiment
        assert ".png)" in plots, experiment


def test_a_figure_is_never_larger_than_a_screen(tmp_path):
    with pages.figure(tmp_path / "x.png", 2, 3, 40, 30) as (_, ((axes, *_), _)):
        axes.plot([1, 2], [3, 4])
    assert pixels(tmp_path / "x.png") == (WIDTH, HEIGHT)


@pytest.mark.parametrize("names", [["a"], [f"the system {n}" for n in range(14)]], ids=len)
def test_a_legend_is_below_all_axes(tmp_path, names):
    with pages.figure(tmp_path / "x.png", 1, 2, 8, 5) as (drawn, (grid,)):
        for axes in grid:
            for n, name in enumerate(names):
                axes.plot([1, 2], [n, n + 1], label=name)
            axes.set_xlabel("requests")
        pages.below(drawn, *grid)
        drawn.draw_without_rendering()
        box = drawn.legends[0].get_window_extent()
        assert len(drawn.legends[0].get_texts()) == len(names)
        assert [a for a in grid if a.get_tightbbox().overlaps(box)] == []
        assert box.x0 >= 0 and box.x1 <= 800 and box.y0 >= 0


def test_grouped_bars_show_their_figures(tmp_path):
    series = {"ip_vs": {"new": (4.0, 3.5, 5.0)}, "l4lb": {"new": (2.0, 2.0, 2.0)}, "other": {}}
    with pages.figure(tmp_path / "x.png", 1, 1, 8, 4) as (drawn, ((axes,),)):
        pages.grouped(axes, ["new"], series, "{:.2f}", {"l4lb": {"new": 6.0}})
        drawn.draw_without_rendering()
        texts = {t.get_text(): t.get_window_extent() for t in axes.texts}
        inside = axes.get_window_extent()
        assert set(texts) == {"4.00", "2.00"}
        assert all(inside.x0 < box.x0 and box.x1 < inside.x1 for box in texts.values())
        ends = axes.transData.transform([(5, 0), (6, 0)])[:, 0]
        assert texts["4.00"].x0 > ends[0] and texts["2.00"].x0 > ends[1]


def test_a_system_has_one_colour():
    assert pages.colours(["l4lb", "mine", "ip_vs", "yours"], pages.SYSTEMS) == {
        "ip_vs": pages.SYSTEMS["ip_vs"], "l4lb": pages.SYSTEMS["l4lb"],
        "mine": pages.OTHERS[0], "yours": pages.OTHERS[1]}
    assert pages.SYSTEMS["NAT and ip_vs"] == pages.SYSTEMS["ip_vs"]
    assert pages.SYSTEMS["NAT and l4lb"] == pages.SYSTEMS["l4lb"]
    for known in (pages.SCHEDULERS, {n: c for n, c in pages.SYSTEMS.items() if "NAT" not in n and
                                     c != pages.GREY}):
        assert len(set(known.values())) == len(known)
    assert not set(pages.OTHERS) & {*pages.SYSTEMS.values(), *pages.SCHEDULERS.values()}


def test_the_first_picture_has_its_figures_beside_it():
    record = json.loads((TOP / "bench/instructions.json").read_text("utf-8"))["6.12"]["instructions"]
    rows = list(results.rows_of_bars(record))
    assert len(rows) == 5 and "\n".join(rows) in PAGE
    assert PAGE.index("bars.png") < PAGE.index(rows[0]) and "bench/results/counted/bars.png)" in README


def test_bars_of_a_record_without_them(tmp_path):
    """Of an older one: no picture rather than one that lacks a bar."""
    few = {"6.12": {"kernel": "6.12.1", "instructions": {"redirect": 1, "ip_vs: udp4 tun": 3}}}
    results.draw_bars(few, tmp_path / "bars.png")
    assert not (tmp_path / "bars.png").exists()
    whole = {"redirect": 10, "xdp redirect": 5} | {
        f"{director}: {what}": 20 + n for n, director in enumerate(results.BARS) for what in results.PACKETS}
    results.draw_bars({"6.12": {"kernel": "6.12.1", "instructions": whole}}, tmp_path / "bars.png")
    assert pixels(tmp_path / "bars.png")[0] == WIDTH
    assert next(iter(results.rows_of_bars(whole))) == "| ip_vs | 20 | 20 |"


def test_the_figures_in_words_are_those_recorded():
    """README.md's table and RESULTS.md's first two sentences."""
    record = json.loads((TOP / "bench/instructions.json").read_text("utf-8"))["6.12"]["instructions"]

    def added(name):
        return record[name] - record["redirect"]

    def ratios(director, new, watched=False):
        each = [added(name) / added(f"ip_vs: {what}") for name in record
                for who, _, what in [name.partition(": ")]
                if who == director and what.endswith(" new") == new and f"ip_vs: {what}" in record
                and not what.endswith("life") and not what.startswith("pktgen ")
                and (" watched " in what) == watched]
        return f"{min(each):.2f} to {max(each):.2f}"
    for what, name in (("NAT", "l4lb fast 1: udp4 nat"), ("direct routing", "l4lb fast 1: udp4 dr"),
                       ("where no firewall looks at it", "l4lb fast 1: udp4 dr new")):
        ip_vs, l4lb = added("ip_vs: " + name.partition(": ")[2]), added(name)
        assert f"{what} | {ip_vs:,.0f} | {l4lb:,.0f} | {l4lb / ip_vs:.2f} |" in README
    with_xdp, by_ip_vs = record["l4lb xdp: udp4 nat"], record["ip_vs: udp4 nat"]
    for figure in (f"{with_xdp:,.0f} instructions", f"{with_xdp / by_ip_vs:.2f} of ip_vs's {by_ip_vs:,.0f}",
                   f"{record['l4lb fast 1: udp4 nat'] / by_ip_vs:.2f}"):
        assert figure in " ".join(README.split())
    for figure in (record[f"{who}: pktgen udp4 dr"] - record["pktgen redirect"] for who in ("ip_vs", "l4lb fast 1")):
        assert f"{figure:,.0f}" in PAGE
    for figures in (ratios("l4lb fast 1", False), ratios("l4lb fast 2", True), ratios("l4lb", True),
                    ratios("l4lb fast 1", True), ratios("l4lb", False), ratios("l4lb fast 1", True, True)):
        assert figures in PAGE
