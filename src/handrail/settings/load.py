"""The settings of a workspace from all sources, with the policy configuration that they declare."""

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.text import escape_unprintable, find_similar
from handrail.settings.errors import (
    ADVICE,
    SettingsError,
    describe_refused,
    find_invalid_values,
    list_first_problems,
    quote_path,
    truncate_repr,
)
from handrail.settings.merge import Layer, LoadedSettings, Merge, Project
from handrail.settings.model import DEFAULTS, Settings, list_settings
from handrail.settings.paths import (
    MANAGED_FILE,
    PROJECT_FILE,
    exists,
    expand_home,
    is_located_in,
    resolve_state_folder,
    resolve_user_file,
)
from handrail.settings.units import parse_size

if TYPE_CHECKING:
    from handrail.policy.config import Grant, PolicyConfig, Rule, TrustedServer

_ALWAYS_KNOWN_TOOLS = ("exec", "process", "*")
_VARIABLES = {"mode": "HANDRAIL_MODE", "model": "HANDRAIL_MODEL"}
_SHARED_FOLDERS = (".config", ".local", ".local/share")
"""Folders in the home folder where many programs keep files, credentials too."""
_WIDE_FOLDERS = frozenset(
    f"/{name}" for name in ("", "etc", "home", "root", "var", "run", "mnt", "srv", "tmp", "proc", "dev")
)

ToolchainObjection = Literal["home", "state", "shared", "credentials", "machine", "in state"]
"""Why commands must not see a path: a folder that it holds or lies in, or credentials."""
_REFUSED_TOOLCHAINS: dict[ToolchainObjection, str] = {
    "home": "which contains the home folder",
    "state": "which handrail keeps its own files in",
    "shared": "where programs keep credentials",
    "credentials": "where programs keep credentials",
}
"""Objections that stop everything. With the others, the sandbox does not show the folder, and `doctor` says so."""


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

    `state` is the folder that records trust, if not the environment's. `trusted` overrides that record for the project
    file. Without `review` the rules are not checked.
    """
    top = _read_file(managed, "managed")[0] if exists(managed) else Layer(kind="managed", source="managed file")
    project_layer, project = _read_project_layer(workspace, environ, state, trusted)
    layers = [_read_user_layer(environ, workspace), project_layer, _build_session_layer(session or {})]
    layers += [*_build_environment_layers(environ), _build_flag_layer(flags)]
    loaded = _merge([layer for layer in layers if not layer.is_empty], top, project, environ, review=review)
    _refuse_writable_settings(loaded.settings.paths.writable, (resolve_user_file(environ), managed))
    if toolchains := loaded.settings.sandbox.toolchains:
        _refuse_toolchains(toolchains, expand_home("~", environ), state or resolve_state_folder(environ))
    return loaded


def _merge(
    layers: list[Layer], managed: Layer, project: Project | None, environ: Mapping[str, str], *, review: bool
) -> LoadedSettings:
    remarks = (project.remark,) if project and project.remark else ()
    if not layers and managed.is_empty:
        sources = dict.fromkeys(DEFAULTS, "default")
        return LoadedSettings(settings=Settings(), sources=sources, notes=remarks, project=project)
    merge = Merge()
    for layer in layers:
        merge.put(layer)
    merge.put_managed(managed)
    notes = [*remarks, *(ignored.note for ignored in merge.ignored)]
    if merge.rules and review:
        notes += _review_rules(tuple(merge.rules), [layer.source for layer in (managed, *layers) if layer.rules])
    return LoadedSettings(
        settings=Settings.from_values(_expand_home(merge.values, environ)),
        sources=merge.sources,
        lines=merge.lines,
        rules=tuple(merge.rules),
        servers=merge.servers,
        servers_fixed=managed.servers is not None,
        notes=tuple(notes),
        ignored=tuple(merge.ignored),
        managed=managed.values,
        project=project,
    )


def _review_rules(rules: "tuple[Rule, ...]", sources: list[str]) -> tuple[str, ...]:
    """Notes about the rules of all layers together. SettingsError: they cannot be used."""
    from handrail.policy.rules.lint import review

    faults = review(rules)
    if problems := list_first_problems(escape_unprintable(fault.problem) for fault in faults if fault.is_error):
        raise SettingsError(f"The rules are unusable ({' and '.join(sources)})", problems, ADVICE)
    return tuple(escape_unprintable(fault.problem) for fault in faults)


def _read_file(path: str, kind: Literal["managed", "user", "project"]) -> tuple[Layer, str]:
    from handrail.settings.toml_file import read_layer

    return read_layer(path, kind)


def _read_user_layer(environ: Mapping[str, str], workspace: str | None) -> Layer:
    """The user file. It may be missing unless HANDRAIL_CONFIG names it."""
    path = resolve_user_file(environ)
    if not environ.get("HANDRAIL_CONFIG") and not exists(path):
        return Layer(kind="user", source="user file")
    layer, _ = _read_file(path, "user")
    if workspace is None or not is_located_in(path, workspace):
        return layer
    return msgspec.structs.replace(layer, trusted=False)  # an agent in this workspace could write it


def _read_project_layer(
    workspace: str | None, environ: Mapping[str, str], state: str | None, trusted: bool | None
) -> tuple[Layer, Project | None]:
    """The file in the root of the workspace. `trusted` overrides the record of the state folder."""
    if workspace is None or not exists(os.path.join(workspace, PROJECT_FILE)):
        return Layer(kind="project", source="project file"), None
    root = os.path.realpath(workspace)
    path = os.path.join(root, PROJECT_FILE)
    layer, digest = _read_file(path, "project")
    remark = ""
    if trusted is None:
        from handrail.settings.trust import read_file_trust

        trusted, remark = read_file_trust(state or resolve_state_folder(environ), root, PROJECT_FILE, digest)
    project = Project(path=path, workspace=root, digest=digest, trusted=trusted, remark=remark)
    return msgspec.structs.replace(layer, trusted=trusted), project


def _build_session_layer(settings: Mapping[str, object]) -> Layer:
    """Settings of this session alone: values by dotted key, and rule tables as in a file under `rule`."""
    values = {key: value for key, value in settings.items() if key != "rule"}
    rules: tuple[Rule, ...] = ()
    problems = describe_refused(find_invalid_values(values))
    if "rule" in settings:
        from handrail.settings.toml_file import parse_rules

        rules, wrong = parse_rules(settings["rule"], "session", "")
        problems += wrong
    if problems:
        raise SettingsError("The session's settings cannot be used", problems, ADVICE)
    return Layer(kind="session", source="session", values=values, rules=rules)


def _build_environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """HANDRAIL_MODE, which can only be stricter than the layers below, and HANDRAIL_MODEL."""
    variables = {key: (name, environ[name]) for key, name in _VARIABLES.items() if environ.get(name)}
    for key, (name, value) in variables.items():
        if find_invalid_values({key: value}):
            raise SettingsError(
                "The environment cannot be used",
                [f"{name} is {truncate_repr(value)}; allowed: {list_settings()[key].allowed}"],
                f"Nothing was run. Set {name} to {'one of these' if key == 'mode' else 'such a name'}, or unset it.",
            )
    return [
        Layer(kind="environment", source=f"environment {name}", values={key: value})
        for key, (name, value) in variables.items()
    ]


def _build_flag_layer(flags: Mapping[str, object]) -> Layer:
    """Options of the command line. None: the option was not given."""
    values = {key: value for key, value in flags.items() if value is not None}
    if invalid := find_invalid_values(values):
        raise SettingsError("The flags cannot be used", describe_refused(invalid), ADVICE)
    return Layer(kind="flag", source="flag", values=values)


def _expand_home(values: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        key: tuple(expand_home(path, environ) for path in value) if list_settings()[key].has_home else value
        for key, value in values.items()
    }


def _refuse_writable_settings(writable: tuple[str, ...], files: tuple[str, ...]) -> None:
    """The agent must not be able to write its own policy, nor create a missing settings file."""
    for path in files if writable else ():
        if around := [folder for folder in writable if is_located_in(path, folder)]:
            raise SettingsError(
                f"The settings file {quote_path(path)} would be writable for an agent",
                [f"paths.writable has {quote_path(folder)}, which contains it" for folder in around],
                "Nothing was run. Name a smaller folder, or keep the settings elsewhere.",
            )


def _refuse_toolchains(toolchains: tuple[str, ...], home: str, state: str) -> None:
    objections = [(path, find_toolchain_objection(path, home, state)) for path in toolchains]
    if problems := [
        f"sandbox.toolchains has {quote_path(path)}, {_REFUSED_TOOLCHAINS[objection]}"
        for path, objection in objections
        if objection in _REFUSED_TOOLCHAINS
    ]:
        raise SettingsError(
            "The settings cannot be used", problems, "Nothing was run. Name a smaller folder in it, then try again."
        )


def find_toolchain_objection(path: str, home: str, state: str) -> ToolchainObjection | None:
    """Why commands should not see a path as a toolchain."""
    from handrail.policy.names import find_protection

    paths, homes, states = ({os.path.normpath(each), os.path.realpath(each)} for each in (path, home, state))
    if _is_in(homes, paths):
        return "home"
    if _is_in(states, paths):
        return "state"
    if paths & {os.path.join(folder, name) for folder in homes for name in _SHARED_FOLDERS}:
        return "shared"
    if any(find_protection(spelling) == "credential" for spelling in paths):
        return "credentials"
    if paths & _WIDE_FOLDERS:
        return "machine"
    return "in state" if _is_in(paths, states) else None


def _is_in(paths: set[str], folders: set[str]) -> bool:
    return any(os.path.commonpath((folder, path)) == folder for folder in folders for path in paths)


# The policy configuration


def build_policy_config(
    loaded: LoadedSettings, mode: Mode | None = None, unattended: bool = False, grants: "tuple[Grant, ...]" = ()
) -> "PolicyConfig":
    """The policy configuration of a session. `mode` replaces that of the settings, within the managed one."""
    config, settings = _load_policy(), loaded.settings
    restricted = settings.restricted if settings.profile == "restricted" else None
    return config.PolicyConfig(
        mode=pick_stricter_mode(mode or settings.mode, find_managed_mode(loaded)),
        unattended=unattended,
        rules=loaded.rules,
        grants=grants,
        servers=list_trusted_servers(loaded),
        outside=settings.paths.outside,
        bulk_deleted=settings.bulk.deleted,
        bulk_changed=settings.bulk.changed,
        bulk_bytes=parse_size(settings.bulk.bytes),
        restriction=config.RestrictedProfile(restricted.commands, restricted.folders) if restricted else None,
        denied=settings.tools.deny,
    )


def list_trusted_servers(loaded: LoadedSettings) -> "tuple[TrustedServer, ...]":
    """The servers whose tools the settings call read-only. A project counts once it is trusted, .mcp.json never."""
    tables = ((name, table) for name, table in loaded.servers.items() if table.read_only or table.hints)
    return tuple(_load_policy().TrustedServer(name, table.read_only, table.hints) for name, table in tables)


def find_managed_mode(loaded: LoadedSettings) -> Mode:
    """The loosest mode that the managed file allows."""
    return cast("Mode", loaded.managed.get("mode", MODES[-1]))


def pick_stricter_mode(one: Mode, other: Mode) -> Mode:
    return one if MODES.index(one) <= MODES.index(other) else other


def check_tools(loaded: LoadedSettings, names: Collection[str]) -> None:
    """SettingsError: a rule names an unknown tool. Tools of other servers may appear later."""
    if problems := list_unknown_tools(loaded, names):
        raise SettingsError("The rules are unusable", problems, ADVICE)


def list_unknown_tools(loaded: LoadedSettings, names: Collection[str]) -> list[str]:
    """A sentence for each rule about an unknown tool."""
    config, known = _load_policy(), sorted({*names, *_ALWAYS_KNOWN_TOOLS})
    return [
        f"{config.describe_rule(rule)} is about the tool {truncate_repr(rule.tool)}; {_suggest_tool(rule.tool, known)}"
        for rule in loaded.rules
        if rule.tool not in known and not rule.tool.startswith(config.MCP_PREFIX)
    ]


def _suggest_tool(tool: str, known: list[str]) -> str:
    similar = find_similar(tool.lower(), known)
    return f"did you mean {similar}?" if similar else f"the tools are {', '.join(known)}"


def _load_policy():  # the type is that of the module
    from handrail.policy import config  # settings can be loaded without policy

    return config
