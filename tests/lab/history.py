# SPDX-License-Identifier: GPL-2.0
"""The suite's memory of its last runs on this machine.

One JSON file in the cache: how long each file took in each stage, so that the
longest begins first and the time left can be estimated, and which tests were
unsteady in each stage's last RUNS runs.
"""

import json
import os
import tempfile
from pathlib import Path

RUNS = 10
# A test that was unsteady this often in the last RUNS runs has failed.
TOO_OFTEN = 2

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "l4lb"


class History:
    def __init__(self, path=CACHE / "history.json"):
        self.path = path
        try:
            data = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            data = {}
        self.times, self.runs = data.get("seconds", {}), data.get("runs", {})

    def seconds(self, stage):
        """{file: seconds}, from the last run of each file."""
        return self.times.get(stage, {})

    def took(self, stage, file, seconds):
        self.times.setdefault(stage, {})[file] = round(seconds, 2)

    def ran(self, stage, unsteady):
        """Record a whole run of STAGE with its UNSTEADY tests. Returns those that were
        unsteady too often."""
        runs = self.runs.setdefault(stage, [])
        runs.append(sorted(unsteady))
        del runs[:-RUNS]
        return [test for test in unsteady
                if sum(test in run for run in runs) >= TOO_OFTEN]

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # If two suites run at once, the file is that of the last one, and complete.
        with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False,
                                         encoding="utf-8") as out:
            json.dump({"seconds": self.times, "runs": self.runs}, out, indent=1)
        os.replace(out.name, self.path)
