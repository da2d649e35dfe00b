# SPDX-License-Identifier: GPL-2.0
"""The installed JSON schema of the configuration file says what the reader says: the same keys,
and a verdict on each file of test_configuration.py."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from test_configuration import BAD, GOOD, MARK, WEB, check

TOP = Path(__file__).resolve().parents[2]
TOOL = TOP / "tools/ipvsctl"
SCHEMA = json.loads((TOOL / "config.schema.json").read_text(encoding="ascii"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
# What no schema can say: names that come twice, sums, what excludes what, and the YAML that
# this reader does not take.
ONLY_THE_READER = {
    "a key twice", "a key twice, spelled differently", "a service twice", "a server twice",
    "names that differ", "a mask alone", "a port behind dr", "a tunnel's port", "a time too long",
    "an anchor", "a tag",
}


class Loader(yaml.CSafeLoader):
    """YAML 1.2, as editors read it: "on" and "off" are words, 22:22 is no number."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("null", r"~|null|", ["~", "n", ""]), ("bool", "true|false", list("tf")),
                            ("int", "-?[0-9]+", list("-0123456789"))):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), first)


def verdict(text):
    """The schema's complaint, or None."""
    try:
        found = list(yaml.load_all(text, Loader=Loader))
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError) as err:
        return err
    return next(VALIDATOR.iter_errors(found[0]), None) if len(found) == 1 else "not one document"


def test_it_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", GOOD)
def test_good_files(name):
    assert verdict(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_mistakes(name):
    said = verdict(BAD[name][0])
    assert (said is None) == (name in ONLY_THE_READER), said


def test_examples_of_the_documents():
    for page in "doc/configuration.md", "tools/ipvsctl/ipvsctl.8":
        found = re.findall(r"^```yaml\n(.*?)^```$|^\.Bd -literal[^\n]*\n(version: 1.*?)^\.Ed$",
                           (TOP / page).read_text(encoding="utf-8"), re.M | re.S)
        assert found
        for example in found:
            assert verdict("".join(example)) is None


# A line below a service, or a whole file, and whether both take it.
LINES = {
    "persistent: true": True, "persistent: 5m": True, "persistent: yes": False, "persistent: []": False,
    "mask: 24\n  persistent: 60": True, "mask: /24\n  persistent: 60": True,
    "mask: 255.255.255.0\n  persistent: 60": True, "mask: 129\n  persistent: 60": False,
    "mask: -1\n  persistent: 60": False, "scheduler: none": False, "scheduler: RR": False,
    "scheduler: a_b-c": True, "flags: 'fallback,port'": True, "flags: []": True, "flags: sh": False,
    "pe: none": True, "pe: a b": False, "on-idle: reset": True, "on_idle: forget": True,
    "on-idle: default": False, "on-loss: default": True, "on-drain: move": True, "guard: off": True,
    "guard: on": False, "guard: true": False, "fast-path: new": True, "fast_path: yes": False,
    "sync: off": True, "sync: templates": True, "sync: all": False, "priority: las": True,
    "log: on": True, "log: off": True, "log: maybe": False,
    "ramp: 30s": True, "ramp: 86400": True, "ramp: off": True, "ramp: 0": False, "ramp: 86401": False,
    "ramp: []": False, "limit-rate: 5000": True, "limit_rate: 10000000": True, "limit-rate: 10000001": False,
    "limit-rate: off": True, "limit-burst: '500'": True, "limit-burst: 0": False, "limit-burst: -1": False,
    "limit_burst: 10000000": True, "limit-conns: 2147483647": True, "limit-conns: 2147483648": False,
    "limit_conns: off": True, "limit-conns: {}": False, "limit-reply: reset": True, "limit_reply: drop": True,
    "limit-reply: rst": False, "latency: on": True, "latency: off": True, "latency: 1": False,
    "conn-state: lazy": True, "conn_state: eager": True, "conn-state: off": False, "conn-state: 1": False,
    "priority: las 16K,128K": True, "priority: las 1,2,3,4": False, "priority: x": False,
    "priority: las\n  las-bytes: [1, 2K, 3M]": True, "priority: las\n  las-bytes: 1": False,
    "owner: web-1": True, "owner: none": True, "owner: 1234567890abcdef": False, "owner: 'a b'": False,
    "shadow: mh": True, "shadow: none": True, "shadow: Mh": False, "shadow: []": False, "shadow: ''": False,
    "owner: []": False, "protected: on": True, "protected: maybe": False, "protected: off": True,
    "timeout: {tcp: 1h, sctp: default}": True, "timeout: tcp 1h udp 5": True, "timeout: 5": False,
    "timeout: []": False, "timeout: {tcp: 0}": False, "options: {a: 1}": True, "options: [a]": False,
    "options: {A: 1}": False, "servers:": True, "servers: [10.0.0.1]": True, "servers: [10.0.0.1:81]": True,
    "servers: ['[2001:db8::1]:80']": False, "servers: ['2001:db8::1']": False, "servers: [10.0.0.1 nat dr]": False,
    "servers: [10.0.0.1 weight]": False, "servers: [10.0.0.1 weight 2 weight 3]": False,
    "servers: [{server: 10.0.0.1, weight: '7'}]": True, "servers: [{id: '10.0.0.1:80', state: ok}]": True,
    "servers: [{address: 10.0.0.1, port: 80, forward: nat}]": True,
    "servers: [{address: 10.0.0.1, port: 99999}]": False, "servers: [{address: 10.0.0.1, forward: masq}]": False,
    "servers: [{address: 10.0.0.1, weight: 2147483648}]": False,
    "servers: [{address: 10.0.0.1, weight: true}]": False, "servers: [7]": False, "servers: [[10.0.0.1]]": False,
    "servers: [{address: 10.0.0.1, forward: tun, tunnel: {type: gue, port: 6080, csum: yes}}]": True,
    "servers: [{address: 10.0.0.1, forward: tun, tunnel: gue}]": False,
    "servers: [{address: 10.0.0.1, forward: tun, tunnel: {type: vxlan}}]": False,
}
# The reader alone refuses these: families, and words that come twice or exclude each other.
FINER = {"servers: ['[2001:db8::1]:80']", "servers: [10.0.0.1 nat dr]", "servers: [10.0.0.1 weight 2 weight 3]"}


@pytest.mark.parametrize("line", LINES)
def test_values(line, tmp_path):
    text = WEB + f"  {line}\n"
    done, _ = check(text, tmp_path)
    assert (done.returncode == 0) == LINES[line], done.stderr
    assert (verdict(text) is None) == (LINES[line] or line in FINER), verdict(text)


NAMES = {"tcp 192.0.2.10:80": True, "tcp:192.0.2.10:80": True, "sctp [2001:db8::1]:80": True, "udp:[::1]:9": True,
         "fwmark 7": True, "fwmark 7 inet6": True, "fwmark 7 inet": True, "fwm:7": True, "fwm6:7": True,
         "fwmark": False, "fwmark x": False, "fwm:": False, "icmp 192.0.2.10:80": False, "tcp 192.0.2.10:80 rr": False,
         "tcp 2001:db8::1:80": False, "tcp [192.0.2.10]:80": False}


@pytest.mark.parametrize("name", NAMES)
def test_names(name, tmp_path):
    text = f"version: 1\nservices:\n- service: '{name}'\n"
    done, _ = check(text, tmp_path)
    assert (done.returncode == 0) == NAMES[name], done.stderr
    assert (verdict(text) is None) == NAMES[name], verdict(text)


# ---- keys ----

def words(file, name):
    """The members of a table of words in a source file."""
    text = (TOOL / file).read_text(encoding="utf-8")
    table = re.search(rf"\b{name}\[\] = \{{(.*?)\}}", text, re.S)[1]
    policy = re.search(r"#define POLICY_WORDS (.*?)\n#", (TOOL / "policy.h").read_text("utf-8"), re.S)[1]
    return set(re.findall(r'"([^"]+)"', table.replace("POLICY_WORDS", policy)))


def keys(schema):
    """Those of an object, each in both spellings."""
    found = {name.replace("_", "-") for name in schema["properties"]}
    assert set(schema["properties"]) == found | {name.replace("-", "_") for name in found}
    assert schema["additionalProperties"] is False
    for name in found:
        assert schema["properties"][name] == schema["properties"][name.replace("-", "_")]
    return found


@pytest.mark.parametrize("file, table, schema", [
    ("declare.c", "known", SCHEMA),
    ("declare.c", "kinds", SCHEMA["properties"]["timeouts"]),
    ("declare.c", "keys", SCHEMA["properties"]["defaults"]),
    ("declare_service.c", "known", SCHEMA["definitions"]["service"]),
    ("declare_service.c", "kinds", SCHEMA["definitions"]["service"]["properties"]["timeout"]["anyOf"][0]),
    ("declare_server.c", "known", SCHEMA["definitions"]["server"]["anyOf"][1]),
    ("declare_server.c", "keys", SCHEMA["definitions"]["tunnel"]),
])
def test_keys(file, table, schema):
    assert words(file, table) == keys(schema)


def test_words_of_the_settings():
    """Those that policy.c reads."""
    text = (TOOL / "policy.c").read_text(encoding="utf-8")
    service = SCHEMA["definitions"]["service"]["properties"]
    for name in re.findall(r'^\t\{ "([a-z-]+)", "[a-z_]+", (?:L4LB_)?POLICY_\w+,\s+(\w+) \}', text, re.M):
        choices = set(re.findall(r'"([^"]+)"', re.search(rf"\b{name[1]}\[\] = \{{(.*?)\}}", text, re.S)[1]))
        schema = service[name[0]]
        assert schema.get("enum") is None or set(schema["enum"]) == choices
        for word in choices:
            assert verdict(MARK + f"  {name[0]}: {word}\n") is None


def test_limits():
    """Of lists, as the reader counts them."""
    text = (TOOL / "declare.h").read_text(encoding="utf-8")
    service = SCHEMA["definitions"]["service"]["properties"]
    assert f"DECLARE_SERVERS	= {service['servers']['anyOf'][1]['maxItems']}," in text
    assert f"DECLARE_SCOPES	= {SCHEMA['properties']['scope']['maxItems']}," in text
    services = SCHEMA["properties"]["services"]["maxItems"]
    assert re.search(rf"L4LB_SERVICES_MAX\s+{services}\b", (TOP / "kernel/l4lb.h").read_text("utf-8"))
