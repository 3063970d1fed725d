"""What a person types to a question of the model, and what it means."""

import os
import select
import termios
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.permissions import Question, Reply
from handrail.terminal.keyboard import enter_raw_mode
from handrail.terminal.question_prompt import ask_for_reply, interpret_reply, parse_reply, render_question, spell_out
from handrail.terminal.screen import Screen
from people import DEADLINE, Terminal


def a_question(*options: str, **more: Any) -> Question:
    return Question(tool_call_id="call-1", question="Which one?", options=options, **more)


CASES = [
    (a_question("a", "b"), "2", Reply(chosen=("b",))),
    (a_question("a", "b"), "a", Reply(chosen=("a",))),
    (a_question("a", "b"), "A", Reply(chosen=("a",))),
    (a_question("2", "4", "8"), "2", Reply(chosen=("2",))),
    (a_question("2", "4", "8"), "3", Reply(chosen=("8",))),
    (a_question("a", "b"), "1,2", None),
    (a_question("a", "b"), "0", None),
    (a_question("a", "b"), "9" * 5_000, None),
    (a_question("a", "b"), "c", None),
    (a_question("a", "b"), "", None),
    (a_question("a", "b", multiple=True), "2, 1,2", Reply(chosen=("b", "a"))),
    (a_question("a", "b", multiple=True), "b, a", Reply(chosen=("a", "b"))),
    (a_question("a", "b", multiple=True), "1,3", None),
    (a_question("a", "b", multiple=True, custom=True), "1 2", Reply(chosen=("a", "b"))),
    (a_question("a", "b", multiple=True), "2\n1", Reply(chosen=("b", "a"))),
    (a_question("2", "3", "4", multiple=True), "2 3", Reply(chosen=("2", "3"))),
    (a_question("2", "3", "4", multiple=True), "1, 4", Reply(chosen=("2", "4"))),
    (a_question("1, 2", "b", multiple=True), "1, 2", Reply(chosen=("1, 2",))),
    (a_question("a", "b", custom=True), "1 2", None),
    (a_question("a", "b", multiple=True, custom=True), "1 3", Reply(text="1 3")),
    (a_question(), "x" * 10_001, None),
    (a_question("a", "b", custom=True), "neither", Reply(text="neither")),
    (a_question("a", "b", custom=True), "42", Reply(text="42")),
    (a_question("a", "b", custom=True), "", None),
    (a_question(), "12", Reply(text="12")),
    (a_question(), "", None),
]


@pytest.mark.parametrize(("question", "typed", "reply"), CASES)
def test_a_line_is_a_choice_own_words_or_nothing(question: Question, typed: str, reply: Reply | None) -> None:
    found, problem = interpret_reply(question, typed)
    assert found == reply
    assert bool(problem) is (reply is None)


@pytest.mark.parametrize(("question", "typed", "reply"), CASES)
def test_what_is_typed_means_the_same_wherever_it_is_typed(question: Question, typed: str, reply: Reply | None) -> None:
    said = parse_reply(question, typed)
    if isinstance(said, Reply):
        assert reply in {said, None}
        assert spell_out(question, typed) == "\n".join(said.chosen)
    else:
        assert said == spell_out(question, typed) == typed


@given(st.text(max_size=30), st.booleans(), st.booleans(), st.lists(st.text(max_size=5), max_size=4, unique=True))
def test_whatever_is_typed_only_what_was_offered_is_chosen(
    typed: str, multiple: bool, custom: bool, options: list[str]
) -> None:
    question = a_question(*options, multiple=multiple, custom=custom)
    reply, _ = interpret_reply(question, typed.strip())
    if reply is None:
        return
    assert typed.strip()
    assert set(reply.chosen) <= set(options)
    assert len(reply.chosen) <= 1 or multiple
    assert (reply.text is None) == bool(reply.chosen)
    assert reply.text is None or custom or not options


def test_nothing_of_a_question_reaches_the_terminal_raw() -> None:
    terminal = Terminal()
    with open(os.dup(terminal.device), "w", encoding="utf-8") as stream:
        question = Question(tool_call_id="c", question="a\x1b[2Jb\nc", options=("x\u202ey\n2  z",))
        lines = render_question(question, Screen(stream, {"TERM": "xterm"}))
    terminal.hang_up()
    os.close(terminal.device)
    assert lines[:3] == ["? a\\u001b[2Jb", "  c", "  1  x\\u202ey\\n2  z"]


def test_a_terminal_that_is_gone_gives_no_reply() -> None:
    terminal = Terminal()
    with open(os.dup(terminal.device), "w", encoding="utf-8") as stream:
        screen = Screen(stream, {"TERM": "xterm"})
        terminal.hang_up()
        reader, writer = os.pipe()
        os.close(writer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(screen, "write", lambda _: None)
            assert ask_for_reply(reader, screen, a_question("a")) is None
        os.close(reader)
    os.close(terminal.device)


@pytest.mark.parametrize(
    ("question", "presses", "reply"),
    [
        (a_question("a", "b", "c"), ((b"\x1b[B", "> 1  a"), (b"\x1b[B", "> 2  b"), (b"\n", "")), Reply(chosen=("b",))),
        (a_question("a", "b", "c"), ((b"\x1b[A", "> 3  c"), (b"\x1b[B", "> 1  a"), (b"\n", "")), Reply(chosen=("a",))),
        (a_question("a", "b"), ((b"\n", "Type a number"), (b"2", "› 2"), (b"\n", "")), Reply(chosen=("b",))),
        (
            a_question("a", "b", "c", multiple=True),
            ((b"\x1b[A", "> 3  c"), (b" ", "> 3* c"), (b"\x1b[A", "> 2  b"), (b" ", "> 2* b"), (b"\n", "")),
            Reply(chosen=("b", "c")),
        ),
        (a_question("a", custom=True), ((b"n", "› n"), (b"o", "› no"), (b"\n", "")), Reply(text="no")),
        (a_question("a", "b"), ((b"\x1b[B", "> 1  a"), (b"\x04", "Left for later.")), None),
    ],
)
def test_arrow_keys_and_enter_choose_and_enter_alone_chooses_nothing(
    question: Question, presses: tuple[tuple[bytes, str], ...], reply: Reply | None
) -> None:
    terminal = Terminal()
    replies: list[Reply | None] = []
    with open(os.dup(terminal.device), "w", encoding="utf-8") as stream:
        screen = Screen(stream, {"TERM": "xterm"})
        asked = threading.Thread(target=lambda: replies.append(ask_for_reply(terminal.device, screen, question)))
        asked.start()
        terminal.sees("↑ ↓ choose")
        for key, shown in presses:
            terminal.press(key)
            terminal.sees_again(shown)
        asked.join(DEADLINE)
    assert replies == [reply]
    if reply is not None:
        stays = ", ".join([*reply.chosen, *([reply.text] if reply.text else [])])
        assert terminal.sees_whole().endswith(f"› {stays}\n\x1b[?2004l")
    assert termios.tcgetattr(terminal.device) == terminal.modes
    terminal.hang_up()
    os.close(terminal.device)


@pytest.mark.parametrize("last", [b"", b"\n"], ids=["open", "ended"])
def test_a_pasted_reply_is_taken_whole_and_leaves_nothing_to_the_shell(last: bytes) -> None:
    terminal = Terminal()
    replies: list[Reply | None] = []
    with open(os.dup(terminal.device), "w", encoding="utf-8") as stream:
        screen = Screen(stream, {"TERM": "xterm"})
        asked = threading.Thread(target=lambda: replies.append(ask_for_reply(terminal.device, screen, a_question())))
        asked.start()
        terminal.sees("Type your reply")
        terminal.press(b"see below\nrm -r build\nthen go on" + last)
        asked.join(DEADLINE)
    assert replies == [Reply(text="see below\nrm -r build\nthen go on")]
    assert termios.tcgetattr(terminal.device) == terminal.modes
    with enter_raw_mode(terminal.device, lambda: None, lambda: None):  # as a shell reads it
        assert not select.select([terminal.device], [], [], 0)[0]
    terminal.hang_up()
    os.close(terminal.device)
