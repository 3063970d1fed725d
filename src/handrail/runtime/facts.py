"""The facts that policy decides by, collected from the workspace."""

import os
import posixpath
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from glob import escape, glob
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from handrail.policy.names import is_git_control_name, list_possible_repositories, normalize_name
from handrail.policy.network.allowlist import Allowlist
from handrail.policy.network.git_remotes import Remote, list_remote_urls
from handrail.policy.network.needs import (
    MIN_NETWORK_TIER,
    NetworkNeeds,
    add_registry_urls,
    add_remote_urls,
    find_network_needs,
)
from handrail.policy.parse import ParsedCommand, parse_command
from handrail.policy.programs.spec import PathUse, to_base_name
from handrail.protocol.changes import Change
from handrail.protocol.decisions import CommandFact, DisplayedCommand, Facts, PathFact, ProcessFact
from handrail.protocol.errors import ToolError
from handrail.sandbox.environment import list_approved_variables
from handrail.sandbox.mounts import Mount, is_shown
from handrail.sandbox.profile import HostLookup, SandboxHost, SandboxProfile
from handrail.sandbox.view import build_base_view, build_view
from handrail.tools.tool import ProcessUse
from handrail.workspace.facts import build_command_fact
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.roots import clip_path, find_descriptor_path
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSessions


_MAX_PATHS = 1_000
"""Paths of a command that are examined. Further ones count as outside, the strictest case."""
_MAX_CONFIG_BYTES = 1 << 18
_MAX_REMOTES = 10
_GIT_LINK = "gitdir: "
_HEAD, _REFS = "head", "refs"
_REFERENCES = re.compile(r"(?:^|/)\.git/(?:logs|refs)(?:/|$)")
"""Folders of a repository whose entries have the names of branches."""
_ESCAPED_BYTE = "\\udc"
"""Stands for a byte that is no text. A path that is shown with it cannot be opened."""


def collect_command_facts(
    workspace: Workspace,
    text: str,
    cwd: str = ".",
    *,
    background: bool = False,
    yields: bool = False,
    tier: int,
    host: HostLookup | None = None,
    listed: tuple[str, ...] = (),
) -> Facts:
    """The facts of a command. ToolError if it does not start in a folder of the workspace.

    Without a host, no package registries are known. `listed`: the hosts that the settings open.
    """
    _check_cwd(workspace, cwd)
    loopback = tier >= MIN_NETWORK_TIER and not (listed and Allowlist.from_entries(listed).lists_loopback)
    command = parse_command(text, cwd, (), loopback=loopback)
    displayed = _find_displayed(text) if command.needs_display else None
    uses = command.path_uses(displayed)
    if folders := _find_existing_folders(workspace, command):
        command = parse_command(text, cwd, folders, loopback=loopback)
    needs = _collect_network_needs(workspace, command, displayed, host, loopback=loopback)
    return Facts(
        paths=tuple(
            _build_path_fact(workspace, use) if number < _MAX_PATHS else _build_outside_fact(use)
            for number, use in enumerate(uses)
        ),
        command=CommandFact(
            text=text,
            cwd=cwd,
            background=background,
            yields=yields,
            tier=tier,
            snapshot=tier == 2 and not (background or yields) and _can_be_undone(command, displayed),
            there=folders,
            hosts=needs.hosts if needs else (),
            unopened=needs.unreachable if needs else (),
            loopback=loopback,
            seen=displayed,
        ),
    )


def collect_process_facts(use: ProcessUse, sessions: "Callable[[], ProcessSessions]", tier: Callable[[], int]) -> Facts:
    """The facts of a call that is about a process session.

    ToolError PROCESS_NOT_FOUND if the id is unknown, PROCESS_ENDED if a call writes to an ended process.
    """
    from handrail.process.sessions.sessions import build_ended_error  # noqa: PLC0415  commands need none
    from handrail.process.sessions.store import read_note, read_record  # noqa: PLC0415  commands need none

    if use.action == "list":
        return Facts(process=ProcessFact(action=use.action))
    process = sessions().find(use.spelled)
    record = process.record()
    if use.action != "write":
        return Facts(process=ProcessFact(action=use.action, id=process.id, command=record.command))
    if record.state != "running":
        raise build_ended_error(process.id)
    # The sandbox of a read-only command lets it change nothing, whatever is typed. Tier 0 has no sandbox.
    is_read_only = parse_command(record.command, record.cwd).is_read_only and tier() > 0
    stored = read_record(process.folder)
    has_proxy = stored is not None and stored.proxy is not None
    fact = ProcessFact(
        action=use.action,
        id=process.id,
        command=record.command,
        looks=is_read_only,
        layered=read_note(process.folder) is not None,
        connected=not is_read_only and (tier() == 0 or has_proxy),
    )
    return Facts(process=fact)


def list_steering_paths(workspace: Workspace, changes: Iterable[Change]) -> frozenset[str]:
    """The changed paths that configure a git repository without `.git` in its path.

    A folder counts as a repository if it has a HEAD. Policy itself sees changes that create a HEAD with its config.
    """
    inspector = _RepositoryInspector(workspace)
    return frozenset(
        change.path
        for change in changes
        for folder, name in list_possible_repositories(change.path)
        if not _REFERENCES.search(folder) and inspector.is_steering(change, folder, name)
    )


def _check_cwd(workspace: Workspace, cwd: str) -> None:
    fact = build_command_fact(workspace, cwd, "read")
    if fact.real is None:
        message = f"cwd {clip_path(cwd)} is outside the workspace. Folders are relative to it."
        raise ToolError("OUTSIDE_WORKSPACE", message)
    if fact.kind == "missing":
        raise workspace.build_not_found_error(cwd, "folder")
    if fact.kind != "directory":
        raise ToolError("NOT_A_DIRECTORY", f"cwd {clip_path(cwd)} is not a folder.")


def _find_displayed(text: str) -> tuple[DisplayedCommand, ...] | None:
    from handrail.code.shell import find_shell_commands  # noqa: PLC0415  most commands are proven without it

    return find_shell_commands(text)


def _find_existing_folders(workspace: Workspace, command: ParsedCommand) -> tuple[str, ...]:
    """The targets of `cd` that are folders of the workspace."""
    facts = {folder: _build_path_fact(workspace, PathUse(f"{folder}/.", "read")) for folder in command.cd_targets()}
    return tuple(folder for folder, fact in facts.items() if fact.kind == "directory" and fact.real is not None)


def _build_path_fact(workspace: Workspace, use: PathUse) -> PathFact:
    try:
        return build_command_fact(workspace, use.path, use.access, past_files=True)
    except ToolError:  # an impossible path, or one that cannot be resolved
        return _build_outside_fact(use)


def _build_outside_fact(use: PathUse) -> PathFact:
    return PathFact(path=use.path, access=use.access, kind="other", real=None)


def _can_be_undone(command: ParsedCommand, displayed: tuple[DisplayedCommand, ...] | None) -> bool:
    """Whether a snapshot covers the changes of a command. It does not hold repositories, so git is not covered."""
    if command.unparsed is not None:
        if displayed is None or any(_is_git(one.words) for one in displayed):
            return False
    elif any(_is_git(step.words) and step.classification.effect != "proven" for step in command.steps):
        return False
    from handrail.changes.snapshot.git_store import find_git  # noqa: PLC0415  only without an overlay

    return find_git() is not None


def _is_git(words: tuple[str, ...]) -> bool:
    return bool(words) and to_base_name(words[0]) == "git"


def _collect_network_needs(
    workspace: Workspace,
    command: ParsedCommand,
    displayed: tuple[DisplayedCommand, ...] | None,
    host: HostLookup | None,
    *,
    loopback: bool,
) -> NetworkNeeds | None:
    """The hosts that a command needs. None if all its effects are known, so that it needs no network."""
    if command.unparsed is None and not any(step.has_unknown_effect for step in command.steps):
        return None
    needs = find_network_needs(command, displayed, loopback=loopback)
    for remote in needs.remotes[:_MAX_REMOTES]:
        needs = add_remote_urls(needs, _list_urls(workspace, remote))
    if needs.registries:
        roots = tuple(root.path for root in workspace.roots)
        for client in needs.registries:
            urls = find_registry_urls(client, host(), roots) if host else ()
            needs = add_registry_urls(needs, client, urls)
    return needs


# Remotes of a git repository. git itself is not run, because it would run programs that the repository configures.
# The files of the repository are opened beneath the roots, like all files.


def _list_urls(workspace: Workspace, remote: Remote) -> tuple[str, ...]:
    top = _find_repository(workspace, remote.folder)
    if top is None:
        return list_remote_urls(remote, "")
    link = _read_text(workspace, f"{top}/.git").strip()  # a file in submodules and worktrees
    folder = _join(top, link.removeprefix(_GIT_LINK)) if link.startswith(_GIT_LINK) else f"{top}/.git"
    common = _read_text(workspace, f"{folder}/commondir").strip()
    config = _read_text(workspace, f"{_join(folder, common) if common else folder}/config")
    head, modules = _read_text(workspace, f"{folder}/HEAD"), _read_text(workspace, f"{top}/.gitmodules")
    return list_remote_urls(remote, config, head, modules)


def _find_repository(workspace: Workspace, folder: str) -> str | None:
    """The nearest folder with a `.git` in it, at or above a folder and within its root."""
    try:
        here = build_command_fact(workspace, folder, "read").real
    except ToolError:
        return None
    end = "" if here is None else workspace.root_path(here)
    while here is not None:
        if _find_kind(workspace, f"{here}/.git") in {"directory", "file"}:
            return here
        here = None if here in {".", end} else posixpath.dirname(here) or "."
    return None


def _join(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _find_kind(workspace: Workspace, path: str) -> str:
    try:
        fact = build_command_fact(workspace, path, "read")
    except ToolError:
        return "missing"
    return fact.kind if fact.real is not None else "missing"


def _read_text(workspace: Workspace, path: str) -> str:
    """The beginning of a file beneath the roots, or an empty text."""
    with suppress(ToolError, OSError), workspace.open_file(path) as opened:
        return os.read(opened.descriptor, _MAX_CONFIG_BYTES).decode(errors="replace")
    return ""


class _RepositoryInspector:
    """Recognises repositories by the names in a folder. Each folder is listed once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: dict[str, frozenset[str] | None] = {}

    def is_steering(self, change: Change, folder: str, name: str) -> bool:
        """Whether a change of `name` in a folder configures a repository there, or makes one of a prepared folder."""
        if folder not in self._names:
            self._names[folder] = self._list_names(folder)
        names = self._names[folder]
        if names is None:
            return _ESCAPED_BYTE in folder
        if is_git_control_name(name):
            return _HEAD in names
        is_created = change.action == "created" and change.path == (name if folder == "." else f"{folder}/{name}")
        completes = normalize_name(name) == _HEAD or (normalize_name(name) == _REFS and _HEAD in names)
        return is_created and completes and any(map(is_git_control_name, names))

    def _list_names(self, folder: str) -> frozenset[str] | None:
        """The names in a folder. None if it does not exist."""
        try:
            with self._workspace.open_parent(os.fsencode(f"{'' if folder == '.' else folder + '/'}HEAD")) as parent:
                if parent.missing:
                    return None
                descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent.folder)
            try:
                return frozenset(normalize_name(name) for name in os.listdir(descriptor))
            finally:
                os.close(descriptor)
        except (OSError, ToolError):
            return None


# Package registries, from the configuration of the installed clients

_MAX_CLIENT_CONFIG_BYTES, _MAX_SOURCE_BYTES, _MAX_WHEEL_BYTES = 1 << 16, 1 << 18, 1 << 22
_PIP_INDEX = "pip/_internal/models/index.py"
_PIP_DEFAULT = r"""^PyPI = PackageIndex\(\s*["'](https?://[^"']+)["'],\s*file_storage_domain=["']([\w.-]+)"""


class _Client(NamedTuple):
    """Where a client is told which registries it uses."""

    program: str
    """It lies in `bin` of a prefix, which holds the client's own files."""
    defaults: tuple[str, ...]
    default: re.Pattern[str]
    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Configuration files, below the prefix too. Files that may hold credentials, such as `.npmrc`, are not read."""
    keys: tuple[str, ...] = ()
    """A key or variable with `extra` in its name adds registries. Any other replaces the default."""


_PIP = _Client(
    program="python3",
    defaults=(f"lib/python3*/*-packages/{_PIP_INDEX}", "lib/python3*/ensurepip/_bundled/pip-*.whl"),
    default=re.compile(_PIP_DEFAULT, re.MULTILINE),
    variables=("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    files=("pip.conf", "/etc/pip.conf"),
    keys=("index-url", "extra-index-url"),
)
_CLIENTS = {
    "pip": _PIP,
    "uv": _PIP._replace(
        variables=("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        files=("/etc/uv/uv.toml",),
    ),
    "npm": _Client(
        program="npm",
        defaults=(
            "node_modules/@npmcli/config/lib/definitions/definitions.js",
            "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
            "share/nodejs/@npmcli/config/lib/definitions/definitions.js",
        ),
        default=re.compile(r"""\('registry', \{\s*default: ["'`](https?://[^"'`]+)"""),
    ),
    "go": _Client(
        program="go",
        defaults=("go.env",),
        default=re.compile(r"^GOPROXY=(https?://[^,|\s]+)[^\n]*\nGOSUMDB=([\w.-]+)", re.MULTILINE),
        variables=("GOPROXY",),
    ),
}


class _CommandView(NamedTuple):
    """What a command sees once a person approved it."""

    variables: Mapping[str, str]
    mounts: tuple[Mount, ...]

    def read(self, path: str, most: int) -> bytes:
        """The beginning of a regular file; nothing if a command does not see one there."""
        with suppress(OSError, ValueError):
            real = os.path.realpath(path)
            if is_shown(self.mounts, real):
                with open(os.open(real, READ_FILE), "rb") as file:
                    is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    return file.read(most) if is_regular and find_descriptor_path(file.fileno()) == real else b""
        return b""


def find_registry_urls(name: str, host: SandboxHost, roots: tuple[str, ...]) -> list[str]:
    """The URLs of the registries that a client is configured for, or its defaults. Empty if they are not known."""
    client = _CLIENTS.get(name)
    if client is None:
        return []
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    view = _CommandView(list_approved_variables(host, roots), build_view(profile, build_base_view(host, roots)))
    prefixes = list(_list_prefixes(client.program, view))
    urls = [(key, url) for key, value in _list_configured(client, view, prefixes) for url in _split_urls(value)]
    main = [url for key, url in urls if "extra" not in key.lower()] or _find_default(client, view, prefixes)
    return [*main, *(url for key, url in urls if "extra" in key.lower())] if main else []


def _list_prefixes(program: str, view: _CommandView) -> Iterator[str]:
    for entry in view.variables.get("PATH", "").split(":"):
        path = f"{entry}/{program}"
        if os.path.isfile(path):
            yield from dict.fromkeys(
                os.path.dirname(os.path.dirname(place)) for place in (path, os.path.realpath(path))
            )


def _list_configured(client: _Client, view: _CommandView, prefixes: list[str]) -> Iterator[tuple[str, str]]:
    """Settings with their values. A value that replaces the default is the strongest one."""
    yield from ((name, view.variables[name]) for name in client.variables if name in view.variables)
    paths = [
        path for name in client.files for path in ([name] if name[0] == "/" else [f"{p}/{name}" for p in prefixes])
    ]
    text = "\n".join(view.read(path, _MAX_CLIENT_CONFIG_BYTES).decode(errors="replace") for path in paths)
    for key in client.keys:
        pattern = rf"^[ \t]*{key.replace('-', '[-_]')}[ \t]*=(.*(?:\n[ \t]+\S.*)*)"  # indented lines go on
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield key, match[1]


def _split_urls(value: str) -> list[str]:
    """A URL with a user may have commas in it, so only blanks divide such values."""
    words = value.split() if "@" in value else re.split(r"[\s,|]+", value)
    return [word.strip("\"'") for word in words if "://" in word]


def _find_default(client: _Client, view: _CommandView, prefixes: list[str]) -> list[str]:
    patterns = [f"{escape(prefix)}/{pattern}" for prefix in prefixes for pattern in client.defaults]
    for path in (path for pattern in patterns for path in sorted(glob(pattern))):
        if path.endswith(".whl"):
            text = _read_wheel(view.read(path, _MAX_WHEEL_BYTES))
        else:
            text = view.read(path, _MAX_SOURCE_BYTES).decode(errors="replace")
        if match := client.default.search(text):
            return [value if "://" in value else f"https://{value}" for value in match.groups()]
    return []


def _read_wheel(archive: bytes) -> str:
    """The module of pip that names its index, from the wheel that Python bundles."""
    errors = (zipfile.BadZipFile, zlib.error, KeyError, OSError, ValueError, RuntimeError, EOFError)
    with suppress(*errors), zipfile.ZipFile(BytesIO(archive)) as opened, opened.open(_PIP_INDEX) as file:
        if opened.getinfo(_PIP_INDEX).compress_type == zipfile.ZIP_DEFLATED:
            return file.read(_MAX_SOURCE_BYTES).decode(errors="replace")
    return ""
