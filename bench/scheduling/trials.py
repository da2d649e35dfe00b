# SPDX-License-Identifier: GPL-2.0
"""Trials of schedulers without traffic: `ipvsctl scheduler compare` on pools of several kinds."""

import json
import shutil
import tempfile
from pathlib import Path

import trials_report
from virtual import TOP, BenchError, Kernel, Record, in_guest, say

# Weights of the real servers; each pool is tried once with its first server, once without it.
POOLS = {"equal": [1] * 10, "unequal": [4, 2, 1, 1], "many": [1 + n % 5 for n in range(100)]}
FLOWS = 65536
MOST = 1 << 22      # flows: L4LB_TRIAL_FLOWS_MAX
OPEN = 50           # connections that a server has open at the same time, on average


def check(parser, options):
    """Options that do not go together."""
    if options.compare is None and (options.flows or options.hold):
        parser.error("--flows and --hold are for --compare")
    traffic = ("sched", "servers", "experiments", "repeat", "jobs", "quick", "update")
    given = [f"--{name}" for name in traffic
             if getattr(options, name) not in (parser.get_default(name), None, False)]
    if options.compare is not None and given:
        parser.error(f"--compare is without traffic: leave out {', '.join(given)}")


def spec(options):
    return {"names": options.compare, "flows": options.flows or FLOWS, "seed": options.seed,
            "pools": {name: {"weights": weights, "hold": options.hold or OPEN * len(weights)}
                      for name, weights in POOLS.items()},
            "ipvsctl": str(TOP / "build/ipvsctl")}


def perform(wanted):
    """{pool: what ipvsctl printed}; a failed run's files are kept."""
    parent = TOP / "build/bench"        # in the checkout: a guest can write nowhere else
    parent.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="trials-", dir=parent))
    (directory / "spec").write_text(json.dumps(wanted), encoding="utf-8")
    in_guest("the comparison", "trials_bed.py", directory, "--timeout", "900")
    found = json.loads((directory / "found").read_text("utf-8"))
    shutil.rmtree(directory)
    return found


def bench(options):
    kernel = Kernel()
    known = kernel.schedulers()
    for name in options.compare:
        if name not in known:
            raise BenchError(f"no scheduler '{name}': there are {' '.join(known)}")
    record = Record("schedulers", kernel)
    wanted = spec(options)
    say(f"{len(options.compare)} schedulers choose for {wanted['flows']:,} flows in each of "
        f"{len(POOLS)} pools, on Linux {kernel.release}")
    results = record.header() | {k: wanted[k] for k in ("names", "flows", "seed", "pools")}
    results["found"] = perform(wanted)
    record.publish(results, options.out / "compare", trials_report.write)
    return 0
