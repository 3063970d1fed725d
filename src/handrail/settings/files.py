"""The layers that are files: the managed one, the user's, the project's."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from handrail.settings.layers import Layer
from handrail.settings.location import PROJECT_FILE, is_located_in, is_there, resolve_state_folder, resolve_user_file

if TYPE_CHECKING:
    from handrail.settings.document import FileKind


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
    from handrail.settings.reading import read_layer  # noqa: PLC0415 - TOML only for a file
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
    from handrail.settings.reading import read_layer  # noqa: PLC0415 - TOML only for a file

    return read_layer(path, kind)[0]
