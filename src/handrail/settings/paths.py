"""Where settings and state lie."""

import os
from collections.abc import Mapping

from handrail.settings.errors import SettingsError, truncate_repr

MANAGED_FILE = "/etc/handrail/managed.toml"
"""What whoever manages the machine says. No variable moves it."""
PROJECT_FILE = "handrail.toml"
"""What a project says, in the root of the workspace."""

_MAX_LINKS = 40
"""As the kernel has it: behind more, nothing can be opened."""


def resolve_state_folder(environ: Mapping[str, str]) -> str:
    """The folder for journal, grants and audit: HANDRAIL_STATE_DIR, else by XDG, else in the home folder."""
    if chosen := _absolute(environ, "HANDRAIL_STATE_DIR"):
        return chosen
    return os.path.join(_xdg_folder(environ, "XDG_STATE_HOME", ".local/state"), "handrail")


def resolve_user_file(environ: Mapping[str, str]) -> str:
    """The user's own settings: HANDRAIL_CONFIG, else by XDG, else in the home folder. It need not exist."""
    if chosen := _absolute(environ, "HANDRAIL_CONFIG"):
        return chosen
    return os.path.join(_xdg_folder(environ, "XDG_CONFIG_HOME", ".config"), "handrail", "config.toml")


def is_there(path: str) -> bool:
    """Whether anything has this name; a link that leads nowhere is a file that cannot be read, not the lack of one."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True  # opening it will say why it cannot be read
    return True


def is_located_in(path: str, folder: str) -> bool:
    """Whether who may write in the folder can change what the path leads to: by any name on the way, or by its end."""
    root = os.path.realpath(folder)
    places = _places(os.path.abspath(path))
    return places[-1] == root or any(place != root and os.path.commonpath((root, place)) == root for place in places)


def _places(path: str) -> list[str]:
    """Every name that is looked up on the way to what a path leads to, each in the folder where it really stands."""
    names, at, places, links = path.split("/")[::-1], "/", ["/"], 0
    while names:
        name = names.pop()
        if name in {"", ".", ".."}:
            at = os.path.dirname(at) if name == ".." else at
            continue
        places.append(os.path.join(at, name))
        target = _target(places[-1]) if links < _MAX_LINKS else ""
        if target:
            links += 1
            names += target.split("/")[::-1]
            at = "/" if target.startswith("/") else at
        else:
            at = places[-1]
    return [*places, at]


def _target(place: str) -> str:
    try:
        return os.readlink(place)
    except (OSError, ValueError):  # no link
        return ""


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """The path with a leading `~` replaced by the home folder."""
    if path != "~" and not path.startswith("~/"):
        return path
    rest = path[1:].lstrip("/")  # joined with a leading slash, it would leave the home folder
    return os.path.join(_home(environ), rest) if rest else _home(environ)


def _xdg_folder(environ: Mapping[str, str], variable: str, in_home: str) -> str:
    return _absolute(environ, variable) or os.path.join(_home(environ), in_home)


def _home(environ: Mapping[str, str]) -> str:
    # os.path.expanduser would read the process's environment, not the one given.
    home = _absolute(environ, "HOME") or find_account_home()
    if home.startswith("/"):
        return home
    raise SettingsError(
        "The home folder is not known",
        [f"HOME is not set, and the account of user {os.getuid()} names none"],
        "Nothing was run. Set HOME, or both HANDRAIL_STATE_DIR and HANDRAIL_CONFIG.",
    )


def find_account_home() -> str:
    """The home folder of this user's account; empty where there is none, as in containers under any number."""
    import pwd  # noqa: PLC0415 - rarely asked for

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _absolute(environ: Mapping[str, str], variable: str) -> str | None:
    """An empty variable counts as unset; a relative one would mean another place in every folder."""
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
