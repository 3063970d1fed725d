"""The hosts that a command needs, with what has to be looked up: remotes of git repositories, registries of clients.

git is not asked, since it would run what is configured there. Its files are opened beneath the roots, as all files are.
"""

import os
import posixpath
from contextlib import suppress

from handrail.policy.network.git_remotes import Remote, list_remote_urls
from handrail.policy.network.needs import NetworkNeeds, add_registry_urls, add_remote_urls, find_network_needs
from handrail.policy.parse import ParsedCommand
from handrail.protocol.decisions import DisplayedCommand
from handrail.protocol.errors import ToolError
from handrail.sandbox.host import HostLookup
from handrail.workspace.facts import build_command_fact
from handrail.workspace.workspace import Workspace

_MAX_CONFIG_BYTES = 1 << 18
_MAX_REMOTES = 10
_LINK = "gitdir: "


def collect_network_needs(
    workspace: Workspace, command: ParsedCommand, seen: tuple[DisplayedCommand, ...] | None, host: HostLookup | None
) -> NetworkNeeds:
    """The hosts that a command needs. Without a host, no registry is known."""
    needs = find_network_needs(command, seen)
    for remote in needs.remotes[:_MAX_REMOTES]:
        needs = add_remote_urls(needs, _urls(workspace, remote))
    if needs.registries:
        from handrail.runtime.registries import find_registry_urls  # noqa: PLC0415  few commands fetch packages

        roots = tuple(root.path for root in workspace.roots)
        for client in needs.registries:
            urls = find_registry_urls(client, host(), roots) if host else ()
            needs = add_registry_urls(needs, client, urls)
    return needs


def _urls(workspace: Workspace, remote: Remote) -> tuple[str, ...]:
    top = _top(workspace, remote.folder)
    if top is None:
        return list_remote_urls(remote, "")
    own = _own_folder(workspace, top)
    common = _text(workspace, f"{own}/commondir").strip()
    config = _text(workspace, f"{_joined(own, common) if common else own}/config")
    return list_remote_urls(remote, config, _text(workspace, f"{own}/HEAD"), _text(workspace, f"{top}/.gitmodules"))


def _top(workspace: Workspace, folder: str) -> str | None:
    """The folder around another that has a `.git` in it, no further up than its root."""
    try:
        here = build_command_fact(workspace, folder, "read").real
    except ToolError:
        return None
    end = "" if here is None else workspace.root_path(here)
    while here is not None:
        if _kind(workspace, f"{here}/.git") in {"directory", "file"}:
            return here
        here = None if here in {".", end} else posixpath.dirname(here) or "."
    return None


def _own_folder(workspace: Workspace, top: str) -> str:
    """Where the repository's files are: in `.git`, or where that file says, as it does for submodules and worktrees."""
    link = _text(workspace, f"{top}/.git").strip()
    return _joined(top, link.removeprefix(_LINK)) if link.startswith(_LINK) else f"{top}/.git"


def _joined(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _kind(workspace: Workspace, path: str) -> str:
    try:
        fact = build_command_fact(workspace, path, "read")
    except ToolError:
        return "missing"
    return fact.kind if fact.real is not None else "missing"


def _text(workspace: Workspace, path: str) -> str:
    """The beginning of a file beneath the roots; nothing where there is none."""
    with suppress(ToolError, OSError), workspace.open_file(path) as opened:
        return os.read(opened.descriptor, _MAX_CONFIG_BYTES).decode(errors="replace")
    return ""
