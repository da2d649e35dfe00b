# SPDX-License-Identifier: GPL-2.0
"""kernel/add-btf: where it cannot give a module its types, it says why, and changes nothing."""

import os
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "kernel/add-btf"


@pytest.fixture
def module(tmp_path):
    """An object of the kind, without types."""
    source = tmp_path / "some.c"
    source.write_text("int some;\n", encoding="utf-8")
    subprocess.run(["gcc", "-c", "-o", tmp_path / "some.ko", source], check=True)
    return tmp_path / "some.ko"


def say(*words, **env):
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, **env})
    assert done.stdout == "" and "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_without_an_image(module):
    before = module.read_bytes()
    code, said = say(module, "9.9.9-none")
    assert (code, said) == (0, "some.ko has no types for XDP: /boot/vmlinuz-9.9.9-none is missing\n")
    assert module.read_bytes() == before and len(list(module.parent.iterdir())) == 2


def test_what_is_no_module(tmp_path):
    for text in (b"", b"\x7fELF", b"x" * 1000):
        path = tmp_path / "broken.ko"
        path.write_bytes(text)
        code, said = say(path, "9.9.9-none")
        assert code == 0 and said.startswith("broken.ko has no types for XDP: ")
        assert said.count("\n") == 1 and path.read_bytes() == text
    code, said = say(tmp_path / "nosuch.ko", "9.9.9-none")
    assert code == 0 and "No such file" in said


def test_words():
    code, said = say()
    assert code == 1 and said.startswith("add-btf: give it a module")
