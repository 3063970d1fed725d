"""A live copy of the event stream as lines of JSON in the workspace. A copy: the journal is the truth."""

from handrail.protocol.events import Event
from handrail.protocol.wire import encode
from handrail.workspace.workspace import Workspace


def build_line_path(session_id: str, event: Event, kind: str = "events") -> str:
    """The file an event's line belongs in: one a session and day."""
    return f"{session_id}/{kind}-{event.time:%Y%m%d}.jsonl"


class EventLines:
    """Appends each event to `<folder>/<session>/events-YYYYMMDD.jsonl`."""

    def __init__(self, workspace: Workspace, folder: str, session_id: str) -> None:
        self._workspace = workspace
        self._folder = folder
        self._session_id = session_id

    def add(self, event: Event) -> None:
        """Appends one line."""
        path = f"{self._folder}/{build_line_path(self._session_id, event)}"
        self._workspace.append(path, encode(event) + b"\n")
