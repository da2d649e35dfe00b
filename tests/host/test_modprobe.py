# SPDX-License-Identifier: GPL-2.0
"""tools/modprobe.d/l4lb.conf has a rule for every module of Debian's IPVS."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RULES = dict(re.findall(r"^install (\S+) +(.*)$", (
    TOP / "tools/modprobe.d/l4lb.conf").read_text("utf-8"), re.M))
THEIRS = {p.name.partition(".")[0] for p in Path("/lib/modules").glob(
    "*/kernel/net/netfilter/ipvs/ip_vs*.ko*")}


def test_every_module_has_a_rule():
    """A module without a rule, loaded by name, would load ip_vs despite the other rules."""
    if not THEIRS:
        pytest.skip("no Debian kernel in /lib/modules: run 'make deps'")
    assert "ip_vs_wlc" in THEIRS
    assert not THEIRS - set(RULES)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_lead_to_modules_we_have(name):
    ours = name.replace("ip_vs", "l4lb")
    if RULES[name] == "/bin/false":
        return
    assert RULES[name] == f"/sbin/modprobe {ours}"
    assert ours == "l4lb" or (TOP / f"schedulers/{ours[5:]}.c").exists()
