# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the tests that run on the host, without a guest."""

import re
import subprocess

import pytest
from simulator import FLAGS, README, ROOT, SCHEDULERS, UNIT


@pytest.fixture(scope="session")
def sim(tmp_path_factory):
    """sim("rr", "add 1 1; pick tcp 3") -> the answers, one for each command."""
    build = tmp_path_factory.mktemp("sched")
    core = [ROOT / "kernel" / f for f in ("sched.h", "service/registry.c", "service/affinity.h",
                                      "service/affinity.c")]
    for name in SCHEDULERS:
        source = ROOT / f"schedulers/{name}.c"
        if not source.exists():
            source = build / f"{name}.c"
            source.write_text(re.search(r"^```c\n(.*?)^```$", README.read_text(), re.M | re.S)[1])
        for text in (f.read_text() for f in [*core, source]):
            for header in re.findall(r"#include <(.*)>", text):
                stub = build / "include" / header
                stub.parent.mkdir(parents=True, exist_ok=True)
                stub.touch()
        done = subprocess.run(
            ["gcc", *FLAGS, "-include", UNIT / "shim.h",
             "-I", build / "include", "-iquote", ROOT / "kernel",
             "-o", build / name, UNIT / "sim.c", core[1], core[3], source],
            capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.exit(f"{name}.c does not compile against unit/shim.h:\n{done.stderr}", 1)

    def run(name, script):
        commands = [c.strip() for c in re.split(r"[;\n]", script) if c.strip()]
        done = subprocess.run([build / name, name], text=True, timeout=120,
                              input="\n".join(commands) + "\n",
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(commands), done.stdout
        return answers
    return run
