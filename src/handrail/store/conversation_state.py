"""The state of a conversation beside its messages: the todo list, active skills, stored outputs."""

from contextlib import suppress

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.events import Notice, ToolCallEnd
from handrail.protocol.records import TodoItem
from handrail.protocol.text import truncate_middle
from handrail.protocol.wire import UNREADABLE, convert, decode_json, encode
from handrail.store.database import Database, Row
from handrail.store.journal import SessionJournal

_INSERT_OUTPUT = "INSERT OR REPLACE INTO output VALUES (?, ?)"
_INSERT_SKILL = "INSERT OR REPLACE INTO skill VALUES (?, ?)"

# The todo list is the result of the last call of the tool `todo`.

_TODO_CALL = '"tool_call_name":"todo"'


class _TodoData(msgspec.Struct):
    items: tuple[TodoItem, ...]


def read_last_todo(journal: SessionJournal) -> tuple[TodoItem, ...]:
    """The last todo list that can be read. Empty if there is none."""
    for event in journal.ends_with(_TODO_CALL):
        if isinstance(event, ToolCallEnd) and event.tool_call_name == "todo":
            with suppress(*UNREADABLE):
                return convert(event.result.data, _TodoData).items
    return ()


class ActiveSkill(msgspec.Struct, frozen=True, omit_defaults=True):
    """An active skill as it was when it was activated, even if its file changes."""

    name: str
    tools: tuple[str, ...] | None = None
    """The tools that it allows. None if it restricts nothing."""
    patterns: dict[str, tuple[str, ...]] = {}
    """Patterns that it allows some of them for."""
    folders: tuple[str, ...] = ()
    """The names of its folder: relative in the workspace, absolute elsewhere."""
    outside: bool = False
    """Whether its folder is in none of the session's own roots."""
    has_files: bool = False
    """Whether its folder has more files to read than were shown."""


class ActiveSkills:
    """The active skills of a session. A change is stored together with the notice of it."""

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal
        self._last: tuple[list[Row], tuple[ActiveSkill, ...]] = ([], ())
        """The rows of the last query, and their skills."""

    def list_skills(self) -> tuple[ActiveSkill, ...]:
        """All active skills by name. The same object until something changes."""
        if self._journal.skill_marker.is_missing():
            return self._last[1]
        rows = self._journal.database.rows("SELECT name, data FROM skill ORDER BY name")
        self._journal.skill_marker.last_query_found_none = not rows
        if rows != self._last[0]:
            self._last = rows, tuple(self._read(*row) for row in rows)
        return self._last[1]

    def put(self, skill: ActiveSkill, text: str) -> None:
        """Activates a skill and replaces the one of its name."""
        self._journal.skill_marker.set()
        insert = (_INSERT_SKILL, (skill.name, encode(skill)))
        self._journal.append((Notice, {"text": text}), also=(insert,))

    def drop(self, name: str, text: str) -> None:
        self._journal.append((Notice, {"text": text}), also=(("DELETE FROM skill WHERE name = ?", (name,)),))

    def _read(self, name: str, data: bytes) -> ActiveSkill:
        """An unreadable skill is an error, because it may have restricted something."""
        try:
            return decode_json(data, ActiveSkill)
        except UNREADABLE as error:
            raise StoreError(
                f"the active skill {name} of session {self._journal.session_id} cannot be read: {error}"
            ) from None


# Stored outputs: the names of their blobs, and references to them

OUTPUT = "@output/"
"""Start of a reference to the stored output of an earlier call."""


def find_output(database: Database, name: str) -> str | None:
    row = database.row("SELECT blob FROM output WHERE call_id = ?", (name,))
    return str(row[0]) if row else None


def save_output(database: Database, name: str, blob: str) -> None:
    database.run(_INSERT_OUTPUT, (name, blob))


def list_outputs(database: Database) -> list[str]:
    return [str(row[0]) for row in database.rows("SELECT blob FROM output")]


def build_output_reference(call_id: str) -> str:
    """The path by which `read` pages the stored output of a call."""
    return f"{OUTPUT}{call_id}"


def truncate_with_reference(text: str, budget: int, reference: str) -> str:
    """The beginning and the end of a text, with a line between them that names the stored output."""
    note = f"\n… {{}} of {len(text)} characters are not shown; read {reference} for all of it …\n"
    return truncate_middle(text, budget, note)


# A fork begins with copies, each made within a transaction of the target.


def copy_outputs(source: Database, target: Database) -> None:
    target.copy_rows(source, _INSERT_OUTPUT, "SELECT call_id, blob FROM output")


def copy_skills(source: Database, target: Database) -> bool:
    """Returns whether there were any."""
    return target.copy_rows(source, _INSERT_SKILL, "SELECT name, data FROM skill")
