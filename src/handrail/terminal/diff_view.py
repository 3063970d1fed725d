"""Shows the diff or the output of a preview on the whole screen."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from handrail.edit.diff_parser import DiffLine, iterate_diff
from handrail.protocol.changes import Preview
from handrail.protocol.text import escape_control, escape_exact_line, measure_width, wrap
from handrail.terminal.changes_text import render_changes
from handrail.terminal.keyboard import KeyPress, KeyReader
from handrail.terminal.screen import Screen
from handrail.terminal.style import Paint, Style, pad_painted, paint_nothing

_MIN_SIDE_BY_SIDE_COLUMNS = 119
"""The room on a screen of 120 columns."""
_NUMBER_COLUMNS = 5
_STYLES: dict[str, Style] = {"added": "added", "removed": "removed", "hunk": "hunk", "remark": "dim"}
_SIGNS = {"context": " ", "added": "+", "removed": "-"}
_FILE_KEYS = "q back · ] [ next file · space marks as read · ↑ ↓ scroll"
_SHORT_FILE_KEYS = "q back · ] [ file · space read · ↑ ↓ scroll"
_TEXT_KEYS = "q back · ↑ ↓ space scroll"
_CUT = "… the preview is cut here"


class ViewerPage(msgspec.Struct, frozen=True):
    name: str
    rows: Callable[[int], list[str]]
    """Renders the page in so many columns."""


class FileDifference(NamedTuple):
    path: str
    lines: list[DiffLine]


def build_diff_pages(preview: Preview, *, plain: bool = False, paint: Paint = paint_nothing) -> list[ViewerPage]:
    """A page for each file with a diff, and one for the files without."""
    pages = [
        ViewerPage(file.path or "change", lambda width, file=file: render_rows(file, width, paint))
        for file in parse_file_diffs(preview.text)
    ]
    if preview.truncated:
        pages.append(ViewerPage("the rest", lambda _: [_CUT]))
    run = preview.tried
    if run is not None and not (pages and all(change.added or change.removed for change in run.changes)):
        pages.append(
            ViewerPage("all files", lambda width: render_changes(run, width, plain=plain, most=None, paint=paint))
        )
    return pages


def build_output_page(preview: Preview) -> ViewerPage:
    """A page with the output of a preview."""
    lines = escape_control(preview.output.expandtabs(8)).rstrip("\n").split("\n") if preview.output else ["(nothing)"]
    missing = preview.tried.lines - len(lines) if preview.tried is not None else 0
    if missing > 0:
        lines.append(f"… {missing} more lines")
    return ViewerPage("output", lambda width: [row for line in lines for row in wrap(line or " ", width, "  ")])


def browse(
    screen: Screen, keys: KeyReader, pages: list[ViewerPage], goes_on: Callable[[KeyPress | None], bool]
) -> None:
    """Show pages until the person goes back or `goes_on` says no."""
    viewer, drawn = _Viewer(pages), None
    try:
        while True:
            if drawn != (state := (viewer.state, screen.size())):
                viewer.draw(screen)
                drawn = state
            key = keys.next()
            if not goes_on(key) or (key is not None and not viewer.press(key, screen.size()[1])):
                return
    finally:
        screen.close_page()
        keys.drop_early()  # a surplus key was meant for the page


def parse_file_diffs(text: str) -> list[FileDifference]:
    """The files of a unified diff. Remarks before the first file belong to one without a name."""
    files, source = [FileDifference("", [])], ""
    for line in iterate_diff(text):
        if line.kind == "source":
            source = line.text
        elif line.kind == "target":
            files.append(FileDifference(_name_file(source, line.text), []))
        else:
            files[-1].lines.append(line)
    return [file for file in files if file.path or file.lines]


def render_rows(difference: FileDifference, width: int, paint: Paint = paint_nothing) -> list[str]:
    """The lines of a file in rows of so many columns. On a wide screen old and new lines stand side by side."""
    lines = [
        line._replace(text=escape_control(line.text.removesuffix("\n").expandtabs(8))) for line in difference.lines
    ]
    if width >= _MIN_SIDE_BY_SIDE_COLUMNS:
        return list(_render_side_by_side(lines, (width - 3) // 2, width, paint))
    return [
        row
        for line in lines
        for row in _render_line(line, line.old if line.kind == "removed" else line.new, width, paint)
    ]


def _name_file(source: str, target: str) -> str:
    """The path in a header, quoted as git quotes it."""
    name = source if target == "/dev/null" else target
    return escape_exact_line(name.replace("b/", "", 1) if name.startswith(("b/", '"b/')) else name.replace("a/", "", 1))


def _render_side_by_side(lines: list[DiffLine], half: int, width: int, paint: Paint) -> Iterator[str]:
    at = 0
    while at < len(lines):
        if lines[at].kind not in {"added", "removed"}:
            line, at = lines[at], at + 1
            if line.kind == "context":
                old, new = (_render_line(line, number, half, paint) for number in (line.old, line.new))
                yield from _pair(old, new, half)
            else:
                yield from _render_line(line, None, width, paint)
            continue
        start = at
        while at < len(lines) and lines[at].kind in {"added", "removed", "remark"}:
            at += 1
        removed = [_render_line(line, line.old, half, paint) for line in lines[start:at] if line.kind == "removed"]
        added = [_render_line(line, line.new, half, paint) for line in lines[start:at] if line.kind == "added"]
        for left, right in zip_longest(removed, added, fillvalue=list[str]()):
            yield from _pair(left, right, half)


def _pair(left: list[str], right: list[str], half: int) -> Iterator[str]:
    for one, other in zip_longest(left, right, fillvalue=""):
        yield f"{pad_painted(one, half)} │ {other}".rstrip()


def _render_line(line: DiffLine, number: int | None, width: int, paint: Paint) -> list[str]:
    """A line with its number, wrapped."""
    style = _STYLES.get(line.kind)
    rows = _number_rows(line, number, width)
    return [paint(row, style) for row in rows] if style is not None else rows


def _number_rows(line: DiffLine, number: int | None, width: int) -> list[str]:
    if line.kind not in _SIGNS:
        return list(wrap(line.text, width, "  ")) or [""]
    start = f"{number if number is not None else '':>{_NUMBER_COLUMNS}} {_SIGNS[line.kind]} "
    room = max(10, width - measure_width(start))
    rows = list(wrap(line.text, room)) or [""]
    return [f"{start}{rows[0]}", *(" " * measure_width(start) + row for row in rows[1:])]


class _Viewer:
    """The position in the pages, and which pages are marked as read."""

    def __init__(self, pages: list[ViewerPage]) -> None:
        self._pages = pages
        self._at = self._top = self._length = 0
        self._read: set[int] = set()

    @property
    def state(self) -> tuple[int, int, frozenset[int]]:
        """Everything that a drawing depends on, besides the size of the screen."""
        return self._at, self._top, frozenset(self._read)

    def draw(self, screen: Screen) -> None:
        columns, height = screen.size()
        lines = self._pages[self._at].rows(columns - 1)
        self._length = len(lines)
        room = height - 2
        self._top = max(0, min(self._top, self._length - room))
        rows = [screen.to_encodable(line) for line in lines[self._top : self._top + room]]
        keys = _FILE_KEYS if len(self._pages) > 1 else _TEXT_KEYS
        position = f"{min(self._top + room, self._length)} of {self._length} lines"
        if measure_width(f"{position} · {keys}") >= columns and keys is _FILE_KEYS:
            keys = _SHORT_FILE_KEYS
        screen.draw_page(
            [self._heading(screen), *rows, *[""] * (room - len(rows)), screen.paint(f"{position} · {keys}", "dim")]
        )

    def press(self, key: KeyPress, height: int) -> bool:
        """Handle a key. False if it goes back."""
        moves = {"up": -1, "down": 1, "page up": 2 - height, "page down": height - 2, "enter": 1}
        letter = key.text if key.name == "text" else ""
        if letter == "q" or key.name in {"esc", "gone"}:
            return False
        if letter in {"]", "["}:
            self._turn(1 if letter == "]" else -1)
        elif key.name == "space" and len(self._pages) > 1:
            self._read ^= {self._at}
            self._turn(1 if self._at in self._read else 0)
        elif key.name in {"home", "end"}:
            self._top = 0 if key.name == "home" else self._length
        else:
            self._top += moves.get("page down" if key.name == "space" else key.name, 0)
        return True

    def _turn(self, by: int) -> None:
        target = max(0, min(len(self._pages) - 1, self._at + by))
        if target != self._at:
            self._at, self._top = target, 0

    def _heading(self, screen: Screen) -> str:
        name = screen.to_encodable(self._pages[self._at].name)
        if len(self._pages) == 1:
            return name
        mark = " · read" if self._at in self._read else ""
        return f"{name}{mark} · {self._at + 1} of {len(self._pages)}, {len(self._read)} read"
