"""The console of a server whose tasks speak a dialect."""

import pytest
from playwright.sync_api import expect
from tests.web.console import DEEP, Console, answer, drawer, expect_end

pytestmark = pytest.mark.skipif(not DEEP, reason="everyday, test_console_walk.py is enough")

SETTINGS = 'dialect = "devminds"\n'
_NOTE = {"op": "write", "path": "note.md", "content": "remember\n"}
_SENDER = {"agent": "writer", "taskId": "t1"}
_QUESTION = {"from": _SENDER, "to": {"type": "user", **_SENDER}, "question": "Is the note right?"}
SCRIPTS = {
    "note": [
        {"text": "I note it.", "calls": [["workspace.fs", _NOTE]]},
        {"text": "Now I ask.", "calls": [["ask.request", _QUESTION]]},
        {"text": "It is **noted**."},
    ]
}


def test_a_conversation_in_a_dialect_is_shown_and_answered(console: Console) -> None:
    assert console.get("/api/info")["dialect"] == "devminds"
    task = console.start_task("note", "Make a note")
    page = console.window(f"/tasks/{task}")
    expect(drawer(page)).to_contain_text("Is the note right?")
    expect(page.get_by_role("article", name="Model").first).to_contain_text("I note it.")
    page.get_by_label("Your reply").fill("Yes.")
    answer(page, "^Reply$")
    expect_end(page)
    expect(page.locator("strong").get_by_text("noted")).to_be_visible()
    expect(page.get_by_role("article", name="Call of write")).to_contain_text("undo 1")
    assert (console.workspace / ".minds" / "note.md").read_text() == "remember\n"
    page.reload()
    expect_end(page)
    expect(page.get_by_role("alert")).to_have_count(0)
