"""Collects the facts for the policy."""

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.policy.names import is_git_control_name, list_possible_repositories, normalize_name
from handrail.policy.network.git_remotes import Remote, list_remote_urls
from handrail.policy.network.needs import NetworkNeeds, add_registry_urls, add_remote_urls, find_network_needs
from handrail.policy.parse import ParsedCommand, parse_command
from handrail.policy.programs.spec import PathUse, to_base_name
from handrail.process.sessions.sessions import build_ended_error
from handrail.process.sessions.store import read_note, read_record
from handrail.protocol.changes import Change
from handrail.protocol.decisions import CommandFact, DisplayedCommand, Facts, PathFact, ProcessFact
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import HostLookup
from handrail.tools.tool import ProcessUse
from handrail.workspace.errors import clip_path
from handrail.workspace.facts import build_command_fact
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSessions


# § [runtime.command_facts] What policy needs to know about a command: what it is, where it starts, and what each
# § path in it is now.

_MAX_PATHS = 1_000
"""Paths that are looked at; those after them count as outside, the strictest there is."""


def collect_command_facts(
    workspace: Workspace,
    text: str,
    cwd: str = ".",
    *,
    background: bool = False,
    yields: bool = False,
    tier: int,
    host: "HostLookup | None" = None,
) -> Facts:
    """The facts of a command. It starts in a folder beneath the roots, or there is nothing to judge: ToolError."""
    _refuse_cwd(workspace, cwd)
    command = parse_command(text, cwd, ())
    seen = _seen(text) if command.needs_display else None
    uses = command.path_uses(seen)
    there = _find_existing_dirs(workspace, command)
    command = parse_command(text, cwd, there) if there else command
    needs = _needs(workspace, command, seen, host)
    return Facts(
        paths=tuple(_fact(workspace, use) if n < _MAX_PATHS else _outside(use) for n, use in enumerate(uses)),
        command=CommandFact(
            text=text,
            cwd=cwd,
            background=background,
            yields=yields,
            tier=tier,
            snapshot=tier == 2 and not (background or yields) and _has_snapshot(command, seen),
            there=there,
            hosts=needs.hosts if needs else (),
            unopened=needs.unreachable if needs else (),
            seen=seen,
        ),
    )


def _find_existing_dirs(workspace: Workspace, command: ParsedCommand) -> tuple[str, ...]:
    """Folders that a `cd` leads to for certain: they are inside, and what is in them can be reached."""
    facts = {folder: _fact(workspace, PathUse(f"{folder}/.", "read")) for folder in command.cd_targets()}
    return tuple(folder for folder, fact in facts.items() if fact.kind == "directory" and fact.real is not None)


def _has_snapshot(command: ParsedCommand, seen: tuple[DisplayedCommand, ...] | None) -> bool:
    """Whether what it changes is kept beforehand, so that undo covers it. Not where it is git that changes something:
    no snapshot holds a repository. Nor below tier 2, where what it does not hold could not be sealed."""
    if command.unparsed is not None:
        if seen is None or any(_is_git(one.words) for one in seen):
            return False
    elif any(_is_git(step.words) and step.classification.effect != "proven" for step in command.steps):
        return False
    from handrail.changes.snapshot.git_store import find_git  # noqa: PLC0415  only where there is no overlay

    return find_git() is not None


def _is_git(words: tuple[str, ...]) -> bool:
    return bool(words) and to_base_name(words[0]) == "git"


def _needs(
    workspace: Workspace, command: ParsedCommand, seen: tuple[DisplayedCommand, ...] | None, host: "HostLookup | None"
) -> "NetworkNeeds | None":
    """What it needs of the network; None for what only looks, or only does what it says to the files it names."""
    if command.unparsed is None and not any(step.has_unknown_effect for step in command.steps):
        return None

    return collect_network_needs(workspace, command, seen, host)


def _refuse_cwd(workspace: Workspace, cwd: str) -> None:
    fact = build_command_fact(workspace, cwd, "read")
    if fact.real is None:
        message = f"cwd {clip_path(cwd)} is outside the workspace. Folders are relative to it."
        raise ToolError("OUTSIDE_WORKSPACE", message)
    if fact.kind == "missing":
        raise workspace.not_found(cwd, "folder")
    if fact.kind != "directory":
        raise ToolError("NOT_A_DIRECTORY", f"cwd {clip_path(cwd)} is not a folder.")


def _fact(workspace: Workspace, use: PathUse) -> PathFact:
    try:
        return build_command_fact(workspace, use.path, use.access, past_files=True)
    except ToolError:  # no path can be like this, or nobody can tell where it leads
        return _outside(use)


def _outside(use: PathUse) -> PathFact:
    return PathFact(path=use.path, access=use.access, kind="other", real=None)


def _seen(text: str) -> tuple[DisplayedCommand, ...] | None:
    from handrail.code.shell_commands import find_shell_commands  # noqa: PLC0415  most commands are proven without it

    return find_shell_commands(text)


# § [runtime.network_facts] The hosts that a command needs, with what has to be looked up: remotes of git
# § repositories, registries of clients. git is not asked, since it would run what is configured there. Its files
# § are opened beneath the roots, as all files are.

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
        from handrail.runtime.package_registries import find_registry_urls  # noqa: PLC0415  few commands fetch packages

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


# § [runtime.process_facts] What policy needs to know about a call that is about a process session.


def collect_process_facts(use: ProcessUse, sessions: "Callable[[], ProcessSessions]", tier: Callable[[], int]) -> Facts:
    """The facts of one; ToolError PROCESS_NOT_FOUND where there is none of that id, and PROCESS_ENDED where there is
    nobody left to write to, so that no person is asked in vain."""
    if use.action == "list":
        return Facts(process=ProcessFact(action=use.action))
    found = sessions().find(use.spelled)
    record = found.record()
    if use.action == "write" and record.state != "running":
        raise build_ended_error(found.id)
    # A command that only looks has a sandbox that lets it do nothing else, unless there is none.
    looks = use.action == "write" and parse_command(record.command, record.cwd).is_read_only and tier() > 0
    layered = use.action == "write" and read_note(found.folder) is not None
    connected = use.action == "write" and not looks and (tier() == 0 or _has_proxy(found.folder))
    fact = ProcessFact(
        action=use.action, id=found.id, command=record.command, looks=looks, layered=layered, connected=connected
    )
    return Facts(process=fact)


def _has_proxy(folder: str) -> bool:
    known = read_record(folder)
    return known is not None and known.proxy is not None


# § [runtime.repositories] Which changes of a command steer a git repository that has no name of one, by what is
# § there already.

_HEAD, _REFS = "head", "refs"
"""What makes a repository of a folder in which settings or hooks lie already."""
_REFERENCES = re.compile(r"(?:^|/)\.git/(?:logs|refs)(?:/|$)")
"""Where names are those of branches."""
_UNSPELLED = "\\udc"
"""What stands for a byte that is no text: where such a folder is cannot be told by how it is shown."""


def list_steering_paths(workspace: Workspace, changes: Iterable[Change]) -> frozenset[str]:
    """Their paths. A folder is taken for a repository if it has a HEAD; what is made together with its HEAD, policy
    sees by itself."""
    looks = _Looks(workspace)
    return frozenset(
        change.path
        for change in changes
        for folder, name in list_possible_repositories(change.path)
        if not _REFERENCES.search(folder) and looks.steers(change, folder, name)
    )


class _Looks:
    """At folders, each once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: dict[str, frozenset[str] | None] = {}

    def steers(self, change: Change, folder: str, name: str) -> bool:
        there = self._there(folder)
        if there is None:
            return _UNSPELLED in folder
        if is_git_control_name(name):
            return _HEAD in there
        is_made = change.action == "created" and change.path == (name if folder == "." else f"{folder}/{name}")
        makes_one = normalize_name(name) == _HEAD or (normalize_name(name) == _REFS and _HEAD in there)
        return is_made and makes_one and any(is_git_control_name(one) for one in there)

    def _there(self, folder: str) -> frozenset[str] | None:
        """The names in a folder; None where it is not there."""
        if folder not in self._names:
            self._names[folder] = self._listed(folder)
        return self._names[folder]

    def _listed(self, folder: str) -> frozenset[str] | None:
        try:
            with self._workspace.open_parent(os.fsencode(f"{'' if folder == '.' else folder + '/'}HEAD")) as landing:
                if landing.missing:
                    return None
                found = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=landing.folder)
            try:
                return frozenset(normalize_name(name) for name in os.listdir(found))
            finally:
                os.close(found)
        except (OSError, ToolError):
            return None
