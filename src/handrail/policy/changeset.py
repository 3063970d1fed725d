"""Decides the changes that a command made in a preview."""

import posixpath
import re
from collections.abc import Iterator, Mapping

from handrail.policy.config import PolicyConfig, Rule
from handrail.policy.git_repository import GitMaintenance, find_changed_settings, find_git_maintenance, is_new_object
from handrail.policy.name_tables import GENERATED_ENDINGS, GENERATED_FILES, GENERATED_FOLDERS
from handrail.policy.names import (
    find_protection,
    is_git_control_name,
    is_git_lock,
    is_packaged,
    list_possible_repositories,
    normalize_name,
)
from handrail.policy.rules.rulebook import build_rulebook
from handrail.policy.verdict import (
    LOCKED,
    PartVerdict,
    Subject,
    allow,
    combine,
    deny_credential,
    judge_by_mode,
    judge_by_rule,
)
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Decision

# § [policy.harm] Changes in the order in which people should see them: what may do harm first, what programs
# § generate last.

_RUNS_AS_OWNER = 0o6000
_DELETED, _PROTECTED, _RUNNABLE, _OUTSIDE, _MODIFIED, _CREATED, _LAYOUT, _GENERATED = range(8)


def sort_by_harm(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Deletions, what steers tools, what can be run, links that lead out and files with other
    names; then what was modified and what is new; last
    what has another layout only, and what programs generate. In each, the order that they came in."""
    return tuple(changes[number] for number in rank_by_harm(changes))


def rank_by_harm(changes: tuple[Change, ...]) -> list[int]:
    """The same, as places in what was given."""
    moved = collect_moved_paths(changes)
    ranks = [_rank(change, moved) for change in changes]
    return sorted(range(len(changes)), key=ranks.__getitem__)


def collect_moved_paths(changes: tuple[Change, ...]) -> frozenset[str]:
    """The paths that are gone, and whose content is to be found under another name."""
    return frozenset(change.renamed_from for change in changes if change.renamed_from is not None)


def is_deletion(change: Change, moved: frozenset[str] = frozenset()) -> bool:
    """Whether something is gone that is nowhere else: deleted, or another kind of thing is in its place."""
    if change.action == "deleted":
        return change.path not in moved
    return change.replaces is not None and change.replaces != "folder"


def has_setid_bit(change: Change) -> bool:
    """Whether who runs it gets the rights of its owner or group; a folder with such a bit only hands its group on."""
    return change.kind == "file" and bool((change.mode or 0) & _RUNS_AS_OWNER)


def is_generated(path: str) -> bool:
    """Whether programs make and remove it, and nobody reads it: packages that were fetched, caches, compiled files."""
    *folders, name = path.lower().split("/")
    if name in GENERATED_FILES or name.endswith(GENERATED_ENDINGS):
        return True
    return name in GENERATED_FOLDERS or not GENERATED_FOLDERS.isdisjoint(folders)


def _rank(change: Change, moved: frozenset[str]) -> int:
    if is_new_object(change):
        return _GENERATED
    if any(
        find_protection(path) and not is_packaged(path) for path in (change.path, change.renamed_from or change.path)
    ):
        return _DELETED if is_deletion(change, moved) else _PROTECTED
    if has_setid_bit(change):
        return _RUNNABLE
    if is_generated(change.path):
        return _GENERATED
    return _ordinary(change, moved)


def _ordinary(change: Change, moved: frozenset[str]) -> int:
    if is_deletion(change, moved):
        return _DELETED
    if change.executable:
        return _RUNNABLE
    if change.outside or change.shared or change.read_only:
        return _OUTSIDE
    if change.layout_only:
        return _LAYOUT
    return _CREATED if change.action == "created" else _MODIFIED


# § [policy.changes] Judges what was changed, or would be: the same for a file tool and for what a command left in
# § its overlay.

_SYSTEM = re.compile(r"/(?:usr|bin|sbin|lib|lib32|lib64|nix/store)/.*|/dev/null", re.DOTALL)
"""Where programs and libraries are, which links of virtual environments lead to."""
_INTERPRETER = re.compile(r"/(?:.*/)?bin/python[0-9.]*", re.DOTALL)
"""What a virtual environment links to wherever it was installed."""
_MEGABYTE = 1 << 20
_SHARED = "changes files that have other names (hard links), maybe outside the workspace:"
_MAX_NAMED_PATHS = 3
"""Paths that a part names; of more it says how many."""


def judge_changes(
    changes: tuple[Change, ...],
    rules: PolicyConfig,
    *,
    undo: bool,
    spoken_for: bool = False,
    configs: Mapping[str, str] | None = None,
    tool: str = "exec",
    steering: frozenset[str] = frozenset(),
) -> Decision:
    """One part for each kind of harm, the worst first. `undo`: whether the changes can be undone.

    `spoken_for`: a person, a rule or a grant allowed the call, and with it that files are written and deleted; never
    that what steers tools is changed, nor very many files, nor anything in plan mode. `configs` has the text of each
    `.git/config` that is new or changed, by its path, and what it was before, by its hash; without them it asks like
    anything that steers git. `steering`: paths that steer a repository of another name that was there before.
    """
    kept_up = find_git_maintenance(changes, configs or {})
    steered = _steered([change for change in changes if not kept_up.is_in_new(change.path)], configs or {})
    judged = [*_never(changes), *_by_rules(changes, rules, tool)]
    judged += _by_kind(changes, steered, kept_up, rules, steering, undo=undo)
    if spoken_for and rules.mode != "plan":
        judged = [_spoken_for(one) if one.part.decision == "confirm" and not one.final else one for one in judged]
    return combine(judged or [allow("files", "fs.unchanged", "nothing changes")], rules)


def _steered(changes: list[Change], configs: Mapping[str, str]) -> dict[str, str]:
    """By the paths of changed configurations, the settings that may make git run programs or lead it elsewhere."""
    found = {change.path: find_changed_settings(change, configs) for change in changes}
    return {path: f"{_listed(list(names))} in {path}" for path, names in found.items() if names}


def _spoken_for(judged: PartVerdict) -> PartVerdict:
    return allow(judged.part.subject, judged.part.rule, f"{judged.part.reason}, as the call was allowed to")


def _never(changes: tuple[Change, ...]) -> list[PartVerdict]:
    credentials = [change.path for change in changes if _is_credential(change)]
    return [deny_credential(_listed(credentials))] if credentials else []


def _is_credential(change: Change) -> bool:
    """By its name; what a package that was just installed brought with it is nobody's secret."""
    if all(find_protection(path) != "credential" for path in _names(change)):
        return False
    return change.action != "created" or not is_packaged(change.path)


def _by_rules(changes: tuple[Change, ...], rules: PolicyConfig, tool: str) -> list[PartVerdict]:
    """What deny and ask rules say; an allow rule was about the call, not about what came of it."""
    book = build_rulebook(rules.rules)
    found: dict[Rule, list[str]] = {}
    for change in changes:
        rule = book.path(tool, _names(change))
        if rule is not None and rule.verdict != "allow":
            found.setdefault(rule, []).append(change.path)
    return [judge_by_rule(_listed(paths), rule) for rule, paths in found.items()]


def _by_kind(
    changes: tuple[Change, ...],
    steered: dict[str, str],
    kept_up: GitMaintenance,
    rules: PolicyConfig,
    steering: frozenset[str],
    *,
    undo: bool,
) -> Iterator[PartVerdict]:
    notable = [change for change in changes if not kept_up.covers(change)]
    heads = {
        posixpath.dirname(change.path)
        for change in changes
        if normalize_name(posixpath.basename(change.path)) == "head"
    }
    moved = collect_moved_paths(changes)
    protected = [change.path for change in notable if change.path not in steered and _is_protected(change, heads)]
    protected += [change.path for change in notable if change.path in steering and not is_packaged(change.path)]
    protected += [change.path for change in changes if has_setid_bit(change)]
    deleted = [change.path for change in changes if is_deletion(change, moved)]
    bulk = _bulk(changes, kept_up, rules, moved)
    kinds: tuple[tuple[Subject, str, str, list[str]], ...] = (
        ("protected", "fs.protected", "changes what steers tools, hooks or builds", [*dict.fromkeys(protected)]),
        ("protected", "fs.config", "sets what git runs or where it is led:", list(steered.values())),
        ("protected", "fs.link", "makes links that lead outside:", [_shown(one) for one in notable if _leads_out(one)]),
        ("protected", "fs.hard-link", _SHARED, [change.path for change in changes if change.shared]),
        ("protected", "fs.read-only-file", "changes files that are read-only:", _read_only(changes)),
        ("protected", "fs.lock", f"{LOCKED}:", [one.path for one in changes if _leaves_lock(one)]),
        ("delete", "fs.delete", "deletes", deleted),
        ("bulk", "fs.bulk", bulk, ["files"] if bulk else []),
        ("write", "fs.executable", "makes executable", [change.path for change in notable if change.executable]),
        ("write", "fs.write", "writes", [change.path for change in changes if change.action != "deleted"]),
    )
    for kind, rule, does, paths in kinds:
        if paths:
            why = does if kind == "bulk" else f"{does} {_listed(paths)}"
            yield judge_by_mode(_listed(paths), rule, kind, rules.mode, undo=undo, why=why)


def _read_only(changes: tuple[Change, ...]) -> list[str]:
    """What programs generate, they renew whatever its mode."""
    return [change.path for change in changes if change.read_only and not is_generated(change.path)]


def _leaves_lock(change: Change) -> bool:
    return change.action != "deleted" and is_git_lock(change.path)


def _leads_out(change: Change) -> bool:
    """Links to where programs are are let be: that is how virtual environments find theirs."""
    target = posixpath.normpath(change.target or "")
    if _INTERPRETER.fullmatch(target) and _INTERPRETER.fullmatch(f"/{change.path}"):
        return False
    return change.outside and not _SYSTEM.fullmatch(target)


def _shown(change: Change) -> str:
    return f"{change.path} to {change.target}"


def _is_protected(change: Change, heads: set[str]) -> bool:
    """By its name, or since it steers a repository of another name that is made here: one with a HEAD of its own."""
    steering = [path for path in _names(change) if find_protection(path) == "protected" or _steers_one_of(heads, path)]
    return not all(is_packaged(path) for path in steering)


def _steers_one_of(heads: set[str], path: str) -> bool:
    found = list_possible_repositories(path) if heads else ()
    return any((folder if folder != "." else "") in heads and is_git_control_name(name) for folder, name in found)


def _bulk(changes: tuple[Change, ...], kept_up: GitMaintenance, rules: PolicyConfig, moved: frozenset[str]) -> str:
    """Why it is a bulk change; empty if it is none. Git's own objects do not count as files, but as bytes. A file that
    only moved counts once, and writes no bytes."""
    files = [one for one in changes if one.kind != "folder" and one.path not in moved and kept_up.counts(one)]
    deleted = sum(is_deletion(change) for change in files)
    if deleted > rules.bulk_deleted or len(files) > rules.bulk_changed:
        return f"changes {len(files)} files at once, of which it deletes {deleted}"
    written = sum(one.size or 0 for one in changes if one.action in {"created", "modified"})
    if written > rules.bulk_bytes:
        return f"writes {written / _MEGABYTE:,.1f} MB at once, more than {rules.bulk_bytes / _MEGABYTE:,.1f} MB"
    return ""


def _names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.renamed_from is None else (change.path, change.renamed_from)


def _listed(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED_PATHS
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_MAX_NAMED_PATHS])} and {more} more"
