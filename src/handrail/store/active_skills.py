"""The skills that are active in a session, beside its events: each as it was when it was activated."""

import os

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.events import Notice
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.database import Row
from handrail.store.journal import SessionJournal

_SELECT = "SELECT name, data FROM skill ORDER BY name"
_PUT = "INSERT OR REPLACE INTO skill VALUES (?, ?)"
_DROP = "DELETE FROM skill WHERE name = ?"


class ActiveSkill(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a skill says as long as it is active, whatever becomes of its file."""

    name: str
    tools: tuple[str, ...] | None = None
    """The tools that it names; None where it narrows nothing."""
    patterns: dict[str, tuple[str, ...]] = {}
    """What it names some of them for."""
    folders: tuple[str, ...] = ()
    """The names of its folder: relative in the workspace, absolute elsewhere."""
    outside: bool = False
    """Whether its folder is in none of the session's own roots."""
    has_files: bool = False
    """Whether there is more in its folder to read than what was told of it."""


class ActiveSkills:
    """Those of one session. A change stands or falls with the notice of it.

    Every call asks for them, and most sessions never have any. So there is an empty file beside the journal from before
    the first one is active: as long as it is not there, nobody who has looked once needs to look again.
    """

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal
        self._mark = build_marker_path(journal.database.path)
        self._known_of_none = False
        """Whether none was there at the last look, nor ever before it."""
        self._last: tuple[list[Row], tuple[ActiveSkill, ...]] = ([], ())
        """What was found the last time, and what it means."""

    def listed(self) -> tuple[ActiveSkill, ...]:
        """All of them, by their names; the same object as long as nothing has changed."""
        if self.none_yet():
            return self._last[1]
        rows = self._journal.database.rows(_SELECT)
        self._known_of_none = not rows and not os.access(self._mark, os.F_OK)
        if rows != self._last[0]:
            self._last = rows, tuple(self._read(*row) for row in rows)
        return self._last[1]

    def none_yet(self) -> bool:
        """Whether it is known, without a look into the journal, that there was never one."""
        return self._known_of_none and not os.access(self._mark, os.F_OK)

    def put(self, skill: ActiveSkill, text: str) -> None:
        """Makes one active, in the place of what was active under its name."""
        make_marker(self._journal.database.path)
        self._journal.append((Notice, {"text": text}), also=((_PUT, (skill.name, encode(skill))),))

    def drop(self, name: str, text: str) -> None:
        """Ends one."""
        self._journal.append((Notice, {"text": text}), also=((_DROP, (name,)),))

    def _read(self, name: str, data: bytes) -> ActiveSkill:
        """What cannot be read might have narrowed something, so nothing goes on without it."""
        try:
            return decode_json(data, ActiveSkill)
        except UNREADABLE as error:
            raise StoreError(
                f"the active skill {name} of session {self._journal.session_id} cannot be read: {error}"
            ) from None


def build_marker_path(journal: str) -> str:
    """The file that says that a session has, or had, an active skill, by the path of its journal."""
    return f"{journal}-skills"


def make_marker(journal: str) -> None:
    """To be called before the first skill of a session is written down."""
    try:
        os.close(os.open(build_marker_path(journal), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"beside the journal {journal} nothing can be written: {error.strerror}") from error
