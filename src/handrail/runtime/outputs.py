"""Texts too large for a result: kept whole, shown in part, found again by `@output/<call id>`."""

from handrail.protocol.error import ToolError
from handrail.store.blobs import Blobs
from handrail.store.database import Database


class KeptOutputs:
    """The large texts of one session."""

    def __init__(self, blobs: Blobs, database: Database) -> None:
        self._blobs = blobs
        self._database = database

    def keep(self, call_id: str, text: str) -> str:
        """Stores the text; the reference that `read` takes."""
        blob = self._blobs.put(text.encode("utf-8", "backslashreplace"))
        self._database.run("INSERT OR REPLACE INTO output VALUES (?, ?)", (call_id, blob))
        return f"@output/{call_id}"

    def open(self, call_id: str) -> int:
        """A descriptor of the whole text; NOT_FOUND when this session has none of that id."""
        row = self._database.row("SELECT blob FROM output WHERE call_id = ?", (call_id,))
        try:
            if row:
                return self._blobs.open(str(row[0]))
        except OSError:
            pass
        raise ToolError("NOT_FOUND", f"This session has no kept output {call_id[:80]!r}.")


def preview_of(text: str, budget: int, reference: str) -> str:
    """The beginning and the end of a text, with a line in between that says how to see the rest: within the budget."""
    room = budget - len(_note(len(text), text, reference))
    head, tail = room // 4, len(text) - (room - room // 4)
    # Between lines where a line ends near the place, so that a long line does not push everything else out.
    head = text.rfind("\n", head // 2, head) + 1 or head
    tail = text.find("\n", tail, tail + room // 4) + 1 or tail
    return f"{text[:head]}{_note(tail - head, text, reference)}{text[tail:]}"


def _note(omitted: int, text: str, reference: str) -> str:
    return f"\n… {omitted} of {len(text)} characters are not shown; read {reference} for all of it …\n"
