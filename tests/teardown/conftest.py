# SPDX-License-Identifier: GPL-2.0
"""For tests that load and unload the module themselves."""

import pytest


@pytest.fixture
def unloaded(backend, topologies):
    """The module is not loaded when the test begins and when it ends."""
    if backend.loaded():
        backend.unload()
    yield
    topologies.flush()
    if backend.loaded():
        backend.unload()
