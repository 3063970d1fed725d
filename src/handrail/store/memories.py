"""The notes of a workspace, one small file each."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from handrail.kernel.files import wait_for_lock
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.records import Memory
from handrail.store.grants import SmallFiles
from handrail.store.state_dir import make_private, open_folder

MAX_MEMORIES = 50
MAX_MEMORY_CHARACTERS = 24_000
"""Characters of all notes together, because every later session reads all of them."""
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_PREFIX, _LENGTH = "m-", 5
_PATIENCE_SECONDS = 5.0
_MAKE_ROOM = "Nothing was noted. Delete or shorten a note first."


class Memories:
    """The notes in a folder, which is made with the first."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = SmallFiles(path, Memory, "notes")

    def list_notes(self) -> tuple[Memory, ...]:
        """All notes that can be read, the last changed at the end."""
        notes = (note for note in self._files.read_all(lambda note: note.id) if note.id.startswith(_PREFIX))
        return tuple(sorted(notes, key=lambda note: (note.time, note.id)))

    def get(self, note_id: str) -> Memory:
        """One note. ToolError NOT_FOUND if there is none."""
        note = next((note for note in self.list_notes() if note.id == note_id), None)
        if note is None:
            raise ToolError("NOT_FOUND", f"There is no note {note_id[:40]!r}. The action list shows all notes.")
        return note

    @contextmanager
    def lock(self) -> Generator[None]:
        """Locks the notes against other processes. The kernel releases the lock of a killed process."""
        make_private(self._path)
        with open_folder(self._path) as descriptor:
            try:
                is_ours = wait_for_lock(descriptor, _PATIENCE_SECONDS)
            except OSError as error:
                raise StoreError(f"the notes cannot be locked: {error.strerror}") from error
            if not is_ours:
                raise ToolError("CONFLICT", "Another process is changing the notes. Try again.")
            yield

    def new_id(self) -> str:
        taken = self._files.names()
        while True:
            note_id = _PREFIX + "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(_LENGTH))
            if note_id not in taken:
                return note_id

    def keep(self, note: Memory) -> None:
        """Adds a note, or replaces the one of its id. ToolError LIMIT_EXCEEDED if there are too many."""
        others = [other for other in self.list_notes() if other.id != note.id]
        used = sum(map(_count_characters, others))
        if len(others) >= MAX_MEMORIES:
            full = f"There are {MAX_MEMORIES} notes, which is the maximum."
            raise ToolError("LIMIT_EXCEEDED", f"{full} {_MAKE_ROOM}")
        if used + _count_characters(note) > MAX_MEMORY_CHARACTERS:
            full = f"The notes may have {MAX_MEMORY_CHARACTERS:,} characters together; {used:,} are taken."
            raise ToolError("LIMIT_EXCEEDED", f"{full} {_MAKE_ROOM}")
        self._files.write(note.id, note)

    def remove(self, note_id: str) -> bool:
        return self._files.drop(note_id)


def _count_characters(note: Memory) -> int:
    return len(note.title) + len(note.content)
