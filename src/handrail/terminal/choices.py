"""What can be answered to a request, by which key, and in which words."""

from typing import NamedTuple

from handrail.protocol.permission import Answer, AnswerKind, PermissionRequest
from handrail.terminal.cells import cells, cut, padded, wrapped
from handrail.terminal.request import exact_line, hidden_lines, subject

KEYS: dict[str, AnswerKind] = {"y": "once", "s": "session", "w": "workspace", "o": "output", "n": "deny"}
NUMBERS = {"1": "y", "2": "s", "3": "n"}
_LETTERS = {number: letter for letter, number in NUMBERS.items()}
_TWO_COLUMNS = 96


class Choice(NamedTuple):
    """One key and what it does."""

    key: str
    words: str


def choices(request: PermissionRequest) -> list[Choice]:
    """The answers that are possible, in the order of their keys; a no always is."""
    grant = _granted(request)
    words: dict[AnswerKind, str] = {
        "once": "allow it, this once",
        "session": f"allow it, and {grant} in this session",
        "workspace": f"allow it, and {grant} in this workspace",
        "output": "drop its changes, show the model what it printed",
        "deny": "deny it and say why",
    }
    possible = {*request.answers, "deny"}
    return [Choice(key, words[kind]) for key, kind in KEYS.items() if kind in possible]


def choice_lines(request: PermissionRequest, *, width: int, plain: bool) -> list[str]:
    """The keys that answer, and those that show more. In plain form one a line, numbered where there is a number."""
    found = choices(request)
    if plain:
        named = [f"{_numbered(one.key)}{one.words}" for one in found]
        return [row for line in (*named, *_others(request, plain=True)) for row in wrapped(line, width, "  ")]
    return [*_columns(found, width), *wrapped(" · ".join(_others(request, plain=False)), width, "  ")]


def told(request: PermissionRequest, answer: Answer, *, width: int, plain: bool) -> str:
    """The line that stays after an answer."""
    if answer.kind == "deny":
        said = f": {exact_line(answer.reason)}" if answer.reason else ""
        room = max(20, width - cells(said) - 14)
        return cut(f"{'denied:' if plain else '⊘'} You denied {cut(subject(request), room)}{said}", width)
    how = _how(request, answer)
    room = max(20, width - cells(how) - 14)
    return f"{'ok:' if plain else '✓'} You allowed {cut(subject(request), room)}{how}"


def _how(request: PermissionRequest, answer: Answer) -> str:
    if answer.kind == "output":
        return ", its output only"
    if answer.kind not in {"session", "workspace"}:
        return " once"
    if request.kind == "external_directory":
        return f", and opened {_folders(request)} to this {answer.kind}"
    return f", and {_classes(request)} in this {answer.kind}"


def _folders(request: PermissionRequest) -> str:
    return ", ".join(map(exact_line, request.pattern[::2]))


def _classes(request: PermissionRequest) -> str:
    return ", ".join(f"`{exact_line(name)}`" for name in request.grants)


def _granted(request: PermissionRequest) -> str:
    """What else a yes for longer lets be."""
    if request.kind == "external_directory":
        return f"open {_folders(request)}"
    return f"stop asking for {_classes(request)}"


def _others(request: PermissionRequest, *, plain: bool) -> list[str]:
    more = ["d all of the change"] if hidden_lines(request) else []
    named = [*more, "x why do you ask?", "l later (stays in `handrail approvals`)"]
    return [line.replace(" ", ": ", 1) for line in named] if plain else named


def _numbered(key: str) -> str:
    return f"{_LETTERS[key]} or {key}: " if key in _LETTERS else f"{key}: "


def _columns(found: list[Choice], width: int) -> list[str]:
    lines = {one.key: f"{one.key} {one.words}" for one in found}
    left = [lines[key] for key in "yno" if key in lines]
    right = [lines[key] for key in "sw" if key in lines]
    side = max(map(cells, left)) + 3
    if width >= _TWO_COLUMNS and right and side + max(map(cells, right)) <= width:
        right += [""] * (len(left) - len(right))
        return [f"{padded(one, side)}{other}".rstrip() for one, other in zip(left, right, strict=False)]
    return [row for one in found for row in wrapped(lines[one.key], width, "  ")]
