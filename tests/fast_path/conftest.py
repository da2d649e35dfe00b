# SPDX-License-Identifier: GPL-2.0
import pytest
from lab import xdp


@pytest.fixture(scope="module")
def can_xdp(only_l4lb):
    """XDP forwards, by a program or by what stands for it."""
    if not xdp.is_possible():
        pytest.skip(xdp.ABSENT)


@pytest.fixture(scope="module")
def programs(only_l4lb):
    """It is a program."""
    if not xdp.has_programs():
        pytest.skip(xdp.ABSENT)
