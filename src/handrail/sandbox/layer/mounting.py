"""Puts an overlay over the roots, in a mount namespace of its own, and starts the rest of the sandbox in it."""

import os
from typing import NamedTuple

from handrail.protocol.errors import ToolError
from handrail.sandbox.layer.layer import TABLE, Overlay

NOT_MOUNTED = "handrail: the overlay is not mounted"
"""What is printed last where the program was not begun."""
_NOT_BEGUN = 125
_SHELL = "/bin/sh"
"""Not bash: it would begin with what BASH_ENV names, which is for the command's own shell, and takes longer."""
_FOLDERS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")
"""Those of the system alone: what is found elsewhere may be anybody's."""


class Programs(NamedTuple):
    """What mounts an overlay."""

    unshare: str
    mount: str


def find_programs() -> Programs | None:
    """The system's own; None where one is missing."""
    unshare, mount = _found("unshare"), _found("mount")
    return Programs(unshare, mount) if unshare and mount and os.access(_SHELL, os.X_OK) else None


def require_programs() -> Programs:
    """The same where they must be there; a ToolError where they are not."""
    programs = find_programs()
    if programs is None:
        text = "The programs unshare and mount are not there any more, so no overlay can lie over the workspace."
        raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Nothing was run. `handrail doctor` tells the person more.")
    return programs


def wrap_in_overlay(argv: tuple[str, ...], overlay: Overlay, programs: Programs) -> tuple[str, ...]:
    """What to start in the place of a program, so that the overlay lies over the roots for it and for nobody else.

    All roots are mounted by one process, by a table: each would cost as much as a third of a sandbox. The shell opens
    nothing, so nothing of it is left open to the program.
    """
    # As root in a user namespace: the program mount asks for no more.
    namespaces = ("--map-root-user", "--mount") if overlay.in_user_namespace else ("--mount",)
    # Once overlayfs is there, it has made a folder in each of those that it works in.
    there = " && ".join(f"[ -d work-{number}/work ]" for number in range(len(overlay.overlaid)))
    mounted = f'cd "$1" && {programs.mount} -n -i -a -T ./{TABLE} && {there} && cd / && shift && exec "$@"'
    script = f'{mounted}; echo "{NOT_MOUNTED}" >&2; exit {_NOT_BEGUN}'
    return (programs.unshare, *namespaces, "--", _SHELL, "-c", script, "handrail", overlay.folder, *argv)


def _found(name: str) -> str | None:
    places = (os.path.join(folder, name) for folder in _FOLDERS)
    return next((place for place in places if os.access(place, os.X_OK)), None)
