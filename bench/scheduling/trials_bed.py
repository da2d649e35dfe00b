# SPDX-License-Identifier: GPL-2.0
"""What "make bench-schedulers COMPARE=..." does in its guest:

    python3 trials_bed.py RUN-DIRECTORY

Its file "spec" (JSON) names pools and schedulers; "found" gets what ipvsctl printed for each pool.
"""

import json
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from lab.netns import Namespace, run  # noqa: E402

SERVICE = ["tcp", "198.51.100.1:80"]


def servers(weights):
    return [(f"10.0.{n >> 8}.{n & 255}", weight) for n, weight in enumerate(weights, 1)]


def compare(ipvsctl, spec, pool):
    each = servers(pool["weights"])
    ipvsctl("service", "add", *SERVICE, "scheduler", spec["names"][0],
            *(word for address, weight in each
              for word in ("server", address, "dr", "weight", str(weight))))
    said = ipvsctl("-j", "scheduler", "compare", *SERVICE, "with", ",".join(spec["names"]),
                   "flows", str(spec["flows"]), "hold", str(pool["hold"]),
                   "seed", str(spec["seed"]), "without", f"{each[0][0]}:80")
    ipvsctl("service", "delete", *SERVICE)
    return json.loads(said)["comparison"]


def perform(directory):
    spec = json.loads((directory / "spec").read_text("utf-8"))
    run(["modprobe", "l4lb"])
    for name in spec["names"]:
        run(["modprobe", f"l4lb_{name}"])
    ns = Namespace("trials")
    try:
        ns.ip("link set lo up")
        found = {name: compare(lambda *words: ns.run([spec["ipvsctl"], *words]).stdout, spec, pool)
                 for name, pool in spec["pools"].items()}
    finally:
        ns.destroy()
    (directory / "found").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    perform(Path(sys.argv[1]))
