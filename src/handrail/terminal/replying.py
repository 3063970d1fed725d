"""A question of the model's to the person: choices by their numbers, own words where they are welcome."""

import os
import termios
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.error import UsageError
from handrail.protocol.question import Question, Reply
from handrail.terminal.cells import wrapped
from handrail.terminal.screen import Screen
from handrail.terminal.visible import one_line
from handrail.tools.companions.replying import reply_to

_LONGEST = 10_000


def ask_for_reply(descriptor: int, screen: Screen, question: Question) -> Reply | None:
    """Asks until there is a reply. None when the person leaves it for later (Ctrl-D), or the terminal is gone."""
    with suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)  # what was typed before was for nobody
    screen.write(question_lines(question, screen))
    while True:
        try:
            typed = os.read(descriptor, 65_536)
        except OSError:
            return None
        if not typed:
            screen.write(["Left for later."])
            return None
        reply, problem = understood(question, typed.decode(errors="replace").strip()[:_LONGEST])
        if reply is not None:
            return reply
        screen.write([problem])


def question_lines(question: Question, screen: Screen) -> list[str]:
    """The question, its choices, and how to answer."""
    width = screen.width
    asked = [row for line in question.question.splitlines() for row in wrapped(one_line(line), width - 2)]
    lines = [f"{'?' if at == 0 else ' '} {screen.spelled(row)}" for at, row in enumerate(asked)]
    for number, option in enumerate(question.options, 1):
        rows = list(wrapped(one_line(option), width - 6)) or [""]
        lines += [f"{number:>3}  {screen.spelled(rows[0])}", *(f"     {screen.spelled(row)}" for row in rows[1:])]
    return [*lines, f"  {_how(question)}"]


def understood(question: Question, typed: str) -> tuple[Reply | None, str]:
    """The reply that a line is; otherwise what to type instead. An option that is a number itself goes before the
    number of one: what is typed is what the model reads."""
    if not typed:
        return None, _how(question)
    words = [word.strip() for word in typed.split(",")]
    are_numbers = all(word.isascii() and word.isdigit() and len(word) < 4 for word in words)
    if question.options and are_numbers and typed not in question.options:
        return _chosen(question, typed, list(dict.fromkeys(map(int, words))))
    try:
        return reply_to(replace(question, custom=question.custom or not question.options), typed), ""
    except UsageError:
        return None, _how(question)


def _chosen(question: Question, typed: str, numbers: list[int]) -> tuple[Reply | None, str]:
    if all(1 <= number <= len(question.options) for number in numbers):
        if len(numbers) > 1 and not question.multiple:
            return None, "One of them, please: type its number."
        return Reply(chosen=tuple(question.options[number - 1] for number in numbers)), ""
    if question.custom:
        return Reply(text=typed), ""
    return None, f"There are {len(question.options)} choices: type a number from 1 to {len(question.options)}."


def _how(question: Question) -> str:
    if not question.options:
        return "Type your reply, then Enter. Ctrl-D leaves it for later."
    numbers = "the numbers, with commas between them" if question.multiple else "a number"
    own = " or your own words" if question.custom else ""
    return f"Type {numbers}{own}, then Enter. Ctrl-D leaves it for later."
