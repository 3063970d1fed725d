"""Messages on the user's desktop."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

FOLDERS = ("/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/bin")
"""Folders of system programs. PATH may lead to a folder that an agent can write to."""
_PROGRAM = "notify-send"
_OPTIONS = ("--app-name=handrail", "--expire-time=20000")
_PAUSE_SECONDS = 10.0
"""The time between two notices. One is enough for several calls that wait at once."""
_OFF = frozenset(("0", "off", "no", "false"))
_lock = threading.Lock()
_last = [-_PAUSE_SECONDS]
_started: list[subprocess.Popen[bytes]] = []


def notify_person(title: str, text: str, environ: Mapping[str, str]) -> bool:
    """Show a notice unless there was one just before. False: none was tried. HANDRAIL_NOTIFY=off disables notices."""
    has_desktop = environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY")
    if environ.get("HANDRAIL_NOTIFY", "").lower() in _OFF or not has_desktop:
        return False
    with _lock:
        now = time.monotonic()
        if now - _last[0] < _PAUSE_SECONDS:
            return False
        _last[0] = now
    return show_on_desktop(title, text)


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
