"""The sources of settings: managed, user, project, session, environment, flags."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.model import DEFAULTS, find_invalid_values
from handrail.settings.paths import PROJECT_FILE, is_located_in, is_there, resolve_state_folder, resolve_user_file
from handrail.settings.reference import REFERENCE

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable
    from handrail.settings.model import LayerKind
    from handrail.settings.toml_file import FileKind


# § [settings.layers] The layers of settings, each checked on its own before they are merged.

_VARIABLES = {"mode": "HANDRAIL_MODE", "model": "HANDRAIL_MODEL"}


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Values by dotted key, all known and allowed, and where they come from."""

    kind: "LayerKind"
    source: str
    values: Mapping[str, object] = {}
    rules: "tuple[Rule, ...]" = ()
    servers: "Mapping[str, ServerTable] | None" = None
    """Other MCP servers by name; None where nothing is said of them."""
    lines: Mapping[str, int] = {}
    """Where the values stand, for a file."""
    trusted: bool = True
    """Whether it may loosen anything at all."""

    @property
    def speaks(self) -> bool:
        """Whether it says anything."""
        return bool(self.values or self.rules) or self.servers is not None


def build_default_layer() -> Layer:
    """Every setting as it is when nobody says otherwise."""
    return Layer(kind="default", source="default", values=DEFAULTS)


def build_session_layer(said: Mapping[str, object]) -> Layer:
    """What was said for this session alone: values by dotted key, and under `rule` tables as a file has them."""
    values = {key: value for key, value in said.items() if key != "rule"}
    rules, problems = _session_rules(said["rule"]) if "rule" in said else ((), [])
    if problems := [*_described(find_invalid_values(values)), *problems]:
        raise SettingsError(
            "The session's settings cannot be used", problems, "Nothing was run. Correct them, then try again."
        )
    return Layer(kind="session", source="session", values=values, rules=rules)


def build_environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """HANDRAIL_MODE, which can be stricter than what the layers below say, never looser; HANDRAIL_MODEL."""
    given = {key: (name, environ[name]) for key, name in _VARIABLES.items() if environ.get(name)}
    for key, (name, value) in given.items():
        if find_invalid_values({key: value}):
            allowed = REFERENCE[key].allowed
            raise SettingsError(
                "The environment cannot be used",
                [f"{name} is {truncate_repr(value)}; allowed: {allowed}"],
                f"Nothing was run. Set {name} to {'one of these' if key == 'mode' else 'such a name'}, or unset it.",
            )
    return [
        Layer(kind="environment", source=f"environment {name}", values={key: value})
        for key, (name, value) in given.items()
    ]


def build_flag_layer(flags: Mapping[str, object]) -> Layer:
    """What was given on the command line; None is a flag that was not."""
    values = {key: value for key, value in flags.items() if value is not None}
    if wrong := find_invalid_values(values):
        raise SettingsError(
            "The flags cannot be used", _described(wrong), "Nothing was run. Correct them, then try again."
        )
    return Layer(kind="flag", source="flag", values=values)


def _session_rules(tables: object) -> "tuple[tuple[Rule, ...], list[str]]":
    from handrail.settings.rules import parse_rules  # noqa: PLC0415 - only where there are rules

    return parse_rules(tables, "session", "")


def _described(wrong: Mapping[str, object]) -> list[str]:
    if not wrong:
        return []
    from handrail.settings.errors import describe_refused  # noqa: PLC0415 - only for an error

    return describe_refused(wrong)


# § [settings.files] The layers that are files: the managed one, the user's, the project's.


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The settings file that a workspace brings."""

    path: str
    workspace: str
    """Its real path."""
    digest: str
    """SHA-256 of the file's bytes: what trust is given to."""
    trusted: bool
    remark: str = ""
    """Why trust that was given, or might have been, does not count."""


def read_managed_layer(path: str) -> Layer:
    """What whoever manages the machine says; a file that is there and cannot be used stops everything."""
    return _file_layer(path, "managed") if is_there(path) else Layer(kind="managed", source="managed file")


def read_user_layer(environ: Mapping[str, str], workspace: str | None) -> Layer:
    """The user file; that it is missing is fine unless it was asked for by name."""
    path = resolve_user_file(environ)
    if not environ.get("HANDRAIL_CONFIG") and not is_there(path):
        return Layer(kind="user", source="user file")
    layer = _file_layer(path, "user")
    if workspace is None or not is_located_in(path, workspace):
        return layer
    return msgspec.structs.replace(layer, trusted=False)  # an agent in this workspace could write it


def read_project_layer(
    workspace: str, environ: Mapping[str, str], state: str | None, trusted: bool | None
) -> tuple[Layer, Project | None]:
    """The file in the root of the workspace; `trusted` in place of what the state folder says about it."""
    if not is_there(os.path.join(workspace, PROJECT_FILE)):
        return Layer(kind="project", source="project file"), None
    from handrail.settings.toml_file import read_layer  # noqa: PLC0415 - TOML only for a file
    from handrail.settings.trust import read_project_trust  # noqa: PLC0415 - only where there is something to trust

    root = os.path.realpath(workspace)
    path = os.path.join(root, PROJECT_FILE)
    layer, digest = read_layer(path, "project")
    remark = ""
    if trusted is None:
        trusted, remark = read_project_trust(state or resolve_state_folder(environ), root, digest)
    project = Project(path=path, workspace=root, digest=digest, trusted=trusted, remark=remark)
    return msgspec.structs.replace(layer, trusted=trusted), project


def _file_layer(path: str, kind: "FileKind") -> Layer:
    from handrail.settings.toml_file import read_layer  # noqa: PLC0415 - TOML only for a file

    return read_layer(path, kind)[0]
