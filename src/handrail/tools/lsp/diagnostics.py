"""The problems that language servers see in files: the tool lsp_diagnostics, the results of changes."""

import os
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from handrail.changes.recorder import Recorder
from handrail.lsp.check import ChangeCheck, ChangedText, build_diagnostics, render_diagnostic, render_new
from handrail.lsp.servers import MAX_FILE_BYTES, LanguageServers
from handrail.lsp.source_text import decode_source
from handrail.protocol.changes import Change
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Diagnostic
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import Arguments
from handrail.protocol.wire import Wire
from handrail.tools.file_tool import FileTool
from handrail.tools.lsp.lookup import build_list_output, build_spec
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.workspace import Workspace

_SECONDS = 20.0
_MAX_CHANGED_FILES = 20
"""More changed files than this are not checked."""


class LspDiagnosticsArguments(Arguments, frozen=True):
    """The arguments of lsp_diagnostics."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=50, description="The files, relative to the workspace.")
    ]


class LspDiagnosticsData(Wire, frozen=True, omit_defaults=False):
    """The problems, by file in the order of the call, severest first."""

    diagnostics: tuple[Diagnostic, ...]


LSP_DIAGNOSTICS = build_spec(
    "lsp_diagnostics",
    "List the errors and warnings of files, such as type errors and unknown names, by a language server. Changes "
    "of files report the errors that they cause by themselves.",
    LspDiagnosticsArguments,
    LspDiagnosticsData,
    "list the type errors of files",
    ("running tests", "exec"),
)


def build_lsp_diagnostics_tool(servers: LanguageServers) -> Tool:
    def run(context: Context, arguments: LspDiagnosticsArguments) -> Output:
        found: list[Diagnostic] = []
        for path in dict.fromkeys(arguments.paths):
            found += find_diagnostics(servers, path, _SECONDS, context)
        errors = sum(one.severity == "error" for one in found)
        counts = [(errors, "error"), (len(found) - errors, "other problem")]
        summary = ", ".join(format_count(number, noun) for number, noun in counts if number) or "no problems"
        return build_list_output(summary, found, render_diagnostic, LspDiagnosticsData)

    return Tool(LSP_DIAGNOSTICS, run, lambda arguments: Touches(reads=tuple(dict.fromkeys(arguments.paths))))


def find_diagnostics(servers: LanguageServers, path: str, seconds: float, context: Context) -> list[Diagnostic]:
    """The diagnostics of a file, severest first. ToolError if there are none in time."""
    file = servers.open_file(path)
    work = file.server.diagnose({file.path: file.text.text}, seconds)
    return build_diagnostics(
        file.shown, file.text, servers.loop.run(work, context.cancelled)[file.path], file.server.name
    )


def add_new_problems(tool: FileTool, check: ChangeCheck, recorder: Recorder) -> FileTool:
    """The tool with a check after each change. A check never fails a call."""

    def run(context: Context, arguments: Any) -> Output:
        output = tool.run(context, arguments)
        changes = [] if output.changes is None else [one for one in output.changes.changes if one.kind == "file"]
        served = [one for one in changes if check.serves(os.path.join(context.workspace.main.path, one.path))]
        if not served or len(served) > _MAX_CHANGED_FILES:
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
    """None if the bytes before the change were not stored. What is not text counts as no file."""
    old = recorder.content(change.before) if change.before is not None else None
    try:
        new = workspace.read_small_file(change.path, MAX_FILE_BYTES) if change.after is not None else None
    except ToolError:
        return None
    if change.before is not None and old is None:
        return None
    before, after = (None if data is None else decode_source(data) for data in (old, new))
    path = os.path.join(workspace.main.path, change.path)
    return ChangedText(path, before and before.text, after and after.text)
