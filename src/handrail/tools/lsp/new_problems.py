"""Adds the problems that a change caused to the result of its tool."""

import os
from typing import Any

from msgspec.structs import replace

from handrail.changes.recorder import Recorder
from handrail.lsp.check import ChangeCheck, ChangedText, render_new
from handrail.lsp.servers import MAX_FILE_BYTES
from handrail.lsp.source_text import decode_source
from handrail.protocol.changes import Change
from handrail.protocol.errors import ToolError
from handrail.tools.file_tool import FileTool
from handrail.tools.tool import Context, Output
from handrail.workspace.workspace import Workspace

_MAX_FILES = 20
"""More changed files than this are not checked."""


def add_new_problems(tool: FileTool, check: ChangeCheck, recorder: Recorder) -> FileTool:
    """The tool with a check after each change. A check never fails a call."""

    def run(context: Context, arguments: Any) -> Output:
        output = tool.run(context, arguments)
        changes = [] if output.changes is None else [one for one in output.changes.changes if one.kind == "file"]
        served = [one for one in changes if check.serves(os.path.join(context.workspace.main.path, one.path))]
        if not served or len(served) > _MAX_FILES:
            return output
        texts = [text for one in served if (text := _read_texts(context.workspace, recorder, one)) is not None]
        found = check.check(texts)
        return replace(
            output,
            meta=output.meta | {"diagnostics": found},
            warnings=(*output.warnings, *render_new(found)),
        )

    return replace(tool, run=run)


def _read_texts(workspace: Workspace, recorder: Recorder, change: Change) -> ChangedText | None:
    """None if the bytes before the change were not stored, or if either is not text."""
    old = recorder.content(change.before) if change.before is not None else None
    try:
        new = workspace.read_small_file(change.path, MAX_FILE_BYTES) if change.after is not None else None
    except ToolError:
        return None
    if change.before is not None and old is None:
        return None
    before, after = (None if data is None else decode_source(data) for data in (old, new))
    if (before is None) != (old is None) or (after is None) != (new is None):
        return None
    path = os.path.join(workspace.main.path, change.path)
    return ChangedText(path, before and before.text, after and after.text)
