# SPDX-License-Identifier: GPL-2.0
"""The table in test_cve.py names every known defect of ip_vs, and tests that exist."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

# net/netfilter/ipvs, to November 2026
CVES = """
2012-6540 2013-4588 2024-42322 2024-53680 2025-37961 2025-40018 2025-68813 2026-45850
2026-45917 2026-53270 2026-68476 2026-74747 2026-90141 2026-97596 2026-98078 2026-98794
2026-98857""".split()
WITHOUT = 19        # fixes since 2022 without a CVE number


def table():
    """{constants and COVERED of test_cve.py}, without importing it: that needs a guest."""
    names = {}
    for node in ast.parse((TESTS / "bad_input/test_cve.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in ("NO", "NO_SOCKOPT", "NO_SYNC",
                                                                   "COVERED"):
            code = compile(ast.Expression(node.value), "test_cve.py", "eval")
            names[node.targets[0].id] = eval(code, dict(names))     # noqa: S307
    return names


def found(file):
    """The path in tests/ of a test file, whose name is unique."""
    (path,) = set(TESTS.glob(f"*/{file}")) - set(TESTS.glob(f"host/{file}"))
    return path


def functions(path):
    """{name: docstring} of the tests in a file."""
    return {node.name: ast.get_docstring(node) for node in
            ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_id_is_there():
    covered = table()["COVERED"]
    assert sorted(k[4:] for k in covered if k.startswith("CVE-")) == sorted(CVES)
    assert len([k for k in covered if not k.startswith("CVE-")]) == WITHOUT


def test_every_test_exists():
    names = table()
    for what, entry in names["COVERED"].items():
        tests = re.findall(r"(test_\w+\.py)::(test_\w+)", entry)
        if entry.startswith(names["NO"]):
            assert len(entry) > len(names["NO"]) + 10, what
        else:
            assert tests, what
        for file, test in tests:
            assert test in functions(found(file)), f"{what}: no {file}::{test}"


def test_names_and_docstrings_tell():
    """Tests in test_cve.py are in the table, and their docstrings say what went wrong."""
    cve_tests, covered = functions(TESTS / "bad_input/test_cve.py"), table()["COVERED"]
    for test, doc in cve_tests.items():
        entries = [what for what, entry in covered.items() if f"::{test}" in entry]
        assert doc and len(doc) > 60, test
        assert entries, f"{test} is in no row"
        if test.startswith("test_cve_"):
            number = "-".join(test.split("_")[2:4])
            assert entries == [f"CVE-{number}"], test
