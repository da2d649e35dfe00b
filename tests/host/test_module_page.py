# SPDX-License-Identifier: GPL-2.0
"""doc/l4lb.7 says what the module's sources say: settings with their ranges and defaults,
module parameters, files and counters. The example for sysctl.d has the same defaults."""

import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
KERNEL = TOP / "kernel"
PAGE = TOP / "doc/l4lb.7"
ANY = "any integer"
JIFFIES = f"-{(2 ** 31 - 1) // 250} to {(2 ** 31 - 1) // 250} (with 250 Hz)"
# What an expression in the sources is in words.
WORDS = {"CONN_MEMORY_SHARE": "what an eighth of the memory holds",
         "nr_free_buffer_pages() / 32": "a thirty-second of the free pages"}
# Of handlers of their own.
RANGES = {"do_mode": "0 to 3", "do_fast_path": "0 to 2", "do_backup_only": ANY,
          "do_run_estimation": ANY, "do_est_cpulist": "CPUs of the machine",
          "do_sync_ports": "a power of two, 1 or more",
          "do_sync_threshold": "two numbers, 0 or more; the first is less, unless the second is 0",
          "proc_doulongvec_minmax": "0 or more", "proc_dointvec_jiffies": JIFFIES}
LIMITS = {"SYSCTL_ZERO": "0", "SYSCTL_ONE": "1", "SYSCTL_TWO": "2", "SYSCTL_THREE": "3",
          "SYSCTL_INT_MAX": "2147483647", "&nice_min": "-20", "&nice_max": "19"}


def source(name):
    return (KERNEL / name).read_text("utf-8")


def section(name):
    return re.search(rf"^\.S[hs] {name}\n(.*?)(?=^\.S[hs] |\Z)", PAGE.read_text("utf-8"),
                     re.M | re.S)[1]


def page_settings(text):
    """{name: (range, default)}; every item has both, and a unit."""
    items = re.split(r"^\.It Va ", text, flags=re.M)[1:]
    out = {}
    for item in items:
        match = re.match(r"(\w+)\nUnit: .+\.\nRange: (.+)\.\nDefault: (.+)\.\n\.Pp\n[A-Z0-9]", item)
        assert match, item
        out[match[1]] = match[2], match[3]
    assert len(out) == len(items)
    return out


def ranges():
    """{name: range} of the table in api/sysctl.c."""
    table = re.search(r"settings\[\] = \{\n(.*?)^\};", source("api/sysctl.c"), re.M | re.S)[1]
    out = {}
    for kind, words in re.findall(r"^\t([A-Z]+)\((.*)\),$", table.replace(",\n\t\t", ", "), re.M):
        name, *rest = [word.strip() for word in words.split(",")]
        if kind == "INT":
            out[name] = ANY
        elif kind in ("RANGE", "UNUSED"):
            out[name] = " to ".join(LIMITS[limit] for limit in rest)
        else:
            out[name] = RANGES[rest[-1]]
    return out


def defaults():
    """{name: default} of those that are not 0."""
    text = source("api/sysctl.c")
    body = re.search(r"struct l4lb_sysctl\)\{\n(.*?)^\t\};", text, re.M | re.S)[1]
    out = {}
    for name, value in re.findall(r"\.(\w+) = (.*?),\n(?=\t\t\.|\Z)", body, re.S):
        value = " ".join(value.split())
        known = [words for sign, words in WORDS.items() if sign in value]
        constant = re.search(rf"^#define {value}\s+(\d+)$", text, re.M) \
            if value.isidentifier() else None
        threshold = re.fullmatch(r"\{ (\d+), (\d+) \}", value)
        if threshold:
            value = f"{threshold[1]} {threshold[2]}"
        out[name] = known[0] if known else constant[1] if constant else value
    return out


def settings():
    out = {name: (where, defaults().get(name, "0")) for name, where in ranges().items()}
    assert len(out) > 30 and set(defaults()) < set(out)
    out["est_cpulist"] = out["est_cpulist"][0], "those for kernel threads"
    for name in "lblc", "lblcr":
        assert f'"{name}_expiration"' in (TOP / f"schedulers/{name}.c").read_text("utf-8")
        assert ".def = 86400, .sysctl = true" in source("service/affinity.h")
        out[f"{name}_expiration"] = JIFFIES, "86400"
    return out


def test_settings():
    found = page_settings(section("SETTINGS"))
    assert found == settings()
    assert list(found) == sorted(found)


def test_settings_that_a_user_cannot_change():
    names = re.search(r"is_privileged.*?names\[\] = \{(.*?)\}", source("api/sysctl.c"), re.S)[1]
    said = section("SETTINGS")
    said = said[said.index("but not"):said.index(".Bl")]
    assert re.findall(r"\b\w+_\w+\b", said) == re.findall(r'"(\w+)"', names)


def test_example_for_sysctl_d():
    """It changes nothing, and names each setting that is there without a scheduler."""
    lines = (TOP / "tools/system/sysctl.conf").read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == []
    found = dict(re.fullmatch(r"#net\.ipv4\.vs\.(\w+) = +(.+)", line).groups()
                 for line in lines if line.startswith("#net"))
    assert found == {name: value if value[0].isdigit() else f"# default: {value}"
                     for name, (_, value) in settings().items() if not name.startswith("lblc")}


def test_module_parameters():
    found = page_settings(section("MODULE PARAMETERS"))
    names = {name for file in KERNEL.rglob("*.c") for name in
             re.findall(r"^module_param(?:_cb)?\((\w+),", file.read_text("utf-8"), re.M)}
    assert names == set(found) and len(names) >= 2
    table = source("conn/table.c")
    low, high = (re.search(rf"^#define TAB_BITS_{end}\s+(\d+)", table, re.M)[1]
                 for end in ("MIN", "MAX"))
    start = re.search(r"conn_tab_bits __ro_after_init = (\d+);", table)[1]
    assert found["conn_tab_bits"] == (f"{low} to {high}, or as memory allows", start)
    assert "0, INT_MAX" in source("conn/share.c")
    assert re.search(r"^#define MEMORY_PART\s+4\b", source("conn/share.c"), re.M)
    assert found["conn_max_all"] == ("0 to 2147483647", "what a quarter of the memory holds")


def test_files_in_proc():
    text = section("FILES")
    assert re.findall(r"^\.It Pa /proc/net/(\w+)$", text, re.M) == \
        re.findall(r"proc_create\w*\(\"(\w+)\"", source("api/procfs.c"))


@pytest.mark.parametrize("title, file, array", [
    ("Packets that were dropped", "base/stats.c", "drop_names"),
    ("Packets at ingress", "base/stats.c", "fast_names"),
    ("Synchronisation", "sync/counter.c", "names")])
def test_counters(title, file, array):
    """In the order of /proc/net/l4lb."""
    names = re.search(rf"\b{array}\[\] = \{{(.*?)\}};", source(file), re.S)[1]
    found = re.findall(r"^\.It Va (\w+)\n(.+)", section(title), re.M)
    assert [name for name, _ in found] == re.findall(r'"(\w+)"', names)


def test_page_is_lint_clean():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(PAGE)],
                          capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
