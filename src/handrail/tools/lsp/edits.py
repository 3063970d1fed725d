"""The tools lsp_rename, lsp_format: one change of files by the edits of a language server."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from handrail.changes.recorder import Recorder
from handrail.edit.diff import build_unified_diff
from handrail.edit.lines import Replacement, apply_replacements
from handrail.lsp.messages import LspTextEdit, LspWorkspaceEdit
from handrail.lsp.servers import LanguageServers
from handrail.lsp.source_text import SourceText, parse_uri
from handrail.protocol.errors import ToolError
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import Arguments
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileChange, FilePlan, build_file_plan, check_hard_links
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.lsp.lookup import COUNTING, PositionArguments, SourcePath, build_spec
from handrail.tools.text_edit import TextFile, decode_text_file, render_diff_body
from handrail.tools.tool import Output, ReadMarks, Tool, Touches
from handrail.workspace.roots import clip_path

_MAX_FILES = 500
_MAX_EDITS = 20_000
_MAX_DIFF_CHARS = 200_000
_MAX_LISTED_FILES = 100
_Edits = Mapping[str, tuple[LspTextEdit, ...]]
"""The edits of each file, by its path as results show it."""


class LspRenameArguments(PositionArguments, frozen=True):
    """The arguments of lsp_rename."""

    new_name: Annotated[str, Meta(min_length=1, max_length=200, description="The new name.")]


class LspRenameData(Wire, frozen=True, omit_defaults=False):
    """What was renamed."""

    old_name: str
    new_name: str
    files: tuple[str, ...]
    edits: int
    """How many places were changed."""
    diff: str


class LspFormatArguments(Arguments, frozen=True):
    """The arguments of lsp_format."""

    path: SourcePath


class LspFormatData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    diff: str


LSP_RENAME = build_spec(
    "lsp_rename",
    "Rename the symbol at a position of a file in all files of the project, by a language server. All files are "
    f"changed, or none. {COUNTING}",
    LspRenameArguments,
    LspRenameData,
    "rename a symbol in all files",
    ("any other text", "edit"),
    changes=True,
)
LSP_FORMAT = build_spec(
    "lsp_format",
    "Format a whole file as its language server does. Refused if the server does not format.",
    LspFormatArguments,
    LspFormatData,
    "format a file by its language server",
    changes=True,
)


def build_lsp_rename_tool(seen: ReadMarks, records: Recorder, servers: LanguageServers) -> Tool:
    def declare_touches(arguments: LspRenameArguments) -> Touches:
        return Touches(reads=(arguments.path,), writes=tuple(_find_renames(servers, arguments)[1]))

    plan = partial(_plan_rename, servers)
    return build_file_tool(LSP_RENAME, plan, seen, records, doing="renaming", touches=declare_touches)


def build_lsp_format_tool(seen: ReadMarks, records: Recorder, servers: LanguageServers) -> Tool:
    return build_file_tool(LSP_FORMAT, partial(_plan_format, servers), seen, records, doing="formatting")


def _plan_rename(servers: LanguageServers, view: FileView, arguments: LspRenameArguments) -> FilePlan:
    """The server is asked again, since files may have changed since the call was decided."""
    old_name, edits = _find_renames(servers, arguments)
    changes = [_edit_file(view, path, some, old_name) for path, some in edits.items()]
    diff = "".join(change.diff.text for change in changes)
    data = LspRenameData(
        old_name=old_name,
        new_name=arguments.new_name,
        files=tuple(change.target.real for change in changes),
        edits=sum(map(len, edits.values())),
        diff=diff[:_MAX_DIFF_CHARS],
    )
    return FilePlan(
        subject=f"{old_name} to {arguments.new_name} in {format_count(len(changes), 'file')}",
        changes=tuple(changes),
        preview=data.diff,
        is_truncated=len(data.diff) < len(diff),
        done="renamed",
        describe=partial(_describe_rename, data),
    )


def _find_renames(servers: LanguageServers, arguments: LspRenameArguments) -> tuple[str, _Edits]:
    """Asks the server. Returns the old name, with the edits. NO_MATCH if there is nothing to rename."""
    file, line, character = servers.open_file(arguments.path), arguments.line, arguments.character
    params = {**file.locate(line, character), "newName": arguments.new_name}
    edit = file.ask("textDocument/rename", LspWorkspaceEdit, params, whole=True) or LspWorkspaceEdit()
    if file.server.is_indexing:
        raise ToolError("UNAVAILABLE", f"{file.server.name} still reads the project. Nothing was changed. Try again.")
    edits: dict[str, tuple[LspTextEdit, ...]] = {}
    for uri, some in edit.list_edits():
        path = parse_uri(uri)
        if path is None:
            raise ToolError("UNAVAILABLE", "The rename would do more than edit files. Nothing was changed.")
        shown = servers.show(path)
        # Some servers repeat an edit, one for each project that has the file.
        edits[shown] = tuple(dict.fromkeys((*edits.get(shown, ()), *some)))
    if len(edits) > _MAX_FILES or sum(map(len, edits.values())) > _MAX_EDITS:
        raise ToolError("LIMIT_EXCEEDED", f"The rename would change {len(edits)} files. Nothing was changed.")
    old_name = file.text.find_word(line, character)
    if not any(edits.values()) or not old_name:
        raise ToolError("NO_MATCH", f"There is nothing to rename at {line}:{character}. Both count from 0.")
    return old_name, {path: some for path, some in sorted(edits.items()) if some}


def _edit_file(view: FileView, path: str, edits: Sequence[LspTextEdit], old_name: str) -> FileChange:
    """CONFLICT if the server knew another text of the file."""
    target, file = _open_text(view, path)
    source = SourceText(file.readable)
    for edit in edits:
        if old_name not in source.slice(edit.range):
            raise _build_conflict(path, f"line {edit.range.start.line + 1} has no {old_name} there")
    return _build_change(target, file, source.list_replacements(edits))


def _plan_format(servers: LanguageServers, view: FileView, arguments: LspFormatArguments) -> FilePlan:
    target, file = _open_text(view, arguments.path)
    served = servers.open_file(arguments.path)
    if served.text.text != file.readable:
        raise _build_conflict(arguments.path, "it is not what this call changes")
    options = {"tabSize": 4, "insertSpaces": "\n\t" not in file.text}
    edits = served.ask("textDocument/formatting", tuple[LspTextEdit, ...], {"options": options}) or ()
    change = _build_change(target, file, served.text.list_replacements(edits))
    if change.data == target.data:
        raise ToolError("NO_CHANGE", f"{clip_path(arguments.path)} is formatted already. Nothing was changed.")
    return build_file_plan(target, change.data or b"", change.diff, partial(_describe_format, change))


def _open_text(view: FileView, path: str) -> tuple[FileTarget, TextFile]:
    target = view.look_to_write(path)
    if target.data is None:
        raise view.context.workspace.build_not_found_error(path, "file")
    return target, decode_text_file(target.data, clip_path(path))


def _build_conflict(path: str, reason: str) -> ToolError:
    message = f"The language server knows another text of {clip_path(path)}: {reason}. Nothing was changed. Call again."
    return ToolError("CONFLICT", message)


def _build_change(target: FileTarget, file: TextFile, replacements: Sequence[Replacement]) -> FileChange:
    data = file.rewrite(replacements, "", clip_path(target.path)).data
    check_hard_links(target, data)
    diff = build_unified_diff(file.readable, apply_replacements(file.readable, replacements), target.real)
    return FileChange(target, data, diff, target.mode)


def _describe_rename(data: LspRenameData, _: CommitResult) -> Output:
    places = f"{format_count(data.edits, 'place')} of {format_count(len(data.files), 'file')}"
    summary = f"Renamed {data.old_name} to {data.new_name} in {places}"
    rows = [f"{clip_path(path)}\n" for path in data.files[:_MAX_LISTED_FILES]]
    more = f"… and {len(data.files) - len(rows)} more\n" if len(rows) < len(data.files) else ""
    return Output(summary=summary, content=f"{summary}:\n{''.join(rows)}{more}", data=data)


def _describe_format(change: FileChange, _: CommitResult) -> Output:
    diff = change.diff
    summary = f"Formatted {clip_path(change.target.path)} +{diff.added} −{diff.removed}"
    data = LspFormatData(path=change.target.real, diff=diff.text)
    return Output(summary=summary, content=f"{summary}.\n{render_diff_body(diff)}", data=data)
