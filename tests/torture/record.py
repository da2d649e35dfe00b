# SPDX-License-Identifier: GPL-2.0
"""What all pieces of "make torture" have done so far: build/torture/state.json, and as a
table build/torture/record.md."""

import contextlib
import fcntl
import json

PHASES = ("packets", "messages", "namespaces", "links", "injected", "unloads")
KERNELS = ("6.12", "6.1", "debug", "uml")
# (what, its name in the table, target); the largest, not the sum, of LARGEST.
ROWS = (
    ("held", "connections held at once", 1_000_000),
    ("expired", "connections that expired at once", 1_000_000),
    ("seconds of expiry", "... from the first to the last, seconds", None),
    ("pause", "... longest pause of other work meanwhile, ms", None),
    ("packets", "hostile packets", 20_000_000),
    ("messages", "hostile netlink messages", 20_000_000),
    ("messages accepted", "... that were accepted", None),
    ("unloads", "unloads under traffic", 700),
    ("namespace exits", "namespace exits with live connections", 1_300),
    ("failures at chosen points", "injected failures, each allocation in turn", 2_000),
    ("failures by chance", "injected failures, 1 to 30 % of allocations", None),
    ("link flaps", "link flaps and devices removed", 950),
    ("scheduler swaps", "scheduler swaps under traffic", 1_000),
    ("reloads", "reloads of the whole configuration under traffic", 1_000),
    ("exchanges", "exchanges of honest connections", None),
    ("packets meanwhile", "packets while the module came and went", None),
    ("bytes left", "bytes more in use after a round, at most", None),
)
LARGEST = {"held", "expired", "seconds of expiry", "pause", "bytes left"}
KINDS = {"report": "reports of the kernel", "leak": "leaks", "other": "other failures"}


def kind(text):
    """The kind of the failure TEXT."""
    if "leak" in text or "unreferenced" in text or "slabinfo" in text:
        return "leak"
    return "report" if "kernel's log" in text or "kernel log" in text else "other"


def repeat(kernel, seed, phase):
    """The command that does a failed round again, if possible only its failed PHASE."""
    which = f" PHASES={phase}" if phase in PHASES else ""
    return f"make torture KERNEL={kernel} SEED={seed}{which}"


class State:
    """The totals, which a run carries on from the one before; the first, from those at EARLIER."""

    def __init__(self, path, earlier=None):
        self.path = path
        begun = next((p for p in (path, earlier) if p and p.exists()), None)
        self.data = json.loads(begun.read_text("utf-8")) if begun else \
            {"seed": 1, "kernels": {}, "failures": []}

    @classmethod
    @contextlib.contextmanager
    def change(cls, path, earlier=None):
        """The state, to change it within the block; other runs, on other kernels, wait."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = cls(path, earlier)
            yield state
            state.save()

    def save(self):
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        fresh.rename(self.path)
        self.path.with_name("record.md").write_text(self.table(), encoding="utf-8")

    def next_seed(self):
        self.data["seed"] += 1
        return self.data["seed"] - 1

    def add(self, kernel, lines, whole):
        """The RESULT of a round, a list of its LINES; WHOLE: it ended as it should."""
        mine = self.data["kernels"].setdefault(
            kernel, {"rounds": 0, "seconds": 0, "totals": {}})
        mine["rounds"] += whole
        totals = mine["totals"]
        for line in lines:
            mine["seconds"] += line.get("seconds", 0)
            for what, number in line.get("counts", {}).items():
                totals[what] = max(totals.get(what, 0), number) if what in LARGEST else \
                    totals.get(what, 0) + number

    def fail(self, kernel, seed, phase, text):
        self.data["failures"].append({"kernel": kernel, "seed": seed, "phase": phase,
                                      "text": text, "kind": kind(text)})

    # -- the table

    def total(self, what, kernel=None):
        found = [k["totals"].get(what, 0) for name, k in self.data["kernels"].items()
                 if kernel in (None, name)]
        return max(found, default=0) if what in LARGEST else sum(found)

    def table(self):
        names = [k for k in KERNELS if k in self.data["kernels"]]
        out = ["# make torture: what has been run", "",
               f"| | target | reached | {' | '.join(names)} | |",
               "|---|---|---|" + "---|" * len(names) + "---|"]

        def row(name, target, total, cells, good):
            mark = "" if target is None else "yes" if good else "not yet"
            aim = "–" if target is None else target
            out.append(f"| {name} | {aim} | {total} | {' | '.join(cells)} | {mark} |")
        for what, name, target in ROWS:
            reached = self.total(what)
            row(name, None if target is None else f"{target:,}", f"{reached:,}",
                [f"{self.total(what, k):,}" for k in names], reached >= (target or 0))
        alive, every = self.total("honest alive"), self.total("honest")
        row("honest connections alive at the end", "every", f"{alive} of {every}",
            [f"{self.total('honest alive', k)} of {self.total('honest', k)}" for k in names],
            every and alive == every)
        for which, name in KINDS.items():
            found = [f for f in self.data["failures"] if f["kind"] == which]
            row(name, "0", len(found), [str(sum(f["kernel"] == k for f in found)) for k in names],
                not found)
        for what in ("rounds", "seconds"):
            each = [self.data["kernels"][k][what] for k in names]
            text = [f"{n / 3600:.1f}" if what == "seconds" else str(n) for n in (sum(each), *each)]
            row("hours" if what == "seconds" else what, None, text[0], text[1:], True)
        if self.data["failures"]:
            out += ["", "Failures:", ""]
            out += [f"- in {f['phase']}: {f['text'].splitlines()[0][:300]}: "
                    f"`{repeat(f['kernel'], f['seed'], f['phase'])}`" for f in self.data["failures"]]
        return "\n".join(out) + "\n"
