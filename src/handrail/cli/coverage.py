"""What undo does not cover, said wherever somebody may count on it."""

from collections.abc import Iterable
from typing import Any

from handrail.api import Handrail
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.results import SandboxUsed, ToolResult
from handrail.protocol.text import to_one_line


def describe_result_gap(result: ToolResult[Any]) -> str | None:
    """What undo does not cover of a call; None where there is nothing to say."""
    used = result.meta.sandbox
    if used is None or used.undo == "read-only" or getattr(result.data, "session_id", None):
        return None  # it changed nothing; or it goes on, and its own words say what that means
    told = _of_sandbox(used)
    return f"not covered by undo: {told}" if told else None


def describe_record_gap(record: ChangeRecord) -> str:
    """The same of a change in the log; empty where there is nothing to say."""
    return f"not covered by undo: {_joined(record.not_covered)}" if record.not_covered else ""


def list_change_gaps(rail: Handrail, numbers: Iterable[int]) -> list[str]:
    """The same of changes by their numbers, one line each."""
    wanted = frozenset(numbers)
    latest = rail.changes(1)
    if not wanted or not latest:
        return []
    found = rail.changes(max(1, latest[0].number - min(wanted) + 1))
    told = [one for one in found if one.number in wanted and one.not_covered]
    return [f"undo {one.number} does not cover: {_joined(one.not_covered)}" for one in told]


def _of_sandbox(used: SandboxUsed) -> str:
    if used.not_covered:
        return _joined(used.not_covered)
    if used.undo != "none":
        return ""
    why = f" ({to_one_line(used.no_layer)})" if used.no_layer else ""
    return f"what it changed, if anything{why}"


def _joined(told: tuple[str, ...]) -> str:
    return "; ".join(map(to_one_line, told))
