"""Looks at something that is longer than a question has room for, on the whole screen: its differences, its output."""

from collections.abc import Callable

import msgspec

from handrail.protocol.changes import Preview
from handrail.protocol.text import escape_control, wrap
from handrail.terminal.changed import render_changes
from handrail.terminal.differences import parse_file_diffs, render_rows
from handrail.terminal.keys import KeyPress, KeyReader
from handrail.terminal.screen import Screen

_FILE_KEYS = "] [ next file · space marks as read · ↑ ↓ scroll · q back"
_TEXT_KEYS = "↑ ↓ space scroll · q back"
_CUT = "… the preview is cut here"


class ViewerPage(msgspec.Struct, frozen=True):
    """Something to look at."""

    name: str
    rows: Callable[[int], list[str]]
    """In so many columns."""


def build_diff_pages(preview: Preview, *, plain: bool = False) -> list[ViewerPage]:
    """One for each file that has a difference to show, and one for the others."""
    found = [
        ViewerPage(one.path or "change", lambda width, one=one: render_rows(one, width))
        for one in parse_file_diffs(preview.text)
    ]
    if preview.truncated:
        found.append(ViewerPage("the rest", lambda _: [_CUT]))
    tried = preview.tried
    if tried is None or (found and all(change.added or change.removed for change in tried.changes)):
        return found
    return [*found, ViewerPage("all files", lambda width: render_changes(tried, width, plain=plain, most=None))]


def build_output_page(preview: Preview) -> ViewerPage:
    """What a preview printed."""
    lines = escape_control(preview.output.expandtabs(8)).rstrip("\n").split("\n") if preview.output else ["(nothing)"]
    told = preview.tried.lines if preview.tried is not None else len(lines)
    more = [f"… {told - len(lines)} more lines"] if told > len(lines) else []
    return ViewerPage("output", lambda width: [row for one in (*lines, *more) for row in wrap(one or " ", width, "  ")])


def browse(
    screen: Screen, keys: KeyReader, sheets: list[ViewerPage], goes_on: Callable[[KeyPress | None], bool]
) -> None:
    """Shows the sheets one after the other, until the person has seen enough or the question is gone."""
    looking, drawn = _Looking(sheets), None
    try:
        while True:
            if drawn != (now := (looking.place, screen.size())):
                looking.draw(screen)
                drawn = now
            key = keys.next()
            if not goes_on(key) or (key is not None and not looking.press(key, screen.size()[1])):
                return
    finally:
        screen.close_page()
        keys.drop_early()  # what was pressed too often was meant for the page


class _Looking:
    """Where somebody is who looks at sheets."""

    def __init__(self, sheets: list[ViewerPage]) -> None:
        self._sheets = sheets
        self._at = self._top = self._length = 0
        self._read: set[int] = set()

    @property
    def place(self) -> tuple[int, int, frozenset[int]]:
        """What is seen: it is drawn again only when that is something else."""
        return self._at, self._top, frozenset(self._read)

    def draw(self, screen: Screen) -> None:
        columns, height = screen.size()
        lines = self._sheets[self._at].rows(columns - 1)
        self._length = len(lines)
        room = height - 2
        self._top = max(0, min(self._top, self._length - room))
        page = [screen.to_encodable(line) for line in lines[self._top : self._top + room]]
        keys = _FILE_KEYS if len(self._sheets) > 1 else _TEXT_KEYS
        where = f"{min(self._top + room, self._length)} of {self._length} lines"
        screen.draw_page([self._heading(screen), *page, *[""] * (room - len(page)), f"{where} · {keys}"])

    def press(self, key: KeyPress, height: int) -> bool:
        """Does what a key says; whether that was not to go back."""
        moves = {"up": -1, "down": 1, "page up": 2 - height, "page down": height - 2, "enter": 1}
        letter = key.text if key.name == "text" else ""
        if letter == "q" or key.name in {"esc", "gone"}:
            return False
        if letter in {"]", "["}:
            self._turn(1 if letter == "]" else -1)
        elif key.name == "space" and len(self._sheets) > 1:
            self._read ^= {self._at}
            self._turn(1 if self._at in self._read else 0)
        elif key.name in {"home", "end"}:
            self._top = 0 if key.name == "home" else self._length
        else:
            self._top += moves.get("page down" if key.name == "space" else key.name, 0)
        return True

    def _turn(self, by: int) -> None:
        there = max(0, min(len(self._sheets) - 1, self._at + by))
        if there != self._at:
            self._at, self._top = there, 0

    def _heading(self, screen: Screen) -> str:
        name = screen.to_encodable(self._sheets[self._at].name)
        if len(self._sheets) == 1:
            return name
        mark = " · read" if self._at in self._read else ""
        return f"{name}{mark} · {self._at + 1} of {len(self._sheets)}, {len(self._read)} read"
