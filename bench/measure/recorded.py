# SPDX-License-Identifier: GPL-2.0
"""Figures that are the same on any machine, and the file that records them."""

import json
import os

import results
from host import BenchError, say


class Recorded:
    """PATH holds {kernel's name: {"kernel": release, WHAT: {name: figure}}}. A figure may
    differ from the recorded one by the share RELATIVE, or by ABSOLUTE if that is more."""

    def __init__(self, path, what, relative, absolute=0):
        self.path, self.what = path, what
        self.relative, self.absolute = relative, absolute

    def limits(self):
        text = f"{100 * self.relative:g} %"
        return f"{text} and by more than {self.absolute:g}" if self.absolute else text

    def change(self, figure, was):
        if self.absolute:
            return f"{figure - was:+.2f}"
        return f"{100 * (figure / was - 1):+.1f} %"

    def compare(self, recorded, counted):
        """Sentences about how COUNTED differs from RECORDED, both {name: figure}."""
        wrong = []
        for name, figure in counted.items():
            if name not in recorded:
                wrong.append(f"{name}: {figure:g}, of which there is no record")
                continue
            was = recorded[name]
            if abs(figure - was) > max(self.relative * was, self.absolute):
                wrong.append(f"{name}: {figure:g}, recorded {was:g} ({self.change(figure, was)})")
        wrong += [f"{name}: not counted, recorded {figure:g}"
                  for name, figure in recorded.items() if name not in counted]
        return wrong

    def read(self):
        try:
            record = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {}
            for entry in record.values():
                if not isinstance(entry["kernel"], str) or \
                        not all(figure > 0 or self.absolute for figure in entry[self.what].values()):
                    raise ValueError("a figure is 0 or less")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise BenchError(f"{os.path.relpath(self.path)} is no record of {self.what}: {e}; "
                             "git has the last good one") from e
        return record

    def judge(self, record, kernel, counted, update):
        """Compares COUNTED with RECORD, the file's content, or records it; the exit status."""
        entry = record.get(kernel.name)
        if update:
            record[kernel.name] = {"kernel": kernel.release, self.what: counted}
            self.path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            results.write(self.path.parent)
            say(f"recorded in {os.path.relpath(self.path)}")
            return 0
        if not entry:
            say(f"bench: nothing is recorded for {kernel.name}: UPDATE=1 does")
            return 1
        if entry["kernel"] != kernel.release:
            say(f"not compared: recorded on {entry['kernel']}, this is {kernel.release}; "
                "UPDATE=1 records anew")
            return 0
        wrong = self.compare(entry[self.what], counted)
        for line in wrong:
            say(f"bench: {line}")
        if wrong:
            say(f"bench: {len(wrong)} figure(s) differ by more than {self.limits()}. If that is "
                f"meant, record them: make bench-{self.what} UPDATE=1")
            return 1
        say(f"{len(counted)} figures agree with the record within {self.limits()}")
        return 0
