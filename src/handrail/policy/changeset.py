"""Judges a change set: the files that a tool changed, or that a command changed in its overlay."""

import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from handrail.policy.config import PolicyConfig, Rule
from handrail.policy.git_config import compare_git_settings, is_new_config
from handrail.policy.granted_changes import are_plain_edits, find_lost_references, find_untracked
from handrail.policy.names import (
    GIT_LOCK,
    find_protection,
    is_git_control_name,
    is_git_lock,
    is_in_folder,
    is_packaged,
    list_possible_repositories,
    normalize_name,
)
from handrail.policy.protected_names import PACKAGE_FOLDERS
from handrail.policy.rules.rulebook import build_rulebook
from handrail.policy.verdict import (
    PartKind,
    PartVerdict,
    allow,
    ask,
    combine,
    deny_credential,
    judge_by_mode,
    judge_by_rule,
)
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Decision

_SYSTEM = re.compile(r"/(?:usr|bin|sbin|lib|lib32|lib64|nix/store)/.*|/dev/null", re.DOTALL)
"""Folders of programs and libraries. Links of virtual environments lead there."""
_INTERPRETER = re.compile(r"/(?:.*/)?bin/python[0-9.]*", re.DOTALL)
_MEGABYTE = 1 << 20
_SHARED = "changes files that have other names (hard links), maybe outside the workspace:"
_MAX_NAMED_PATHS = 3


def judge_changes(
    changes: tuple[Change, ...],
    rules: PolicyConfig,
    *,
    undo: bool,
    spoken_for: bool = False,
    configs: Mapping[str, str] | None = None,
    tool: str = "exec",
    steering: frozenset[str] = frozenset(),
    tracked: frozenset[str] | None = None,
) -> Decision:
    """One part for each kind of harm, the worst first. `undo`: whether the changes can be undone.

    `spoken_for`: a person, a rule or a grant allowed the call. That covers writing and deleting files. It does not
    cover protected files, bulk changes or plan mode. `configs`: the new text of each created or modified
    `.git/config` by path, and its old text by hash. A config without its texts asks like any protected file.
    `steering`: paths that steer an existing repository that is not called `.git`. `tracked`: the paths that git tracks
    among those that changed, if the grant for local git allowed the call. That grant covers no other files.
    """
    maintenance = find_git_maintenance(changes, configs or {})
    credentials = [change.path for change in changes if _is_credential(change)]
    verdicts = [deny_credential(_join_paths(credentials))] if credentials else []
    verdicts += _apply_rules(changes, rules, tool)
    for kind, rule, does, paths in _list_harms(changes, maintenance, rules, steering):
        if paths:
            subject = _join_paths(paths)
            why, effect = (does, "") if kind == "bulk" else (f"{does} {subject}", does.rstrip(":"))
            verdicts.append(judge_by_mode(subject, rule, kind, rules.mode, undo=undo, why=why, effect=effect))
    edits = rules.can_grant_edits and are_plain_edits(changes, verdicts)
    if spoken_for and rules.mode != "plan":
        verdicts = [_allow_as_called(verdict) for verdict in verdicts]
    verdicts += [] if tracked is None else _judge_local_git(changes, tracked)
    decision = combine(verdicts or [allow("files", "fs.unchanged", "nothing changes")], rules)
    return replace(decision, edits=True) if edits else decision


def _judge_local_git(changes: tuple[Change, ...], tracked: frozenset[str]) -> list[PartVerdict]:
    """Verdicts on changes that the grant for local git does not cover."""
    lost = find_lost_references(changes, collect_moved_paths(changes))
    found = (
        ("git.untracked", "changes files that git does not track:", find_untracked(changes, tracked)),
        ("git.lost", "deletes branches or tags:", lost),
    )
    return [ask(_join_paths(paths), rule, f"{does} {_join_paths(paths)}") for rule, does, paths in found if paths]


def _is_credential(change: Change) -> bool:
    """By its name. The test keys of an installed package are not secret."""
    if all(find_protection(path) != "credential" for path in _list_names(change)):
        return False
    return change.action != "created" or not is_packaged(change.path)


def _apply_rules(changes: tuple[Change, ...], rules: PolicyConfig, tool: str) -> list[PartVerdict]:
    """Verdicts of deny and ask rules. Allow rules are about the call, not about its changes."""
    if not rules.rules:
        return []
    book = build_rulebook(rules.rules)
    paths_by_rule: dict[Rule, list[str]] = {}
    for change in changes:
        rule = book.find_path_rule(tool, _list_names(change))
        if rule is not None and rule.verdict != "allow":
            paths_by_rule.setdefault(rule, []).append(change.path)
    return [judge_by_rule(_join_paths(paths), rule) for rule, paths in paths_by_rule.items()]


def _allow_as_called(verdict: PartVerdict) -> PartVerdict:
    if verdict.part.decision != "confirm" or verdict.final:
        return verdict
    return allow(verdict.part.subject, verdict.part.rule, f"{verdict.part.reason}, as the call was allowed to")


def _list_harms(
    changes: tuple[Change, ...], maintenance: "GitMaintenance", rules: PolicyConfig, steering: frozenset[str]
) -> tuple[tuple[PartKind, str, str, list[str]], ...]:
    """Kinds of harm, the worst first: the subject, the built-in rule, the reason, the paths."""
    notable = [change for change in changes if not maintenance.covers(change)]
    steered = [(path, names) for path, names in maintenance.steered.items() if not maintenance.is_in_new(path)]
    protected = _list_protected(changes, notable, maintenance, steering)
    configs = [f"{_join_paths([*names])} in {path}" for path, names in steered]
    links = [f"{change.path} to {change.target}" for change in notable if _leads_out(change)]
    read_only = [change.path for change in changes if change.read_only and not is_generated(change.path)]
    locks = [change.path for change in changes if change.action != "deleted" and is_git_lock(change.path)]
    moved = collect_moved_paths(changes)
    bulk = _describe_bulk(changes, maintenance, rules, moved)
    return (
        ("protected", "fs.protected", "changes files that control tools, hooks or builds", protected),
        ("protected", "fs.config", "changes which programs git runs, or its remotes:", configs),
        ("protected", "fs.link", "makes links that lead outside:", links),
        ("protected", "fs.hard-link", _SHARED, [change.path for change in changes if change.shared]),
        ("protected", "fs.read-only-file", "changes files that are read-only:", read_only),
        ("protected", "fs.lock", f"{GIT_LOCK}:", locks),
        ("delete", "fs.delete", "deletes", [change.path for change in changes if is_deletion(change, moved)]),
        ("bulk", "fs.bulk", bulk, ["files"] if bulk else []),
        ("write", "fs.executable", "makes executable", [change.path for change in notable if change.executable]),
        ("write", "fs.write", "writes", [change.path for change in changes if change.action != "deleted"]),
    )


def _list_protected(
    changes: tuple[Change, ...], notable: list[Change], maintenance: "GitMaintenance", steering: frozenset[str]
) -> list[str]:
    names = (posixpath.split(change.path) for change in changes)
    new_heads = {folder for folder, name in names if normalize_name(name) == "head"}
    unsteered = (change for change in notable if change.path not in maintenance.steered)
    protected = [change.path for change in unsteered if _is_protected(change, new_heads)]
    protected += [change.path for change in notable if change.path in steering and not is_packaged(change.path)]
    protected += [change.path for change in changes if has_setid_bit(change)]
    return [*dict.fromkeys(protected)]


def _is_protected(change: Change, new_heads: set[str]) -> bool:
    """By its name, or because it steers a repository that is made here under another name: its folder has a HEAD."""
    paths = [path for path in _list_names(change) if not is_packaged(path)]
    if any(find_protection(path) == "protected" for path in paths):
        return True
    possible = (pair for path in paths if new_heads for pair in list_possible_repositories(path))
    return any(
        ("" if folder == "." else folder) in new_heads and is_git_control_name(name) for folder, name in possible
    )


def _leads_out(change: Change) -> bool:
    """Links to system programs are fine: virtual environments find theirs that way."""
    target = posixpath.normpath(change.target or "")
    if _INTERPRETER.fullmatch(target) and _INTERPRETER.fullmatch(f"/{change.path}"):
        return False
    return change.outside and not _SYSTEM.fullmatch(target)


def _describe_bulk(
    changes: tuple[Change, ...], maintenance: "GitMaintenance", rules: PolicyConfig, moved: frozenset[str]
) -> str:
    """Why this is a bulk change, or "". Git's objects count as bytes only, a moved file only as a file."""
    files = [file for file in changes if file.kind != "folder" and file.path not in moved and maintenance.counts(file)]
    deleted = sum(map(is_deletion, files))
    if bulk := rules.describe_bulk(len(files), deleted):
        return bulk
    size = sum(change.size or 0 for change in changes if change.action in {"created", "modified"})
    if size <= rules.bulk_bytes:
        return ""
    return f"writes {size / _MEGABYTE:,.1f} MB at once, more than {rules.bulk_bytes / _MEGABYTE:,.1f} MB"


def _list_names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.renamed_from is None else (change.path, change.renamed_from)


def _join_paths(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED_PATHS
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_MAX_NAMED_PATHS])} and {more} more"


_SETID_BITS = 0o6000
_RUNNABLE_BITS = 0o6111
_CACHE = re.compile(
    r"(?!/)(?:.*/)?(?:\.(?:pytest|ruff|mypy)_cache(?:/.*)?"
    r"|node_modules/\.cache(?:/(?:\.?eslint|\.?prettier|\.?stylelint)[^/]*(?:/.*)?)?)",
    re.DOTALL,
)
"""Of `node_modules/.cache` only what linters write. Builds run the compiled code that they find there."""
_GENERATED_FOLDERS = PACKAGE_FOLDERS | frozenset(
    {
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", ".next", ".nuxt", ".turbo",
        ".parcel-cache", ".svelte-kit", ".terraform", ".eggs", "htmlcov", ".git",
    }
)  # fmt: skip
"""Folders that programs fill for themselves. People do read `build`, `dist`, `target` and `vendor`."""
_GENERATED_FILES = frozenset(
    {
        "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "uv.lock",
        "poetry.lock", "pdm.lock", "pipfile.lock", "cargo.lock", "composer.lock", "gemfile.lock", "go.sum",
        "flake.lock", ".coverage", ".ds_store",
    }
)  # fmt: skip
_GENERATED_ENDINGS = (
    *(".pyc", ".pyo", ".o", ".obj", ".class"),
    *(".min.js", ".min.css", ".js.map", ".css.map", ".tsbuildinfo"),
)
_DELETED, _PROTECTED, _RUNNABLE, _OUTSIDE, _MODIFIED, _CREATED, _LAYOUT, _GENERATED = range(8)


def sort_by_harm(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """The order in which people see changes: possible harm first, generated files last."""
    return tuple(changes[number] for number in rank_by_harm(changes))


def rank_by_harm(changes: tuple[Change, ...]) -> list[int]:
    """The same order, as indexes."""
    moved = collect_moved_paths(changes)
    ranks = [_rank(change, moved) for change in changes]
    return sorted(range(len(changes)), key=ranks.__getitem__)


def collect_moved_paths(changes: tuple[Change, ...]) -> frozenset[str]:
    """Deleted paths whose content another path now has."""
    return frozenset(change.renamed_from for change in changes if change.renamed_from is not None)


def is_deletion(change: Change, moved: frozenset[str] = frozenset()) -> bool:
    """Whether content is lost: the path was deleted and not moved, or something of another kind replaced it."""
    if change.action == "deleted":
        return change.path not in moved
    return change.replaces is not None and change.replaces != "folder"


def has_setid_bit(change: Change) -> bool:
    """Whether the file runs with the rights of its owner or group."""
    return change.kind == "file" and bool((change.mode or 0) & _SETID_BITS)


def is_generated(path: str) -> bool:
    """Whether programs alone use the file: installed packages, caches, compiled files."""
    *folders, name = path.lower().split("/")
    if name in _GENERATED_FILES or name.endswith(_GENERATED_ENDINGS):
        return True
    return name in _GENERATED_FOLDERS or not _GENERATED_FOLDERS.isdisjoint(folders)


def are_tool_caches(changes: tuple[Change, ...]) -> bool:
    """Whether all changes are new or written plain files and folders in the caches of test runners and linters."""
    return all(_CACHE.fullmatch(change.path) and _is_plain_write(change) for change in changes)


def _is_plain_write(change: Change) -> bool:
    if change.action not in {"created", "modified"} or change.replaces or change.shared or change.read_only:
        return False
    return change.kind == "folder" or (change.kind == "file" and not (change.mode or 0) & _RUNNABLE_BITS)


def _rank(change: Change, moved: frozenset[str]) -> int:
    if is_new_object(change):
        return _GENERATED
    if any(find_protection(path) and not is_packaged(path) for path in _list_names(change)):
        return _DELETED if is_deletion(change, moved) else _PROTECTED
    if has_setid_bit(change):
        return _RUNNABLE
    if is_generated(change.path):
        return _GENERATED
    return _rank_ordinary(change, moved)


def _rank_ordinary(change: Change, moved: frozenset[str]) -> int:
    if is_deletion(change, moved):
        return _DELETED
    if change.executable:
        return _RUNNABLE
    if change.outside or change.shared or change.read_only:
        return _OUTSIDE
    if change.layout_only:
        return _LAYOUT
    return _CREATED if change.action == "created" else _MODIFIED


_NEW_FILE = re.compile(
    r"""HEAD|ORIG_HEAD|COMMIT_EDITMSG|description|config|index|packed-refs|shallow
    |hooks/[A-Za-z0-9-]+\.sample
    |info/(?:exclude|refs)
    |objects/info/(?:packs|commit-graph|commit-graphs/[\w-]+(?:\.graph)?)
    |objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|mtimes|bitmap))
    |(?:refs|logs/refs)/(?:stash|(?:heads|tags|remotes)(?:/[\w+@-][\w.+@-]*)+)
    |logs/HEAD
    """,
    re.VERBOSE,
)
"""Files that `git init`, `add`, `commit` and `clone` make, spelled exactly so. On some file systems `Hooks/` or
`config.` are `hooks/` and `config`."""
_NEW_FOLDER = re.compile(
    r"hooks|info|branches|objects(?:/(?:info|info/commit-graphs|pack|[0-9a-f]{2}))?|(?:logs|refs|logs/refs)(?:/(?:heads|tags|remotes)(?:/[\w+@-][\w.+@-]*)*)?"
)
_OBJECT = re.compile(
    r"((?:.*/)?\.git)/objects/"
    r"(?:[0-9a-f]{2}(?:/[0-9a-f]{38,62})?|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|mtimes|bitmap))",
    re.DOTALL,
)
_OBJECT_INDEX = re.compile(
    r"(?:.*/)?\.git/(?:info/refs|objects/info(?:/packs|/commit-graph|/commit-graphs(?:/[\w-]+(?:\.graph)?)?)?"
    r"|objects/pack/multi-pack-index)",
    re.DOTALL,
)
_REFERENCE = re.compile(r"((?:.*/)?\.git)/(?:logs/)?refs/.*", re.DOTALL)


class GitMaintenance(NamedTuple):
    """Git's routine changes to its own files. A new repository, a commit and `git gc` need no approval."""

    new_repositories: tuple[str, ...]
    """`.git` folders that are new and configure nothing unsafe."""
    packed: frozenset[str]
    """`.git` folders with a new pack, which has the deleted objects."""
    packed_refs: frozenset[str]
    """`.git` folders with a new list of references, which has the deleted ones."""
    configured: frozenset[str]
    """Configurations without an unsafe change."""
    steered: dict[str, tuple[str, ...]]
    """Names of unsafe settings that changed, by the path of the configuration."""

    def covers(self, change: Change) -> bool:
        """Whether a change is routine, although its name is protected."""
        if is_new_object(change) or change.path in self.configured or self.is_in_new(change.path):
            return True
        if change.kind == "link" or change.replaces is not None:
            return False
        return self.is_packed_away(change) or _OBJECT_INDEX.fullmatch(change.path) is not None

    def counts(self, change: Change) -> bool:
        """Whether a change counts towards a bulk change. Git's objects and packed references do not."""
        if is_new_object(change) or self.is_packed_away(change):
            return False
        reference = _REFERENCE.fullmatch(change.path) if change.action == "deleted" else None
        return reference is None or reference[1] not in self.packed_refs

    def is_packed_away(self, change: Change) -> bool:
        """Whether git deleted an object because a new pack has it."""
        deleted = _OBJECT.fullmatch(change.path) if change.action == "deleted" else None
        return deleted is not None and deleted[1] in self.packed

    def is_in_new(self, path: str) -> bool:
        return any(is_in_folder(path, folder) for folder in self.new_repositories)


def find_git_maintenance(changes: tuple[Change, ...], configs: Mapping[str, str]) -> GitMaintenance:
    """`configs`: new texts of changed `.git/config` files by path, and their old texts by hash."""
    packs = (change.path for change in changes if change.action == "created" and change.path.endswith(".pack"))
    changed = (change.path for change in changes if change.action in {"created", "modified"})
    compared = [(change.path, _compare_config(change, configs)) for change in changes]
    return GitMaintenance(
        list_new_repositories(changes, configs),
        frozenset(pack[1] for path in packs if (pack := _OBJECT.fullmatch(path))),
        frozenset(path.removesuffix("/packed-refs") for path in changed if path.endswith(".git/packed-refs")),
        frozenset(path for path, names in compared if names == ()),
        {path: names for path, names in compared if names},
    )


def list_new_repositories(changes: tuple[Change, ...], configs: Mapping[str, str]) -> tuple[str, ...]:
    """`.git` folders that are new and configure nothing unsafe. `configs`: the text of each new `.git/config`."""
    deleted = {change.path for change in changes if change.action == "deleted"}  # an old repository steered something
    new = [change.path for change in changes if _is_new_folder(change) and posixpath.basename(change.path) == ".git"]
    candidates = [folder for folder in new if folder not in deleted]
    return tuple(folder for folder in candidates if _is_harmless(folder, changes, configs.get(f"{folder}/config")))


def is_new_object(change: Change) -> bool:
    """Whether a change adds an object to a repository, under a name that states its content."""
    return change.action == "created" and change.kind != "link" and _OBJECT.fullmatch(change.path) is not None


def find_repository(change: Change) -> str | None:
    """The repository in which git's everyday work made a change. None for other changes: they are listed one by one."""
    before, found, within = f"/{change.path}".partition("/.git/")
    if found and (is_new_object(change) or not is_git_control_name(within.partition("/")[0])):
        return f"{before}/.git"[1:]
    return None


def _compare_config(change: Change, configs: Mapping[str, str]) -> tuple[str, ...] | None:
    """Names of unsafe settings that a changed `.git/config` changes. None for other files, and if it is unclear."""
    if change.path.split("/")[-2:] != [".git", "config"] or change.kind != "file" or change.replaces is not None:
        return None
    new, old = configs.get(change.path), configs.get(change.before) if change.before is not None else ""
    if change.action not in {"created", "modified"} or new is None or old is None:
        return None
    return compare_git_settings(old, new)


def _is_harmless(folder: str, changes: tuple[Change, ...], config: str | None) -> bool:
    if config is None or not is_new_config(config):
        return False
    inside = [change for change in changes if change.path.startswith(f"{folder}/")]
    return all(_is_usual(change, change.path[len(folder) + 1 :]) for change in inside)


def _is_usual(change: Change, name: str) -> bool:
    expected = _NEW_FOLDER if _is_new_folder(change) else _NEW_FILE
    is_plain = change.action == "created" and change.kind != "link" and ".." not in name
    return is_plain and expected.fullmatch(name) is not None


def _is_new_folder(change: Change) -> bool:
    return change.action == "created" and change.kind == "folder"
