# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the tests that run on the host, without a guest."""

import os
import re
import subprocess

import pytest
from simulator import README, ROOT, SCHEDULERS, UNIT, compiled, linked, stubs

# Tests say by LANG in which language a program is to speak; these would win.
for name in [name for name in os.environ if name.startswith("LC_") or name == "LANGUAGE"]:
    del os.environ[name]


@pytest.fixture(scope="session")
def sim(tmp_path_factory):
    """sim("rr", "add 1 1; pick tcp 3") -> the answers, one for each command."""
    build = tmp_path_factory.mktemp("sched")
    core = [ROOT / "kernel" / f for f in ("sched.h", "service/registry.c", "service/affinity.h",
                                      "service/affinity.c", "service/order.h",
                                      "service/order.c", "service/tournament.h",
                                      "service/tournament.c")]
    sources = [ROOT / f"schedulers/{name}.c" for name in SCHEDULERS]
    more = {"mh": ["mh_table"], "bpf": ["bpf_program", "bpf_view"]}
    for i, source in enumerate(sources):
        if not source.exists():
            sources[i] = build / source.name
            sources[i].write_text(
                re.search(r"^```c\n(.*?)^```$", README.read_text(), re.M | re.S)[1])
    headers = stubs("sched", [f.read_text() for f in [*core, *sources,
                                            *(ROOT / "schedulers").glob("**/*_*.[ch]"),
                                            *(ROOT / "schedulers/bpf").glob("*.c")]])
    shared = [UNIT / "sim.c", UNIT / "sim_registry.c", UNIT / "sim_bpf.c", *(f for f in core if f.suffix == ".c")]
    sources += [ROOT / f"schedulers/{name}.c" for names in more.values() for name in names]
    objects = compiled(build, [*shared, *sources],
                       ["-include", "tests/unit/shim.h", "-I", headers])

    def run(name, script):
        # All at once could exceed the time of the first test, on a busy machine.
        if not (build / name).exists():
            linked(build / name, [*objects[:len(shared)],
                                  *(build / f"{part}.o" for part in [name, *more.get(name, [])])])
        commands = [c.strip() for c in re.split(r"[;\n]", script) if c.strip()]
        done = subprocess.run([build / name, name], text=True, timeout=120,
                              input="\n".join(commands) + "\n",
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(commands), done.stdout
        return answers
    return run
