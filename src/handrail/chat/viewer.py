"""Whole-screen views of a session: pages to read, rows to choose from."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from handrail.protocol.text import escape_control, to_one_line, truncate_to_width, wrap
from handrail.terminal.diff_view import ViewerPage, browse, parse_file_diffs, render_rows
from handrail.terminal.keyboard import KeyReader, KeyTiming, enter_raw_mode
from handrail.terminal.screen import Screen
from handrail.terminal.session_view import Card
from handrail.terminal.style import Paint

_CHOICE_KEYS = "↑ ↓ choose · enter take it · q back"
_PASTES, _NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


def show_pages(pages: Sequence[ViewerPage], goes_on: Callable[[], bool]) -> None:
    """Shows pages until the person goes back, or `goes_on` says no."""
    with _OpenScreen() as opened:
        browse(opened.screen, opened.keys, [*pages], lambda _: goes_on())


def choose_row(title: str, rows: Sequence[str], goes_on: Callable[[], bool]) -> int | None:
    """The number of the row that the person chooses, from 0. None: they went back, or `goes_on` says no. The rows are
    escaped."""
    at = 0
    with _OpenScreen() as opened:
        screen = opened.screen
        try:
            while goes_on():
                screen.draw_page(_render_choice(screen, title, rows, at))
                key = opened.keys.next()
                match key and (key.text if key.name == "text" else key.name):
                    case "up" | "k":
                        at = max(0, at - 1)
                    case "down" | "j":
                        at = min(len(rows) - 1, at + 1)
                    case "enter":
                        return at
                    case "esc" | "q" | "gone":
                        return None
                    case _:
                        pass
        finally:
            screen.close_page()
    return None


def build_card_pages(cards: Sequence[Card], paint: Paint) -> list[ViewerPage]:
    """A page for each call: its arguments, its diff, its output."""
    return [ViewerPage(card.title, lambda width, card=card: _render_card(card, width, paint)) for card in cards]


def build_diff_pages(text: str, paint: Paint) -> list[ViewerPage]:
    """A page for each file of a diff."""
    return [
        ViewerPage(file.path or "change", lambda width, file=file: render_rows(file, width, paint))
        for file in parse_file_diffs(text)
    ]


def build_text_page(name: str, lines: Sequence[str]) -> ViewerPage:
    """A page of lines that are escaped."""
    return ViewerPage(name, lambda width: [row for line in lines for row in wrap(line, width) or [""]])


class _OpenScreen:
    """The terminal in raw mode."""

    def __init__(self) -> None:
        self.screen = Screen(sys.stderr, os.environ)
        self.keys = KeyReader(sys.stdin.fileno(), KeyTiming(deaf=0.05))
        control = self.screen.control
        self._mode = enter_raw_mode(sys.stdin.fileno(), lambda: control(_PASTES), lambda: control(_NO_PASTES))

    def __enter__(self) -> Self:
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.screen.close_page()
        self._mode.__exit__(None, None, None)


def _render_choice(screen: Screen, title: str, rows: Sequence[str], at: int) -> list[str]:
    columns, height = screen.size()
    room = height - 3
    first = max(0, min(at - room // 2, len(rows) - room))
    shown = [
        truncate_to_width(f"{'>' if number == at else ' '} {row}", columns - 1)
        for number, row in enumerate(rows[first : first + room], first)
    ]
    return [screen.paint(title, "heading"), *shown, *[""] * (room - len(shown)), screen.paint(_CHOICE_KEYS, "dim")]


def _render_card(card: Card, width: int, paint: Paint) -> list[str]:
    parts: list[tuple[str, Callable[[], list[str]]]] = [("arguments", lambda: _render_arguments(card.args, width))]
    if card.diff:
        files = parse_file_diffs(card.diff)
        parts.append(("diff", lambda: [row for file in files for row in render_rows(file, width, paint)]))
    if card.output:
        parts.append(("output", lambda: _wrap_text(card.output, width)))
    return [row for name, render in parts for row in (paint(name, "heading"), *render(), "")]


def _render_arguments(args: object, width: int) -> list[str]:
    if not isinstance(args, dict):
        return _wrap_text(repr(args), width)
    given = msgspec.to_builtins(args).items()
    texts = (
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in given
    )
    return [row for name, text in texts for row in _wrap_text(f"{to_one_line(str(name))}: {text}", width)]


def _wrap_text(text: str, width: int) -> list[str]:
    lines = escape_control(text.expandtabs(8)).rstrip("\n").split("\n")
    return [row for line in lines for row in (list(wrap(line, width, "  ")) or [""])]
