# SPDX-License-Identifier: GPL-2.0
"""The verdict on a run: rules for repeating, the summary, JUnit XML, results as JSON."""

import collections
import json
import time
import xml.etree.ElementTree as ElementTree

from .guests import Failure
from .stages import RESULTS

# More failed tests than CHANCES are not the machine's noise.
CHANCES = 3
LINES_SHOWN = 120


def say(text=""):
    print(text, flush=True)


def may_repeat(outcomes):
    """Did only a few tests fail, in a way that a busy machine can cause?"""
    failed = outcomes.failed()
    return 0 < len(failed) <= CHANCES and all(
        failure.may_be_chance() for failure in outcomes.failures)


def repetitions(outcomes, company):
    """{guest: [files]}, what each guest runs again, in this order: the files of its failed tests,
    because most that is wrong shows there soon; then, with COMPANY, all that it ran up to the last
    of these, in which something before them may be to blame, else once more the same."""
    found = {}
    for failure in outcomes.failures:
        found.setdefault(failure.guest, set()).add(failure.test.partition("::")[0])
    turns = {}
    for guest, failed in found.items():
        files = outcomes.files[guest]
        alone = [file for file in files if file in failed]
        whole = files[:files.index(alone[-1]) + 1]
        turns[guest] = [alone, whole if company else alone]
    return turns


def forgive(outcomes):
    """The failed tests passed in every repetition: they are unsteady."""
    for failure in outcomes.failures:
        outcomes.unsteady[failure.test] = failure
        outcomes.passed[failure.test] = 0
    outcomes.failures = []


def lost(outcomes, tests):
    """Those of TESTS that no guest has run count as failures, too."""
    missing = [test for test in tests if test not in outcomes.known()]
    outcomes.failures += [Failure(test, "guest", "did not run: its guest was lost", 0)
                          for test in missing]


def too_unsteady(outcomes, tests, runs):
    """TESTS were unsteady too often in the last RUNS runs here: they have failed."""
    for test in tests:
        failure = outcomes.unsteady.pop(test)
        outcomes.passed.pop(test, None)
        failure.text = f"unsteady twice or more in the last {runs} runs here:\n{failure.text}"
        outcomes.failures.append(failure)


def counts(outcomes):
    failed = outcomes.failed()
    return (len([t for t in outcomes.passed if t not in failed]), len(failed),
            len([t for t in outcomes.skipped if t not in failed]))


def write(stage, outcomes, seconds, note=""):
    """Writes STAGE.json and STAGE.xml in build/results."""
    passed, failed, skipped = counts(outcomes)
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {"stage": stage.label, "kernel": stage.kernel(), "seed": stage.selection.seed,
              "passed": passed, "failed": failed, "skipped": skipped,
              "seconds": round(seconds), "note": note, "unsteady": sorted(outcomes.unsteady)}
    stage.file(".json").write_text(json.dumps(record), encoding="utf-8")
    suite = junit(stage, outcomes, record)
    ElementTree.ElementTree(suite).write(stage.file(".xml"), "utf-8", xml_declaration=True)


def junit(stage, outcomes, record):
    """A testsuite element as CI systems read it."""
    failed = outcomes.failed()
    suite = ElementTree.Element("testsuite", {
        "name": stage.label, "tests": str(sum(record[k] for k in ("passed", "failed", "skipped"))),
        "failures": str(record["failed"]), "errors": "0", "skipped": str(record["skipped"]),
        "time": str(record["seconds"]), "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S")})
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("kernel", "seed"):
        ElementTree.SubElement(properties, "property", {"name": name, "value": str(record[name])})
    for test in sorted({*outcomes.passed, *outcomes.skipped, *filter(None, failed)}):
        file, _, name = test.partition("::")
        case = ElementTree.SubElement(suite, "testcase", {
            "classname": file.removesuffix(".py").replace("/", "."), "name": name, "file": file,
            "time": str(outcomes.passed.get(test, 0))})
        if test in failed:
            text = printable("\n\n".join(f"{f.when}:\n{f.text}" for f in failed[test]))
            element = ElementTree.SubElement(case, "failure", {"message": last_line(text)})
            element.text = text
        elif test in outcomes.skipped:
            ElementTree.SubElement(case, "skipped", {"message": outcomes.skipped[test]})
        elif test in outcomes.unsteady:
            ElementTree.SubElement(case, "system-err").text = printable(
                f"unsteady: failed once\n{outcomes.unsteady[test].text}")
    for failure in failed.get(None, ()):
        case = ElementTree.SubElement(suite, "testcase", {
            "classname": "guest", "name": f"guest {failure.guest}", "time": "0"})
        ElementTree.SubElement(case, "failure", {"message": last_line(failure.text)}).text = \
            printable(failure.text)
    return suite


def printable(text):
    """Without control characters, which XML 1.0 does not allow."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)


def last_line(text):
    """The line that says what was wrong, which pytest marks with "E"."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith("E ")]
    return printable((marked or lines or [""])[0][:200])


def show(stage, outcomes):
    """Prints failures in full, and how many tests of each file did not run."""
    for test, failures in outcomes.failed().items():
        alike = failures[0].text == "did not run: its guest was lost"
        for failure in [] if alike else failures:
            say(f"\n---- {stage.label}: {test or f'guest {failure.guest}'}: {failure.when} ----")
            lines = failure.text.splitlines()
            if len(lines) > LINES_SHOWN:
                say("\n".join(lines[:LINES_SHOWN // 2]))
                say(f"... {len(lines) - LINES_SHOWN} lines, all in {stage.file('.xml')} ...")
                lines = lines[-LINES_SHOWN // 2:]
            say("\n".join(lines))
    missing = collections.Counter(
        f.test.partition("::")[0] for f in outcomes.failures if f.text.startswith("did not run"))
    for file, number in missing.items():
        say(f"\n---- {stage.label}: {file}: {number} tests did not run: their guest was lost")


def total():
    """Prints a line per stage and the sum; true if nothing failed. Merges the JUnit files."""
    sums = collections.Counter()
    whole = ElementTree.Element("testsuites")
    say()
    for path in sorted(RESULTS.glob("*.json")):
        ended = json.loads(path.read_text("utf-8"))
        sums.update({key: ended[key] for key in ("passed", "failed", "skipped")})
        note = f" ({ended['note']})" if ended["note"] else ""
        say(f"suite: {ended['stage']:22} {ended['passed']:5} passed, {ended['failed']} failed, "
            f"{ended['skipped']} skipped in {ended['seconds']} s, seed {ended['seed']}{note}")
        for test in ended["unsteady"]:
            say(f"suite:   unsteady: {test}")
        xml = path.with_suffix(".xml")
        if xml.exists():
            whole.append(ElementTree.parse(xml).getroot())
    ElementTree.ElementTree(whole).write(RESULTS / "junit.xml", "utf-8", xml_declaration=True)
    say(f"{sums['passed']} passed, {sums['failed']} failed, {sums['skipped']} skipped")
    return sums["passed"] > 0 and not sums["failed"]
