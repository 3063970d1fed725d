"""Asks the person at the terminal a question of the model."""

import os
import termios
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.text import to_one_line, wrap
from handrail.terminal.keyboard import KeyReader, KeyTiming, enter_raw_mode
from handrail.terminal.screen import Screen

_MAX_REPLY_CHARS = 10_000
_PASTE_SECONDS = 0.2
"""In which the next piece of a paste arrives."""


def ask_for_reply(descriptor: int, screen: Screen, question: Question) -> Reply | None:
    """Ask until there is a reply. None if the person leaves it for later (Ctrl-D) or the terminal is gone."""
    with suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)  # earlier keys were not a reply
    screen.write(render_question(question, screen))
    while True:
        try:
            typed = _read_line(descriptor)
        except (OSError, termios.error):
            return None
        if not typed:
            screen.write(["Left for later."])
            return None
        reply, problem = interpret_reply(question, typed.decode(errors="replace").strip())
        if reply is not None:
            return reply
        screen.write([problem])


def render_question(question: Question, screen: Screen) -> list[str]:
    """The question, its options, and how to answer."""
    width = screen.width
    asked = [row for line in question.question.splitlines() for row in wrap(to_one_line(line), width - 2)]
    lines = [f"{'?' if at == 0 else ' '} {screen.to_encodable(row)}" for at, row in enumerate(asked)]
    for number, option in enumerate(question.options, 1):
        first, *more = list(wrap(to_one_line(option), width - 6)) or [""]
        lines += [f"{number:>3}  {screen.to_encodable(first)}", *(f"     {screen.to_encodable(row)}" for row in more)]
    return [*lines, f"  {_describe_input(question)}"]


def parse_reply(question: Question, typed: str) -> Reply | str:
    """The typed text as a reply, in every face: numbers of options, separated by commas or blanks, or words.

    An option that is a number itself takes precedence over the number of an option.
    """
    numbered = {str(number): option for number, option in enumerate(question.options, start=1)}
    numbered |= {option: option for option in question.options if option.isdigit()}
    parts = _split(typed)
    if typed in question.options or not parts or not all(part in numbered for part in parts):
        return typed
    return Reply(chosen=tuple(dict.fromkeys(numbered[part] for part in parts)))


def spell_out(question: Question, typed: str) -> str:
    """The typed text with options instead of their numbers, for a prompt to the model."""
    reply = parse_reply(question, typed)
    return "\n".join(reply.chosen) if isinstance(reply, Reply) else reply


def interpret_reply(question: Question, typed: str) -> tuple[Reply | None, str]:
    """The reply, or what to type instead."""
    reply, count = parse_reply(question, typed), len(question.options)
    if isinstance(reply, Reply):
        is_valid = question.multiple or len(reply.chosen) == 1
        return (reply, "") if is_valid else (None, "One of them, please: type its number.")
    if len(reply) > _MAX_REPLY_CHARS:
        return None, f"A reply has at most {_MAX_REPLY_CHARS:,} characters. This one has {len(reply):,}."
    try:
        return replace(question, custom=question.custom or not question.options).normalize_reply(reply), ""
    except UsageError:
        if "".join(_split(typed)).isdigit():
            return None, f"There are {count} choices: type a number from 1 to {count}."
        return None, _describe_input(question)


def _read_line(descriptor: int) -> bytes:
    """Read a line with the rest of its paste. A shell would run lines that are left in the queue."""
    typed = os.read(descriptor, 65_536)
    if typed:
        with enter_raw_mode(descriptor, lambda: None, lambda: None):  # an unfinished line is readable only in raw mode
            typed += KeyReader(descriptor, KeyTiming(deaf=_PASTE_SECONDS)).rest()
    return typed


def _split(typed: str) -> list[str]:
    return typed.replace(",", " ").split()


def _describe_input(question: Question) -> str:
    if not question.options:
        return "Type your reply, then Enter. Ctrl-D leaves it for later."
    numbers = "the numbers, with commas between them" if question.multiple else "a number"
    own = " or your own words" if question.custom else ""
    return f"Type {numbers}{own}, then Enter. Ctrl-D leaves it for later."
