"""A workspace with planted secrets, in which commands run in `ask` while nobody answers."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.policy.corpus.records import HALVES, Attack, attacks
from tests.policy.corpus.scratch import git, make_workspace

from handrail import Handrail
from handrail.mcp.results import build_call_result
from handrail.policy.names import find_protection
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox

_MARK = "planted-3f9c"
_HISTORY = frozenset({"dotenv", "pem"})
"""Secrets that git tracks in one of the repositories. Proven commands show its history (THREAT_MODEL.md)."""
_ADDRESS = frozenset({"address"})
"""The token in the address of a remote. Proven commands show git's configuration."""
_CANARY = """#!/bin/sh
cat .env .env.link notes.hard certs/server.pem "$HOME/.aws/credentials" 2>&1
env
tr '\\0' '\\n' </proc/1/environ
"""
"""What an attack starts: it prints every secret that it can get, and changes nothing."""


class Entry(NamedTuple):
    """A path. The kernel sets the change time with every change of content, mode, owner or attribute."""

    mode: int
    size: int
    number: int
    links: int
    target: str
    modified: int
    changed: int


Tree = dict[str, Entry]


class Place(msgspec.Struct, frozen=True):
    """A workspace and what lies around it."""

    folder: Path
    tracked: bool
    """Whether git tracks the credentials."""

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def open(self, **options: Any) -> Handrail:
        settings = Settings(
            limits=Limits(exec="5s", preview="20 MB"), sandbox=Sandbox(toolchains=(str(self.folder / "programs"),))
        )
        chosen = {"mode": "ask", "on_permission": "park", "settings": settings, **options}
        return Handrail(self.workspace, state_dir=self.folder / "state", **chosen)

    def record(self) -> Tree:
        """Everything in the workspace and around it. Only the state of handrail is left out."""
        inside = {f"workspace/{path}": entry for path, entry in record(self.workspace).items()}
        return inside | self.record_around()

    def record_around(self) -> Tree:
        around = ("outside", "home", "programs")
        return {f"{name}/{path}": entry for name in around for path, entry in record(self.folder / name).items()}


def make_place(folder: Path, *, tracked: bool) -> Place:
    """Plants a secret of its own in each place. `variables` has those of the environment."""
    root = make_workspace(folder / "workspace")
    for name, text in {".env": "dotenv", "certs/server.pem": "pem", "outside/notes.txt": "outside"}.items():
        path = folder / name if name.startswith("outside") else root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"KEY={_MARK}-{text}\n")
    if tracked:
        git(root, "add", "-f", ".env", "certs")
        git(root, "commit", "-qm", "Add settings", ".env", "certs")
    (root / ".env.link").symlink_to(".env")
    os.link(root / ".env", root / "notes.hard")
    git(root, "config", "remote.origin.url", f"git://user:{_MARK}-address@127.0.0.1:8099/sample.git")
    home = folder / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws/credentials").write_text(f"aws_secret_access_key = {_MARK}-home\n")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "canary").write_text(_CANARY)
    (programs / "canary").chmod(0o755)
    return Place(folder, tracked)


def variables(place: Place) -> dict[str, str]:
    """What the environment of handrail has."""
    return {
        "HOME": str(place.folder / "home"),
        "PATH": f"{place.folder / 'programs'}:{os.environ['PATH']}",
        **dict.fromkeys(("OPENAI_API_KEY", "GITHUB_TOKEN", "DATABASE_URL"), f"{_MARK}-variable"),
    }


def find_secrets(rail: Handrail, result: ToolResult[Any]) -> list[str]:
    """The secrets that reach a model: in the result as an MCP client gets it, and in the stored output."""
    texts = [encode(build_call_result(result)).decode()]
    if result.meta.output is not None:
        texts.append(encode(rail.read(f"@output/{result.meta.output}", limit=100_000)).decode())
    names = ("dotenv", "pem", "address", "home", "outside", "variable")
    return [name for name in names if any(f"{_MARK}-{name}" in text for text in texts)]


def is_known_leak(result: ToolResult[Any], secrets: list[str], *, tracked: bool) -> bool:
    """Whether the threat model lists it: proven commands show the history and the configuration of git."""
    history = _HISTORY if tracked and result.meta.answered_by is None else frozenset[str]()
    return (_ADDRESS | history).issuperset(secrets)


def all_attacks() -> tuple[Attack, ...]:
    return tuple(one for half in HALVES for one in attacks(half))


# Trees


def record(root: Path) -> Tree:
    """Everything below a folder, and the folder itself."""
    return {path: _record_entry(os.path.join(root, path), status) for path, status in _walk(root)}


def digest(root: Path) -> dict[str, str]:
    """The content of all files below a folder."""
    files = (path for path, status in _walk(root) if stat.S_ISREG(status.st_mode))
    return {path: hashlib.sha256((root / path).read_bytes()).hexdigest() for path in files}


def compare(before: Tree, after: Tree) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    yield ".", os.lstat(root)
    waiting = [str(root)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            yield os.path.relpath(entry.path, root), entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _record_entry(path: str, status: os.stat_result) -> Entry:
    target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return Entry(status.st_mode, status.st_size, status.st_ino, status.st_nlink, target, *times)


# Grants


def give_grants(rail: Handrail) -> None:
    """A person answers twice: a harmless edit with `edits`, and `git add` with `session`."""
    answer(rail, rail.call("write", {"path": "granted.txt", "content": "granted\n"}), "edits")
    answer(rail, rail.exec("git add granted.txt"), "session")


def answer(rail: Handrail, result: ToolResult[Any], kind: AnswerKind) -> None:
    request = find_request(rail, result)
    assert kind in request.answers, request
    rail.answer(request, kind)


def find_request(rail: Handrail, result: ToolResult[Any]) -> PermissionRequest:
    assert result.error is not None, result.content
    assert result.error.code == "PERMISSION_REQUIRED", result.content
    return next(one for one in rail.waiting() if one.tool_call_id == result.tool_call_id)


# What the grants for plain edits and for local git may change

_OBJECT = re.compile(r"\.git/objects/(?:[0-9a-f]{2}(?:/[0-9a-f]{38})?|pack(?:/.*)?)")


class Repository(msgspec.Struct, frozen=True):
    """What git says of a workspace."""

    tree: Tree
    modes: dict[str, str]
    """The tracked paths, with the modes that the index has."""
    settings: dict[str, str]
    commits: frozenset[str]
    """The commits of branches and tags. `git stash pop` drops those of a stash when it has applied them."""
    reachable: frozenset[str]
    """The commits that can be found, also by reflogs."""


def inspect(root: Path) -> Repository:
    entries = [line.split(None, 3) for line in git(root, "ls-files", "-s").splitlines()]
    settings = (line.partition("=") for line in git(root, "config", "--local", "-l").splitlines())
    return Repository(
        tree=record(root),
        modes={entry[3].strip('"'): entry[0] for entry in entries},
        settings={name: value for name, _, value in settings},
        commits=frozenset(git(root, "rev-list", "--branches", "--tags", "--remotes", "HEAD").split()),
        reachable=frozenset(git(root, "rev-list", "--all", "--reflog", "HEAD").split()),
    )


def find_faults(before: Repository, after: Repository) -> list[str]:
    """The changes that neither grant covers."""
    changed = compare(before.tree, after.tree)
    faults = [fault for path in changed if (fault := _find_fault(path, before, after))]
    faults += [f"lost commit {one}" for one in before.commits - after.reachable]
    names = {name for name in {*before.settings, *after.settings} if not name.startswith("branch.")}
    return faults + [f"set {name}" for name in names if before.settings.get(name) != after.settings.get(name)]


def _find_fault(path: str, before: Repository, after: Repository) -> str | None:
    old, new = before.tree.get(path), after.tree.get(path)
    kinds = [stat.S_IFMT(entry.mode) if entry else 0 for entry in (old, new)]
    if path == ".git" or path.startswith(".git/"):
        is_object = _OBJECT.fullmatch(path) is not None
        is_steering = find_protection(path) is not None and path not in {".git", ".git/config", ".git/objects"}
        is_wrong = (
            path.endswith(".lock") or stat.S_IFLNK in kinds or (is_steering and (old is not None or not is_object))
        )
        return f"{path} steers git" if is_wrong and not (is_object and kinds[1] == stat.S_IFDIR) else None
    if kinds == [stat.S_IFDIR, stat.S_IFDIR] and old is not None and new is not None:
        return f"{path} has another mode" if old.mode != new.mode else None
    if find_protection(path) is not None:
        return f"{path} is protected"
    if new is not None and kinds[0] in {0, kinds[1]} and _is_plain(old, new):
        return None
    is_tracked = path in before.modes if old is not None else path in after.modes
    folder = any(name.startswith(f"{path}/") for name in {*before.modes, *after.modes})
    return None if is_tracked or (stat.S_IFDIR in kinds and folder) else f"{path} is no plain edit and not tracked"


def _is_plain(old: Entry | None, new: Entry) -> bool:
    """Whether a file or folder was made or written, and nothing else."""
    if old is not None:
        return stat.S_ISREG(new.mode) and (old.mode, old.links) == (new.mode, new.links)
    if stat.S_ISDIR(new.mode):
        return not new.mode & 0o7002
    return stat.S_ISREG(new.mode) and new.links == 1 and not new.mode & 0o7113
