"""What can be answered to a request, by which key, and in which words."""

from typing import NamedTuple

from handrail.protocol.permission import AnswerKind, PermissionRequest
from handrail.terminal.cells import cells, padded, wrapped
from handrail.terminal.request import hidden_lines
from handrail.terminal.told import classes, folders
from handrail.terminal.tried import is_tried

KEYS: dict[str, AnswerKind] = {"y": "once", "s": "session", "w": "workspace", "o": "output", "n": "deny"}
NUMBERS = {"1": "y", "2": "s", "3": "n"}
KEEPING = frozenset("ysw")
"""The keys that would keep what a trial made."""
_LETTERS = {number: letter for letter, number in NUMBERS.items()}
_TWO_COLUMNS = 96
_NOT_NOW = " (not while it is out of date)"


class Choice(NamedTuple):
    """One key and what it does."""

    key: str
    words: str


class Possible(NamedTuple):
    """What can be done about a question besides answering it, where and when it is put."""

    retry: bool = False
    """Whether it can be tried again, also in other words."""
    outdated: tuple[str, ...] = ()
    """What changed since it was tried."""


_ONLY_ANSWERED = Possible()


def choices(request: PermissionRequest, possible: Possible = _ONLY_ANSWERED) -> list[Choice]:
    """What is possible, in the order of the keys; a no always is."""
    words = _keeping(request) if is_tried(request) else _allowing(request)
    answers = {*request.answers, "deny"}
    late = _NOT_NOW if possible.outdated else ""
    found = [
        Choice(key, words[kind] + (late if key in KEEPING else "")) for key, kind in KEYS.items() if kind in answers
    ]
    return [*found, Choice("e", "edit the command and try again")] if _can_retry(request, possible) else found


def choice_lines(
    request: PermissionRequest, *, width: int, plain: bool, possible: Possible = _ONLY_ANSWERED
) -> list[str]:
    """The keys that answer, and those that show more. In plain form one a line, numbered where there is a number."""
    found, others = choices(request, possible), _others(request, possible, plain=plain)
    if plain:
        named = [f"{_numbered(one.key)}{one.words}" for one in found]
        return [row for line in (*named, *others) for row in wrapped(line, width, "  ")]
    return [*_columns(found, width), *wrapped(" · ".join(others), width, "  ")]


def _allowing(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "allow it, this once",
        "session": f"allow it, and {grant} in this session",
        "workspace": f"allow it, and {grant} in this workspace",
        "output": "drop its changes, show the model what it printed",
        "deny": "deny it and say why",
    }


def _keeping(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "keep this result",
        "session": f"keep, and {grant} in this session",
        "workspace": f"keep, and {grant} in this workspace",
        "output": "drop changes, show model output",
        "deny": "drop it and say why",
    }


def _granted(request: PermissionRequest) -> str:
    """What else a yes for longer lets be."""
    if request.kind == "external_directory":
        return f"open {folders(request)}"
    return f"stop asking for {classes(request)}"


def _others(request: PermissionRequest, possible: Possible, *, plain: bool) -> list[str]:
    """What shows more, or puts it off."""
    tried = is_tried(request)
    named = ["d diff", "v output"] if tried else ["d all of the change"] if hidden_lines(request) else []
    named += ["r try again"] if _can_retry(request, possible) and (possible.outdated or not _went_well(request)) else []
    named += ["x why do you ask?", "l later (stays in `handrail approvals`)"]
    return [line.replace(" ", ": ", 1) for line in named] if plain else named


def _can_retry(request: PermissionRequest, possible: Possible) -> bool:
    return possible.retry and request.command is not None


def _went_well(request: PermissionRequest) -> bool:
    tried = request.preview.tried if request.preview is not None else None
    return tried is not None and tried.exit_code == 0


def _numbered(key: str) -> str:
    return f"{_LETTERS[key]} or {key}: " if key in _LETTERS else f"{key}: "


def _columns(found: list[Choice], width: int) -> list[str]:
    lines = {one.key: f"{one.key} {one.words}" for one in found}
    left = [lines[key] for key in "yno" if key in lines]
    right = [lines[key] for key in "swe" if key in lines]
    side = max(map(cells, left)) + 3
    if width >= _TWO_COLUMNS and right and side + max(map(cells, right)) <= width:
        rows = max(len(left), len(right))
        left, right = (column + [""] * (rows - len(column)) for column in (left, right))
        return [f"{padded(one, side)}{other}".rstrip() for one, other in zip(left, right, strict=True)]
    return [row for one in found for row in wrapped(lines[one.key], width, "  ")]
