"""The prompt as a person sees it at three widths: the same with and without colour, and no row wider than the screen.

To write the files anew after an intended change: HANDRAIL_WRITE_SCREENS=1.
"""

import os
import re
from pathlib import Path

import pytest
from tests.terminal.previews import tried_request

from handrail.protocol.changes import Preview
from handrail.protocol.text import measure_width
from people import Ask, a_request

SCREENS = Path(__file__).parent / "screens"
EDIT = Preview(
    kind="diff", text="--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n same\n-old line\n+new line " + "long " * 20 + "\n"
)
REQUESTS = {
    "command": tried_request(grants=("ruff format",), answers=("once", "session", "workspace", "output", "deny")),
    "edit": a_request(
        tool_name="edit",
        description="Edit a.py",
        command=None,
        cwd=None,
        tier=None,
        preview=EDIT,
        paths=("a.py",),
        permissions=("fs.write",),
        rule="fs.write",
        reason="`ask` mode asks before every write",
    ),
}
CONTROL = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\r")


@pytest.mark.parametrize(
    "environ", [{}, {"COLORFGBG": "0;15"}, {"NO_COLOR": "1"}], ids=["colour", "light colour", "no colour"]
)
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_prompt_looks_as_it_did(ask: Ask, name: str, columns: int, environ: dict[str, str]) -> None:
    asked = ask(REQUESTS[name], columns=columns, environ=environ)
    asked.terminal.sees("┘")
    frame = CONTROL.sub("", asked.terminal.shown).partition("┘")[0] + "┘\n"
    assert all(measure_width(row) <= columns for row in frame.split("\n"))
    assert ("\x1b[32m" in asked.terminal.painted) is ("NO_COLOR" not in environ)
    assert ("\x1b[34m" in asked.terminal.painted) is (name == "edit" and "COLORFGBG" in environ), "blue for cyan"
    file = SCREENS / f"{name}-{columns}.txt"
    if os.environ.get("HANDRAIL_WRITE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(frame)
    assert frame == file.read_text()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_why_not_says_what_escape_does(ask: Ask, columns: int) -> None:
    asked = ask(columns=columns)
    asked.until(b"n", lambda: "Esc goes back: " in asked.terminal.shown)
