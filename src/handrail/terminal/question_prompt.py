"""Asks the person at the terminal a question of the model."""

import os
import termios
from collections.abc import Collection
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.text import to_one_line, wrap
from handrail.terminal.keyboard import KeyPress, KeyReader, KeyTiming, enter_raw_mode
from handrail.terminal.screen import Screen

_MAX_REPLY_CHARS = 10_000
_PASTES, _NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"
_PASTE_SECONDS = 0.2
"""In which the next piece of a paste arrives."""


def ask_for_reply(descriptor: int, screen: Screen, question: Question) -> Reply | None:
    """Ask until there is a reply. None if the person leaves it for later (Ctrl-D) or the terminal is gone."""
    with suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)  # earlier keys were not a reply
    menu = _ReplyMenu(question)
    if not screen.plain and len(menu.render(screen)) < screen.size()[1]:
        return _choose_reply(descriptor, screen, menu)
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


class _ReplyMenu:
    """The options of a question. None is chosen at first, so that an early Enter replies nothing."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._at = 0
        self._marked: set[int] = set()
        self._typed = self._problem = ""

    def press(self, key: KeyPress) -> Reply | None:
        """Handles a key. Returns the reply if the key sends one."""
        count = len(self._question.options)
        self._problem = ""
        match key.name:
            case "up" | "down" if count:
                step = 1 if key.name == "down" else -1
                self._at = (self._at - 1 + step) % count + 1 if self._at else (1 if step > 0 else count)
            case "space" if self._question.multiple and self._at and not self._typed:
                self._marked ^= {self._at}
            case "backspace":
                self._typed = self._typed[:-1]
            case "clear":
                self._typed = ""
            case "text" | "space" | "paste":
                self._typed += key.text
            case _:
                pass
        ends = key.text.endswith(("\n", "\r")) if count else len(key.text.splitlines()) > 1
        if key.name == "enter" or (key.name == "paste" and ends):
            return self._send()
        return None

    def render(self, screen: Screen) -> list[str]:
        rows = render_question(self._question, screen, self._at, self._marked)
        several = ", Space marks several" if self._question.multiple else ""
        help_line = rows[-1].strip().replace("Ctrl-D leaves", "Esc or Ctrl-D leaves")
        help_line += f" ↑ ↓ choose{several}." if self._question.options else ""
        rows[-1:] = [f"  {row}" for row in wrap(help_line, screen.width - 2)]
        last = next(reversed([*wrap(to_one_line(self._typed), max(5, screen.width - 4))]), "")
        return [*rows, *([self._problem] if self._problem else []), f"› {screen.to_encodable(last)}"]

    def render_reply(self, screen: Screen, reply: Reply) -> list[str]:
        """The question with the reply, which stay."""
        replied = to_one_line(", ".join(filter(None, [*reply.chosen, reply.text])))
        rows = wrap(replied, max(5, screen.width - 4))
        return [*_render_asked(self._question, screen), *(f"› {screen.to_encodable(row)}" for row in rows)]

    def _send(self) -> Reply | None:
        options, numbers = self._question.options, sorted(self._marked) or [self._at] * bool(self._at)
        if not self._typed.strip() and numbers:
            return Reply(chosen=tuple(options[number - 1] for number in numbers))
        typed, self._typed = self._typed.strip(), ""
        reply, self._problem = interpret_reply(self._question, typed)
        return reply


def _choose_reply(descriptor: int, screen: Screen, menu: _ReplyMenu) -> Reply | None:
    keys = KeyReader(descriptor, KeyTiming())
    screen.mark()
    try:
        with enter_raw_mode(descriptor, lambda: screen.control(_PASTES), lambda: screen.control(_NO_PASTES)):
            while True:
                screen.erase()
                screen.mark()
                screen.write(menu.render(screen))
                while (key := keys.next()) is None:
                    pass
                if key.name in {"gone", "eof", "esc"}:
                    screen.write(["Left for later."])
                    return None
                if (reply := menu.press(key)) is not None:
                    screen.erase()
                    screen.write(menu.render_reply(screen, reply))
                    return reply
    except (OSError, termios.error):
        return None


def render_question(
    question: Question, screen: Screen, at: int = 0, marked: Collection[int] = frozenset()
) -> list[str]:
    """The question, its options with the cursor at one, and how to answer."""
    width = screen.width
    lines = _render_asked(question, screen)
    for number, option in enumerate(question.options, 1):
        first, *more = list(wrap(to_one_line(option), width - 6)) or [""]
        signs = f"{'>' if number == at else ' '}{number:>2}{'*' if number in marked else ' '}"
        lines += [f"{signs} {screen.to_encodable(first)}", *(f"     {screen.to_encodable(row)}" for row in more)]
    return [*lines, f"  {_describe_input(question)}"]


def _render_asked(question: Question, screen: Screen) -> list[str]:
    asked = [row for line in question.question.splitlines() for row in wrap(to_one_line(line), screen.width - 2)]
    return [f"{'?' if at == 0 else ' '} {screen.to_encodable(row)}" for at, row in enumerate(asked)]


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
        return (reply, "") if is_valid else (None, "Choose one: type its number.")
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
