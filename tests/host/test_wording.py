# SPDX-License-Identifier: GPL-2.0
"""What help and manual say where readers have been misled: that a deleted service's connections end,
which of three times "timeout" is, that there is a persistence engine for SIP, and which settings do
nothing."""

import re

import pytest
from test_ipvsctl import TOP, help_text, ipvsctl, manual
from test_module_page import page_settings, section


def item(heading):
    """The text of an entry of the manual, without macros, as one line."""
    text = re.search(rf"^\.It {heading}.*\n((?:(?!\.It|\.El|\.S[hs]).*\n)+)", manual(), re.M)[1]
    return " ".join(re.sub(r"^\.\w+ ", "", text, flags=re.M).split())


@pytest.mark.parametrize("verb", ["service delete", "server delete"])
def test_what_becomes_of_connections(verb):
    assert "on-loss" in item(f"Cm {verb}") and "connections" in item(f"Cm {verb}")
    assert re.search(rf"ipvsctl {verb} .*\n.*connections.*on-loss|on-loss.*connections",
                     help_text(*verb.split()))


def test_a_deleted_service_keeps_no_connection():
    assert "connections do not go on" in item("Cm service delete")
    assert "its connections end as on-loss says" in help_text("service", "delete")
    assert "in the same way" in item("Cm service flush")


def test_timeout_means_three_things():
    """Each of them says what it is not."""
    waits = item(r"Fl -timeout")
    assert waits.startswith("waits this long for each answer from the kernel") and \
        "nothing to do with the times for which idle connections are kept" in waits
    assert "no idle time: how long ipvsctl waits for the kernel" in help_text()
    namespace = item("Cm timeout show")
    assert "how long an idle connection is kept" in namespace
    assert "if its service has no timeout of its own" in namespace
    service = item("Cm timeout Ar KIND")
    assert service.startswith("how long an idle connection of this service is kept") and "timeout show" in service
    assert "services that have none of their own" in help_text("timeout", "show")


def test_persistence_engine_sip():
    """It is one that exists, whatever ip_vs needs for it."""
    said = item("Cm pe Ar NAME")
    assert said.startswith("a persistence engine. There is one, sip") and "Call-ID" in said
    assert "pe NAME|none" in help_text("service", "add")
    done = ipvsctl("service", "add", "tcp", "192.0.2.10:80", "pe", "sip")
    assert done.returncode == 2 and "needs persistence" in done.stderr


def test_settings_without_effect():
    """l4lb(7), the differences from ip_vs and the source name the same, and that the log tells."""
    page = section("SETTINGS")
    found = {name for name in page_settings(page)
             if re.search(rf"^\.It Va {name}\n(?:(?!\.It).*\n)*Without effect", page, re.M)}
    source = (TOP / "kernel/api/sysctl.c").read_text("utf-8")
    assert found == {*re.findall(r"^\tUNUSED\((\w+),", source, re.M), "est_cpulist"}
    assert page.count("the log says when it is set") == 2
    differences = (TOP / "doc/differences.md").read_text("utf-8")
    line = re.search(r"^- Without effect: (.*)", differences, re.M)[1]
    assert set(re.findall(r"`(\w+)`", line)) == found and "The log says so" in line
