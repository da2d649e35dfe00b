# SPDX-License-Identifier: GPL-2.0
"""ipvsctl import: what restore reads, as a file for apply; and check, which reads rules, too.
Neither needs a module. tests/clients/test_import.py compares what the kernel has then."""

import json
import re

import pytest
from test_ipvsctl import JSON_RULES, RULES, SOURCES, document, ipvsctl

FARM = """\
# written by ipvsadm -Sn
-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0
-a -t 192.0.2.10:443 -r 10.0.0.11 -w 0 # default method
-A -f 7 -6 -s sh -b sh-fallback,sh-port
-A -u [2001:db8::10]:53 -s rr -o
-a -u [2001:db8::10]:53 -r 10.0.0.21:53 -i -w 1 --tun-type gue --tun-port 6080 --tun-csum
-A -t 192.0.2.10:0 -p
-a -t 192.0.2.10:0 -r 10.0.0.1:0 -g -x 9 -y 3
#ipvsctl service fwm6:7 timeout tcp 5 udp 6 on-idle reset on-loss move
#ipvsctl service tcp 192.0.2.10:0 priority las 16K,1M protected on owner web
"""
YAML = """\
version: 1
services:
  - service: tcp 192.0.2.10:443
    scheduler: wlc
    persistent: 600
    mask: 24
    servers:
      - 10.0.0.11:443 dr weight 0
  - service: fwmark 7 inet6
    scheduler: sh
    flags: [fallback, port]
    timeout: {tcp: 5, udp: 6}
    on-idle: reset
    on-loss: move
  - service: udp [2001:db8::10]:53
    scheduler: rr
    ops: true
    servers:
      - 10.0.0.21:53 tun type gue port 6080 csum weight 1
  - service: tcp 192.0.2.10:0
    scheduler: wlc
    persistent: 360
    priority: las
    protected: "on"
    las-bytes: [16384, 1048576]
    owner: web
    servers:
      - 10.0.0.1:0 dr weight 1 max-conns 9 min-conns 3
"""


def test_rules_become_a_file(tmp_path):
    """Into its own output, import changes nothing; rules from it are the rules."""
    rules, file = tmp_path / "lvs.rules", tmp_path / "lb.yaml"
    rules.write_text(FARM, "ascii")
    done = ipvsctl("import", str(rules), "-o", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.read_text("ascii") == YAML
    for text in FARM, YAML, ipvsctl("-j", "import", stdin=FARM).stdout:
        assert ipvsctl("import", stdin=text).stdout == YAML
    back = ipvsctl("import", "-F", "ipvsadm", stdin=YAML).stdout
    assert ipvsctl("import", "-", stdin=back).stdout == YAML and "-p 360\n" in back
    assert ipvsctl("check", str(file)).stdout == f"{file}: good: 4 services, 3 servers\n"


def test_json_is_that_of_save():
    done = ipvsctl("-j", "import", stdin=FARM)
    assert ipvsctl("import", "-F", "json", stdin=FARM).stdout == done.stdout
    services = json.loads(done.stdout)["services"]
    assert [s["id"] for s in services] == ["tcp:192.0.2.10:443", "fwm6:7", "udp:[2001:db8::10]:53",
                                           "tcp:192.0.2.10:0"]
    assert services[2]["servers"][0]["tunnel"] == {"type": "gue", "port": 6080, "csum": True}


@pytest.mark.parametrize("text", (FARM, "\n\n# a\n  -A -f 7\n", "--add-service -f 7\n"))
def test_check_reads_rules(text):
    done = ipvsctl("check", "-", stdin=text)
    assert done.returncode == 0 and done.stdout.startswith("standard input: good: ")
    said = json.loads(ipvsctl("-j", "check", "-", stdin=text).stdout)["check"]
    assert said["services"] == text.count("-A ") + text.count("--add-service")


@pytest.mark.parametrize("text", (FARM, "-A -f 7\n"))
@pytest.mark.parametrize("verb", ("apply", "diff"))
def test_apply_says_what_takes_rules(verb, text):
    done = ipvsctl(verb, "-", stdin=text)
    assert done.returncode == 2
    assert "\n  these look like rules of ipvsadm; try: ipvsctl restore FILE, or import FILE\n" in done.stderr


@pytest.mark.parametrize("text", ("- A\n", "-\n", "---\n- A\n", "- service: tcp 192.0.2.10:80\n", "# -A\n"))
def test_what_is_no_rule_is_checked_as_a_file_for_apply(text):
    done = ipvsctl("check", "-", stdin=text)
    assert done.returncode == 2 and "ipvsadm" not in done.stderr.splitlines()[0]
    assert re.match(r"ipvsctl: standard input(:\d+:\d+)?[: ]", done.stderr), done.stderr


@pytest.mark.parametrize("text, line, why", RULES)
def test_a_bad_line_is_named(text, line, why, tmp_path):
    """As restore names it; check, too, if the file is one of rules."""
    rules = tmp_path / "lvs.rules"
    rules.write_text(text, "ascii")
    said = ipvsctl("restore", str(rules)).stderr
    assert why in said and (not line or f"{rules}:{line}: " in said)
    is_rules = re.match(r"\s*-", text)
    for verb in ("import", "check") if is_rules else ("import",):
        done = ipvsctl(verb, str(rules), "-o", str(tmp_path / "out"))
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("doc, why", JSON_RULES, ids=[why for _, why in JSON_RULES])
def test_bad_json_is_refused(doc, why):
    done = ipvsctl("import", stdin=json.dumps(doc))
    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr.splitlines()[0]


def test_a_key_stays_in_its_file(tmp_path):
    """It is named, and neither copied nor shown."""
    file, digits = tmp_path / "key", "00112233445566778899aabbccddeeff"
    file.write_text(digits + "\n", "ascii")
    file.chmod(0o600)
    rules = f"-A -t 192.0.2.10:80 -s mh\n#ipvsctl option tcp:192.0.2.10:80 key {file}\n"
    done = ipvsctl("import", stdin=rules)
    assert (done.returncode, done.stderr) == (0, "") and f"options: {{key: \"{file}\"}}\n" in done.stdout
    assert ipvsctl("check", "-", stdin=done.stdout).returncode == 0
    assert f" key {file}\n" in ipvsctl("import", "-F", "ipvsadm", stdin=rules).stdout
    done = ipvsctl("import", stdin=rules.replace(str(file), digits))
    assert (done.returncode, done.stdout) == (2, "") and digits not in done.stderr
    assert "a key that is written as digits is not copied\n  try: " in done.stderr


def test_what_drains_is_said():
    doc = document(server={"weight": 0, "drain": {"weight_before": 3}})
    done = ipvsctl("import", stdin=json.dumps(doc))
    assert done.returncode == 0 and "nat weight 0\n" in done.stdout
    assert "1 servers drain" in done.stderr


@pytest.mark.parametrize("words, why", (
    (["import", "/nowhere/lvs.rules"], "cannot read /nowhere/lvs.rules"),
    (["import", "a", "b"], 'unexpected word "b"'), (["import", "-F", "xml"], 'unknown format "xml"'),
    (["import", str(SOURCES)], "Is a directory"), (["check", "/nowhere/lvs.rules"], "cannot read")))
def test_bad_words(words, why):
    done = ipvsctl(*words, stdin=FARM)
    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr


def test_sizes():
    """Rules may be as long as for restore, a file for apply as there."""
    rule = "-A -t 192.0.2.10:80 -s rr # " + "x" * (9 << 20) + "\n"
    assert ipvsctl("check", "-", stdin=rule).returncode == 0
    done = ipvsctl("check", "-", stdin="version: 1\nservices: []\n# " + "x" * (9 << 20) + "\n")
    assert done.returncode == 2 and "too large: more than 8 MiB" in done.stderr
    done = ipvsctl("import", stdin=rule * 8)
    assert done.returncode == 2 and "too large: more than 64 MiB" in done.stderr
