# SPDX-License-Identifier: GPL-2.0
"""The module under test, l4lb or in-tree ip_vs: loaded, unloaded, alone."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from . import modules
from .netns import Namespace, run, wait_until


class Backend:
    """The module under test."""

    UNWATCHED = "unwatched"     # as it is by default, without a firewall
    fast_path = None            # the value of --fast-path

    def __init__(self, name):
        self.name = name
        self.is_l4lb = name == "l4lb"
        self.prefix = "l4lb_" if self.is_l4lb else "ip_vs_"
        self.modules = Path(os.environ.get("L4LB_MODULES", ""))

    def loaded(self, name=None):
        return modules.is_loaded(name or self.name)

    def refcount(self):
        return int(Path("/sys/module", self.name, "refcnt").read_text(encoding="ascii"))

    def family(self):
        """Every module of this backend that is loaded, the core last."""
        names = [p.name for p in Path("/sys/module").iterdir()
                 if p.name.startswith(self.prefix) and (p / "refcnt").exists()]
        return sorted(names) + ([self.name] if self.loaded() else [])

    def load(self, check=True):
        if not self.is_l4lb:
            return run(["modprobe", "ip_vs"], check=check)
        ko = self.modules / "l4lb.ko"
        if not ko.exists():
            pytest.exit(f"{ko}: not there, build it with 'make modules'", 4)
        done = modules.probe(ko)
        if check and done.returncode:
            raise RuntimeError(f"{ko}: {done.stderr}")
        for path in Path("/run/netns").glob("*"):
            with contextlib.closing(Namespace(path.name, create=False)) as ns:
                self.set_fast_path(ns)
        return done

    @classmethod
    def set_fast_path(cls, ns):
        """Set it in NS, if the module is loaded."""
        if cls.fast_path and cls.fast_path != cls.UNWATCHED:
            with contextlib.suppress(FileNotFoundError):
                ns.sysctl("net/ipv4/vs/fast_path", cls.fast_path)

    def load_scheduler(self, name):
        """Return: 0, or what kept it from being loaded."""
        if not self.is_l4lb:
            return run(["modprobe", self.prefix + name], check=False).returncode
        ko = self.modules / f"{self.prefix}{name}.ko"
        return modules.probe(ko).returncode if ko.exists() else errno.ENOENT

    def remove(self, name):
        """Remove a scheduler or helper, if it is loaded."""
        module = self.prefix + name
        wait_until(lambda: not self.loaded(module) or not modules.remove(module).returncode, 10,
                   what=f"rmmod {module}")

    def unload(self):
        """Remove schedulers and core; fails if a reference remains."""
        for name in self.family():
            def removed(name=name):
                done = modules.remove(name)
                return done.returncode == 0 or not self.loaded(name) or \
                    self._remember(done.stderr)
            wait_until(removed, 10, what=f"rmmod {name}", step=0.2)

    def _remember(self, message):
        self.last_error = message
        return False

    @contextlib.contextmanager
    def preloaded(self, schedulers):
        """Within the block SCHEDULERS are loaded and modprobe is disabled, so
        that an unknown name starts no process."""
        for name in schedulers:
            assert not self.load_scheduler(name), name
        modprobe = Path("/proc/sys/kernel/modprobe")
        before = modprobe.read_text(encoding="ascii")
        modprobe.write_text("\n", encoding="ascii")
        try:
            yield
        finally:
            modprobe.write_text(before, encoding="ascii")

    @contextlib.contextmanager
    def alone(self, schedulers):
        """Within the block this module is loaded, with SCHEDULERS, and the other one
        is not: for tests that name the module themselves (NO_MODULE)."""
        for each in (Backend("ip_vs" if self.is_l4lb else "l4lb"), self):
            if each.loaded():
                each.unload()
        if self.load(check=self.is_l4lb).returncode:
            pytest.skip("this kernel has no ip_vs to compare with: Debian's have it "
                        "(suite stages 6.12 and 6.1)")
        for name in schedulers:
            assert not self.load_scheduler(name), name
        try:
            yield self
        finally:
            self.unload()

    def need_scheduler(self, name):
        """Load a scheduler; skip when this backend has none of that name."""
        if self.loaded(self.prefix + name):
            return
        if self.load_scheduler(name):
            pytest.skip(f"{self.prefix}{name} is not built for this kernel: "
                        "ip_vs has it from Debian's 6.12 on")


def selected(request, name):
    """The values of parameter NAME in the tests of this file that will run:
    a fixture of the file has to prepare for these."""
    return {item.callspec.params[name] for item in request.session.items
            if item.module is request.module and hasattr(item, "callspec")}


both_modules = pytest.mark.parametrize("module", ["l4lb", "ip_vs"], indirect=True)
