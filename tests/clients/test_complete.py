# SPDX-License-Identifier: GPL-2.0
"""What completion offers is what the kernel has; tests/host/test_completion.py has the rest."""

import pytest
from lab.backend import both_modules
from lab.ctl import VIP

NO_MODULE = True        # `module` loads it


@pytest.mark.smoke
@pytest.mark.tool
@both_modules
def test_completion_offers_what_the_kernel_has(udp, module):
    def offers(words):
        return [line.split("\t")[0] for line in udp.ctl("__complete", words).splitlines()[1:]]
    before = udp.state()
    assert offers("svc delete udp:") == [f"udp:{VIP}:5353"]
    assert offers("svc delete udp 1") == [f"{VIP}:5353"]
    assert offers(f"rs delete udp:{VIP}:5353 1") == ["10.0.0.11:5353", "10.0.0.12:5353"]
    assert offers(f"conn kill service udp {VIP}:5353 server 10.0.0.12") == ["10.0.0.12:5353"]
    assert offers("sched set fwm:7 wr") == ["wrr"]
    assert offers("sync start both dev d") == ["d0"]
    assert udp.state() == before
