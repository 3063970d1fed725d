"""The workspace, settings and session of a command."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.output import print_note, warn
from handrail.protocol.errors import UsageError
from handrail.protocol.records import SessionInfo, list_matching_ids
from handrail.protocol.text import to_one_line
from handrail.settings import LoadedSettings, Settings, load, resolve_state_folder

if TYPE_CHECKING:
    from handrail import ToolSource
    from handrail.state import StoredState


# § [cli.place] Which workspace, and which of its sessions, a command is about.


def resolve_workspace(options: Namespace) -> str:
    """The folder that was named, or the current one, said aloud."""
    if options.workspace is None:
        return _current_folder(told=not options.json)
    if not options.workspace:
        raise CommandFailed("--workspace is empty; name a folder, or leave it out to work in the current one")
    return options.workspace


def is_whole_home(folder: str) -> bool:
    """Whether a folder is the root or a whole home. Only --workspace makes it a workspace."""
    return folder in {"/", os.path.realpath(os.path.expanduser("~"))}


def _current_folder(*, told: bool) -> str:
    try:
        folder = os.getcwd()
    except OSError as error:
        raise CommandFailed(
            f"the current folder cannot be used: {error.strerror}. Name one with --workspace."
        ) from None
    if is_whole_home(folder):
        raise CommandFailed(f"{folder} as a whole is no workspace unless you say so: --workspace {folder}")
    if told:
        print_note(f"workspace: {folder} (the current folder)")
    return folder


# § [cli.preferences] The settings a command works with.


def load_settings(
    options: Namespace,
    mode: str | None = None,
    workspace: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    review: bool = True,
) -> LoadedSettings:
    """What all layers say, the project's too where a workspace is named; what a person should know goes to stderr."""
    loaded = load(os.environ, {"mode": mode, **(flags or {})}, workspace, review=review)
    if not options.quiet:
        for text in loaded.notes:
            print_note(text)
    if loaded.settings.tools.disable:  # one that does nothing leaves a tool there that somebody wanted gone
        from handrail.inspection import list_tool_remarks  # noqa: PLC0415  few disable any

        with suppress(UsageError):  # opening a session reports it
            for text in list_tool_remarks(loaded.settings):
                warn(f"warning: {text}")
    return loaded


def add_unknown_tool_notes(loaded: LoadedSettings) -> LoadedSettings:
    """The same, with a remark on settings about tools that are not here: a program may bring its own."""
    tools = loaded.settings.tools
    if not tools.enable and not tools.disable and all(rule.tool == "exec" for rule in loaded.rules):
        return loaded
    from handrail.inspection import list_tool_names, list_tool_remarks  # noqa: PLC0415  few settings name other tools
    from handrail.settings.rules import list_unknown_tools  # noqa: PLC0415

    try:
        unknown = list_unknown_tools(loaded, list_tool_names(loaded.settings))
        notes = (*loaded.notes, *unknown, *list_tool_remarks(loaded.settings))
    except UsageError:
        return loaded
    return msgspec.structs.replace(loaded, notes=notes)


def has_servers(loaded: LoadedSettings, workspace: str) -> bool:
    """Whether other MCP servers may be had here: else nothing of them is even loaded."""
    return bool(loaded.servers) or (not loaded.servers_fixed and os.path.lexists(os.path.join(workspace, ".mcp.json")))


def find_server_sources(
    options: Namespace, loaded: LoadedSettings, workspace: str, called: str | None = None
) -> "tuple[ToolSource, ...]":
    """The MCP servers of a session in this workspace. A server starts when its tools are needed.

    `called`: the only tool that is called, so that no other server starts.
    """
    if not has_servers(loaded, workspace):
        return ()
    from handrail.mcp.client.sources import find_sources  # noqa: PLC0415  few have other servers

    found = find_sources(loaded, workspace, os.environ, called=called)
    if not options.quiet:
        for text in found.notes:
            print_note(to_one_line(text))
    return found.sources


def load_effective_settings(options: Namespace, mode: str | None = None, workspace: str | None = None) -> Settings:
    """The same, without where it comes from and without rules."""
    return load_settings(options, mode, workspace).settings


def find_project_folder(options: Namespace) -> str | None:
    """The folder whose project is meant, said or not; None where the current folder cannot be a workspace."""
    if options.workspace:
        return options.workspace
    try:
        folder = os.getcwd()
    except OSError:
        return None
    return None if is_whole_home(folder) else folder


def resolve_project_folder(options: Namespace) -> str | None:
    """The same for commands that only look: one that somebody named and that is not there is a mistake."""
    folder = find_project_folder(options)
    if folder is not None and not os.path.isdir(folder):
        raise CommandFailed(f"the workspace {folder} is no folder. Name one that is there.")
    return folder


# § [cli.sessions] Finds the sessions of a workspace without making one.

_MAX_SHOWN_IDS = 4
"""So many ids are named in a line; they are long."""


def open_state_folder() -> "StoredState":
    """The state folder that the environment says; it need not exist."""
    from handrail.state import StoredState  # noqa: PLC0415  a command that reads no session loads no journal

    return StoredState(resolve_state_folder(os.environ))


def list_workspace_sessions(options: Namespace) -> list[SessionInfo]:
    """The sessions of the workspace."""
    return open_state_folder().list_sessions(os.path.realpath(resolve_workspace(options)))


def resolve_session_folder(options: Namespace, session_id: str) -> str:
    """The folder of a session that has a journal."""
    return resolve_workspace_session(os.path.realpath(resolve_workspace(options)), session_id)


def resolve_workspace_session(workspace: str, spelled: str) -> str:
    """The same, where the workspace is known: its real path. The beginning of the id will do."""
    found = match_sessions(spelled, workspace)
    if len(found) == 1:
        return os.path.join(open_state_folder().home(workspace), found[0])
    more = "handrail log --sessions lists them"
    if found:
        raise CommandFailed(f"{describe_candidates(spelled, found)}. Write more of the id; {more}.", FAILED)
    ids = [os.path.basename(folder) for folder in open_state_folder().sessions(workspace)]
    there = f"There are: {', '.join(ids)}." if ids else "It has none yet; handrail run and handrail call begin one."
    there = f"There are {len(ids)}: {more}." if len(ids) > _MAX_SHOWN_IDS else there
    raise CommandFailed(f"the workspace {workspace} has no session {spelled[:80]!r}. {there}", FAILED)


def describe_candidates(spelled: str, ids: list[str]) -> str:
    """The sessions that an id may mean."""
    return f"{spelled[:80]!r} may be {', '.join(ids[:_MAX_SHOWN_IDS])}{' …' if len(ids) > _MAX_SHOWN_IDS else ''}"


def match_sessions(spelled: str, workspace: str) -> list[str]:
    """The ids of the sessions that somebody may mean, in a workspace by its real path: by what tells an id from others,
    else by how it begins."""
    ids = sorted(os.path.basename(folder) for folder in open_state_folder().sessions(workspace))
    return list_matching_ids(spelled, ids) or [one for one in ids if spelled and one.startswith(spelled)]


# § [cli.given] What a person gives a command to read: JSON as an argument or on stdin, and lines on stdin.

_MAX_LINE_BYTES = 64 * 1024 * 1024


def read_json_argument(text: str) -> Any:
    """The arguments of a tool, as JSON; `-` reads it from stdin."""
    data = _all_of_stdin() if text == "-" else os.fsencode(text)
    if not data.strip():
        raise CommandFailed("the arguments are empty; without any, pass {}. Nothing was run.")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        example = """'{"path": "README.md"}'"""
        raise CommandFailed(
            f"the arguments are not JSON: {error}. Nothing was run. Write them as one object: {example}"
        ) from None


def read_stdin_lines() -> Iterator[bytes | None]:
    """Every line of stdin as soon as it is there, without its end; None for one that is too long to be held."""
    stdin = _stdin("the lines", "waiting for one JSON object a line; end with Ctrl-D")
    while line := stdin.readline(_MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < _MAX_LINE_BYTES:
            yield line.removesuffix(b"\n")
        else:
            while line and not line.endswith(b"\n"):
                line = stdin.readline(_MAX_LINE_BYTES)
            yield None


def _all_of_stdin() -> bytes:
    data = _stdin("the arguments", "waiting for the arguments as JSON; end with Ctrl-D").read(_MAX_LINE_BYTES + 1)
    if len(data) > _MAX_LINE_BYTES:
        raise CommandFailed("the arguments are larger than 64 MiB. Nothing was run.")
    return data


def _stdin(what: str, waiting: str) -> BinaryIO:
    if sys.stdin is None:
        raise CommandFailed(f"{what} cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        print_note(waiting)
    return sys.stdin.buffer
