# SPDX-License-Identifier: GPL-2.0
"""The scripts that the module is tested with use every option that the help and
the manual of Debian's ipvsadm name."""

import gzip
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab.ipvsadm import DIFFERENT, SCRIPTS, words_used  # noqa: E402

# The help writes -L|-l and -A|E.
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z0-9][\w-]*")


def help_text():
    """Read from the binary, because --help needs a kernel with the module."""
    program = shutil.which("ipvsadm", path="/sbin:/usr/sbin")
    text = "\n".join(m.decode() for m in re.findall(
        rb"  --[\w-]+ [ -~\n]+", Path(program).read_bytes()))
    assert "add virtual service" in text
    return text


def manual():
    page = Path("/usr/share/man/man8/ipvsadm.8.gz")
    if not page.exists():
        pytest.skip(f"no {page}: dpkg leaves manuals out here; the options of --help are looked at")
    text = gzip.decompress(page.read_bytes()).decode().replace("\\-", "-")
    # Lines that begin an option's description; the others are prose.
    lines = re.findall(r"^(?:\.B |\\fB)(-.*)$", text, re.M)
    return "\n".join(re.sub(r"\\fR.*|\\fI.*", "", line) for line in lines)


@pytest.mark.parametrize("source, least", ((help_text, 60), (manual, 60)),
                         ids=("help", "manual"))
def test_every_option_is_in_a_script(source, least):
    named = set(OPTION.findall(source()))
    assert len(named) >= least, f"only {sorted(named)} found: the parser is wrong"
    assert not named - words_used(), "in no script of tests/lab/ipvsadm.py"


def test_differences_name_lines():
    lines = {line.strip() for script in SCRIPTS.values() for line in script.splitlines()}
    assert set(DIFFERENT) <= lines
