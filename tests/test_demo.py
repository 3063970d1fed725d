"""The demo shows what its headings say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PLAY = Path(__file__).resolve().parent.parent / "scripts" / "play.py"
SHOWN = [
    ("✓", "ls", "What is here?"),
    ("✓", "grep", "Where is it rounded?"),
    ("✓", "read", "One file of it."),
    ("✓", "write", "A change: the person sees the difference and says yes."),
    ("✓", "edit", "An edit without the indentation: only one place can be meant."),
    ("✗", "edit", "An edit that guesses a number: what is there instead."),
    ("✓", "apply_patch", "A patch: all of its files, or none."),
    ("✓", "undo", "The person takes it back, in one step."),
    ("✓", "exec", "A script is tried in a throw-away copy first; yes keeps exactly what was shown."),
    ("✓", "undo", "What it did is one change, and goes back like any other."),
    ("✗", "read", "A wrong name, and the answer that helps."),
    ("✗", "read", "A path that leads out."),
    ("✗", "read", "Credentials stay closed, even to read."),
    ("✗", "read", "A call with the arguments of another system."),
    ("✗", "write", "Somebody else changed the file meanwhile: nothing is overwritten."),
    ("✗", "undo", "Nor does undo overwrite it."),
]


@pytest.fixture(scope="module")
def played() -> str:
    """What the demo prints."""
    command = [sys.executable, "-X", "utf8", PLAY]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_call_comes_out_as_its_heading_says(played: str) -> None:
    found = re.findall(r"^(\S.*)\n  ([✓✗]) (\w+)  ", played, re.MULTILINE)
    assert [(mark, name, heading) for heading, mark, name in found] == SHOWN


def test_no_change_breaks_the_sample(played: str) -> None:
    assert "⚠" not in played


@pytest.mark.parametrize(
    "words",
    [
        "lines 7–8, found but for the indentation.",
        "Closest is line 3: line 3 has 01, oldText has 10.",
        "M src/total.py +1 −1\n    A src/tax.py +1 −0\n",
        "Took back 3: 2 files.",
        "Would change 2 files:\n      D README.md  −1  deletes!\n      A src/rates.py  +1\n",
        "Took back 5: 2 files.",
        "the chain is intact",
    ],
)
def test_what_there_is_to_see_is_shown(played: str, words: str) -> None:
    assert words in played
