"""The language servers of a session, as its tools use them."""

import os
import sys
from contextlib import suppress

from handrail.lsp.check import ChangeCheck
from handrail.lsp.connection import LanguageProgram
from handrail.lsp.servers import LanguageServers
from handrail.protocol.errors import StoreError
from handrail.protocol.events import Warning as WarningEvent
from handrail.runtime.foreign.server_process import ServerPrograms, ServerProgramSpec
from handrail.runtime.session import Session
from handrail.settings import Settings
from handrail.settings.units import parse_seconds

_SEVERITIES = {"errors": ("error",), "warnings": ("error", "warning")}


def open_language_servers(
    session: Session, settings: Settings, state: str
) -> tuple[LanguageServers, ChangeCheck | None]:
    """The servers, and the check of changes if the settings have it on. Both close with the session."""
    environ = _build_environment()
    programs = ServerPrograms(settings, session.resources.root, state, environ)

    def start(words: tuple[str, ...]) -> LanguageProgram:
        return programs.start(ServerProgramSpec(words=words))

    is_closed = session.rules.restriction is not None or "proc.exec" in session.rules.denied
    servers = LanguageServers(session.workspace, settings.lsp.servers, environ, None if is_closed else start)
    closing = session.resources.exit_stack
    closing.callback(programs.close)
    closing.callback(servers.close)
    if settings.lsp.diagnostics == "off" or is_closed:
        return servers, None

    def report(text: str) -> None:
        with suppress(StoreError):
            session.journal.append((WarningEvent, {"code": "lsp.diagnostics", "text": text}))

    severities = _SEVERITIES[settings.lsp.diagnostics]
    check = ChangeCheck(servers, severities, parse_seconds(settings.lsp.wait), report)
    closing.callback(check.close)
    return servers, check


def _build_environment() -> dict[str, str]:
    """The environment, with the programs beside handrail's own Python at the end of PATH."""
    own = os.path.join(sys.prefix, "bin")
    return {**os.environ, "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), own)))}
