"""What people do in the console: each scenario with a real server, a scripted model and Chromium."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.console import DEEP, GUARD, Console, answer, drawer, expect_end

pytestmark = pytest.mark.skipif(not DEEP, reason="everyday, test_console_walk.py is enough")


def _write(path: str, content: str = "one\n") -> list[Any]:
    return ["write", {"path": path, "content": content}]


def _run(command: str, **more: Any) -> list[Any]:
    return ["exec", {"command": command, **more}]


_OPTIONS = {"question": "Which **port** shall it use?", "options": ["80", "8080"], "custom": True}
SETTINGS = "[server]\ndirect_calls = true\n"
SCRIPTS = {
    "reject": [{"calls": [_write("rejected.txt")]}, {"text": "Then I leave it."}],
    "output": [{"calls": [_run("echo seen; echo made >output.txt")]}, {"text": "I saw it."}],
    "question": [{"calls": [["question", _OPTIONS]]}, {"text": "Thanks."}],
    "conflict": [
        {"calls": [_write("twice.txt", "one\ntwo\n")]},
        {"calls": [["edit", {"path": "twice.txt", "oldText": "one", "newText": "1"}]]},
        {"calls": [["edit", {"path": "twice.txt", "oldText": "1\n", "newText": "first\n"}]]},
        {"text": "Changed twice."},
    ],
    "process": [{"calls": [_run("echo up; sleep 600", background=True)]}, {"text": "It runs."}],
    "lost": [{"calls": [_write("lost.txt")]}, {"text": "It is there again."}],
    "two": [{"calls": [_write("two.txt")]}, {"text": "Somebody answered."}],
    "keys": [{"calls": [_write("keys.txt")]}, {"calls": [_write("more.txt")]}, {"text": "By keys."}],
    "long": [{"calls": [_run(f"echo start >line.txt # {'a long remark ' * 300}")]}, {"text": "Read."}],
}


def _open_task(console: Console, script: str, mode: str = "ask", **options: Any) -> Page:
    task = console.start_task(script, f"Play {script}", mode)
    return console.window(f"/tasks/{task}", **options)


def test_a_reason_reaches_the_model(console: Console) -> None:
    page = _open_task(console, "reject")
    answer(page, "^Reject")
    page.get_by_label("Why? The model reads it.").fill("use the other folder")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect_end(page)
    card = page.get_by_role("article", name="Call of write")
    expect(card).to_contain_text("denied")
    card.get_by_role("button").first.click()
    expect(card).to_contain_text("use the other folder")
    assert not (console.workspace / "rejected.txt").exists()


def test_the_output_can_be_kept_without_the_changes(console: Console) -> None:
    page = _open_task(console, "output")
    expect(drawer(page)).to_contain_text("output.txt")
    answer(page, "^Output only")
    expect_end(page)
    card = page.get_by_role("article", name="Call of exec")
    card.get_by_role("button").first.click()
    expect(card).to_contain_text("only the output was kept")
    expect(card).to_contain_text("seen")
    assert not (console.workspace / "output.txt").exists()


def test_a_question_is_answered(console: Console) -> None:
    page = _open_task(console, "question")
    expect(drawer(page).locator("strong")).to_have_text("port")
    page.get_by_label("8080").check()
    page.get_by_role("button", name="Reply", exact=True).click()
    expect_end(page)
    card = page.get_by_role("article", name="Call of question")
    card.get_by_role("button").first.click()
    expect(card).to_contain_text("8080")


def test_a_long_command_has_to_be_read_to_its_end(console: Console) -> None:
    page = _open_task(console, "long")
    keep = drawer(page).get_by_role("button", name=re.compile("^(Keep|Approve)$"))
    expect(keep).to_be_disabled()
    page.get_by_label("Command", exact=True).evaluate("element => { element.scrollTop = element.scrollHeight; }")
    expect(keep).to_be_enabled()
    keep.click()
    expect_end(page)


def test_a_tool_says_which_argument_is_wrong_and_runs_with_right_ones(console: Console) -> None:
    (console.workspace / "palette.txt").write_text("from the palette\n")
    page = console.window()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("heading", level=1, name="Tools")).to_be_visible()
    page.get_by_label("Find a tool").fill("read")
    page.get_by_role("link", name=re.compile("^read")).first.click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".schema-form [aria-invalid=true]")).to_have_count(1)
    page.get_by_label(re.compile("^path")).fill("palette.txt")
    page.get_by_role("button", name="Check policy").click()
    expect(page.get_by_label("Result")).to_contain_text("allow")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result")).to_contain_text("from the palette")


def test_an_undo_that_meets_later_changes_offers_what_can_be_done(console: Console) -> None:
    page = _open_task(console, "conflict", "auto")
    expect_end(page)
    assert (console.workspace / "twice.txt").read_text() == "first\ntwo\n"
    cards = page.get_by_role("article", name="Call of edit")
    cards.first.get_by_role("link", name=re.compile("undo")).click()
    page.get_by_role("button", name=re.compile("^Undo")).first.click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("twice.txt was changed again")
    expect(alert).to_contain_text("Nothing was undone")
    alert.get_by_role("button", name=re.compile(r"^Undo \d+ and \d+")).click()
    page.locator(".notice").get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.get_by_role("status").filter(has_text="✓")).to_be_visible()
    assert (console.workspace / "twice.txt").read_text() == "one\ntwo\n"


def test_the_audit_is_verified(console: Console) -> None:
    page = _open_task(console, "conflict", "plan")
    expect_end(page)
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text(re.compile(r"✓ \d+ records intact"))).to_be_visible()
    page.locator("table.rows .row-link").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Decision")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_process_is_watched_and_stopped(console: Console) -> None:
    page = _open_task(console, "process", "auto")
    answer(page, "^Approve$")
    expect_end(page)
    page.goto(f"{console.server.address}/processes")
    page.locator("table.rows .row-link").first.click()
    expect(page.get_by_role("region", name="Details").get_by_text("up", exact=True)).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Nothing is running.")).to_be_visible()
    assert [one["state"] for one in console.get("/api/processes")["processes"]] != ["running"]


def test_a_lost_connection_comes_back_without_a_reload(console: Console) -> None:
    page = _open_task(console, "lost")
    expect(drawer(page)).to_contain_text("lost.txt")
    page.evaluate("window.wasHere = true")
    console.server.stop()
    expect(page.get_by_text("Reconnecting; nothing is lost.")).to_be_visible()
    expect(page.locator(".drawer").get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    console.restart()
    expect(page.get_by_text("Reconnecting; nothing is lost.")).to_have_count(0)
    answer(page, "^Approve$")
    expect_end(page)
    assert page.evaluate("window.wasHere")
    assert (console.workspace / "lost.txt").exists()


def test_of_two_windows_one_answers_and_the_other_says_so(console: Console) -> None:
    page = _open_task(console, "two")
    other = console.window(page.url.removeprefix(console.server.address))
    drawer(page)
    drawer(other)
    answer(page, "^Approve$")
    expect_end(page)
    expect(other.get_by_text("Answered elsewhere:")).to_be_visible()
    expect(page.get_by_text("Answered elsewhere:")).to_have_count(0)
    expect(other.locator(".drawer")).to_have_count(0)
    expect_end(other)


def test_a_viewer_watches_and_cannot_answer(console: Console) -> None:
    task = console.start_task("two", "Only look")
    page = console.window(f"/tasks/{task}", token=console.server.add_token("viewer", "viewer"))
    expect(drawer(page)).to_contain_text("Your token may only watch.")
    expect(page.locator(".drawer-buttons button")).to_have_count(0)
    expect(page.get_by_label("Message")).to_have_count(0)
    expect(page.get_by_role("button", name="New task")).to_have_count(0)


def test_signing_out_and_in_again_needs_a_right_token(console: Console) -> None:
    page = console.window()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label(re.compile("[Tt]oken")).fill("wrong-token-0123456789")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label(re.compile("[Tt]oken")).fill(console.server.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Tasks")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1, name="Tasks")).to_be_visible()


def test_everything_works_without_a_mouse(console: Console) -> None:
    page = console.window()
    for keys, title in (("gi", "Inbox"), ("go", "Tools"), ("gc", "Changes"), ("ga", "Audit"), ("gp", "Policy")):
        page.keyboard.press(keys[0])
        page.keyboard.press(keys[1])
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
        page.keyboard.press("Escape")
        page.locator("main").focus()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.keyboard.press("n")
    page.get_by_label("What should the model do?").wait_for()
    page.keyboard.type("By keys")
    page.get_by_role("combobox", name="Model").select_option(console.models["keys"])
    page.get_by_label("What should the model do?").focus()
    page.keyboard.press("Control+Enter")
    drawer(page)
    page.locator(".items").focus()
    page.keyboard.press("y")
    assert not (console.workspace / "keys.txt").exists(), "a key outside of the drawer is no answer"
    page.keyboard.press(".")
    page.keyboard.press("y")
    expect(page.locator(".drawer")).to_contain_text("more.txt")
    page.keyboard.press(".")
    page.wait_for_timeout(GUARD)
    page.keyboard.press("n")
    page.keyboard.type("enough")
    page.keyboard.press("Control+Enter")
    expect_end(page)
    assert (console.workspace / "keys.txt").exists()
    assert not (console.workspace / "more.txt").exists()
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.locator(":focus .card-toggle, .card-toggle:focus").first).to_be_attached()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_rule_says_which_calls_it_would_have_changed(console: Console) -> None:
    page = _open_task(console, "conflict", "auto")
    expect_end(page)
    page.goto(f"{console.server.address}/policy")
    page.get_by_label("Command", exact=True).fill("cd api && rm -rf build | tee log")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("fs.delete").first).to_be_visible()
    page.get_by_role("button", name="Add rule…").first.click()
    expect(page.get_by_role("dialog").get_by_role("heading", name="Add rule")).to_be_visible()
    page.get_by_label("Verdict").select_option("deny")
    page.get_by_label("Tool", exact=True).select_option("write")
    page.get_by_label("Paths by a pattern").fill("**")
    expect(page.get_by_text(re.compile(r"Last \d+ days: [1-9]\d* of \d+ calls would differ"))).to_be_visible()
