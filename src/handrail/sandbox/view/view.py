"""What a command sees of the disk: the machine's programs, its roots, and an empty home with the toolchains in it."""

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.view.finding import follow_links
from handrail.sandbox.view.git_person import build_git_identity
from handrail.sandbox.view.listeners import list_listener_mounts
from handrail.sandbox.view.mounts import Mount, is_shown, is_within, list_pins, order_mounts
from handrail.sandbox.view.system import list_secret_mounts, list_system_mounts
from handrail.sandbox.view.toolchains import list_shown_mounts, list_toolchain_mounts
from handrail.workspace.search.ripgrep import find_ripgrep

_SECONDS_TO_KEEP = 5.0
"""How long a toolchain that somebody installs meanwhile stays unseen."""
_MAX_KEPT_VIEWS = 32
_ALSO_TEMPORARY = "/var/tmp"  # noqa: S108  of the command alone
_NEEDED = ("/usr", "/etc", "/proc", "/dev", "/tmp")  # noqa: S108  of the command alone
"""What a home cannot take the place of."""


class BaseView(NamedTuple):
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
        return is_shown(self.mounts, path)


class _CachedView(NamedTuple):
    host: SandboxHost
    roots: tuple[str, ...]
    until: float
    found: BaseView


_latest: list[_CachedView] = []


def build_base_view(host: SandboxHost, roots: tuple[str, ...] = ()) -> BaseView:
    """Which of the machine's folders, toolchains and credentials there are; looked at anew every few seconds. What lies
    in the roots, and what links in them lead to, is not among them: who writes there would choose it."""
    now = time.monotonic()
    for look in _latest:
        if look.host is host and look.roots == roots and now < look.until:
            return look.found
    ripgrep = find_ripgrep(roots)
    wanted = (*_around(host, roots), *list_shown_mounts((ripgrep,) if ripgrep else (), host, roots))
    found = BaseView(wanted, order_mounts(wanted), ripgrep)
    others = [look for look in _latest if now < look.until and (look.host is not host or look.roots != roots)]
    _latest[:] = [*others[-_MAX_KEPT_VIEWS:], _CachedView(host, roots, now + _SECONDS_TO_KEEP, found)]
    return found


def build_view(profile: SandboxProfile, around: BaseView) -> tuple[Mount, ...]:
    """The whole view of one command, in the order to be made in."""
    wanted = (*around.wanted, *_roots(profile), *_parts_of_roots(profile))
    return order_mounts(wanted) if not profile.proxy else _with_proxy(profile.proxy, wanted)


def _around(host: SandboxHost, roots: tuple[str, ...]) -> Iterator[Mount]:
    yield from list_system_mounts()
    yield Mount("processes", "/proc")
    yield Mount("devices", "/dev")
    yield Mount("private", "/dev/shm")  # noqa: S108  of the command alone
    yield Mount("private", "/tmp")  # noqa: S108  of the command alone
    yield Mount("link", _ALSO_TEMPORARY, "/tmp")  # noqa: S108  as above
    yield from _home(host)
    yield from list_toolchain_mounts(host, roots)
    yield from list_secret_mounts()
    yield from list_listener_mounts()
    yield Mount("no-folder", os.path.realpath(host.state))


def _home(host: SandboxHost) -> Iterator[Mount]:
    links, home = follow_links(host.home)
    yield from links
    if not any(is_within(needed, home) for needed in _NEEDED):
        yield Mount("home", home)
        yield from build_git_identity(host, home)


def _with_proxy(socket: str, wanted: tuple[Mount, ...]) -> tuple[Mount, ...]:
    from handrail.sandbox.proxy.inside import PLACE  # noqa: PLC0415  few commands have one
    from handrail.sandbox.view.interpreter import list_interpreter_mounts  # noqa: PLC0415  as above

    return order_mounts((*wanted, *list_interpreter_mounts(order_mounts(wanted)), Mount("proxy", PLACE, socket)))


def _roots(profile: SandboxProfile) -> Iterator[Mount]:
    if any(is_within(root, _ALSO_TEMPORARY) for root in profile.roots):
        yield Mount("private", _ALSO_TEMPORARY)  # nothing can be put into a link
    yield from list_pins(profile.read_only_paths, profile.writable)
    for root in profile.read_only:
        yield Mount("read-only", root)
    for root in profile.writable:
        yield Mount("writable", root)


def _parts_of_roots(profile: SandboxProfile) -> Iterator[Mount]:
    for path in profile.read_only_paths:
        yield Mount("sealed", path)
    for path in profile.hidden_files:
        yield Mount("no-file", path)
    for path in profile.hidden_folders:
        yield Mount("no-folder", path)
