"""A session at a terminal: its turns, its prompts, its end."""

import os
import re
import signal
import sys
import termios
import time
from pathlib import Path

import pytest
from tests.chat.conftest import DEEP, Chat
from tests.chat.window import Window
from tests.wires.openai_wire import events
from tests.wires.server import Answer

EDIT = {"text": "I change it.", "calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]}
DONE = {"text": "All is done."}
WAITS = f"echo begun; sleep 60; : {os.getpid()}"
SLOW = {"text": "I wait.", "calls": [["exec", {"command": WAITS}]]}


def question(**more: object) -> dict[str, object]:
    return {"calls": [["question", {"question": "Which callers?", "options": ["checkout", "all"], **more}]]}


def test_a_turn_streams_shows_its_calls_and_ends_with_what_changed(chat: Chat, workspace: Path) -> None:
    words = {
        "text": "# Plan\n\nI change **one** word in `a.txt`:\n\n- first\n\n```python\nx = 1\n```\nNow.",
        "calls": [
            ["read", {"path": "a.txt"}],
            ["todo", {"items": [{"text": "look", "status": "done"}, {"text": "change", "status": "active"}]}],
            [
                "display",
                {"content": "Half way", "level": "success", "thought": "so you know", "evidence": ["a.txt:1"]},
            ],
        ],
    }
    window = chat(words, EDIT, DONE, COLORFGBG="0;15")
    window.sends("change it")
    window.sees("Permission · edit")
    window.answers(b"y", "✓ ")
    window.sees("Done ·")
    window.is_ready()
    shown = window.text
    for line in (
        "› change it",
        "  Plan",
        "  I change one word in a.txt:",
        "  - first",
        "  x = 1",
        "    ✓ look",
        "    ● change",
        "» ✓ Half way",
        "»   why: so you know",
        "»   see: a.txt:1",
        "     1 - one",
        "     1 + two",
        "  All is done.",
        "  1 file changed +1 −1 · undo 1      /diff turn · /undo turn · /rewind",
    ):
        assert f"\n{line}\n" in shown, line
    assert "lines 1–1 of 1" in shown
    assert "4 calls, 1 kept, 0 denied" in shown
    assert (workspace / "a.txt").read_text() == "two\n"
    assert re.search(r"\x1b\[[0-9;]*3[2145]m", window.raw)
    assert not re.search(r"\x1b\[[0-9;]*3[36]m", window.raw)  # yellow and cyan are hard to read on a light background


def test_keys_that_are_pressed_while_the_session_loads_are_in_its_composer(chat: Chat) -> None:
    window = chat(DONE, ready=False)
    window.sees("›\n starting …")
    window.press("early words")
    window.sees("› early words")
    window.is_ready()
    assert window.text.count("early words") == 1
    window.press(b"\r")
    window.sees("All is done.")
    assert "\n› early words\n" in window.text


def test_the_first_rows_go_away_and_the_keyboard_is_as_before_if_the_session_cannot_start() -> None:
    program = """
import termios
from handrail.chat.first_rows import show_first_rows
from handrail.terminal.style import paint_text

before = termios.tcgetattr(0)
try:
    with show_first_rows(paint_text):
        assert termios.tcgetattr(0) != before
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("the end", termios.tcgetattr(0) == before)
"""
    window = Window.open([sys.executable, "-c", program], Path.cwd(), dict(os.environ), 80, 10)
    assert window.program.ends() == 0
    assert window.lines == ["the end True"]
    window.close()


def test_escape_stops_a_preview_and_nothing_is_changed(chat: Chat, workspace: Path) -> None:
    window = chat({"calls": [["exec", {"command": f"echo two > a.txt; {WAITS}"}]]}, DONE)
    window.sends("change it")
    window.sees("    begun")
    window.press(b"\x1b")
    window.sees("Stopped ·")
    window.is_ready()
    assert window.text.count("Nothing was changed.") == 1
    assert (workspace / "a.txt").read_text() == "one\n"


def test_the_header_names_the_sandbox_and_breaks_between_facts(chat: Chat, tmp_path: Path) -> None:
    narrow = chat(DONE, words=("--session", "task"), columns=60)
    narrow.sees("session task")
    header = "\n".join(narrow.lines)
    assert "\n  overlay sandbox, no network" in header or " · overlay sandbox, no network" in header
    assert "\n  session task" in header or " · session task" in header
    settings = tmp_path / "bare.toml"
    settings.write_text("[sandbox]\ntier = 0\n")
    words = ("--session", "bare", "--mode", "full")
    bare = chat(DONE, words=words, columns=200, HANDRAIL_CONFIG=str(settings))
    bare.sees("· no sandbox · session bare")
    for mode in ("plan", "ask", "auto", "plan"):  # and never full again
        bare.press("\x1b[Z")
        bare.sees(f"mode {mode}")


def test_a_message_is_queued_edited_or_given_to_the_running_turn(chat: Chat, workspace: Path) -> None:
    waits = {"text": "", "calls": [["exec", {"command": "tail -f a.txt | grep -m1 go"}]]}
    window = chat(waits, {"text": "I heard it."}, {"text": "Second."}, words=("--mode", "auto"))
    window.sends("begin")
    window.sees("● exec")
    window.sends("wrong")
    window.sees("1 queued: wrong")
    window.press(b"\x1b[A")
    window.sees_no("1 queued")
    window.sees("› wrong")
    window.press(b"\x03")
    window.sends("use tabs")
    window.sees("1 queued: use tabs")
    window.press(b"\r")
    window.sees("› use tabs (with the next result)")
    window.sends("and then")
    window.sees("1 queued: and then")
    (workspace / "a.txt").write_text("one\ngo\n")
    window.sees("Second.")
    window.is_ready()
    assert window.text.index("use tabs (with") < window.text.index("I heard it.") < window.text.index("› and then")


def list_waiting_commands() -> list[bytes]:
    """The processes that run `WAITS`."""
    commands = [Path(one, "cmdline") for one in Path("/proc").iterdir() if one.name.isdigit()]
    return [line for line in (one.read_bytes() for one in commands if one.exists()) if WAITS.encode() in line]


def test_escape_stops_a_command_and_leaves_no_process(chat: Chat, workspace: Path) -> None:
    window = chat(SLOW, DONE, words=("--mode", "auto"))
    window.sends("wait")
    window.sees("    begun")
    window.press(b"\x1b")
    window.sees("Stopped ·")
    window.is_ready()
    assert re.search(r"\n⊘ exec .*\n  \w.*\.\n    begun\n", window.text)
    assert not list_waiting_commands()


def test_escape_stops_a_model_that_streams_and_its_words_stay(chat: Chat, openai_wire) -> None:
    whole = list(events("I write it.\nAnd more", calls=[("c1", "write", '{"path": "b.txt", "content": "b"}')]))
    named = next(number for number, one in enumerate(whole) if b'"write"' in one)
    openai_wire.sends(Answer(pieces=tuple(whole[: named + 1]), ending="hang"))
    window = chat(words=("--model", openai_wire.model), **openai_wire.environment)
    window.sends("begin")
    window.sees("  I write it.\n  And more\n● write … the model writes the call")
    window.press(b"\x1b")
    window.sees("Stopped ·")
    window.is_ready()
    assert "\n  I write it.\n  And more\n" in window.text


@DEEP
def test_cancelling_works_while_a_prompt_or_a_question_waits(chat: Chat, workspace: Path) -> None:
    window = chat(EDIT, question(), DONE)
    window.sends("begin")
    window.sees("Permission · edit")
    window.answers(b"\x03", "The request still waits. This call has changed nothing.")
    window.sees(" waits for you: /continue asks again")
    assert "Permission · edit" not in window.text
    window.sends("/continue")
    window.sees("Permission · edit")
    window.answers(b"y", "✓ ")
    window.sees("? Which callers?")
    window.answers(b"\x03", "The question still waits. This call has changed nothing.")
    window.is_ready()
    window.sends("/continue")
    window.sees("Esc or Ctrl-D leaves it for later.")
    window.answers(b"\x1b", "Left for later.")
    window.is_ready()
    window.sends("/continue")
    window.sees_after("Left for later.", "? Which callers?")
    window.press(b"2\n")
    window.sees("All is done.")
    assert "\n? Which callers?\n› all\n" in window.text
    assert "untouched" not in window.text
    assert (workspace / "a.txt").read_text() == "two\n"


@DEEP
def test_a_batch_asks_one_request_after_the_other(chat: Chat, workspace: Path) -> None:
    both = [["write", {"path": name, "content": f"{name}\n"}] for name in ("b.txt", "c.txt")]
    window = chat({"calls": both}, DONE)
    window.sends("write both")
    window.sees("Permission 1 of 2 · write")
    window.answers(b"y", "You approved Write b.txt")
    window.sees("Permission 2 of 2 · write")
    window.answers(b"y", "✓ write c.txt")
    window.sees("All is done.")
    assert (workspace / "c.txt").read_text() == "c.txt\n"


def test_a_stale_preview_cannot_be_kept(chat: Chat, workspace: Path) -> None:
    change = {"calls": [["exec", {"command": "sh -c 'echo two > a.txt'"}]]}
    window = chat(change, DONE)
    window.sends("change it")
    window.sees("y keep this result")
    window.answers(b"x", "Rule exec.interpreter needs your approval")
    (workspace / "a.txt").write_text("mine\n")
    window.press(b"y")
    window.sees("Out of date")
    window.answers(b"l", "Left for later")
    assert (workspace / "a.txt").read_text() == "mine\n"


def type_steadily(window: Window, key: bytes, seconds: float) -> tuple[int, float]:
    """Presses a key again and again. Returns how often, and the longest pause."""
    begun = last = time.monotonic()
    count, longest = 0, 0.0
    while last - begun < seconds:
        window.press(key)
        count, before = count + 1, last
        while (last := time.monotonic()) - before < 0.1:
            window.program.terminal.look(0.05)
        longest = max(longest, last - before)
    return count, longest


def test_typing_holds_a_prompt_back_and_stays_in_the_composer(chat: Chat, workspace: Path) -> None:
    window, typed = None, 0
    for attempt in range(10):  # a busy machine may stop this process for a second, so that nothing is typed
        window = chat(EDIT, DONE, words=("--session", f"task{attempt}"))
        window.sends("begin")
        typed, longest = type_steadily(window, b"y", 1.4)
        if longest < 0.8:
            break
        window.program.close()
    assert window is not None
    assert "Permission ·" not in window.text
    window.sees("Stop typing for a second to see it.")
    window.sees("Permission · edit")
    assert (workspace / "a.txt").read_text() == "one\n"
    window.answers(b"y", "✓ ")
    window.sees("All is done.")
    window.sees("\n› " + "y" * typed + "\n")


@DEEP
def test_without_a_key_for_the_model_the_session_is_kept(chat: Chat) -> None:
    window = chat(words=("--model", "anthropic:claude-x"))
    window.sends("hello")
    window.sees("error: no key for anthropic. Set ANTHROPIC_API_KEY")
    saved = "The session is kept. next: handrail chat -c"
    window.waits_for(lambda: saved in " ".join(" ".join(window.lines).split()), saved)
    window.press(b"\x04")
    assert window.program.ends() == 0
    assert "To continue this session: handrail chat -c" in window.text
    again = chat(words=("--model", "anthropic:claude-x", "-c"))
    again.sends("/rewind")
    again.sees("> hello")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_session_with_its_command_and_restores_the_terminal(
    chat: Chat, number: signal.Signals, code: int
) -> None:
    window = chat(SLOW, DONE, words=("--mode", "auto"))
    window.sends("wait")
    window.sees("    begun")
    os.kill(window.program.pid, number)
    assert window.program.ends() == code
    assert "To continue this session: handrail chat -c" in window.text
    modes = termios.tcgetattr(window.program.terminal.device)[3]
    assert modes & termios.ECHO
    assert modes & termios.ICANON
    for switch in ("?1004", "?2004"):  # reports of focus, marks of pastes
        assert window.raw.rindex(f"\x1b[{switch}l") > window.raw.rindex(f"\x1b[{switch}h")
    assert not list_waiting_commands()


@DEEP
def test_a_session_that_a_signal_ended_continues(chat: Chat) -> None:
    window = chat(SLOW, DONE, words=("--mode", "auto"))
    window.sends("wait")
    window.sees("    begun")
    os.kill(window.program.pid, signal.SIGHUP)
    assert window.program.ends() == 129
    again = chat(DONE, words=("-c",), ready=True)
    again.sees("session")


@DEEP
def test_a_prompt_that_waits_does_not_keep_the_session_from_ending(chat: Chat, run_log) -> None:
    window = chat(EDIT, DONE, words=("--session", "task"))
    window.sends("begin")
    window.sees("Permission · edit")
    os.kill(window.program.pid, signal.SIGTERM)
    assert window.program.ends() == 143
    kinds = [event["kind"] for event in run_log("task")]
    assert "tool_call.permission-required" in kinds
    assert "tool_call.permission-denied" not in kinds


def test_a_resize_during_output_loses_nothing_and_leaves_no_frame(chat: Chat, workspace: Path) -> None:
    words = "and more words than a narrow window has columns " * 3
    counts = f"for i in 1 2 3 4; do echo line $i {words}; until grep -q go$i a.txt; do sleep 0.02; done; done"
    window = chat({"calls": [["exec", {"command": counts}]]}, DONE, words=("--mode", "auto"), columns=200)
    window.sends("count")
    window.sees("    line 1")
    window.press("typed meanwhile " * 5)
    window.sees("typed meanwhile " * 4)
    for number, columns in ((1, 60), (2, 120), (3, 45)):
        window.sees(f"    line {number}")
        window.resizes(columns)
        (workspace / "a.txt").write_text("".join(f"go{one}\n" for one in range(1, number + 1)))
        window.sees(f"    line {number + 1}")
        window.waits_for(lambda: [line.count("● exec") for line in window.text.splitlines()].count(1) == 1, "one frame")
    (workspace / "a.txt").write_text("go1\ngo2\ngo3\ngo4\n")
    window.sees("All is done.")
    window.is_ready()
    shown = window.text
    assert "● exec" not in shown
    assert "    line " not in shown
    assert "› count" in shown
    assert sum("All is done." in line for line in shown.splitlines()) == 1


def test_a_paste_of_10000_lines_is_one_line_of_the_composer_and_whole_for_the_model(chat: Chat, run_log) -> None:
    window = chat(DONE, words=("--session", "task"))
    pasted = "\r".join(f"line {number}" for number in range(10_000))
    window.press(f"see \x1b[200~{pasted}\x1b[201~")
    window.sees("› see [Pasted text 1: 10,000 lines]")
    window.press(b"\r")
    window.sees("All is done.")
    assert "line 9999" not in window.text
    prompt = next(event for event in run_log("task") if event["kind"] == "user")
    assert prompt["text"] == "see " + pasted.replace("\r", "\n")


def test_escape_puts_a_queued_paste_back_whole(chat: Chat, run_log) -> None:
    window = chat(SLOW, DONE, words=("--mode", "auto", "--session", "task"))
    window.sends("wait")
    window.sees("    begun")
    pasted = "\r".join(f"line {number}" for number in range(50))
    window.press(f"see \x1b[200~{pasted}\x1b[201~")
    window.sees("› see [Pasted text 1: 50 lines]")
    window.press(b"\r")
    window.sees("1 queued: see [Pasted")
    window.press(b"\x1b")
    window.sees_after("Stopped ·", "› see [Pasted text 1: 50 lines]\n auto ·")
    window.press(b"\r")
    window.sees("All is done.")
    prompt = [event for event in run_log("task") if event["kind"] == "user"][-1]
    assert prompt["text"] == "see " + pasted.replace("\r", "\n")


def test_a_long_turn_is_announced_if_the_person_looks_elsewhere(chat: Chat) -> None:
    shorter = "import sys; from handrail.chat import work; work.LONG_SECONDS = 0.1; from handrail.cli.main import main;"
    long = {"calls": [["exec", {"command": "sleep 0.2"}]]}
    window = chat(long, DONE, long, DONE, words=("--mode", "auto"), program=("-c", f"{shorter} sys.exit(main())"))
    window.press("\x1b[I")  # the window has the focus
    window.sends("begin")
    window.sees("All is done.")
    window.is_ready()
    assert "\x07" not in window.raw
    window.sends("again")
    window.press("\x1b[O")
    window.sees_after("again", "All is done.")
    window.is_ready()
    assert window.raw.count("\x07") == 1


def test_much_output_stays_bounded_and_keys_are_still_read(chat: Chat) -> None:
    size = "100M" if os.environ.get("HANDRAIL_DEEP") else "8M"
    flood = {"calls": [["exec", {"command": f"yes 0123456789abcdef | head -c {size}; sleep 60"}]]}
    window = chat(flood, DONE, words=("--mode", "auto"))
    window.sends("flood")
    window.sees("    0123456789abcdef")
    window.press("typed meanwhile")
    window.sees("› typed meanwhile")
    window.press(b"\x1b")
    window.sees("Stopped ·")
    status = Path(f"/proc/{window.program.pid}/status").read_text()
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    assert peak < 400_000
    assert len(window.raw) < 2_000_000


def test_suspending_gives_the_terminal_back_and_comes_again(chat: Chat, workspace: Path, shell) -> None:
    window: Window = shell(DONE)
    window.press("half a")
    window.sees("› half a")
    window.press(b"\x1a")
    window.sees("Stopped")
    assert window.raw.rindex("\x1b[?1004l") > window.raw.rindex("\x1b[?1004h")
    window.press("echo here again\r")
    window.sees("here again\n")
    window.press("fg\r")
    window.sees("› half a")
    window.press(b" sentence\r")
    window.sees("All is done.")


def test_a_denied_call_is_told_once(chat: Chat, workspace: Path) -> None:
    window = chat(EDIT, EDIT, DONE, words=("--session", "task"))
    window.sends("begin")
    window.sees("Permission · edit")
    window.answers(b"n", "Why not?")
    window.press("use b.txt")
    window.sees("use b.txt")
    window.press("\r")
    window.sees("⊘ edit  a.txt: denied: use b.txt")
    window.sees("Permission · edit")
    window.answers(b"\x03", "The request still waits")
    window.is_ready()
    assert window.text.count("⊘") == 1
    assert (workspace / "a.txt").read_text() == "one\n"


@DEEP
def test_a_resumed_session_shows_where_it_ended(chat: Chat) -> None:
    window = chat(EDIT, DONE)
    window.sends("begin")
    window.sees("Permission · edit")
    window.answers(b"l", "Left for later")
    window.is_ready()
    window.press(b"\x04")
    assert window.program.ends() == 0
    again = chat(DONE, words=("-c",))
    again.sees("The last turn is unfinished.")
    again.sees("\n› begin\n  I change it.\n")
