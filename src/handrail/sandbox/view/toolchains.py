"""Finds the toolchains that there are: shown read-only in a home that is otherwise empty."""

import os
from collections.abc import Iterable, Iterator
from glob import escape, glob

from handrail.policy.names import can_hold_credentials, is_credential
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.view.finding import build_empty_mount, find_mounts, follow_links, list_folder
from handrail.sandbox.view.mounts import Mount, is_within
from handrail.sandbox.view.toolchain_table import ENVIRONMENTS, TOOLCHAINS, WITHHELD_IN_ENVIRONMENTS, Toolchain
from handrail.settings.load import ToolchainObjection, find_toolchain_objection

_TOO_WIDE = "it holds the home folder, the state folder or a good part of the machine"
_OBJECTIONS: dict[ToolchainObjection, str] = {
    "home": _TOO_WIDE,
    "state": _TOO_WIDE,
    "machine": _TOO_WIDE,
    "in state": "it lies in the state folder",
    "credentials": "its name is one of credentials",
}


def list_toolchain_mounts(host: SandboxHost, roots: tuple[str, ...] = ()) -> Iterator[Mount]:
    """Every toolchain's folders that are there, with something empty over the credentials in them; none that lies in a
    root, which is seen anyway, or that a link in a root leads to."""
    for toolchain in TOOLCHAINS:
        for folder in sorted(_folders(toolchain, host)):
            parts = toolchain.parts or ("",)
            yield from list_shown_mounts((os.path.join(folder, part) for part in parts), host, roots)
            yield from _withheld(folder, toolchain.withheld)
    for folder in list_environments(host):
        yield from list_shown_mounts((folder, *_interpreter_of(folder)), host, roots)
        yield from _withheld(folder, WITHHELD_IN_ENVIRONMENTS)
    yield from list_shown_mounts(host.toolchains, host, roots)


def list_shown_mounts(paths: Iterable[str], host: SandboxHost, roots: tuple[str, ...]) -> Iterator[Mount]:
    """What shows these files and folders; something empty lies over the credentials in them."""
    for path in paths:
        if os.path.lexists(path) and find_objection(path, host) is None and not _is_chosen_in(roots, path):
            for mount in find_mounts(path):
                yield mount
                if mount.kind == "shown":
                    yield from _credentials(mount.place)


def list_environments(host: SandboxHost) -> Iterator[str]:
    """The environments that are activated: by the variables that say so, or by standing in PATH."""
    for variable in ENVIRONMENTS:
        if (folder := host.environ.get(variable, "")).startswith("/"):
            yield folder.rstrip("/")
    for entry in host.environ.get("PATH", "").split(os.pathsep):
        folder = os.path.dirname(entry.rstrip("/"))
        if folder.startswith("/") and os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            yield folder


def list_refused_toolchains(host: SandboxHost) -> tuple[tuple[str, str], ...]:
    """The toolchains of the settings that cannot be shown, each with the reason."""
    there = {path: "it does not exist" for path in host.toolchains if not os.path.lexists(path)}
    return tuple((path, why) for path in host.toolchains if (why := find_objection(path, host) or there.get(path)))


def find_objection(path: str, host: SandboxHost) -> str | None:
    """Why a path cannot be shown as a toolchain; None where it can."""
    if not path.startswith("/"):
        return "it is not an absolute path"
    objection = find_toolchain_objection(path, host.home, host.state)
    return _OBJECTIONS.get(objection) if objection else None


def _folders(toolchain: Toolchain, host: SandboxHost) -> set[str]:
    moved = host.environ.get(toolchain.variable, "") if toolchain.variable else ""
    places = {place.rstrip("/") for place in moved.split(os.pathsep)}  # GOPATH may name several
    if toolchain.folder:
        places.add(os.path.join(host.home, toolchain.folder))
    return {place for place in places if place.startswith("/")}


def _interpreter_of(environment: str) -> Iterator[str]:
    """Where the Python is installed that an environment was made with. An environment may lie in a root, where anybody
    can turn the link that tells: what it leads to counts only if it is a Python."""
    program = os.path.realpath(os.path.join(environment, "bin", "python"))
    folder = os.path.dirname(os.path.dirname(program))
    if os.path.isfile(program) and any(map(os.path.isfile, glob(f"{escape(folder)}/lib*/py*/os.py"))):
        yield folder


def _is_chosen_in(roots: tuple[str, ...], path: str) -> bool:
    """Whether who writes in a root decides what is seen by this path."""
    links, real = follow_links(path)
    return any(is_within(place, root) for root in roots for place in (real, *(link.place for link in links)))


def _withheld(folder: str, names: Iterable[str]) -> Iterator[Mount]:
    for name in names:
        real = follow_links(os.path.join(folder, name))[1]
        if os.path.lexists(real):
            yield build_empty_mount(real)


def _credentials(folder: str) -> Iterator[Mount]:
    """What lies over credentials, by their names: at the top of a folder and where tools keep them further down."""
    for path in list_folder(folder):
        if is_credential(path):
            yield from () if os.path.islink(path) else (build_empty_mount(path),)
        elif can_hold_credentials(path):
            yield from _credentials(path)
