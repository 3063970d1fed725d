"""One walk through the console, as a person takes it. The other scenarios are for a deep run."""

import re

from playwright.sync_api import expect
from tests.web.console import Console, answer, drawer, expect_end

_MARKUP = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>[go](javascript:window.pwned=1)"
_COUNT = "for i in 1 2 3 4 5 6 7 8; do echo step $i; sleep 0.2; done"
SCRIPTS = {
    "walk": [
        {"text": "I count first.", "calls": [["exec", {"command": _COUNT}]]},
        {"text": "Now a file.", "calls": [["write", {"path": "total.py", "content": "total = 1\n"}]]},
        {"text": "And a command.", "calls": [["exec", {"command": f'echo made >made.txt; echo "{_MARKUP}"'}]]},
        {"text": f"All **done**.\n\n{_MARKUP}"},
    ]
}


def test_a_person_starts_watches_approves_and_undoes(console: Console) -> None:
    page = console.window()
    page.get_by_role("button", name="New task").first.click()
    page.get_by_label("What should the model do?").fill("Make a total")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1, name="Make a total")).to_be_visible()
    expect(page.get_by_role("article", name="Model").get_by_text("I count first.")).to_be_visible()
    expect(page.get_by_text("step 2")).to_be_visible()
    expect(page.get_by_text("step 8")).not_to_be_visible()

    request = drawer(page)
    expect(request).to_contain_text("total.py")
    expect(request.locator(".diff-file, table").get_by_text("total = 1")).to_be_visible()
    assert not (console.workspace / "total.py").exists()
    answer(page, "^(Keep|Approve)")
    card = page.get_by_role("article", name="Call of write")
    expect(card.get_by_role("link", name=re.compile("undo"))).to_be_visible()
    assert (console.workspace / "total.py").read_text() == "total = 1\n"

    expect(drawer(page)).to_contain_text("made.txt")
    answer(page, "^(Keep|Approve)")
    expect_end(page)
    expect(page.locator("strong").get_by_text("done")).to_be_visible()
    assert (console.workspace / "made.txt").read_text() == "made\n"
    page.get_by_role("article", name="Call of exec").last.get_by_role("button").first.click()
    expect(page.get_by_text("onerror='window.pwned=1'").first).to_be_visible()
    assert page.evaluate("window.pwned") is None
    assert page.locator("main script, [onerror], a[href^=javascript]").count() == 0
