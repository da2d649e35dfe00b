# SPDX-License-Identifier: GPL-2.0
"""Checks tests/specs against the format's schema and against the headers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

from lab.spec import Spec  # noqa: E402

HEADERS = {"ipvs": Path("/usr/include/linux/ip_vs.h"), "l4lb": TOP / "kernel/l4lb.h"}
SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")
SCHEMA = "linux-source-6.12/Documentation/netlink/genetlink-legacy.yaml"


@pytest.fixture(scope="module", params=sorted(HEADERS))
def spec(request):
    out = Spec(request.param)
    out.header = HEADERS[request.param]
    return out


@pytest.fixture(scope="module")
def schema():
    """Read from the kernel's source archive, near whose beginning it is."""
    done = subprocess.run(["tar", "-xJOf", SOURCE, "--occurrence=1", SCHEMA],
                          capture_output=True, check=True, timeout=60)
    return yaml.safe_load(re.sub(rb"%YAML 1.2\n", b"", done.stdout))


def test_schema(spec, schema):
    import jsonschema
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(spec.source, schema, cls=jsonschema.Draft7Validator)
    known = set(spec.sets)
    for attrs in spec.sets.values():
        for a in attrs.values():
            assert a.nest is None or a.nest in known, a.name
    for name, o in spec.commands.items():
        for mode in spec.modes(name):
            for message in o[mode].values():
                assert set(message.get("attributes", ())) <= set(spec.sets[o["attribute-set"]])


def c_name(prefix, name):
    return (prefix + name).upper().replace("-", "_")


def constants(spec):
    """{C name: number} of everything in the spec that the header must define."""
    out = {}
    operations = spec.source["operations"]
    for name in spec.commands:
        out[c_name(operations["name-prefix"], name)] = spec.request(name)
    for s in spec.source["attribute-sets"]:
        for a in spec.sets[s["name"]].values():
            own = a.name == "range"     # of this family, in a set of family IPVS
            out[c_name("l4lb-svc-attr-" if own else s["name-prefix"], a.name)] = a.number
    for d in spec.source["definitions"]:
        for n, entry in enumerate(d.get("entries", ())):
            out[c_name(d["name-prefix"], entry)] = 1 << n if d["type"] == "flags" else n
        if d["type"] == "const":
            out[c_name(f"{spec.family}-", d["name"])] = d["value"]
    out[f"{spec.family}_GENL_VERSION"] = spec.source["version"]
    return out


def test_header(spec, tmp_path):
    """The compiler finds every name in the header, with the same number."""
    wanted = constants(spec)
    program = tmp_path / "constants.c"
    program.write_text(
        '#include <stdio.h>\n#include <linux/ip_vs.h>\n'
        f'#include "{spec.header}"\nint main(void)\n{{\n' +
        "".join(f'\tprintf("{name} %d\\n", (int)({name}));\n' for name in wanted) +
        f'\tputs("family " {spec.family}_GENL_NAME);\n}}\n')
    subprocess.run(["gcc", "-o", tmp_path / "constants", program], check=True, timeout=60)
    printed = dict(line.split() for line in subprocess.run(
        [tmp_path / "constants"], capture_output=True, text=True, check=True,
        timeout=60).stdout.splitlines())
    assert printed.pop("family") == spec.family
    assert {k: int(v) for k, v in printed.items()} == wanted


def test_nothing_of_the_header_is_missing(spec):
    """Every command and attribute of the header is in the spec."""
    text = re.sub(r"/\*.*?\*/", "", spec.header.read_text(encoding="utf-8"), flags=re.S)
    found = set(re.findall(
        rf"^\t({spec.family}_(?:CMD|\w+_ATTR|ATTR)_\w+),?\s*(?:=.*)?$", text, re.M))
    named = set(constants(spec)) | {"IPVS_CMD_SET_INFO"}    # a reply, not a command
    missing = {n for n in found - named if not re.search(r"_(UNSPEC|MAX)$", n)}
    assert not missing
    assert len(found) > 10
