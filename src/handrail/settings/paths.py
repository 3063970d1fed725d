"""Paths of handrail's own files: settings files, the state folder."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from handrail.settings.errors import SettingsError, truncate_repr

MANAGED_FILE = "/etc/handrail/managed.toml"
"""The settings of the machine's administrator. No variable moves it."""
PROJECT_FILE = "handrail.toml"
"""The settings of a project, in the root of the workspace."""
MCP_FILE = ".mcp.json"
"""The MCP servers of a project, in the root of the workspace."""
TOOLS_FOLDER = ".handrail/tools"
"""The custom tools of a project, in the root of the workspace."""

_MAX_LINKS = 40
"""The limit of the kernel."""


def resolve_state_folder(environ: Mapping[str, str]) -> str:
    """The folder for journal, grants and audit: HANDRAIL_STATE_DIR, else by XDG, else in the home folder."""
    if chosen := _read_absolute(environ, "HANDRAIL_STATE_DIR"):
        return chosen
    base = _read_absolute(environ, "XDG_STATE_HOME") or os.path.join(_find_home(environ), ".local/state")
    return os.path.join(base, "handrail")


def resolve_user_file(environ: Mapping[str, str]) -> str:
    """The user's own settings: HANDRAIL_CONFIG, else by XDG, else in the home folder. It need not exist."""
    if chosen := _read_absolute(environ, "HANDRAIL_CONFIG"):
        return chosen
    base = _read_absolute(environ, "XDG_CONFIG_HOME") or os.path.join(_find_home(environ), ".config")
    return os.path.join(base, "handrail", "config.toml")


def exists(path: str) -> bool:
    """Whether a name exists. A broken link does: it is a file that cannot be read."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True  # opening the file will report why it cannot be read
    return True


def is_located_in(path: str, folder: str) -> bool:
    """Whether write access to the folder suffices to change the target of a path, by any link on the way."""
    root = os.path.realpath(folder)
    steps, target = walk_links(os.path.abspath(path))
    places = (step.place for step in steps)
    return target == root or any(place != root and os.path.commonpath((root, place)) == root for place in places)


class PathStep(NamedTuple):
    """One name that the kernel looks up to resolve a path."""

    place: str
    """Its real path."""
    target: str
    """Empty if it is not a link."""


def walk_links(path: str) -> tuple[list[PathStep], str]:
    """Every name that the kernel looks up to resolve an absolute path, and the real path that it leads to."""
    names, at, links = path.split("/")[::-1], "/", 0
    steps: list[PathStep] = []
    while names:
        name = names.pop()
        if name in {"", ".", ".."}:
            at = os.path.dirname(at) if name == ".." else at
            continue
        place = os.path.join(at, name)
        target = _read_link(place) if links < _MAX_LINKS else ""
        steps.append(PathStep(place, target))
        if target:
            links += 1
            names += target.split("/")[::-1]
            at = "/" if target.startswith("/") else at
        else:
            at = place
    return steps, at


def _read_link(place: str) -> str:
    try:
        return os.readlink(place)
    except (OSError, ValueError):
        return ""


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """The path with a leading `~` replaced by the home folder."""
    if path != "~" and not path.startswith("~/"):
        return path
    rest = path[1:].lstrip("/")  # os.path.join would take a leading slash for the root
    return os.path.join(_find_home(environ), rest) if rest else _find_home(environ)


def _find_home(environ: Mapping[str, str]) -> str:
    # os.path.expanduser would read the process's environment, not the one given.
    home = _read_absolute(environ, "HOME") or find_account_home()
    if home.startswith("/"):
        return home
    raise SettingsError(
        "The home folder is not known",
        [f"HOME is not set, and the account of user {os.getuid()} names none"],
        "Nothing was run. Set HOME, or both HANDRAIL_STATE_DIR and HANDRAIL_CONFIG.",
    )


def find_account_home() -> str:
    """The home folder of this user's account. Empty: there is no account, as in some containers."""
    import pwd  # noqa: PLC0415  rarely needed

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _read_absolute(environ: Mapping[str, str], variable: str) -> str | None:
    """An absolute path from a variable. An empty variable counts as unset."""
    value = environ.get(variable)
    if not value:
        return None
    if not value.startswith("/"):
        raise SettingsError(
            f"The environment variable {variable} cannot be used",
            [f"{variable} is {truncate_repr(value)}; allowed: an absolute path, starting with /"],
            f"Nothing was run. Set {variable} to an absolute path, or unset it.",
        )
    return value
