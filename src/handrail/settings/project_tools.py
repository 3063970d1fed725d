"""The tool files of a project, `.handrail/tools/*.py`. They are code, so only trusted content is ever run."""

import os

import msgspec

from handrail.protocol.digest import sha256
from handrail.settings.errors import SettingsError
from handrail.settings.merge import ToolFile
from handrail.settings.paths import TOOLS_FOLDER
from handrail.settings.toml_file import SettingsFile, read_bytes
from handrail.settings.trust import read_file_trust

_MAX_FILES = 100


class ProjectTools(msgspec.Struct, frozen=True, kw_only=True):
    """The tool files of a workspace, and whether they are trusted."""

    workspace: str
    """Its real path."""
    files: tuple[ToolFile, ...]
    digest: str
    """The SHA-256 of all names and contents. Trust is given to exactly these. Empty: a file is unusable."""
    remark: str = ""
    trusted: bool = False


def list_tool_names(folder: str) -> list[str]:
    """The names of the tool files in a folder. OSError if it cannot be read."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))


def read_project_tools(workspace: str) -> ProjectTools | None:
    """The tool files of a workspace, as not trusted. None if there are none. Problems become remarks."""
    root = os.path.realpath(workspace)
    folder = os.path.join(root, TOOLS_FOLDER)
    try:
        names = list_tool_names(folder)
        if os.path.realpath(folder) != folder:
            raise ValueError("it is reached by a link; it must be a folder of the project")
        if len(names) > _MAX_FILES:
            raise ValueError(f"it has {len(names):,} tool files; allowed: at most {_MAX_FILES}")
        files = tuple(_read_file(os.path.join(folder, name)) for name in names)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return ProjectTools(workspace=root, files=(), digest="", remark=f"{TOOLS_FOLDER} cannot be used: {error}")
    listed = "".join(f"{os.path.basename(file.path)}\0{file.digest}\n" for file in files)
    digest = sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
    return ProjectTools(workspace=root, files=files, digest=digest) if files else None


def load_project_tools(workspace: str, state: str) -> ProjectTools | None:
    """The tool files, with trust as the state folder records it."""
    tools = read_project_tools(workspace)
    if tools is None or not tools.digest:
        return tools
    trusted, remark = read_file_trust(state, tools.workspace, TOOLS_FOLDER, tools.digest)
    if not trusted and not remark:
        count = f"{len(tools.files)} tool file{'s' * (len(tools.files) > 1)}"
        remark = f"{TOOLS_FOLDER} brings {count}, not loaded until you trust this project: handrail trust"
    return msgspec.structs.replace(tools, trusted=trusted, remark=remark)


def _read_file(path: str) -> ToolFile:
    try:
        source = read_bytes(SettingsFile(path, "project"))
    except SettingsError as error:
        raise ValueError(f"{os.path.basename(path)}: {error.problems[0]}") from None
    return ToolFile(path, source, sha256(source).hexdigest())
