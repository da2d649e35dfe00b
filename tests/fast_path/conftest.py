# SPDX-License-Identifier: GPL-2.0
import pytest
from lab import xdp


@pytest.fixture(autouse=True)
def nothing_attached():
    """A program holds the module."""
    yield
    xdp.detach_all()


@pytest.fixture(autouse=True, scope="module")
def as_before(module_life):
    yield
    xdp.hide_all()


@pytest.fixture(scope="module")
def can_xdp(only_l4lb):
    if not xdp.here():
        pytest.skip(xdp.ABSENT)
