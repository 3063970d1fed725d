"""Reads and changes the notes of a workspace."""

from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.edit.diff import build_unified_diff
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.records import Memory
from handrail.store.memories import Memories
from handrail.tools.companions.memory import MemoryArguments, MemoryData
from handrail.tools.contract import Output

_UNCHANGED = "The note says that already. Nothing was changed."
_DONE = {"create": "noted", "update": "changed", "delete": "deleted"}


def run_memory_action(memories: Memories, session_id: str, arguments: MemoryArguments) -> Output:
    """Does what a call asks for."""
    if arguments.action == "list":
        return _listed(memories.listed())
    with memories.alone():
        before, after = _planned(memories, session_id, arguments)
        if after is not None:
            memories.keep(after)
        elif before is not None:
            memories.remove(before.id)
    note = after or before
    if note is None:
        raise AssertionError("a note is made, changed or removed")
    summary = f"{_DONE[arguments.action]} {note.id}"
    data = MemoryData(action=arguments.action, notes=(note,))
    return Output(summary=summary, content=f"{summary[0].upper()}{summary[1:]}: {note.title}\n", data=data)


def preview_note(memories: Memories, arguments: MemoryArguments) -> Preview:
    """What the note would become, for the person who is asked."""
    before, after = _planned(memories, "", arguments)
    diff = build_unified_diff(_text(before), _text(after), "note")
    return Preview(kind="diff", text=diff.text, truncated=diff.truncated)


def _planned(memories: Memories, session_id: str, arguments: MemoryArguments) -> tuple[Memory | None, Memory | None]:
    """A note as it is and as it is to be; None where there is none."""
    now = datetime.now(UTC)
    if arguments.action == "create":
        title, content = arguments.title or "", arguments.content or ""
        same = [one for one in memories.listed() if (one.title, one.content) == (title, content)]
        if same:
            raise ToolError("NO_CHANGE", f"{same[0].id} says that already. Nothing was noted.")
        note = Memory(id=memories.new_id(), title=title, content=content, time=now, session_id=session_id)
        return None, note
    before = memories.get(arguments.id or "")
    if arguments.action == "delete":
        return before, None
    after = replace(before, title=arguments.title or before.title, content=arguments.content or before.content)
    if after == before:
        raise ToolError("NO_CHANGE", _UNCHANGED)
    return before, replace(after, time=now, session_id=session_id)


def _listed(notes: tuple[Memory, ...]) -> Output:
    rows = [f"{note.id}  {note.title} ({note.time:%Y-%m-%d})\n{_indented(note.content)}\n" for note in notes]
    summary = f"{len(notes)} note{'s' if len(notes) != 1 else ''}"
    content = "".join(rows) or "There are no notes yet.\n"
    return Output(summary=summary, content=content, data=MemoryData(action="list", notes=notes))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _text(note: Memory | None) -> str | None:
    return None if note is None else f"{note.title}\n\n{note.content.rstrip()}\n"
