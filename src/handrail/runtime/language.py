"""The language servers of a session, as its tools use them."""

import os
import sys
from contextlib import ExitStack, suppress

from handrail.lsp.check import ChangeCheck
from handrail.lsp.servers import LanguageServers
from handrail.policy.config import PolicyConfig
from handrail.protocol.errors import StoreError
from handrail.protocol.events import Warning as WarningEvent
from handrail.runtime.foreign.server_process import ServerPrograms, ServerProgramSpec
from handrail.settings import Settings
from handrail.settings.units import parse_seconds
from handrail.store.journal import SessionJournal
from handrail.workspace.workspace import Workspace

_SEVERITIES = {"errors": ("error",), "warnings": ("error", "warning")}


def open_language_servers(
    settings: Settings,
    rules: PolicyConfig,
    workspace: Workspace,
    journal: SessionJournal,
    state: str,
    closing: ExitStack,
) -> tuple[LanguageServers, ChangeCheck | None]:
    """The servers, and the check of changes if the settings have it on. `closing` ends both."""
    environ = _build_environment()
    programs = ServerPrograms(settings, workspace.main.path, state, environ)
    is_closed = rules.restriction is not None or "proc.exec" in rules.denied
    servers = LanguageServers(
        workspace,
        settings.lsp.servers,
        environ,
        None if is_closed else lambda words: programs.start(ServerProgramSpec(words=words)),
        programs.loop,
    )
    closing.callback(programs.close)
    closing.callback(servers.close)
    if settings.lsp.diagnostics == "off" or is_closed:
        return servers, None

    def report(text: str) -> None:
        with suppress(StoreError):
            journal.append((WarningEvent, {"code": "lsp.diagnostics", "text": text}))

    return servers, ChangeCheck(
        servers, _SEVERITIES[settings.lsp.diagnostics], parse_seconds(settings.lsp.wait), report
    )


def _build_environment() -> dict[str, str]:
    """The environment, with the programs beside handrail's own Python at the end of PATH."""
    own = os.path.join(sys.prefix, "bin")
    return {**os.environ, "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), own)))}
