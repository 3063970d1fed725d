"""The tool lsp_rename."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from handrail.changes.recorder import Recorder
from handrail.edit.diff import build_unified_diff
from handrail.lsp.rename import SymbolRename, plan_rename
from handrail.lsp.servers import LanguageServers
from handrail.lsp.source_text import decode_source, encode_source
from handrail.protocol.errors import ToolError
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileChange, FilePlan, check_hard_links
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.lsp.lookup import PositionArguments
from handrail.tools.tool import Output, ReadMarks, Tool, Touches
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text

_MAX_DIFF_CHARS = 200_000
_MAX_LISTED_FILES = 100


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


LSP_RENAME = ToolSpec(
    name="lsp_rename",
    title="Rename",
    description=(
        "Rename the symbol at a position of a file in all files of the project, by a language server. All files are "
        "changed, or none. line and character count from 0; read and grep count lines from 1."
    ),
    arguments=LspRenameArguments,
    data=LspRenameData,
    permissions=("fs.read", "fs.write"),
    side_effects=("files",),
    enabled=False,
    plain_arguments=("path",),
    stage="change",
    intent="rename a symbol in all files",
    not_for=(("any other text", "edit"),),
)


def build_lsp_rename_tool(seen: ReadMarks, records: Recorder, servers: LanguageServers) -> Tool:
    plan = partial(_plan, servers)
    return build_file_tool(
        LSP_RENAME, plan, seen, records, doing="renaming", touches=partial(_declare_touches, servers)
    )


def _ask(servers: LanguageServers, arguments: LspRenameArguments) -> SymbolRename:
    return plan_rename(servers, arguments.path, arguments.line, arguments.character, arguments.new_name)


def _declare_touches(servers: LanguageServers, arguments: LspRenameArguments) -> Touches:
    return Touches(reads=(arguments.path,), writes=tuple(_ask(servers, arguments).edits))


def _plan(servers: LanguageServers, view: FileView, arguments: LspRenameArguments) -> FilePlan:
    """The server is asked again, since files may have changed since the call was decided."""
    rename = _ask(servers, arguments)
    changes = tuple(_change_file(view, rename, path) for path in rename.edits)
    diff = "".join(change.diff.text for change in changes)
    cut = diff[:_MAX_DIFF_CHARS]
    return FilePlan(
        subject=f"{rename.old_name} to {arguments.new_name} in {format_count(len(changes), 'file')}",
        changes=changes,
        preview=cut,
        is_truncated=len(cut) < len(diff),
        done="renamed",
        describe=partial(_describe, rename, arguments.new_name, changes, cut),
    )


def _change_file(view: FileView, rename: SymbolRename, path: str) -> FileChange:
    target = view.look_to_write(path)
    if target.data is None:
        raise view.context.workspace.build_not_found_error(path, "file")
    source = decode_source(target.data)
    if source is None:
        raise ToolError("BINARY_FILE", f"{clip_path(path)} is not text. Nothing was changed.")
    return build_text_change(target, target.data, rename.apply(path, source))


def build_text_change(target: FileTarget, old: bytes, text: str) -> FileChange:
    """The change of a file to another text, in its encoding."""
    data = encode_source(text, old)
    if data is None:
        message = f"{clip_path(target.path)} has characters that do not fit its encoding. Nothing was changed."
        raise ToolError("UNAVAILABLE", message)
    check_hard_links(target, data)
    before, after = decode_text(old), decode_text(data)
    diff = build_unified_diff(before.text if before else "", after.text if after else "", target.real)
    return FileChange(target, data, diff, target.mode)


def _describe(rename: SymbolRename, new_name: str, changes: Sequence[FileChange], diff: str, _: CommitResult) -> Output:
    files = tuple(change.target.real for change in changes)
    edits = sum(map(len, rename.edits.values()))
    places = f"{format_count(edits, 'place')} of {format_count(len(files), 'file')}"
    summary = f"Renamed {rename.old_name} to {new_name} in {places}"
    rows = [f"{clip_path(path)}\n" for path in files[:_MAX_LISTED_FILES]]
    more = f"… and {len(files) - len(rows)} more\n" if len(rows) < len(files) else ""
    data = LspRenameData(old_name=rename.old_name, new_name=new_name, files=files, edits=edits, diff=diff)
    return Output(summary=summary, content=f"{summary}:\n{''.join(rows)}{more}", data=data)
