"""The tool lsp_lint, for dialects: code_lint with the diagnostics of language servers in its list."""

import time
from typing import Any

from msgspec.structs import replace

from handrail.code.lint_reports import LintFinding
from handrail.lsp.servers import LanguageServers
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Diagnostic
from handrail.tools.code.programs import list_findings
from handrail.tools.lsp.diagnostics import find_diagnostics
from handrail.tools.tool import CommandContext, Output, Tool

_SECONDS = 20.0
"""How long the servers may take for all files together, once they run."""


def add_diagnostics(tool: Tool, servers: LanguageServers) -> Tool:
    """The tool with the diagnostics of its files. A file without them gets a warning and never fails a call."""

    def run(context: CommandContext, arguments: Any) -> Output:
        output = tool.run(context, arguments)
        if output.failure is not None:
            return output
        found = {(one.file, one.line, one.message): one for one in output.data.findings}
        known, missed, end = len(found), list[str](), time.monotonic() + _SECONDS
        for path in dict.fromkeys(arguments.paths):
            if (left := end - time.monotonic()) <= 0:
                missed.append("The language servers took too long for the other files.")
                break
            try:
                for one in map(_to_finding, find_diagnostics(servers, path, left, context)):
                    found.setdefault((one.file, one.line, one.message), one)
            except ToolError as error:
                missed.append(error.message)
        names = tuple(dict.fromkeys((*output.data.linters, *(one.source for one in found.values()))))
        merged = list_findings(output, names, found.values(), output.meta["total"] + len(found) - known)
        return replace(merged, warnings=(*merged.warnings, *missed))

    return replace(tool, run=run)


def _to_finding(one: Diagnostic) -> LintFinding:
    return LintFinding(
        file=one.file,
        line=one.line + 1,
        column=one.character + 1,
        rule=one.code or None,
        severity=one.severity if one.severity in ("error", "warning") else "info",
        message=one.message,
        source=one.source,
    )
