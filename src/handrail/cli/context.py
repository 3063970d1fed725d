"""The context of a command: its workspace, settings, sessions."""

import os
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec

from handrail.cli.exits import FAILED, CommandFailed
from handrail.cli.output import print_note, warn
from handrail.protocol.errors import UsageError
from handrail.protocol.records import list_matching_ids, shorten_ids
from handrail.protocol.text import render_value, to_one_line, truncate
from handrail.settings import LoadedSettings, Settings, SettingsError, load, resolve_state_folder
from handrail.settings.load import list_unknown_tools
from handrail.settings.paths import TOOLS_FOLDER

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from handrail.api import ToolSource
    from handrail.state import StoredState

_MAX_SHOWN_IDS = 4


# Workspace


def resolve_workspace(options: SimpleNamespace, *, quiet: bool = False) -> str:
    """The folder of --workspace, or the current folder. A note names it if it is another folder, unless `quiet`."""
    if options.workspace:
        is_other = os.path.isdir(options.workspace) and not os.path.samefile(options.workspace, ".")
        if is_other and not quiet and not getattr(options, "json", True):
            print_note(f"workspace: {to_one_line(options.workspace)}")
        return options.workspace
    if options.workspace is not None:
        raise CommandFailed("--workspace is empty. Nothing was done.")
    try:
        folder = os.getcwd()
    except OSError as error:
        problem = f"the current folder cannot be used: {error.strerror}. Name another with --workspace."
        raise CommandFailed(problem, then="cd") from None
    if is_whole_home(folder):
        raise CommandFailed(f"{folder} is a whole home folder, so it needs --workspace {folder}. Nothing was done.")
    return folder


def is_whole_home(folder: str) -> bool:
    """Whether a folder is the root or a whole home. Only --workspace makes it a workspace."""
    return folder in {"/", os.path.realpath(os.path.expanduser("~"))}


def find_project_folder(options: SimpleNamespace) -> str | None:
    """The folder of --workspace, or the current folder if that can be a workspace."""
    if options.workspace:
        return options.workspace
    try:
        folder = os.getcwd()
    except OSError:
        return None
    return None if is_whole_home(folder) else folder


def resolve_project_folder(options: SimpleNamespace) -> str | None:
    """The same. CommandFailed if the folder does not exist."""
    folder = find_project_folder(options)
    if folder is not None and not os.path.isdir(folder):
        raise CommandFailed(f"the workspace {folder} is not a folder. Nothing was done.")
    return folder


# Settings


def add_dialect_option(parser: "ArgumentParser") -> None:
    parser.add_argument("--dialect", metavar="D", help="speak the tools of another system, such as claude-code")


def load_settings(
    options: SimpleNamespace,
    mode: str | None = None,
    workspace: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    review: bool = True,
) -> LoadedSettings:
    """Loads the settings, with those of the project if a workspace is given. Prints notes about them."""
    loaded = load(os.environ, {"mode": mode, **(flags or {})}, workspace, review=review)
    loaded = _add_project_tools(loaded, workspace)
    if not options.quiet:
        for text in loaded.notes:
            print_note(text)
    if loaded.settings.tools.disable:  # a name without a tool leaves a tool on that the person wanted off
        from handrail.inspection import build_tool_set  # noqa: PLC0415  few disable any

        with suppress(UsageError):  # opening a session reports it
            for text in build_tool_set(loaded.settings, files=loaded.tool_files).unmatched():
                warn(f"warning: {text}")
    return loaded


def _add_project_tools(loaded: LoadedSettings, workspace: str | None) -> LoadedSettings:
    """Adds the tool files of the project, if they are trusted, or else a note."""
    if workspace is None or not os.path.lexists(os.path.join(workspace, TOOLS_FOLDER)):
        return loaded
    from handrail.settings.project_tools import load_project_tools  # noqa: PLC0415  few projects have tools

    tools = load_project_tools(workspace, resolve_state_folder(os.environ))
    if tools is None or tools.trusted:
        return msgspec.structs.replace(loaded, tool_files=tools.files if tools else ())
    return msgspec.structs.replace(loaded, notes=(*loaded.notes, tools.remark))


def load_settings_for_undo(options: SimpleNamespace) -> Settings:
    """The settings, or defaults that let nothing expire: a broken file must not keep a person from undoing."""
    try:
        return load_settings(options).settings
    except SettingsError as error:
        warn(f"warning: {' '.join(str(error).splitlines()[:-1])}. The default settings are used.")
        return Settings.from_values({"undo.days": 3_650, "store.keep": "3650d", "ask.expire": "365d"})


def add_unknown_tool_notes(loaded: LoadedSettings, workspace: str | None) -> LoadedSettings:
    """Adds the tools of the project, and notes about settings of tools that do not exist here.

    A program may bring such tools.
    """
    loaded = _add_project_tools(loaded, workspace)
    tools = loaded.settings.tools
    if not tools.enable and not tools.disable and all(rule.tool == "exec" for rule in loaded.rules):
        return loaded
    from handrail.inspection import build_tool_set  # noqa: PLC0415  few settings name other tools

    try:
        offer = build_tool_set(loaded.settings, files=loaded.tool_files)
    except UsageError:
        return loaded
    notes = (*loaded.notes, *list_unknown_tools(loaded, offer.registered), *offer.unmatched())
    return msgspec.structs.replace(loaded, notes=notes)


def has_servers(loaded: LoadedSettings, workspace: str) -> bool:
    """Whether there may be MCP servers. Otherwise their code is not imported."""
    return bool(loaded.servers) or (not loaded.servers_fixed and os.path.lexists(os.path.join(workspace, ".mcp.json")))


def find_server_sources(
    options: SimpleNamespace, loaded: LoadedSettings, workspace: str, called: str | None = None
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


# Sessions


def open_state_folder() -> "StoredState":
    """The state folder of the environment. It need not exist."""
    from handrail.state import StoredState  # noqa: PLC0415  an engine room

    return StoredState(resolve_state_folder(os.environ))


def resolve_session_folder(options: SimpleNamespace, spelled: str) -> str:
    """The folder of a session of the workspace."""
    return resolve_workspace_session(os.path.realpath(resolve_workspace(options)), spelled)


def resolve_workspace_session(workspace: str, spelled: str) -> str:
    """The same for a workspace by its real path. The beginning of the id is enough."""
    ids = sorted(os.path.basename(folder) for folder in open_state_folder().sessions(workspace))
    found = list_matching_ids(spelled, ids) or [one for one in ids if spelled and one.startswith(spelled)]
    more = "handrail log --sessions"
    if (session := choose_id(spelled, dict.fromkeys(ids, ""), more, found)) is not None:
        return os.path.join(open_state_folder().home(workspace), session)
    there = f" Its sessions: {', '.join(ids)}." if 0 < len(ids) <= _MAX_SHOWN_IDS else ""
    problem = f"the workspace {workspace} has no session {spelled[:80]!r}. Nothing was done.{there}"
    raise CommandFailed(problem, FAILED, then=more if ids else "handrail run PROMPT")


def choose_id(spelled: str, subjects: Mapping[str, str], then: str, found: list[str] | None = None) -> str | None:
    """The only id that a person can mean. CommandFailed if there are several. `subjects` says what the ids stand for.

    `found`: the ids that match, if they match otherwise than by the beginning of their own part.
    """
    found = list_matching_ids(spelled, subjects) if found is None else found
    if len(found) > 1:
        short = shorten_ids(found)
        named = [f"{short[one]} ({truncate(subjects[one], 40)})" if subjects[one] else one for one in found]
        more = " …" if len(named) > _MAX_SHOWN_IDS else ""
        problem = f"{render_value(spelled)} could be {', '.join(named[:_MAX_SHOWN_IDS])}{more}. Nothing was done."
        raise CommandFailed(problem, then=then)
    return found[0] if found else None
