"""Messages on the desktop of the person who runs us, by the program that is there for it."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

_NAME = "notify-send"
FOLDERS = ("/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/bin")
"""Where programs of the system are. Not PATH: it may lead into what an agent can write to."""
_MILLISECONDS = "20000"
_started: list[subprocess.Popen[bytes]] = []


def has_desktop(environ: Mapping[str, str]) -> bool:
    """Whether there is a screen that messages could be seen on."""
    return bool(environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY"))


def show_on_desktop(title: str, text: str, folders: tuple[str, ...] | None = None) -> bool:
    """Shows a message, without waiting for it; whether it was tried. Where it fails nobody is told: whoever waits is
    told in other ways too."""
    program = next(
        (path for folder in folders or FOLDERS if os.access(path := os.path.join(folder, _NAME), os.X_OK)), None
    )
    _started[:] = [one for one in _started if one.poll() is None]
    if program is None or len(_started) > 3:
        return False
    command = [program, "--app-name=handrail", f"--expire-time={_MILLISECONDS}", "--", title, text]
    with suppress(OSError):
        nothing = subprocess.DEVNULL
        _started.append(
            subprocess.Popen(  # noqa: S603  no shell, and a program of the system
                command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, close_fds=True
            )
        )
        return True
    return False
