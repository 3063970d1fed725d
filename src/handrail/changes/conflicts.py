"""Why a change cannot simply be undone, in words that help."""

import msgspec

from handrail.changes.history import History
from handrail.changes.ways import has_same_content
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import LoggedChangeSet
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import PathState

_MAX_TOLD_CONFLICTS = 5


class Conflict(msgspec.Struct, frozen=True):
    """A file that is no longer what the change made of it."""

    path: str
    """As results name it."""
    changed_by: tuple[int, ...]
    """Later change sets; none when something else than handrail changed it."""
    undos: tuple[int, ...]
    """Those of them that are undos, which are not undone along with others."""
    lines: bool
    """Whether something in it is as it was left."""


class LaterChanges:
    """The change sets that came after those that are to be undone."""

    def __init__(self, history: History, entries: list[LoggedChangeSet]) -> None:
        self._log = history.log
        self._own = {entry.number for entry in entries}
        self._entries: dict[int, LoggedChangeSet | None] = {}
        self._left: dict[int, dict[bytes, State | None]] = {}

    def conflict(self, path: bytes, found: PathState, *, shown: str, lines: bool) -> Conflict:
        """Who changed a file since: others, unless it is as a later change set left it."""
        numbers = [one for one in self._log.numbers_touching(path, min(self._own)) if one not in self._own]
        later = [entry for number in numbers if (entry := self._entry(number)) is not None]
        if not later or not has_same_content(self._after(later[-1]).get(path), found.state):
            return Conflict(shown, (), (), lines)
        changes = tuple(entry.number for entry in later if entry.in_effect and not entry.body.undoes)
        undos = () if changes else (later[-1].number,)
        return Conflict(shown, changes or undos, undos, lines)

    def _entry(self, number: int) -> LoggedChangeSet | None:
        if number not in self._entries:
            self._entries[number] = self._log.entry(number)
        return self._entries[number]

    def _after(self, entry: LoggedChangeSet) -> dict[bytes, State | None]:
        """What a set left at each of its paths."""
        if entry.number not in self._left:
            self._left[entry.number] = {step.path: step.after for step in entry.body.steps}
        return self._left[entry.number]


def build_undo_error(numbers: tuple[int, ...], conflicts: tuple[Conflict, ...]) -> ToolError:
    """What a person is told: which file, by whom, and what can be done instead."""
    told = " ".join(_told(conflict) for conflict in conflicts[:_MAX_TOLD_CONFLICTS])
    more = (
        f" {len(conflicts) - _MAX_TOLD_CONFLICTS} more files likewise." if len(conflicts) > _MAX_TOLD_CONFLICTS else ""
    )
    choices: list[str] = []
    if all(conflict.changed_by and not conflict.undos for conflict in conflicts):
        choices.append("later")
    if all(conflict.lines for conflict in conflicts):
        choices.append("lines")
    message = f"Undo {format_numbers(numbers)}: {told}{more} Nothing was undone.{_ways(choices, numbers)}"
    details = [{"path": conflict.path, "changedBy": list(conflict.changed_by)} for conflict in conflicts]
    return ToolError("CONFLICT", message, details={"conflicts": details, "choices": choices})


def format_numbers(numbers: tuple[int, ...]) -> str:
    """1, 2 and 3."""
    return " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))


_WAYS = {
    "later": "undo the later changes too (--with-later)",
    "lines": "undo only the lines that are as they were left (--lines)",
}


def _ways(choices: list[str], numbers: tuple[int, ...]) -> str:
    if not choices:
        return f" handrail diff {numbers[-1]} shows what it did, for what you want to take back by hand."
    return f" You can {', or '.join(_WAYS[choice] for choice in choices)}."


def _told(conflict: Conflict) -> str:
    path = clip_path(conflict.path)
    if conflict.undos:
        return f"{path} was changed again by {format_numbers(conflict.undos)}, an undo."
    if conflict.changed_by:
        return f"{path} was changed again by {format_numbers(conflict.changed_by)}."
    return f"{path} was changed since, not by handrail."
