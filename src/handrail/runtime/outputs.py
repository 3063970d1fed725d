"""Texts too large for a result: kept whole, shown in part, found again by `@output/<call id>`."""

from handrail.protocol.error import ToolError
from handrail.store.blobs import Blobs
from handrail.store.database import Database

_LEAST = 200


class KeptOutputs:
    """The large texts of one session."""

    def __init__(self, blobs: Blobs, database: Database) -> None:
        self._blobs = blobs
        self._database = database

    def keep(self, call_id: str, text: str) -> str:
        """Stores the text; the reference that `read` takes."""
        blob = self._blobs.put(text.encode("utf-8", "backslashreplace"))
        with self._database.transaction:
            self._database.execute("INSERT OR REPLACE INTO output VALUES (?, ?, ?)", (call_id, blob, len(text)))
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
    """The beginning and the end of a text, cut between lines, with a line in between that says how to see the rest."""
    head_end = text.rfind("\n", 0, max(_LEAST, budget // 4)) + 1 or budget // 4
    tail_start = text.find("\n", len(text) - budget * 3 // 4) + 1 or len(text) - budget * 3 // 4
    tail_start = max(tail_start, head_end)
    omitted = tail_start - head_end
    note = f"… {omitted} of {len(text)} characters are not shown; read {reference} for all of it …\n"
    return f"{text[:head_end]}{note}{text[tail_start:]}"
