"""Where a line of a file comes from, for a person who asks."""

import os

from handrail.changes.line_origin import LineOrigin, trace_line
from handrail.changes.line_ways import split_text_lines
from handrail.protocol.errors import ToolError, UsageError
from handrail.runtime.person import settle_dead_changes
from handrail.runtime.session import Session

_MAX_FILE_BYTES = 8 * 1024 * 1024


def find_line_origin(session: Session, path: str, line: int) -> tuple[str, str, LineOrigin]:
    """The path as results name it, the line as it is now, and where that comes from."""
    if line < 1:
        raise UsageError(f"lines are counted from 1, got {line}")
    settle_dead_changes(session)
    with session.workspace.open_file(path) as opened:
        real, data = opened.real, _read(opened.descriptor, path)
    lines = split_text_lines(data)
    if lines is None:
        raise ToolError(
            "BINARY_FILE", f"{path} is no text, so it has no lines. handrail log --changes lists its changes."
        )
    if line > len(lines):
        count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        raise ToolError("NOT_FOUND", f"{path} has {count}, so there is no line {line}.")
    history = session.recorder.history
    if history.is_empty:
        return real, lines[line - 1], LineOrigin(kind="before", path=os.fsencode(real), line=line)
    origin = trace_line(history.log, session.recorder.content, os.fsencode(real), data, line)
    return real, lines[line - 1], origin


def _read(descriptor: int, path: str) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise ToolError("LIMIT_EXCEEDED", f"{path} is larger than 8 MiB, so its lines are not followed.")
    return data
