"""The screens of a session as a person sees them, at two widths.

To write the files anew after an intended change: HANDRAIL_WRITE_SCREENS=1.
"""

import os
import re
from pathlib import Path

import pytest
from tests.chat.conftest import DEEP, Chat
from tests.chat.window import Window

SCREENS = Path(__file__).parent / "screens"
_SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")


def shows(window: Window, name: str, columns: int) -> None:
    """Compares the screen from the prompt on. Times differ from run to run."""
    shown = "\n".join(window.lines).partition("› begin\n")[2]
    screen = _SECONDS.sub("0.1 s", shown) + "\n"
    if columns == 60:  # how much of a call fits depends on its time
        screen = re.sub(r"^(✓ \w+ ).*?(?: {2,}|… +)(?=\S.* s$)", r"\1… ", screen, flags=re.M)
    file = SCREENS / f"{name}-{columns}.txt"
    if os.environ.get("HANDRAIL_WRITE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen)
    assert screen == file.read_text()
    assert all(len(row) < columns + 1 for row in screen.split("\n"))


@pytest.mark.parametrize("columns", [pytest.param(60, marks=DEEP), 100])
def test_a_session_looks_as_it_did(chat: Chat, workspace: Path, columns: int) -> None:
    words = "I look at **every** total in the folder, one after the other, and then I change the one that is wrong."
    window = chat(
        {"text": words, "calls": [["exec", {"command": "echo total 1; until grep -q go a.txt; do sleep 0.02; done"}]]},
        {"calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]},
        {"calls": [["question", {"question": "Which callers should round?", "options": ["checkout only", "all"]}]]},
        {"text": "- `a.txt` has the new total"},
        words=("--mode", "auto"),
        columns=columns,
    )
    window.sends("begin")
    window.sees("    total 1")
    window.press("\x1b[Z")
    window.sees("mode plan")
    window.press("\x1b[Z")
    window.sees("mode ask")
    window.press("and then")
    window.sees("› and then")
    window.sees("shift+tab mode" if columns > 60 else "type to queue")
    shows(window, "running", columns)
    window.press("\x03")
    (workspace / "a.txt").write_text("one\ngo\n")
    window.sees("Permission · edit")
    window.sees("└")
    shows(window, "prompt", columns)
    window.answers(b"y", "✓ ")
    window.sees("Esc or Ctrl-D leaves")
    window.sees("↑ ↓ choose.\n›")
    shows(window, "question", columns)
    window.answers(b"2", "› 2")
    window.press(b"\r")
    window.sees("1 file changed +1 −1")
    window.is_ready()
    shows(window, "end", columns)
