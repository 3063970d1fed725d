"""Loads the settings of a workspace."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from handrail.policy.names import find_protection
from handrail.protocol.wire import convert
from handrail.settings.errors import SettingsError, quote_path
from handrail.settings.model import Settings, nest
from handrail.settings.paths import MANAGED_FILE, expand_home, is_located_in, resolve_state_folder, resolve_user_file
from handrail.settings.sources import (
    Layer,
    Project,
    build_default_layer,
    build_environment_layers,
    build_flag_layer,
    build_session_layer,
    read_managed_layer,
    read_project_layer,
    read_user_layer,
)

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable
    from handrail.settings.merge import IgnoredSetting


# § [settings.load] Settings from all layers, and which layer each value comes from.


class LoadedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force; for every dotted key its source; what a person should be told."""

    settings: Settings
    sources: dict[str, str]
    rules: "tuple[Rule, ...]" = ()
    """The rules that people wrote and that count, of all layers."""
    servers: "Mapping[str, ServerTable]" = {}
    """Other MCP servers that the files name and that count; those of .mcp.json come to them (`project_servers`)."""
    servers_fixed: bool = False
    """Whether the managed file says which there are: then there are no others."""
    notes: tuple[str, ...] = ()
    ignored: "tuple[IgnoredSetting, ...]" = ()
    """What was said and does not count; each has its note too."""
    managed: Mapping[str, object] = {}
    """What the managed file fixes: nothing looser counts, whoever says it later."""
    project: Project | None = None


def load(
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    workspace: str | None = None,
    managed: str = MANAGED_FILE,
    session: Mapping[str, object] | None = None,
    *,
    state: str | None = None,
    trusted: bool | None = None,
    review: bool = True,
) -> LoadedSettings:
    """Managed file; else flag, environment, session, project file, user file, default. Folders come back absolute.

    `state` is the folder that remembers trust, where it is not the environment's; `trusted` says what to make of the
    project's file instead of looking there. Without `review` rules come as they are, right or wrong.
    """
    top = read_managed_layer(managed)
    found, project = _project(workspace, environ, state, trusted)
    layers = [read_user_layer(environ, workspace), *found]
    layers += [build_session_layer(session or {}), *build_environment_layers(environ), build_flag_layer(flags)]
    loaded = _merged([layer for layer in layers if layer.speaks], top, project, review=review)
    loaded = msgspec.structs.replace(loaded, settings=_with_home(loaded.settings, environ))
    _refuse_reach(loaded.settings.paths.writable, (resolve_user_file(environ), managed))
    if loaded.settings.sandbox.toolchains:
        _refuse_wide(loaded, environ, state)
    return loaded


def _project(
    workspace: str | None, environ: Mapping[str, str], state: str | None, trusted: bool | None
) -> tuple[list[Layer], Project | None]:
    if workspace is None:
        return [], None
    layer, project = read_project_layer(workspace, environ, state, trusted)
    return [layer], project


def _merged(layers: list[Layer], managed: Layer, project: Project | None, *, review: bool) -> LoadedSettings:
    remarks = (project.remark,) if project and project.remark else ()
    bottom = build_default_layer()
    if not layers and not managed.speaks:  # nobody says anything
        sources = dict.fromkeys(bottom.values, bottom.source)
        return LoadedSettings(settings=Settings(), sources=sources, notes=remarks, project=project)
    from handrail.settings.merge import Merge  # noqa: PLC0415 - only where there is something to merge

    merge = Merge(bottom)
    for layer in layers:
        merge.put(layer)
    merge.put_managed(managed)
    told = _reviewed(merge.rules, [managed, *layers]) if merge.rules and review else ()
    return LoadedSettings(
        settings=convert(nest(merge.values), Settings),
        sources=merge.sources,
        rules=tuple(merge.rules),
        servers=merge.servers,
        servers_fixed=managed.servers is not None,
        notes=(*remarks, *(ignored.note for ignored in merge.ignored), *told),
        ignored=tuple(merge.ignored),
        managed=managed.values,
        project=project,
    )


def _reviewed(rules: "list[Rule]", layers: list[Layer]) -> tuple[str, ...]:
    from handrail.settings.rules import review_rules  # noqa: PLC0415 - only where there are rules

    return review_rules(tuple(rules), layers)


def _refuse_reach(writable: tuple[str, ...], files: tuple[str, ...]) -> None:
    """The agent must not write its own policy, nor make the file where it will be looked for."""
    for path in files if writable else ():
        if around := [folder for folder in writable if is_located_in(path, folder)]:
            raise SettingsError(
                f"The settings file {quote_path(path)} would be an agent's to write",
                [f"paths.writable has {quote_path(folder)}, which it lies in" for folder in around],
                "Nothing was run. Name a smaller folder, or keep the settings elsewhere.",
            )


def _refuse_wide(loaded: LoadedSettings, environ: Mapping[str, str], state: str | None) -> None:

    home = expand_home("~", environ)
    refuse_wide(loaded.settings.sandbox.toolchains, home, state or resolve_state_folder(environ))


def _with_home(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """No reader of the settings has to know about `~`."""

    def absolute(folders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(expand_home(folder, environ) for folder in folders)

    return msgspec.structs.replace(
        settings,
        tools=msgspec.structs.replace(settings.tools, folders=absolute(settings.tools.folders)),
        skills=msgspec.structs.replace(settings.skills, folders=absolute(settings.skills.folders)),
        paths=msgspec.structs.replace(
            settings.paths,
            read_only=absolute(settings.paths.read_only),
            writable=absolute(settings.paths.writable),
        ),
        sandbox=msgspec.structs.replace(settings.sandbox, toolchains=absolute(settings.sandbox.toolchains)),
    )


# § [settings.toolchains] Which folders nobody shows to commands as a toolchain, so that a slip in the settings does
# § not bare everything.

_EVERY_PROGRAMS = (".config", ".local", ".local/share")
"""Folders in the home folder that every program keeps something in, credentials too."""


def refuse_wide(toolchains: tuple[str, ...], home: str, state: str) -> None:
    """A SettingsError for toolchains that hold the home folder, the state folder or credentials."""
    found = [(path, why) for path in toolchains if (why := _why_not(path, home, state))]
    if found:
        raise SettingsError(
            "The settings cannot be used",
            [f"sandbox.toolchains has {quote_path(path)}, {why}" for path, why in found],
            "Nothing was run. Name a smaller folder in it, then try again.",
        )


def _why_not(path: str, home: str, state: str) -> str | None:
    spellings = _places(path)
    if _any_holds(spellings, home):
        return "which the home folder lies in"
    if _any_holds(spellings, state):
        return "which handrail keeps its own files in"
    shared = {os.path.join(place, name) for place in _places(home) for name in _EVERY_PROGRAMS}
    if spellings & shared or any(find_protection(spelled) == "credential" for spelled in spellings):
        return "where programs keep credentials"
    return None


def _any_holds(folders: set[str], path: str) -> bool:
    return any(os.path.commonpath((folder, place)) == folder for folder in folders for place in _places(path))


def _places(path: str) -> set[str]:
    return {os.path.normpath(path), os.path.realpath(path)}
