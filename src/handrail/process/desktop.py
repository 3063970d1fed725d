"""Messages on the user's desktop."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

FOLDERS = ("/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/bin")
"""Folders of system programs. PATH may lead to a folder that an agent can write to."""
_PROGRAM = "notify-send"
_OPTIONS = ("--app-name=handrail", "--expire-time=20000")
_started: list[subprocess.Popen[bytes]] = []


def has_desktop(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY"))


def show_on_desktop(title: str, text: str, folders: tuple[str, ...] | None = None) -> bool:
    """Show a message without waiting for it. False: no program was started."""
    paths = (os.path.join(folder, _PROGRAM) for folder in folders or FOLDERS)
    program = next((path for path in paths if os.access(path, os.X_OK)), None)
    _started[:] = [one for one in _started if one.poll() is None]
    if program is None or len(_started) > 3:
        return False
    words, nothing = [program, *_OPTIONS, "--", title, text], subprocess.DEVNULL
    with suppress(OSError):
        started = subprocess.Popen(  # noqa: S603  no shell, and a program of the system
            words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        _started.append(started)
        return True
    return False
