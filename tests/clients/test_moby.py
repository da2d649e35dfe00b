# SPDX-License-Identifier: GPL-2.0
"""github.com/moby/ipvs, unmodified, and the tests that come with it: what
Docker's swarm, kube-proxy and kube-router speak to the kernel with."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from lab.installed import RULES, TOP
from lab.netns import run

OWN_TESTS = {"TestGetFamily", "TestService", "TestDestination", "TestTimeouts"}


@pytest.fixture
def program():
    version = re.search(r"moby/ipvs (v\S+)", (TOP / "tests/go/go.mod").read_text("utf-8"))[1]
    found = Path(sys.prefix).parent / f"go/moby-ipvs-{version}.test"
    if not found.exists():
        pytest.skip("not compiled: tests/lab/go-clients found no Go or no Go module proxy; "
                    "runs where it does")
    return found


@pytest.fixture
def redirected(backend):
    """It runs `modprobe -va ip_vs` first, which an installed l4lb answers."""
    if not backend.is_l4lb:
        yield
        return
    rule = shutil.copy(TOP / "tools/modprobe.d/l4lb.conf", RULES)
    yield
    Path(rule).unlink()


@pytest.mark.smoke
def test_its_own_tests(program, redirected, backend):
    """All of them, each in a network namespace of its own making."""
    done = run([str(program), "-test.v"], check=False, timeout=120)
    passed = set(re.findall(r"^--- PASS: (\w+)", done.stdout, re.M))
    assert done.returncode == 0 and passed >= OWN_TESTS, done.stdout + done.stderr
    assert "SKIP" not in done.stdout
    assert "modprobe ip_vs failed" not in done.stderr
    assert backend.loaded(backend.prefix + "dh")
