# SPDX-License-Identifier: GPL-2.0
import pytest
from lab import xdp


@pytest.fixture(scope="module")
def can_xdp(only_l4lb):
    if not xdp.here():
        pytest.skip(xdp.ABSENT)
