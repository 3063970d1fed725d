"""Keeps a replay to its copy: what the session could write elsewhere then, nobody writes now."""

import os
import re
from typing import Any, cast

from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.results import ToolResult
from handrail.settings import LoadedSettings

_NAMESPACES = 2
"""The weakest tier that keeps a command from files outside wholly: Landlock lets it change their modes and times."""
_PATHS = ("path", "command", "cwd")
"""Arguments that name places. Others hold contents, which stay as they are."""
_OUT_OF_REACH = {
    "OUTSIDE_WORKSPACE": "it reaches outside of the copy",
    "SANDBOX_UNAVAILABLE": "no sandbox here keeps it to the copy",
}


def confine_settings(loaded: LoadedSettings) -> LoadedSettings:
    """The settings of a replay: other roots are only read, nothing outside can be opened by a yes that was given for
    another moment, and no command runs that could leave the copy."""
    settings = loaded.settings
    paths = replace(
        settings.paths, read_only=(*settings.paths.read_only, *settings.paths.writable), writable=(), outside="deny"
    )
    sandbox = replace(settings.sandbox, least=max(_NAMESPACES, settings.sandbox.least))
    return replace(loaded, settings=replace(settings, paths=paths, sandbox=sandbox))


def relocate_call(call: ToolCall, then: str, now: str) -> ToolCall:
    """The call with the workspace's whole name in it replaced by that of the copy."""
    args: Any = call.args
    if not isinstance(args, dict):
        return call
    given = cast("dict[str, Any]", args)
    name = re.compile(rf"(?<![\w./-]){re.escape(then)}(?![\w.-])")
    named = {key: name.sub(lambda _: now, given[key]) for key in _PATHS if isinstance(given.get(key), str)}
    return replace(call, args={**given, **named})


def has_outside_changes(result: ToolResult[Any], workspace: str) -> bool:
    """Whether a call changed files that are not part of the workspace, and so not of the copy."""
    return any(is_elsewhere(path, workspace) for path in result.artifacts.files_changed)


def is_elsewhere(path: str, workspace: str) -> bool:
    """Whether a path, relative in the workspace, is of somewhere else."""
    whole = os.path.normpath(os.path.join(workspace, path))
    return whole != workspace and not whole.startswith(f"{workspace.rstrip('/')}/")


def find_unreachable_reason(then: ToolResult[Any], now: ToolResult[Any]) -> str:
    """Why a call could be made then, and cannot be made in a copy; empty where it can."""
    if now.error is None or (then.error is not None and then.error.code == now.error.code):
        return ""
    return _OUT_OF_REACH.get(now.error.code, "")
