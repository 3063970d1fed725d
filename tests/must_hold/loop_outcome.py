"""What a play of the session of twelve calls left behind, in words that do not change from run to run."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from loop_script import CALLS, opened
from tests.agent.checked_events import check_events

from handrail import AsyncHandrail
from handrail.protocol.events import End, ToolCallEnd, ToolCallError, ToolCallPermissionGranted, ToolCallStart
from handrail.protocol.messages import AssistantMessage, Message
from handrail.state import StoredState
from handrail.store.audit import decode_record

EFFECTS = {2: "made/new.txt", 3: "list.txt", 4: "first.txt", 6: ".github/workflows/asked.yml",
           10: "other.txt", 11: "second.txt"}  # fmt: skip
"""What each call that changes something changes."""
_TIMES = {"duration_ms", "durationMs", "mtime", "tool_call_id", "message_id"}
_UNDO = re.compile(r"undo \d+")


class Outcome(NamedTuple):
    """All that must be the same."""

    ids: list[str]
    talk: list[Any]
    results: list[Any]
    files: dict[str, str]

    def code(self, call: int) -> str | None:
        error = self.results[call]["error"]
        return error["code"] if error else None


def outcome(workspace: Path, state: Path) -> Outcome:
    """Reads it, and checks what must be so however often the session was killed."""
    rail = opened(workspace, state)
    try:
        return _checked(rail, workspace, state)
    finally:
        rail.rail.close()


def _checked(rail: AsyncHandrail, workspace: Path, state: Path) -> Outcome:
    events = check_events(rail)
    messages = [one.message for one in rail.conversation.messages()]
    ids = [part.tool_call_id for one in messages if isinstance(one, AssistantMessage) for part in one.calls]
    results = {one.tool_call_id: one.result for one in events if isinstance(one, ToolCallEnd | ToolCallError)}
    assert len(ids) == CALLS
    assert [one.tool_call_id for one in events if isinstance(one, ToolCallStart)] == ids
    assert set(results) == set(ids)
    (end,) = (one for one in events if isinstance(one, End))
    assert (end.reason, end.calls, end.text) == ("done", CALLS, "Done.")
    assert len([one for one in events if isinstance(one, ToolCallPermissionGranted)]) == 1
    assert audited(state) == sorted(ids)
    assert StoredState(str(state)).verify().problems == ()
    talk = [_plain(one) for one in messages]
    return Outcome(ids, talk, [_plain(results[one]) for one in ids], tree(workspace))


def audited(state: Path) -> list[str]:
    """The calls that the audit has a line of."""
    with (state / "audit.jsonl").open("rb") as lines:
        return sorted(found[0].tool_call_id for line in lines if (found := decode_record(line)))


def tree(workspace: Path) -> dict[str, str]:
    """Every file with its text, every folder."""
    found: dict[str, str] = {}
    for folder, _, names in os.walk(workspace):
        found[os.path.relpath(folder, workspace)] = "folder"
        for name in names:
            path = Path(folder, name)
            found[str(path.relative_to(workspace))] = path.read_text()
    return found


def without(files: dict[str, str], path: str, before: dict[str, str]) -> dict[str, str]:
    """The files as they would be had nobody changed that one."""
    folders = {str(one) for one in Path(path).parents}
    return {name: before.get(name, text) if name == path else text for name, text in files.items()
            if name in before or not (name == path or name in folders)}  # fmt: skip


def but_for_undo(plain: Any) -> Any:
    """The same where a change before it may be missing: then those after it have other numbers."""
    if isinstance(plain, dict):
        return {name: but_for_undo(value) for name, value in plain.items() if name != "undo"}
    if isinstance(plain, list):
        return [but_for_undo(value) for value in plain]
    return _UNDO.sub("undo", plain) if isinstance(plain, str) else plain


def _plain(found: Message | Any) -> Any:
    return _stable(msgspec.to_builtins(found))


def _stable(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _stable(value) for name, value in plain.items() if name not in _TIMES}
    if isinstance(plain, list | tuple):
        return [_stable(value) for value in plain]
    return plain
