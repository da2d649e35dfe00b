# SPDX-License-Identifier: GPL-2.0
"""The kernel's own selftest of ip_vs (tools/testing/selftests/net/netfilter/ipvs.sh), as it
comes with the kernel that the lab builds: NAT, direct routing and tunnel."""

import os
import re
from pathlib import Path

import pytest
from lab.netns import run

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "l4lb"
MODES = ["DR", "NAT", "Tunnel"]


@pytest.mark.slow
@pytest.mark.waits
def test_passes(backend):
    scripts = sorted(CACHE.glob("linux-source-*/tools/testing/selftests/net/netfilter/ipvs.sh"))
    if not scripts:
        pytest.skip("no unpacked kernel source: tests/lab/uml-build unpacks it")
    backend.need_scheduler("rr")
    done = run(["env", "-C", scripts[-1].parent, "bash", scripts[-1].name], check=False,
               timeout=100)
    assert not done.returncode, done.stdout + done.stderr
    assert re.findall(r"Testing (\w+) mode", done.stdout) == MODES
    assert "PASS" in done.stdout
