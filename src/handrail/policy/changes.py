"""Judges what was changed, or would be: the same for a file tool and for what a command left in its layer."""

import posixpath
from collections.abc import Iterator, Mapping

from handrail.policy.configuration import Rules
from handrail.policy.judging.deciding import decision_of
from handrail.policy.judging.judged import Judged, allowed, moded, ruled, secret
from handrail.policy.modes import Subject
from handrail.policy.names import may_be_in_repository, protection, steers_repository
from handrail.policy.repository import is_new_object, new_repositories
from handrail.policy.rules.book import book_of
from handrail.policy.rules.rule import Rule
from handrail.policy.spelling import folded
from handrail.protocol.change import Change
from handrail.protocol.decision import Decision

_RUNNABLE = 0o111
_RUNS_AS_OWNER = 0o6000
_NAMED = 3
"""Paths that a part names; of more it says how many."""


def judge_changes(
    changes: tuple[Change, ...],
    rules: Rules,
    *,
    undo: bool,
    spoken_for: bool = False,
    configs: Mapping[str, str] | None = None,
    tool: str = "exec",
) -> Decision:
    """One part for each kind of harm, the worst first. `undo`: whether the changes can be taken back.

    `spoken_for`: a person, a rule or a grant allowed the call, and with it that files are written and deleted; never
    that what steers tools is changed, nor very many files, nor anything in plan mode. `configs` has the text of each
    new `.git/config`; without it a new repository asks like any other.
    """
    repositories = new_repositories(changes, configs or {})
    notable = [change for change in changes if not _is_ordinary(change, repositories)]
    judged = [*_never(changes), *_by_rules(changes, rules, tool), *_by_kind(notable, changes, rules, undo=undo)]
    if spoken_for and rules.mode != "plan":
        judged = [_spoken_for(one) if one.part.decision == "confirm" and not one.firm else one for one in judged]
    return decision_of(judged or [allowed("files", "fs.unchanged", "nothing changes")], rules)


def _is_ordinary(change: Change, repositories: tuple[str, ...]) -> bool:
    """Protected by its name alone: new objects, and the files of a repository that was just made."""
    return is_new_object(change) or any(f"{change.path}/".startswith(f"{folder}/") for folder in repositories)


def _spoken_for(judged: Judged) -> Judged:
    return allowed(judged.part.subject, judged.part.rule, f"{judged.part.reason}, as the call was allowed to")


def _never(changes: tuple[Change, ...]) -> list[Judged]:
    credentials = [change.path for change in changes if "credential" in {protection(path) for path in _names(change)}]
    return [secret(_listed(credentials))] if credentials else []


def _by_rules(changes: tuple[Change, ...], rules: Rules, tool: str) -> list[Judged]:
    """What deny and ask rules say; an allow rule was about the call, not about what came of it."""
    book = book_of(rules.rules)
    found: dict[Rule, list[str]] = {}
    for change in changes:
        rule = book.path(tool, _names(change))
        if rule is not None and rule.verdict != "allow":
            found.setdefault(rule, []).append(change.path)
    return [ruled(_listed(paths), rule) for rule, paths in found.items()]


def _by_kind(notable: list[Change], changes: tuple[Change, ...], rules: Rules, *, undo: bool) -> Iterator[Judged]:
    heads = {posixpath.dirname(change.path) for change in changes if folded(posixpath.basename(change.path)) == "head"}
    protected = [change.path for change in notable if _is_protected(change, heads)]
    protected += [change.path for change in changes if _runs_as_owner(change)]
    deleted = [change.path for change in changes if change.action == "deleted"]
    runnable = [change.path for change in notable if _is_runnable(change)]
    written = [change.path for change in changes if change.action != "deleted"]
    kinds: tuple[tuple[Subject, str, str, list[str]], ...] = (
        ("protected", "fs.protected", "changes what steers tools, hooks or builds", [*dict.fromkeys(protected)]),
        ("delete", "fs.delete", "deletes", deleted),
        ("bulk", "fs.bulk", _bulk(changes, rules), ["files"] if _bulk(changes, rules) else []),
        ("write", "fs.executable", "makes executable", runnable),
        ("write", "fs.write", "writes", written),
    )
    for kind, rule, does, paths in kinds:
        if paths:
            why = does if kind == "bulk" else f"{does} {_listed(paths)}"
            yield moded(_listed(paths), rule, kind, rules.mode, undo=undo, why=why)


def _is_protected(change: Change, heads: set[str]) -> bool:
    """By its name, or since it steers a repository of another name that is made here: one with a HEAD of its own."""
    return any(protection(path) == "protected" or _steers_one_of(heads, path) for path in _names(change))


def _steers_one_of(heads: set[str], path: str) -> bool:
    found = may_be_in_repository(path) if heads else ()
    return any((folder if folder != "." else "") in heads and steers_repository(name) for folder, name in found)


def _runs_as_owner(change: Change) -> bool:
    """A folder with such a bit only hands its group on."""
    return change.kind == "file" and bool((change.mode or 0) & _RUNS_AS_OWNER)


def _is_runnable(change: Change) -> bool:
    """Perhaps it could be run before: that cannot be told from a change, and it is only named first."""
    return change.kind == "file" and change.action in {"created", "mode"} and bool((change.mode or 0) & _RUNNABLE)


def _bulk(changes: tuple[Change, ...], rules: Rules) -> str:
    """Says that there are very many; objects that a commit adds are no files of anybody's."""
    files = [change for change in changes if change.kind != "folder" and not is_new_object(change)]
    deleted = sum(change.action == "deleted" for change in files)
    if deleted <= rules.bulk_deleted and len(files) <= rules.bulk_changed:
        return ""
    return f"changes {len(files)} files at once, of which it deletes {deleted}"


def _names(change: Change) -> tuple[str, ...]:
    return (change.path,) if change.renamed_from is None else (change.path, change.renamed_from)


def _listed(paths: list[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_NAMED])} and {more} more"
