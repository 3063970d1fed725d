"""The tool lsp_format."""

from functools import partial
from typing import TYPE_CHECKING

from handrail.changes.recorder import Recorder
from handrail.lsp.rename import plan_format
from handrail.lsp.servers import LanguageServers
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileChange, FilePlan
from handrail.tools.file_tool import FileView, build_file_tool
from handrail.tools.lsp.lookup import SourcePath
from handrail.tools.lsp.rename import build_text_change
from handrail.tools.text_edit import render_diff_body
from handrail.tools.tool import Output, ReadMarks, Tool
from handrail.workspace.roots import clip_path

if TYPE_CHECKING:
    from handrail.edit.diff import Diff


class LspFormatArguments(Arguments, frozen=True):
    """The arguments of lsp_format."""

    path: SourcePath


class LspFormatData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    diff: str


LSP_FORMAT = ToolSpec(
    name="lsp_format",
    title="Format",
    description="Format a whole file as its language server does. Refused if the server does not format.",
    arguments=LspFormatArguments,
    data=LspFormatData,
    permissions=("fs.read", "fs.write"),
    side_effects=("files",),
    enabled=False,
    plain_arguments=("path",),
    stage="change",
    intent="format a file by its language server",
)


def build_lsp_format_tool(seen: ReadMarks, records: Recorder, servers: LanguageServers) -> Tool:
    return build_file_tool(LSP_FORMAT, partial(_plan, servers), seen, records, doing="formatting")


def _plan(servers: LanguageServers, view: FileView, arguments: LspFormatArguments) -> FilePlan:
    target = view.look_to_write(arguments.path)
    file = servers.open_file(arguments.path)
    text = plan_format(file)
    if text == file.text.text:
        raise ToolError("NO_CHANGE", f"{clip_path(arguments.path)} is formatted already. Nothing was changed.")
    change = build_text_change(target, target.data or b"", text)
    return FilePlan(
        subject=target.real,
        changes=(change,),
        preview=change.diff.text,
        is_truncated=change.diff.truncated,
        describe=partial(_describe, change, change.diff),
    )


def _describe(change: FileChange, diff: "Diff", _: CommitResult) -> Output:
    summary = f"Formatted {clip_path(change.target.path)} +{diff.added} −{diff.removed}"
    data = LspFormatData(path=change.target.real, diff=diff.text)
    return Output(summary=summary, content=f"{summary}.\n{render_diff_body(diff)}", data=data)
