"""acp: a model at work for an editor that speaks the Agent Client Protocol."""

import os
import sys
from argparse import Namespace
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from handrail.cli.exits import OK, Stop
from handrail.cli.output import note
from handrail.cli.preferences import loaded_for
from handrail.protocol.error import UsageError
from handrail.settings.extras import installing

if TYPE_CHECKING:
    from handrail.acp.hosting import Host
    from handrail.models.model import Model
    from handrail.settings import Loaded


def run(options: Namespace) -> int:
    """Serves until the editor goes."""
    try:
        from handrail.acp.serving import serve  # noqa: PLC0415  heavy
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"acp", "pydantic"}:
            raise
        raise Stop(
            f"handrail acp needs the extra `acp`, which is not installed. Install it: {installing('acp')}"
        ) from None
    if sys.stdin is not None and sys.stdin.isatty():
        note(
            "handrail acp is started by an editor, which talks to it here; Ctrl-C ends it."
            "\nTo tell Zed of it: handrail mcp --config zed. Any other editor is told to start: handrail acp"
        )
    sink = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)  # stdout carries the protocol: what a library prints must not end up in it
    serve(host_of(options), 0, sink)
    return OK


def host_of(options: Namespace) -> "Host":
    """What the words of the command decide for all sessions."""
    from handrail.acp.hosting import Host  # noqa: PLC0415  as above
    from handrail.cli.acp_servers import sources_for  # noqa: PLC0415
    from handrail.cli.running.turn import limits_of  # noqa: PLC0415

    return Host(
        workspace=lambda cwd: _workspace(options, cwd),
        only=os.path.abspath(options.workspace) if options.workspace else None,
        settings=lambda workspace: _settings(options, workspace),
        limits=limits_of,
        models=lambda loaded, before: _models(options, loaded, before),
        model=_model,
        sources=sources_for,
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


def _settings(options: Namespace, workspace: str) -> "Loaded":
    from handrail.cli.running.companions import with_companions  # noqa: PLC0415  as above

    first = options.model[0] if options.model else None
    return with_companions(loaded_for(options, options.mode, workspace, flags={"model": first}), workspace)


def _models(options: Namespace, loaded: "Loaded", before: str | None) -> tuple[str, ...]:
    """Those that were named, else the one of the settings, else whom the session talked to before. Where that one is
    among several, it is the first."""
    chosen = loaded.settings.model or before
    named = tuple(dict.fromkeys(options.model or ([chosen] if chosen else [])))
    return (before, *(name for name in named if name != before)) if before in named and before else named


def _model(loaded: "Loaded", name: str | None) -> "Model":
    from handrail.cli.running.model import model_for, no_model, warm_up  # noqa: PLC0415  as above

    try:
        if name is None:
            raise no_model()
        model = model_for(name, loaded.settings.agent.window)
    except Stop as stop:
        raise UsageError(f"{stop}") from None
    warm_up(name)
    return model
