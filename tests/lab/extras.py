# SPDX-License-Identifier: GPL-2.0
"""What ip_vs's services do not have, given to services that family IPVS configures.

Family IPVS must not notice. Left out is what rules out other settings, on purpose: full NAT,
lazy connections, protection, and a guard for services without an address.
"""

import contextlib
import random

from . import genl
from .genl import attr, attributes, u32

NAME = (genl.S_AF, genl.S_PROTOCOL, genl.S_ADDR, genl.S_PORT, genl.S_FWMARK)
LONG = (0, 1, 60, 14 * 86400)
VALUES = {
    **dict.fromkeys(genl.POLICY, LONG), "on_idle": (0, 1), "on_loss": (0, 1, 2, 3), "on_drain": (0, 1, 2),
    "fast_path": (0, 1, 2, 3), "priority": (0, 1), "sync": (0, 1, 2, 3), "log": (0, 1),
    "ramp": (0, 1, 86400), "limit_rate": (0, 1, 10_000_000), "limit_burst": (0, 1, 10_000_000),
    "limit_conns": (0, 1, 2**31 - 1), "limit_reply": (0, 1), "latency": (0, 1),
    "las_bytes_0": (1,), "las_bytes_1": (2,), "las_bytes_2": (0, 3)}
for without in ("snat", "conn_state", "guard"):
    del VALUES[without]


class Extras:
    """A client of family L4LB in namespace NS. GIVEN counts what services got."""

    def __init__(self, ns, seed):
        self.client, self.chance, self.given = genl.L4lb(ns), random.Random(seed), 0

    def close(self):
        self.client.close()

    def give(self, ipvs):
        """Other extras to each service that IPVS, a client of family IPVS, finds."""
        for _, payload in ipvs.dump(genl.GET_SERVICE):
            found = dict(attributes(dict(attributes(payload))[genl.SERVICE]))
            self.give_one(attr(genl.L_SERVICE, [attr(n, found[n]) for n in NAME if n in found]))

    def give_one(self, name):
        values = [attr(genl.POLICY[k], u32(self.chance.choice(v))) for k, v in VALUES.items()]
        # Not all services can have all of it together.
        with contextlib.suppress(genl.NetlinkError):
            self.client.request(genl.SET_POLICY, [name, attr(genl.L_POLICY, values), *genl.claim(
                owner=self.chance.choice(("", "me", "e" * 15)),
                shadow=self.chance.choice(("none", "wlc", "mh", "sh")))])
            self.given += 1
