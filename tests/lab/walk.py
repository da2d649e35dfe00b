# SPDX-License-Identifier: GPL-2.0
"""Flows that walk through the states of a connection and are compared with a table."""

from .netns import wait_until
from .raw import Raw


class Walker:
    """A flow and the state it should be in.

    TABLES: {"in" or "out": {event: {state: next state}}}, states not listed do not
    change; FIRST: the state after the first packet. A protocol's subclass defines PROTO,
    TIMEOUT (seconds by state), ACTIVE (states that count as active) and arguments()."""

    PROTO, TIMEOUT, ACTIVE = None, {}, ()

    def __init__(self, lab, family, tables, first):
        self.lab, self.tables, self.want = lab, tables, first
        self.raw = Raw(lab, self.PROTO, family)
        self.client = self.raw.client()
        self.client.open()
        self.check("the first packet")

    def arguments(self, event, dressed):
        """Arguments of client.send() and reply(); DRESSED: a variant of the packet, or None."""
        raise NotImplementedError

    def check(self, what):
        def settled():
            rows = self.client.rows()
            return len(rows) == 1 and rows[0]["state"] == self.want and rows[0]
        try:
            row = wait_until(settled, 2)
        except AssertionError:
            raise AssertionError(f"after {what}: {self.client.rows()}, "
                                 f"expected {self.want}") from None
        assert self.TIMEOUT[self.want] - 4 <= row["expires"] <= self.TIMEOUT[self.want], row
        dest = self.raw.dest(1)
        active = int(self.want in self.ACTIVE)
        assert (dest["active"], dest["inactive"]) == (active, 1 - active), (what, dest)

    def step(self, direction, event, dressed=None):
        before, sent = self.want, self.arguments(event, dressed)
        self.want = self.tables[direction][event].get(before, before)
        if direction == "in":
            self.client.send(*sent)
            self.client.arrive(what=f"packets after {before} {sent} {self.want}")
        else:
            self.client.reply(*sent).answered()
        self.check(f"{before} {direction} {sent}")

    def everywhere(self):
        """Go on until each event has occurred in each reachable state; return these
        states."""
        met = set()

        def fresh(state):
            return [(d, e) for d in self.tables for e in self.tables[d] if (d, e, state) not in met]

        while (steps := way(self.tables, self.want, fresh)) is not None:
            for direction, event in steps or fresh(self.want)[:1]:
                met.add((direction, event, self.want))
                self.step(direction, event)
        states = {state for _, _, state in met}
        assert len(met) == len(states) * sum(map(len, self.tables.values()))
        return states


def way(tables, state, wanted):
    """The shortest walk from STATE to one that WANTED accepts, or None."""
    ways, queue = {state: []}, [state]
    for here in queue:
        if wanted(here):
            return ways[here]
        for direction, table in tables.items():
            for event in table:
                there = table[event].get(here, here)
                if there not in ways:
                    ways[there] = [*ways[here], (direction, event)]
                    queue.append(there)
    return None
