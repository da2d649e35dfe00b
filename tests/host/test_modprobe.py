# SPDX-License-Identifier: GPL-2.0
"""tools/modprobe.d/l4lb.conf: l4lb where it is installed, in-tree ip_vs where it is not.

modprobe reads a tree of modules that hold only what modprobe looks at, and says what it
would load. Rules are run with an environment that keeps their own modprobe from loading.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
CONF = TOP / "tools/modprobe.d/l4lb.conf"
NAMES = re.findall(r"^install (\S+) ", CONF.read_text("utf-8"), re.M)
PARTS = ("ip_vs_pe_sip",)      # of l4lb itself
THEIRS = {p.name.partition(".")[0] for p in Path("/lib/modules").glob(
    "*/kernel/net/netfilter/ipvs/ip_vs*.ko*")}
RELEASE = "6.12.999-test"
SAID = "modprobe: this kernel has no l4lb, loading "


def build(file, exports="", needs=""):
    """A module for depmod and modprobe: its name, a symbol that it exports, one it needs."""
    text = f'char i[] __attribute__((section(".modinfo"), used)) = "name={file.stem}";\n'
    if exports:
        text += f'char e[] __attribute__((section("__ksymtab_strings"), used)) = "{exports}";\n'
    if needs:
        text += f"extern char {needs}[]; char *n = {needs};\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-xc", "-c", "-o", str(file), "-"], input=text, text=True,
                   check=True, timeout=60)


class Machine:
    """A machine with a kernel that has in-tree ip_vs, and l4lb if OURS."""

    def __init__(self, root, ours):
        self.modules, self.loaded = root / "lib/modules" / RELEASE, root / "l4lb"
        groups = {"kernel/net/netfilter/ipvs": ("ip_vs", ("ip_vs_rr", "ip_vs_ftp", *PARTS))}
        if ours:
            groups["updates/l4lb"] = ("l4lb", ("l4lb_rr", "l4lb_ftp"))
        for folder, (core, others) in groups.items():
            build(self.modules / folder / f"{core}.ko", exports=f"{core}_register")
            for name in others:
                build(self.modules / folder / f"{name}.ko", needs=f"{core}_register")
        subprocess.run(["depmod", "-b", str(root), RELEASE], check=True, timeout=60,
                       stderr=subprocess.DEVNULL)
        self.options = f"-d {root} -S {RELEASE} -C {CONF}"

    def modprobe(self, *words):
        return subprocess.run(["modprobe", *self.options.split(), *words], text=True, check=True,
                              capture_output=True, timeout=60).stdout

    def rule(self, name, really=False):
        """Runs the commands that modprobe would run for NAME. Returns their exit status, the
        modules that they would load (REALLY: they try to), and the lines that they log."""
        # Modules that NAME depends on come first.
        command = " && ".join(
            re.findall(r"^install (.*)", self.modprobe("--show-depends", name), re.M))
        for here, there in (("-nq l4lb;", "-nq l4lb >/dev/null;"),
                            ("/sys/module/l4lb", str(self.loaded))):
            assert here in command
            command = command.replace(here, there)
        log = self.modules / "kmsg"
        log.write_text("", encoding="ascii")
        done = subprocess.run(
            ["sh", "-c", command.replace(">/dev/kmsg", f">>{log}")], text=True, check=False,
            capture_output=True, timeout=60,
            env=os.environ | {"MODPROBE_OPTIONS": self.options + (" --show-depends" * (not really))})
        # A module that is not loaded in fact is named again by those that need it.
        loads = list(dict.fromkeys(re.findall(r"^insmod \S*/(\w+)\.ko", done.stdout, re.M)))
        return done.returncode, loads, log.read_text("ascii").splitlines()


def test_every_module_has_a_rule():
    """A module without a rule, loaded by name, would load ip_vs despite the other rules."""
    if not THEIRS:
        pytest.skip("no Debian kernel in /lib/modules: run 'make deps'")
    assert "ip_vs_wlc" in THEIRS
    assert not THEIRS - set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_rules_lead_to_modules_we_have(name):
    """The scheduler of that name, and options go along."""
    rule, = re.findall(rf"^install {name} (.*?[^\\])\n", CONF.read_text("utf-8"), re.M | re.S)
    ours = "l4lb" if name in PARTS else name.replace("ip_vs", "l4lb")
    assert f"no l4lb, loading {name}\"" in rule
    assert f"/sbin/modprobe -i {name} $CMDLINE_OPTS; fi" in rule
    assert f"then \\\n\t/sbin/modprobe {ours} $CMDLINE_OPTS; else" in rule
    assert ours == "l4lb" or (TOP / f"schedulers/{ours[5:]}.c").exists() or \
        (TOP / f"kernel/{ours[5:]}/main.c").exists()


def test_l4lb_where_it_is_installed(tmp_path):
    machine = Machine(tmp_path, ours=True)
    assert machine.rule("ip_vs") == (0, ["l4lb"], [])
    assert machine.rule("ip_vs_rr") == (0, ["l4lb", "l4lb_rr"], [])
    assert machine.rule("ip_vs_ftp") == (0, ["l4lb", "l4lb_ftp"], [])
    for name in PARTS:
        assert machine.rule(name) == (0, ["l4lb"], [])


def test_no_ip_vs_beside_a_loaded_l4lb(tmp_path):
    """As insmod has loaded it, where none is installed: in-tree ip_vs would be refused."""
    machine = Machine(tmp_path, ours=False)
    machine.loaded.mkdir()
    status, loads, logged = machine.rule("ip_vs_rr")
    assert status and not loads and not logged


def test_ip_vs_where_l4lb_is_not_installed(tmp_path):
    """After an upgrade of the kernel; the log says what was loaded instead."""
    machine = Machine(tmp_path, ours=False)
    assert machine.rule("ip_vs") == (0, ["ip_vs"], [SAID + "ip_vs"])
    for name in ("ip_vs_rr", "ip_vs_ftp", *PARTS):
        assert machine.rule(name) == (0, ["ip_vs", name], [SAID + "ip_vs", SAID + name])


@pytest.mark.parametrize("name", ("ip_vs", "ip_vs_rr"))
def test_l4lb_that_cannot_be_loaded_is_an_error(name, tmp_path):
    """As when ip_vs is there already: in-tree ip_vs in its place would look like success."""
    machine = Machine(tmp_path, ours=True)
    (machine.modules / "updates/l4lb/l4lb.ko").unlink()
    status, _, logged = machine.rule(name, really=True)
    assert status and not logged
