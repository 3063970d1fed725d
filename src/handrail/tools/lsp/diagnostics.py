"""The tool lsp_diagnostics."""

from typing import Annotated

from msgspec import Meta

from handrail.lsp.check import build_diagnostics, render_diagnostic
from handrail.lsp.servers import LanguageServers
from handrail.protocol.results import Diagnostic
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.text import format_count
from handrail.tools.tool import Context, Output, Tool, Touches

_MAX_LISTED = 500
_SECONDS = 20.0


class LspDiagnosticsArguments(Arguments, frozen=True):
    """The arguments of lsp_diagnostics."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, max_length=50, description="The files, relative to the workspace.")
    ]


class LspDiagnosticsData(Wire, frozen=True, omit_defaults=False):
    """The problems, by file in the order of the call, severest first."""

    diagnostics: tuple[Diagnostic, ...]


LSP_DIAGNOSTICS = ToolSpec(
    name="lsp_diagnostics",
    title="Diagnostics",
    description=(
        "List the errors and warnings of files, such as type errors and unknown names, by a language server. Changes "
        "of files report the errors that they cause by themselves."
    ),
    arguments=LspDiagnosticsArguments,
    data=LspDiagnosticsData,
    permissions=("fs.read",),
    enabled=False,
    stage="look",
    intent="list the type errors of files",
    not_for=(("running tests", "exec"),),
)


def build_lsp_diagnostics_tool(servers: LanguageServers) -> Tool:
    def run(context: Context, arguments: LspDiagnosticsArguments) -> Output:
        found: list[Diagnostic] = []
        for path in dict.fromkeys(arguments.paths):
            found += find_diagnostics(servers, path, _SECONDS, context)
        return _build_output(found)

    return Tool(LSP_DIAGNOSTICS, run, lambda arguments: Touches(reads=tuple(dict.fromkeys(arguments.paths))))


def find_diagnostics(servers: LanguageServers, path: str, seconds: float, context: Context) -> list[Diagnostic]:
    """The diagnostics of a file, severest first. ToolError if there are none in time."""
    file = servers.open_file(path)
    work = file.server.diagnose({file.path: file.text.text}, seconds)
    return build_diagnostics(
        file.shown, file.text, servers.loop.run(work, context.cancelled)[file.path], file.server.name
    )


def _build_output(found: list[Diagnostic]) -> Output:
    shown, errors = found[:_MAX_LISTED], sum(one.severity == "error" for one in found)
    others = len(found) - errors
    counts = [(errors, "error"), (others, "other problem")]
    summary = ", ".join(format_count(number, noun) for number, noun in counts if number)
    rows = "".join(f"{render_diagnostic(one)}\n" for one in shown)
    return Output(
        summary=summary or "no problems",
        content=f"{summary or 'No problems'}.\n{rows}",
        data=LspDiagnosticsData(diagnostics=tuple(shown)),
        truncated=len(shown) < len(found),
        meta={"returned": len(shown), "total": len(found)},
    )
