"""What can be answered to a request, by which key, and in which words."""

from typing import NamedTuple

from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.protocol.text import measure_width, pad, wrap
from handrail.terminal.request import count_hidden_lines
from handrail.terminal.told import format_command_classes, format_folders
from handrail.terminal.tried import has_preview_run

KEYS: dict[str, AnswerKind] = {"y": "once", "s": "session", "w": "workspace", "o": "output", "n": "deny"}
NUMBERS = {"1": "y", "2": "s", "3": "n"}
KEEPING = frozenset("ysw")
"""The keys that would commit what a preview changed."""
_LETTERS = {number: letter for letter, number in NUMBERS.items()}
_MIN_TWO_COLUMN_WIDTH = 96
_NOT_NOW = " (not while it is out of date)"


class PromptChoice(NamedTuple):
    """One key and what it does."""

    key: str
    words: str
    takes_reason: bool = False

    @property
    def label(self) -> str:
        return f"{self.words} and say why" if self.takes_reason else self.words


class PromptState(NamedTuple):
    """What can be done about a question besides answering it, where and when it is put."""

    retry: bool = False
    """Whether it can be tried again, also in other words."""
    outdated: tuple[str, ...] = ()
    """What changed since it was tried."""


_ONLY_ANSWERED = PromptState()


def list_choices(request: PermissionRequest, possible: PromptState = _ONLY_ANSWERED) -> list[PromptChoice]:
    """What is possible, in the order of the keys; a no always is."""
    words = _keeping(request) if has_preview_run(request) else _allowing(request)
    answers = {*request.answers, "deny"}
    late = _NOT_NOW if possible.outdated else ""
    found = [
        PromptChoice(key, words[kind] + (late if key in KEEPING else ""), takes_reason=kind == "deny")
        for key, kind in KEYS.items()
        if kind in answers
    ]
    return [*found, PromptChoice("e", "edit the command and try again")] if _can_retry(request, possible) else found


def render_choices(
    request: PermissionRequest, *, width: int, plain: bool, possible: PromptState = _ONLY_ANSWERED
) -> list[str]:
    """The keys that answer, and those that show more. In plain form one a line, numbered where there is a number."""
    found, others = list_choices(request, possible), _others(request, possible, plain=plain)
    if plain:
        named = [f"{_numbered(one.key)}{one.label}" for one in found]
        return [row for line in (*named, *others) for row in wrap(line, width, "  ")]
    return [*_columns(found, width), *wrap(" · ".join(others), width, "  ")]


def _allowing(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "allow it, this once",
        "session": f"allow it, and {grant} in this session",
        "workspace": f"allow it, and {grant} in this workspace",
        "output": "drop its changes, show the model what it printed",
        "deny": "deny it",
    }


def _keeping(request: PermissionRequest) -> dict[AnswerKind, str]:
    grant = _granted(request)
    return {
        "once": "keep this result",
        "session": f"keep, and {grant} in this session",
        "workspace": f"keep, and {grant} in this workspace",
        "output": "drop changes, show model output",
        "deny": "drop it",
    }


def _granted(request: PermissionRequest) -> str:
    """What else a yes for longer lets be."""
    if request.kind == "external_directory":
        return f"open {format_folders(request)}"
    return f"stop asking for {format_command_classes(request)}"


def _others(request: PermissionRequest, possible: PromptState, *, plain: bool) -> list[str]:
    """What shows more, or puts it off."""
    tried = has_preview_run(request)
    named = ["d diff", "v output"] if tried else ["d all of the change"] if count_hidden_lines(request) else []
    named += ["r try again"] if _can_retry(request, possible) and (possible.outdated or not _went_well(request)) else []
    named += ["x why do you ask?", "l later (stays in `handrail approvals`)"]
    return [line.replace(" ", ": ", 1) for line in named] if plain else named


def _can_retry(request: PermissionRequest, possible: PromptState) -> bool:
    return possible.retry and request.command is not None


def _went_well(request: PermissionRequest) -> bool:
    tried = request.preview.tried if request.preview is not None else None
    return tried is not None and tried.exit_code == 0


def _numbered(key: str) -> str:
    return f"{_LETTERS[key]} or {key}: " if key in _LETTERS else f"{key}: "


def _columns(found: list[PromptChoice], width: int) -> list[str]:
    lines = {one.key: f"{one.key} {one.label}" for one in found}
    left = [lines[key] for key in "yno" if key in lines]
    right = [lines[key] for key in "swe" if key in lines]
    side = max(map(measure_width, left)) + 3
    if width >= _MIN_TWO_COLUMN_WIDTH and right and side + max(map(measure_width, right)) <= width:
        rows = max(len(left), len(right))
        left, right = (column + [""] * (rows - len(column)) for column in (left, right))
        return [f"{pad(one, side)}{other}".rstrip() for one, other in zip(left, right, strict=True)]
    return [row for one in found for row in wrap(lines[one.key], width, "  ")]
