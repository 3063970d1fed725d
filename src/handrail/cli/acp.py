"""acp: a model at work for an editor that speaks the Agent Client Protocol."""

import os
import sys
from argparse import Namespace
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from handrail.cli.exits import OK, CommandFailed
from handrail.cli.output import print_note
from handrail.cli.preferences import load_settings
from handrail.protocol.errors import UsageError, build_install_command

if TYPE_CHECKING:
    from handrail import ToolSource
    from handrail.acp.host import EditorServer
    from handrail.agent.turn import TurnLimits
    from handrail.models.base import Model
    from handrail.settings import LoadedSettings


def run(options: Namespace) -> int:
    """Serves until the editor goes."""
    try:
        from handrail.acp.agent import serve  # noqa: PLC0415  heavy
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"acp", "pydantic"}:
            raise
        raise CommandFailed(
            f"handrail acp needs the extra `acp`, which is not installed. Install it: {build_install_command('acp')}"
        ) from None
    if sys.stdin is not None and sys.stdin.isatty():
        print_note(
            "handrail acp is started by an editor, which talks to it here; Ctrl-C ends it."
            "\nTo tell Zed of it: handrail mcp --config zed. Any other editor is told to start: handrail acp"
        )
    sink = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)  # stdout carries the protocol: what a library prints must not end up in it
    serve(CommandHost(options), 0, sink)
    return OK


class CommandHost:
    """The host of `handrail acp`: the options of the command decide for all sessions."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self.only_workspace = os.path.abspath(options.workspace) if options.workspace else None
        self.has_http_servers = find_spec("mcp") is not None

    def resolve_workspace(self, cwd: str) -> str:
        """The folder of the editor, unless the person named one. Only the person may name a whole home."""
        if self.only_workspace is not None:
            return self.only_workspace
        if not os.path.isabs(cwd) or "\0" in cwd:
            raise UsageError(f"cwd is an absolute path: {cwd[:200]!r} is none. Nothing was opened.")
        real = os.path.realpath(cwd)
        if not os.path.isdir(real):
            raise UsageError(f"{cwd[:200]} is no folder. Nothing was opened.")
        if real in {"/", os.path.realpath(os.path.expanduser("~"))}:
            reason = f"{cwd} as a whole is no workspace unless you say so"
            raise UsageError(f"{reason}: open a folder in the editor, or start handrail acp --workspace {cwd}")
        return cwd

    def load_settings(self, workspace: str) -> "LoadedSettings":
        from handrail.cli.running.companions import enable_companion_tools  # noqa: PLC0415  heavy

        options = self._options
        first = options.model[0] if options.model else None
        loaded = load_settings(options, options.mode, workspace, flags={"model": first})
        return enable_companion_tools(loaded, workspace)

    def get_limits(self, loaded: "LoadedSettings") -> "TurnLimits":
        from handrail.cli.running.turn import build_turn_limits  # noqa: PLC0415  heavy

        return build_turn_limits(loaded)

    def list_models(self, loaded: "LoadedSettings", last: str | None) -> tuple[str, ...]:
        """The models of the command, else that of the settings, else the last one of the session."""
        chosen = loaded.settings.model or last
        named = tuple(dict.fromkeys(self._options.model or ([chosen] if chosen else [])))
        return (last, *(name for name in named if name != last)) if last in named and last else named

    def open_model(self, loaded: "LoadedSettings", name: str | None) -> "Model":
        from handrail.cli.running.model import build_no_model_error, resolve_model, warm_up  # noqa: PLC0415  heavy

        try:
            if name is None:
                raise build_no_model_error()
            model = resolve_model(name, loaded.settings.agent.window)
        except CommandFailed as stop:
            raise UsageError(f"{stop}") from None
        warm_up(name)
        return model

    def open_sources(
        self, loaded: "LoadedSettings", workspace: str, servers: "tuple[EditorServer, ...]"
    ) -> "tuple[ToolSource, ...]":
        from handrail.cli.acp_servers import build_editor_sources  # noqa: PLC0415  heavy

        return build_editor_sources(loaded, workspace, servers)
