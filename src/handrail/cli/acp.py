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
    from handrail.acp.hosting import AgentHost
    from handrail.models.base import Model
    from handrail.settings import LoadedSettings


def run(options: Namespace) -> int:
    """Serves until the editor goes."""
    try:
        from handrail.acp.serving import serve  # noqa: PLC0415  heavy
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
    serve(build_host(options), 0, sink)
    return OK


def build_host(options: Namespace) -> "AgentHost":
    """What the words of the command decide for all sessions."""
    from handrail.acp.hosting import AgentHost  # noqa: PLC0415  as above
    from handrail.cli.acp_servers import build_editor_sources  # noqa: PLC0415
    from handrail.cli.running.turn import build_turn_limits  # noqa: PLC0415

    return AgentHost(
        workspace=lambda cwd: _workspace(options, cwd),
        only=os.path.abspath(options.workspace) if options.workspace else None,
        settings=lambda workspace: _settings(options, workspace),
        limits=build_turn_limits,
        models=lambda loaded, before: _models(options, loaded, before),
        model=_model,
        sources=build_editor_sources,
        serves_http=find_spec("mcp") is not None,
    )


def _workspace(options: Namespace, cwd: str) -> str:
    """The folder that the editor names, unless the person named one; as elsewhere, only they may name a whole home."""
    if options.workspace:
        return os.path.abspath(options.workspace)
    if not os.path.isabs(cwd) or "\0" in cwd:
        raise UsageError(f"cwd is an absolute path: {cwd[:200]!r} is none. Nothing was opened.")
    real = os.path.realpath(cwd)
    if not os.path.isdir(real):
        raise UsageError(f"{cwd[:200]} is no folder. Nothing was opened.")
    if real in {"/", os.path.realpath(os.path.expanduser("~"))}:
        told = f"{cwd} as a whole is no workspace unless you say so"
        raise UsageError(f"{told}: open a folder in the editor, or start handrail acp --workspace {cwd}")
    return cwd


def _settings(options: Namespace, workspace: str) -> "LoadedSettings":
    from handrail.cli.running.companions import enable_companion_tools  # noqa: PLC0415  as above

    first = options.model[0] if options.model else None
    return enable_companion_tools(load_settings(options, options.mode, workspace, flags={"model": first}), workspace)


def _models(options: Namespace, loaded: "LoadedSettings", before: str | None) -> tuple[str, ...]:
    """Those that were named, else the one of the settings, else whom the session talked to before. Where that one is
    among several, it is the first."""
    chosen = loaded.settings.model or before
    named = tuple(dict.fromkeys(options.model or ([chosen] if chosen else [])))
    return (before, *(name for name in named if name != before)) if before in named and before else named


def _model(loaded: "LoadedSettings", name: str | None) -> "Model":
    from handrail.cli.running.model import build_no_model_error, resolve_model, warm_up  # noqa: PLC0415  as above

    try:
        if name is None:
            raise build_no_model_error()
        model = resolve_model(name, loaded.settings.agent.window)
    except CommandFailed as stop:
        raise UsageError(f"{stop}") from None
    warm_up(name)
    return model
