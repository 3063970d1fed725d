"""Asks a question of the model on a terminal."""

import os
import termios
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Question, Reply, normalize_reply
from handrail.protocol.text import to_one_line, wrap
from handrail.terminal.keyboard import KeyReader, KeyTiming, enter_raw_mode
from handrail.terminal.screen import Screen

_MAX_REPLY_CHARS = 10_000
_PASTE_SECONDS = 0.2
"""In which the next piece of a paste comes."""


def ask_for_reply(descriptor: int, screen: Screen, question: Question) -> Reply | None:
    """Asks until there is a reply. None when the person leaves it for later (Ctrl-D), or the terminal is gone."""
    with suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)  # what was typed before was for nobody
    screen.write(render_question(question, screen))
    while True:
        try:
            typed = _read(descriptor)
        except (OSError, termios.error):
            return None
        if not typed:
            screen.write(["Left for later."])
            return None
        reply, problem = interpret_reply(question, typed.decode(errors="replace").strip())
        if reply is not None:
            return reply
        screen.write([problem])


def _read(descriptor: int) -> bytes:
    """A line, and the rest of a paste that it is the beginning of: a shell would run what is left behind."""
    typed = os.read(descriptor, 65_536)
    if typed:
        with enter_raw_mode(descriptor, lambda: None, lambda: None):  # else an unfinished line could not be read
            typed += KeyReader(descriptor, KeyTiming(deaf=_PASTE_SECONDS)).rest()
    return typed


def render_question(question: Question, screen: Screen) -> list[str]:
    """The question, its choices, and how to answer."""
    width = screen.width
    asked = [row for line in question.question.splitlines() for row in wrap(to_one_line(line), width - 2)]
    lines = [f"{'?' if at == 0 else ' '} {screen.to_encodable(row)}" for at, row in enumerate(asked)]
    for number, option in enumerate(question.options, 1):
        rows = list(wrap(to_one_line(option), width - 6)) or [""]
        lines += [
            f"{number:>3}  {screen.to_encodable(rows[0])}",
            *(f"     {screen.to_encodable(row)}" for row in rows[1:]),
        ]
    return [*lines, f"  {_how(question)}"]


def parse_reply(question: Question, typed: str) -> Reply | str:
    """What a person typed, in whatever face: the numbers of options, with commas or blanks between them, or words. An
    option that is a number itself goes before the number of one: what is typed is what the model reads."""
    numbered = {str(number): option for number, option in enumerate(question.options, start=1)}
    numbered |= {option: option for option in question.options if option.isdigit()}
    parts = _parts(typed)
    if typed in question.options or not parts or not all(part in numbered for part in parts):
        return typed
    return Reply(chosen=tuple(dict.fromkeys(numbered[part] for part in parts)))


def spell_out(question: Question, typed: str) -> str:
    """The same in words: a prompt is a text."""
    said = parse_reply(question, typed)
    return "\n".join(said.chosen) if isinstance(said, Reply) else said


def interpret_reply(question: Question, typed: str) -> tuple[Reply | None, str]:
    """The reply that a text is; otherwise what to type instead."""
    said, count = parse_reply(question, typed), len(question.options)
    if isinstance(said, Reply):
        is_one = question.multiple or len(said.chosen) == 1
        return (said, "") if is_one else (None, "One of them, please: type its number.")
    if len(said) > _MAX_REPLY_CHARS:
        return None, f"A reply has at most {_MAX_REPLY_CHARS:,} characters. This one has {len(said):,}."
    try:
        return normalize_reply(replace(question, custom=question.custom or not question.options), said), ""
    except UsageError:
        if "".join(_parts(typed)).isdigit():
            return None, f"There are {count} choices: type a number from 1 to {count}."
        return None, _how(question)


def _parts(typed: str) -> list[str]:
    return typed.replace(",", " ").split()


def _how(question: Question) -> str:
    if not question.options:
        return "Type your reply, then Enter. Ctrl-D leaves it for later."
    numbers = "the numbers, with commas between them" if question.multiple else "a number"
    own = " or your own words" if question.custom else ""
    return f"Type {numbers}{own}, then Enter. Ctrl-D leaves it for later."
