"""A question at a terminal: a yes is deliberate, a no is easy, and the terminal is given back as it was."""

import io
import os
import re
import termios
from datetime import UTC, datetime

import pytest

from handrail.protocol.changes import Preview
from handrail.protocol.permissions import Answer
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.permission_prompt import RequestHooks
from handrail.terminal.screen import Screen
from people import QUICK, Ask, Terminal, a_request

GRANTABLE = a_request(
    command="ruff format src", answers=("once", "session", "workspace", "deny"), grants=("ruff format",)
)
EDITS = a_request(
    command="sed -i s/a/b/ x.py", answers=("once", "session", "workspace", "edits", "deny"), grants=("sed -i",)
)
SEVERAL = a_request(
    command="git add . && ruff format",
    answers=("once", "session", "workspace", "deny"),
    grants=("git add", "ruff format"),
)
LONG = a_request(command="\n".join(f"echo {number}" for number in range(100)))


@pytest.mark.parametrize(
    ("key", "kind"), [(b"y", "once"), (b"1", "once"), (b"s", "session"), (b"2", "session"), (b"w", "workspace")]
)
def test_one_key_is_a_yes(ask: Ask, key: bytes, kind: str) -> None:
    asked = ask(GRANTABLE)
    assert asked.answer(key) == Answer(kind=kind)
    assert "You allowed ruff format src" in asked.terminal.shown.rpartition("└")[2]


def test_the_line_that_stays_says_what_was_granted(ask: Ask) -> None:
    asked = ask(GRANTABLE)
    asked.answer(b"w")
    assert "✓ You allowed ruff format src, and `ruff format` in this workspace\n" in asked.terminal.shown


@pytest.mark.parametrize("plain", [False, True])
def test_several_grants_are_shown_and_can_be_left_out(ask: Ask, plain: bool) -> None:
    asked = ask(SEVERAL, plain=plain)
    asked.until(b"s", lambda: "Stop asking in this session for:" in asked.terminal.shown)
    assert "\n  1 [x] `git add`\n  2 [x] `ruff format`\n" in asked.terminal.shown
    asked.until(b"1", lambda: "\n  1 [ ] `git add`\n" in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="session", grants=("ruff format",))
    assert "allowed git add . && ruff format, and `ruff format` in this session\n" in asked.terminal.shown


def test_all_of_several_grants_are_given_unless_one_is_left_out(ask: Ask) -> None:
    asked = ask(SEVERAL)
    asked.until(b"w", lambda: "Stop asking in this workspace for:" in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="workspace", grants=("git add", "ruff format"))


def test_what_is_to_be_granted_can_be_cancelled_and_nothing_at_all_is_not_granted(ask: Ask) -> None:
    asked = ask(SEVERAL)
    asked.until(b"s", lambda: "Stop asking in this session for:" in asked.terminal.shown)
    for key in (b"1", b"2", b"9", b"\r"):
        asked.terminal.press(key)
        asked.rests()
    asked.terminal.press(b"y")
    asked.rests()
    assert "\n  1 [ ] `git add`\n  2 [ ] `ruff format`\n" in asked.terminal.shown
    asked.terminal.press(b"\x1b")
    asked.rests()
    assert asked.answer(b"y") == Answer(kind="once")


def test_plain_edits_are_allowed_by_a_key_where_they_are_offered(ask: Ask) -> None:
    asked = ask(EDITS)
    assert asked.answer(b"a") == Answer(kind="edits")
    assert "a allow it, and allow plain edits in this session" in asked.terminal.shown
    assert "✓ You allowed sed -i s/a/b/ x.py, and plain edits in this session\n" in asked.terminal.shown


def test_plain_edits_are_offered_in_plain_form_too(ask: Ask) -> None:
    asked = ask(EDITS, plain=True)
    asked.terminal.sees("\nRun this command?\n1 or y: allow it, this once\n")
    asked.terminal.sees("\na: allow it, and allow plain edits in this session\n")
    assert asked.answer(b"a") == Answer(kind="edits")


NO_ANSWERS = [b"s", b"2", b"w", b"a", b"o", b"e", b"\n", b"\r", b"\t", b"\x04", b"Y", b"\x1b[A", b"\x1b[3~"]


def test_a_key_that_is_not_offered_answers_nothing(ask: Ask) -> None:
    asked = ask().listens()
    for number, key in enumerate(NO_ANSWERS, start=2):
        asked.terminal.press(key)
        asked.until(b"x", lambda number=number: asked.terminal.shown.count("Permissions: ") >= number)
    assert asked.answer(b"l") is None


def test_output_only_is_an_answer_where_it_is_offered(ask: Ask) -> None:
    assert ask(a_request(answers=("once", "output", "deny"))).answer(b"o") == Answer(kind="output")


def test_enter_is_no_answer(ask: Ask) -> None:
    asked = ask().listens()
    asked.terminal.press(b"\r")
    asked.until(b"x", lambda: asked.terminal.shown.count("Permissions: ") > 1)
    assert asked.answer(b"y") == Answer(kind="once")


@pytest.mark.parametrize(
    "pasted", [b"\x1b[200~y\x1b[201~", b"\x1b[200~l\x1b[201~", b"yy", b"y\n", b"\x1b[200~a\x1b[201~y"]
)
def test_a_pasted_text_is_no_answer(ask: Ask, pasted: bytes) -> None:
    asked = ask().listens()
    asked.terminal.press(pasted)
    asked.terminal.sees("Pasted text is ignored")
    asked.terminal.press(b"n")
    asked.terminal.sees("Why not?")
    assert asked.answer(b"\r") == Answer(kind="deny")


def test_the_terminal_is_told_to_mark_pastes_while_it_asks(ask: Ask) -> None:
    asked = ask()
    asked.answer(b"y")
    assert "\x1b[?2004h" in asked.terminal.shown.partition("make")[0]
    assert asked.terminal.shown.rstrip().endswith("\x1b[?2004l")


def test_keys_that_were_typed_before_are_no_answer(ask: Ask) -> None:
    asked = ask(typed=b"y", timing=QUICK._replace(quiet=0.3))
    assert asked.listens().answer(b"l") is None
    assert "Approval needed. Stop typing" in asked.terminal.shown


def test_it_does_not_appear_while_somebody_types(ask: Ask) -> None:
    asked = ask(timing=QUICK._replace(quiet=3600))
    asked.terminal.press(b"y")
    asked.terminal.sees("Approval needed. Stop typing for a second to see it.")
    assert "Permission" not in asked.terminal.sees_whole()
    asked.terminal.hang_up()
    assert asked.answer() is None


def test_a_key_that_came_too_early_is_told(ask: Ask) -> None:
    asked = ask(timing=QUICK._replace(deaf=1.0))
    asked.terminal.sees("┘")
    asked.terminal.press(b"y")
    asked.terminal.sees("Your key came too early and was ignored. Press it again.")
    assert asked.answer(b"y") == Answer(kind="once")


def test_it_takes_no_key_in_its_first_moments(ask: Ask) -> None:
    asked = ask(timing=QUICK._replace(deaf=3600))
    asked.terminal.sees("└")
    asked.terminal.press(b"y")
    asked.terminal.is_read()
    asked.terminal.hang_up()
    assert asked.answer() is None


def test_how_long_it_waits_unless_told_otherwise() -> None:
    assert (KeyTiming().quiet, KeyTiming().deaf) == (1.0, 0.4)


def test_a_no_asks_why(ask: Ask) -> None:
    asked = ask().listens()
    asked.terminal.press(b"n")
    asked.terminal.sees("Why not?")
    for key, shown in ((b"u", "u"), (b"x", "ux"), (b"\x7f", "u"), (b"s", "us"), (b" ", "us "), ("ü".encode(), "us ü")):
        asked.terminal.press(key)
        asked.terminal.ends_with(f"Why not? Enter denies, Esc goes back: {shown}")
    asked.terminal.press(b"\x1b[200~staging\nnow\x1b[201~")
    asked.terminal.sees("us üstaging now")
    assert asked.answer(b"\r") == Answer(kind="deny", reason="us üstaging now")
    assert "⊘ You denied make: us üstaging now\n" in asked.terminal.shown


@pytest.mark.parametrize("key", [b"n", b"3", b"\x1b"])
def test_a_no_needs_no_reason_and_can_be_taken_back_before_it_is_sent(ask: Ask, key: bytes) -> None:
    asked = ask().listens()
    asked.terminal.press(key)
    asked.terminal.sees("Why not?")
    asked.terminal.press(b"\x1b")
    asked.terminal.ends_with("\x1b[K")
    asked.terminal.press(key)
    asked.terminal.ends_with("Why not? Enter denies, Esc goes back: ")
    assert asked.answer(b"\r") == Answer(kind="deny")


def test_later_leaves_it(ask: Ask) -> None:
    asked = ask()
    assert asked.answer(b"l") is None
    assert "Left for later (handrail approvals lists it): make" in asked.terminal.shown


def test_what_is_longer_than_the_screen_must_be_seen_to_its_end(ask: Ask) -> None:
    asked = ask(LONG, rows=24)
    asked.until(b"y", lambda: "Read the whole request first: space shows more, then y." in asked.terminal.shown)
    assert "echo 99" not in asked.terminal.shown
    asked.until(b"\x1b[B", lambda: "> echo 30" in asked.terminal.shown)
    asked.terminal.press(b"y")
    asked.rests()
    assert "You allowed" not in asked.terminal.shown
    asked.until(b" ", lambda: "└" in asked.terminal.shown)
    assert all(f" echo {number} " in asked.terminal.shown for number in range(100))
    assert asked.answer(b"y") == Answer(kind="once")


def test_it_can_be_denied_before_it_is_seen_to_its_end(ask: Ask) -> None:
    asked = ask(LONG, rows=24)
    asked.until(b"n", lambda: "Why not?" in asked.terminal.shown)
    answer = asked.answer(b"\r")
    assert answer is not None
    assert answer.kind == "deny"


def test_a_long_change_is_shown_in_part_and_whole_when_asked_for(ask: Ask) -> None:
    text = "".join(f"+line {number}\n" for number in range(60))
    asked = ask(
        a_request(tool_name="write", command=None, description="Write a.txt", preview=Preview(kind="diff", text=text)),
        rows=60,
    )
    asked.terminal.sees("… 20 more lines")
    assert "line 59" not in asked.terminal.shown
    asked.until(b"d", lambda: "+line 40" in asked.terminal.shown)
    asked.until(b" ", lambda: "+line 59" in asked.terminal.shown)
    asked.until(b"q", lambda: "\x1b[?1049l" in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="once")


def test_a_question_that_somebody_else_answered_goes_away(ask: Ask) -> None:
    asked = ask(hooks=RequestHooks(still_open=lambda _: False))
    assert asked.answer() is None
    assert "Answered elsewhere: make\n" in asked.terminal.shown


def test_one_of_several_says_which(ask: Ask) -> None:
    asked = ask(number=2, of=3)
    asked.terminal.sees("Permission 2 of 3 · exec")
    asked.answer(b"l")


def test_a_terminal_that_is_hung_up_gives_no_answer(ask: Ask) -> None:
    asked = ask()
    asked.terminal.sees("└")
    asked.terminal.hang_up()
    assert asked.answer() is None


@pytest.mark.parametrize("key", [b"y", b"l"])
def test_the_terminal_is_as_it_was_afterwards(ask: Ask, key: bytes) -> None:
    asked = ask()
    asked.terminal.sees("└")
    assert not termios.tcgetattr(asked.terminal.device)[3] & termios.ECHO
    asked.answer(key)
    assert termios.tcgetattr(asked.terminal.device) == asked.terminal.modes


@pytest.mark.parametrize("how", [{"term": "dumb"}, {"term": ""}, {"plain": True}])
def test_in_plain_form_nothing_steers_the_terminal_and_choices_have_numbers(ask: Ask, how) -> None:
    asked = ask(GRANTABLE, **how)
    asked.terminal.sees("\n1 or y: allow it, this once\n")
    asked.terminal.sees("\n2 or s: allow it, and stop asking for `ruff format` in this session\n")
    asked.terminal.sees("\n3 or n: deny it and say why\n")
    asked.answer(b"1")
    assert asked.terminal.shown.endswith("ok: You allowed ruff format src once\n")
    assert set(asked.terminal.shown) <= {chr(code) for code in range(32, 127)} | {"\n", "·"}


def test_an_encoding_without_these_characters_gets_others(ask: Ask) -> None:
    asked = ask(a_request(command="echo ü"), encoding="ascii")
    asked.answer(b"y")
    assert asked.terminal.shown.isascii()
    assert "Permission - exec\n$ echo \\u00fc\n" in asked.terminal.shown


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "\\u2013rf \\u2026"), ("latin-1", "\\u2013rf \\u2026")])
def test_nothing_of_a_command_is_shown_as_something_else_that_looks_like_it(
    ask: Ask, encoding: str, shown: str
) -> None:
    asked = ask(a_request(command="rm –rf …"), encoding=encoding)
    asked.answer(b"y")
    assert f"$ rm {shown}\n" in asked.terminal.shown
    assert f"You allowed rm {shown} once\n" in asked.terminal.shown


@pytest.mark.parametrize("columns", [20, 44, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(ask: Ask, columns: int) -> None:
    command = "printf '%s' " + "word " * 40 + "x" * 150 + " 全角文字" * 20
    asked = ask(a_request(command=command, hosts=("a-long-host-name.example.org:443",)), columns=columns, rows=200)
    asked.until(b"x", lambda: "Permissions: " in asked.terminal.shown)
    question = asked.terminal.shown.partition("Permission")[2]
    assert all(wide(line) <= columns for line in re.sub("\x1b\\[[0-9]*[A-Za-z]|\r", "", question).split("\n"))
    asked.answer(b"l")


@pytest.mark.parametrize("columns", [20, 44, 80, 100])
def test_no_line_about_a_file_is_wider_than_the_terminal(ask: Ask, columns: int) -> None:
    preview = Preview(kind="diff", text="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", time=datetime.now(UTC))
    name, answers = "long-name/" * 12 + "cart.py", ("once", "edits", "deny")
    about = {"permissions": ("fs.write",), "paths": (name,), "description": f"Edit {name}", "preview": preview}
    asked = ask(a_request(command=None, answers=answers, **about), columns=columns, rows=200)
    asked.until(b"x", lambda: "Permissions: " in asked.terminal.shown)
    question = asked.terminal.shown.partition("Permission")[2]
    assert all(wide(line) <= columns for line in re.sub("\x1b\\[[0-9]*[A-Za-z]|\r", "", question).split("\n"))
    asked.answer(b"l")


def wide(line: str) -> int:
    return sum(2 if char in "全角文字" else 1 for char in line)


def test_the_terminal_is_told_of_an_end_also_while_something_is_being_written_to_it() -> None:
    """As a signal does that comes in the middle: Python lets no stream be written to inside a write to it."""
    terminal = Terminal(80, 24)
    told: list[int] = []

    class Interrupted(io.FileIO):
        def write(self, data, /) -> int:
            if not told:
                told.append(1)
                screen.control("\x1b[?2004l")
            return super().write(data) or 0

    with io.TextIOWrapper(io.BufferedWriter(Interrupted(os.dup(terminal.device), "w")), "utf-8") as stream:
        screen = Screen(stream, {"TERM": "xterm"})
        screen.write(["a question"])
    terminal.sees("\x1b[?2004la question")
    terminal.hang_up()
    os.close(terminal.device)
