"""The calls that the grants for plain edits, or for local git, cover."""

from collections.abc import Iterable, Iterator

import msgspec

from handrail.policy.names import normalize_name
from handrail.policy.verdict import PartVerdict
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Facts, PathFact

# Plain edits: existing files modified, new files and folders made. The name of the rule excludes all other harm.

_EDIT_RULE = "fs.write"
_EDIT_ACTIONS = frozenset({"created", "modified"})
_COMMAND_KINDS = frozenset({"unproven", "write"})


def may_be_edits(facts: Facts, verdicts: Iterable[PartVerdict]) -> bool:
    """Whether all that asks about a call may be plain edits. Of a command, its preview has to show that."""
    asking = [verdict for verdict in verdicts if verdict.part.decision != "allow"]
    if any(verdict.final for verdict in asking):
        return False
    if facts.command is not None:
        return all(verdict.kind in _COMMAND_KINDS for verdict in asking)
    changed = [fact for fact in facts.paths if fact.access != "read"]
    return bool(changed) and all(map(_is_edited, changed)) and all(map(_is_plain_write, asking))


def are_plain_edits(changes: tuple[Change, ...], verdicts: Iterable[PartVerdict]) -> bool:
    """Whether changes of a command are plain edits. `verdicts`: what policy says of them, without an approval."""
    return all(map(_is_plain_write, verdicts)) and all(map(_is_edit, changes))


def _is_edited(fact: PathFact) -> bool:
    if fact.real is None or fact.real.startswith("/") or _is_in_git(fact.real):
        return False
    return fact.access == "write" and not fact.sets_mode


def _is_plain_write(verdict: PartVerdict) -> bool:
    return verdict.kind == "write" and verdict.part.rule == _EDIT_RULE


def _is_edit(change: Change) -> bool:
    if change.action not in _EDIT_ACTIONS or change.kind == "link" or change.replaces is not None:
        return False
    is_moved = change.renamed_from is not None
    return not is_moved and not change.path.startswith("/") and not _is_in_git(change.path)


def _is_in_git(path: str) -> bool:
    return ".git" in map(normalize_name, path.split("/"))


# Local git: the table lists the options that neither lose commits, nor skip hooks, nor run a program.


class _GitOptions(msgspec.Struct, frozen=True):
    flags: str = ""
    """Letters of short options without a value."""
    values: str = ""
    """Letters of short options with a value."""
    long_flags: str = ""
    long_values: str = ""
    first: frozenset[str] | None = None
    """The words that the first operand before `--` may be. None: any."""


_COMMIT = _GitOptions("aqsv", "m", "all quiet signoff verbose allow-empty no-edit", "message author date")
_PICK = _GitOptions("nx", "m", "no-edit no-commit signoff", "mainline")
_SUB_COMMANDS: dict[str, _GitOptions] = {
    "add": _GitOptions("Auvn", "", "all update verbose dry-run no-all"),
    "stage": _GitOptions("Auvn", "", "all update verbose dry-run no-all"),
    "commit": _COMMIT,
    "checkout": _GitOptions("qdt", "b", "quiet detach track no-track ours theirs"),
    "switch": _GitOptions("qdt", "c", "quiet detach track no-track", "create"),
    "restore": _GitOptions("qSW", "s", "quiet staged worktree ours theirs", "source"),
    "branch": _GitOptions("qm", "", "quiet move no-track"),
    "tag": _GitOptions("a", "m", "annotate", "message"),
    "merge": _GitOptions("nq", "m", "ff no-ff ff-only no-edit quiet no-commit squash no-squash stat no-stat"),
    "cherry-pick": _PICK,
    "revert": _PICK,
    "mv": _GitOptions("vn", "", "verbose dry-run"),
    "reset": _GitOptions("q", "", "quiet", "", frozenset({"HEAD"})),
    "stash": _GitOptions(
        "qk", "m", "quiet keep-index no-keep-index index", "message", frozenset({"push", "pop", "apply"})
    ),
}
"""`reset` only takes paths out of the index. `stash` leaves untracked files alone."""


def is_local_git(words: tuple[str, ...]) -> bool:
    """Whether the grant for local git may cover a git command. Its changes have to show that."""
    rest = words[2:] if words[1:2] in (("--no-pager",), ("-P",)) else words[1:]
    table = _SUB_COMMANDS.get(rest[0]) if rest else None
    return table is not None and _has_known_options(rest[1:], table)


def has_git_table(words: tuple[str, ...]) -> bool:
    """Whether the sub-command is one that the grant for local git may cover with other options."""
    return any(word in _SUB_COMMANDS for word in words[1:3])


def _has_known_options(words: tuple[str, ...], table: _GitOptions) -> bool:
    rest = iter(words)
    operands: list[str] = []
    for word in rest:
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif not _take_option(word, rest, table):
            return False
    return table.first is None or not operands or operands[0] in table.first


def _take_option(word: str, rest: Iterator[str], table: _GitOptions) -> bool:
    """Whether an option is listed. Its value may be the next word, which is taken."""
    if word.startswith("--"):
        name, equals, _ = word[2:].partition("=")
        if name in table.long_values.split():
            return bool(equals) or next(rest, None) is not None
        return not equals and name in table.long_flags.split()
    for place, letter in enumerate(word[1:], start=2):
        if letter in table.values:
            return place < len(word) or next(rest, None) is not None
        if letter not in table.flags:
            return False
    return True


def find_untracked(changes: tuple[Change, ...], tracked: frozenset[str]) -> list[str]:
    """The changed paths that are neither git's own nor tracked. Folders come and go with their files."""
    files = (change.path for change in changes if change.kind != "folder")
    return [path for path in files if path not in tracked and not _is_in_git(path)]


def find_lost_references(changes: tuple[Change, ...], moved: frozenset[str]) -> list[str]:
    """The branches and tags that are deleted, and not renamed."""
    deleted = (change.path for change in changes if change.action == "deleted" and change.kind == "file")
    parts = ("/.git/refs/heads/", "/.git/refs/tags/")
    return [path for path in deleted if path not in moved and any(part in f"/{path}" for part in parts)]
