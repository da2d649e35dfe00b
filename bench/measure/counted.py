# SPDX-License-Identifier: GPL-2.0
"""Code of benches whose guest has one processor and a clock that counts instructions: the same
seed gives nearly the same figures on any machine, and a second run checks that."""

import hashlib
import json
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def seed(parser, natural):
    """Adds the option that all of these benches have."""
    parser.add_argument("--seed", type=natural(0, 2**31 - 1), default=1, metavar="N",
                        help="of the guest's random numbers (1)")


def options(spec):
    """Options for tests/lab/run: an instruction takes 2^shift nanoseconds."""
    return ["--shift", str(spec["shift"]), "--seed", str(spec["seed"])]


def fingerprint(kernel):
    """A hash of all code of ours on which the figures depend."""
    digest = hashlib.sha256(kernel.release.encode())
    for path in (*sorted((TOP / "build" / kernel.release).glob("**/*.ko")),
                 TOP / "build/ipvsctl", *sorted((TOP / "bench/measure").glob("*.py"))):
        if "tests" not in path.parts[-2:]:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def compare(now, before, allowed):
    """(sentence, whether they agree) about two runs, each {"figures": {name: number}, ...}
    with their parameters, kernel and code."""
    if not before:
        return "Run it again with the same seed and it says whether the figures agree.", True
    same = all(before.get(key) == now[key] for key in ("spec", "kernel"))
    common = [name for name, figure in now["figures"].items()
              if same and figure and name in before["figures"]]
    if not common:
        return "The run before had other parameters, seed or kernel: nothing to compare.", True
    apart = {name: abs(before["figures"][name] / now["figures"][name] - 1) for name in common}
    worst = max(apart, key=apart.get)
    lacking = sum(1 for n, f in before["figures"].items() if f and not now["figures"].get(n))
    text = (f"Compared with the run of {before['date']}: {len(common)} figures with the same seed, "
            f"the largest difference is {100 * apart[worst]:.3f} % ({worst})")
    if before["code"] != now["code"]:
        return text + "; the code has changed between them.", True
    if lacking:
        return text + f"; {lacking} are missing now: they DO NOT agree.", False
    agree = apart[worst] <= allowed
    text += f" ({100 * allowed:g} % allowed): they "
    return text + ("agree." if agree else "DO NOT agree."), agree


def last(out):
    """The results of an earlier run in OUT, or None."""
    path = out / "results.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def publish(record, spec, results, out, report, *, allowed):
    """Writes RESULTS with REPORT, and compares them with those of the run before; the exit
    status."""
    results = record.header() | json.loads(json.dumps(
        {"spec": spec, "code": fingerprint(record.kernel)} | results))
    results["figures"] = report.figures(results)
    sentence, agree = compare(results, last(out), allowed)
    record.publish(results, out, report.write)
    print(sentence, flush=True)
    return 0 if agree else 1


def measured(title, r):
    """The first lines of a report."""
    yield f"# {title}"
    yield ""
    spec = r["spec"]
    yield (f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU; one processor of "
           f"{1000 >> spec['shift']:,} million")
    yield (f"instructions a second, whose count is the guest's clock; seed {spec['seed']}. See "
           "bench/README.md.")
    yield ""
