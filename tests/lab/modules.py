# SPDX-License-Identifier: GPL-2.0
"""Kernel modules, loaded and removed by system calls: a process for each would take a UML
guest as long as a thousand of them."""

import ctypes
import functools
import os
import re
from pathlib import Path
from subprocess import CompletedProcess

from .netns import run

FINIT_MODULE, DELETE_MODULE = 313, 176      # numbers of x86-64
_libc = ctypes.CDLL(None, use_errno=True)


def _done(name, status):
    """As a command would have ended, but its status is the errno."""
    code = ctypes.get_errno() if status else 0
    return CompletedProcess([name], code, "", os.strerror(code) if code else "")


def insert(ko, *parameters):
    """What `insmod` does with a file."""
    with open(ko, "rb") as file:
        return _done(ko.stem, _libc.syscall(FINIT_MODULE, file.fileno(),
                                            " ".join(parameters).encode(), 0))


def remove(name):
    """What `rmmod` does: a module in use stays."""
    return _done(name, _libc.syscall(DELETE_MODULE, name.encode(), os.O_NONBLOCK))


def is_loaded(name):
    return Path("/sys/module", name).exists()


@functools.cache
def needs(ko):
    """The names of the modules that KO needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", ko.read_bytes())
    return [name.replace("-", "_") for name in found[1].decode().split(",") if name]


def insert_needs(ko):
    """Loads the modules that KO needs."""
    for need in needs(ko):
        if not is_loaded(need):
            beside = ko.with_name(f"{need}.ko")
            if beside.exists():
                probe(beside)
            else:
                run(["modprobe", need])


def probe(ko):
    """What `modprobe` does with a file of ours: what is there already is no error, and what
    the module needs comes first."""
    if is_loaded(ko.stem):
        return _done(ko.stem, 0)
    insert_needs(ko)
    return insert(ko)
