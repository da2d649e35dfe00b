# SPDX-License-Identifier: GPL-2.0
"""Kernel modules of tests/modules, which "make test-modules" builds."""

import contextlib
import errno
from pathlib import Path

from . import modules


class TestModule:
    """A module of tests/modules, and its parameters."""

    __test__ = False    # not for pytest to collect

    def __init__(self, backend, name):
        self.name = name
        self.ko = backend.modules / "tests" / f"{name}.ko"
        self.files = Path("/sys/module", name, "parameters")
        assert self.ko.exists(), f"{self.ko}: build it with 'make test-modules'"

    def insmod(self, *parameters):
        return modules.insert(self.ko, *parameters)

    def rmmod(self):
        return modules.remove(self.name)

    @property
    def loaded(self):
        return self.files.parent.exists()

    def __getitem__(self, parameter):
        return int((self.files / parameter).read_text(encoding="ascii"))

    def __setitem__(self, parameter, value):
        (self.files / parameter).write_text(str(value), encoding="ascii")

    @contextlib.contextmanager
    def failing(self, parameter, code=errno.ENOMEM):
        self[parameter] = -code
        try:
            yield
        finally:
            self[parameter] = 0
