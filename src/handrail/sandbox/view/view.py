"""What a command sees of the disk: the machine's programs, its roots, and an empty home with the toolchains in it."""

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.view.finding import followed
from handrail.sandbox.view.git_person import git_person
from handrail.sandbox.view.listeners import listener_mounts
from handrail.sandbox.view.mounts import Mount, arranged, pins, shows, within
from handrail.sandbox.view.system import secret_mounts, system_mounts
from handrail.sandbox.view.toolchains import shown_mounts, toolchain_mounts
from handrail.workspace.search.binary import ripgrep_program

_SECONDS_TO_KEEP = 5.0
"""How long a toolchain that somebody installs meanwhile stays unseen."""
_MOST_KEPT = 32
_ALSO_TEMPORARY = "/var/tmp"  # noqa: S108  of the command alone
_NEEDED = ("/usr", "/etc", "/proc", "/dev", "/tmp")  # noqa: S108  of the command alone
"""What a home cannot take the place of."""


class Surroundings(NamedTuple):
    """What is the same for all commands for a while: everything but the roots and what is in them."""

    wanted: tuple[Mount, ...]
    """Also what lies over things that are not shown unless a root shows them."""
    mounts: tuple[Mount, ...]
    ripgrep: str | None
    """The ripgrep that handrail itself searches with."""

    def with_ripgrep(self, environment: dict[str, str]) -> dict[str, str]:
        """A command's variables: the last folder of its PATH is that of handrail's ripgrep, so that `rg` is found."""
        folder, path = os.path.dirname(self.ripgrep or ""), environment["PATH"]
        if not folder or folder in path.split(":") or ":" in folder or not self.shows(folder):
            return environment
        return {**environment, "PATH": f"{path}:{folder}"}

    def shows(self, path: str) -> bool:
        """Whether a command sees something of the disk at this path, whatever its roots are."""
        return shows(self.mounts, path)


class _Look(NamedTuple):
    host: Host
    roots: tuple[str, ...]
    until: float
    found: Surroundings


_latest: list[_Look] = []


def surroundings(host: Host, roots: tuple[str, ...] = ()) -> Surroundings:
    """Which of the machine's folders, toolchains and credentials there are; looked at anew every few seconds. What lies
    in the roots, and what links in them lead to, is not among them: who writes there would choose it."""
    now = time.monotonic()
    for look in _latest:
        if look.host is host and look.roots == roots and now < look.until:
            return look.found
    ripgrep = ripgrep_program(roots)
    wanted = (*_around(host, roots), *shown_mounts((ripgrep,) if ripgrep else (), host, roots))
    found = Surroundings(wanted, arranged(wanted), ripgrep)
    others = [look for look in _latest if now < look.until and (look.host is not host or look.roots != roots)]
    _latest[:] = [*others[-_MOST_KEPT:], _Look(host, roots, now + _SECONDS_TO_KEEP, found)]
    return found


def view_of(confinement: Confinement, around: Surroundings) -> tuple[Mount, ...]:
    """The whole view of one command, in the order to be made in."""
    wanted = (*around.wanted, *_roots(confinement), *_parts_of_roots(confinement))
    return arranged(wanted) if not confinement.proxy else _with_proxy(confinement.proxy, wanted)


def _around(host: Host, roots: tuple[str, ...]) -> Iterator[Mount]:
    yield from system_mounts()
    yield Mount("processes", "/proc")
    yield Mount("devices", "/dev")
    yield Mount("private", "/dev/shm")  # noqa: S108  of the command alone
    yield Mount("private", "/tmp")  # noqa: S108  of the command alone
    yield Mount("link", _ALSO_TEMPORARY, "/tmp")  # noqa: S108  as above
    yield from _home(host)
    yield from toolchain_mounts(host, roots)
    yield from secret_mounts()
    yield from listener_mounts()
    yield Mount("no-folder", os.path.realpath(host.state))


def _home(host: Host) -> Iterator[Mount]:
    links, home = followed(host.home)
    yield from links
    if not any(within(needed, home) for needed in _NEEDED):
        yield Mount("home", home)
        yield from git_person(host, home)


def _with_proxy(socket: str, wanted: tuple[Mount, ...]) -> tuple[Mount, ...]:
    from handrail.sandbox.proxy.inside import PLACE  # noqa: PLC0415  few commands have one
    from handrail.sandbox.view.interpreter import interpreter_mounts  # noqa: PLC0415  as above

    return arranged((*wanted, *interpreter_mounts(arranged(wanted)), Mount("proxy", PLACE, socket)))


def _roots(confinement: Confinement) -> Iterator[Mount]:
    if any(within(root, _ALSO_TEMPORARY) for root in confinement.roots):
        yield Mount("private", _ALSO_TEMPORARY)  # nothing can be put into a link
    yield from pins(confinement.sealed, confinement.writable)
    for root in confinement.read_only:
        yield Mount("read-only", root)
    for root in confinement.writable:
        yield Mount("writable", root)


def _parts_of_roots(confinement: Confinement) -> Iterator[Mount]:
    for path in confinement.sealed:
        yield Mount("sealed", path)
    for path in confinement.hidden_files:
        yield Mount("no-file", path)
    for path in confinement.hidden_folders:
        yield Mount("no-folder", path)
