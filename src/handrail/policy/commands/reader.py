"""Reads what a simple command does from the table of its program."""

import re

from handrail.policy.commands.options import parse_path_uses
from handrail.policy.commands.reading import Classification, Effect, PathUse
from handrail.policy.shell.script import SimpleCommand, Word
from handrail.policy.tables.form import ProgramClass, ProgramSpec
from handrail.policy.tables.load import ProgramMatch, load_registry

_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")
_SUB_COMMAND = re.compile(r"[a-z][a-z-]*\Z")
_SAYS: dict[Effect, tuple[str, str]] = {
    "proven": ("exec.read-only", "only reads"),
    "write": ("exec.write", "writes the files that it names"),
    "delete": ("exec.delete", "deletes the files that it names"),
    "network": ("exec.network", "reaches other machines"),
}


def classify(command: SimpleCommand) -> Classification:
    """What a command does by its words alone; its redirections are not looked at. What is not known is unproven."""
    words, name, found = _look_up(command)
    if "/" in name:
        return _unproven("exec.script", f"{name} is a program given by its path", words[1:])
    if found is None:
        # It may be an interpreter or a wrapper, so it is of no class.
        return _unproven("exec.unknown", f"handrail does not know what {name} does", words[1:])
    return _read_known(name, words, found)


def add_guard_options(command: SimpleCommand) -> SimpleCommand:
    """A proven command with the options that keep its program from starting others."""
    words, _, found = _look_up(command)
    guards = found.table.guards.split() if found and found.table else []
    if found is None or not guards:
        return command
    return SimpleCommand((*words[: found.length], *map(Word, guards), *words[found.length :]), command.redirections)


def _look_up(command: SimpleCommand) -> tuple[tuple[Word, ...], str, ProgramMatch | None]:
    words = _without_pager(command.words)
    name = _program(words[0].text)
    return words, name, load_registry(name).find((name, *[word.text for word in words[1:]]))


def _without_pager(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """git's one option before its sub-command that only says how to show."""
    if [word.text for word in words[:2]] in (["git", "--no-pager"], ["git", "-P"]):
        return words[:1] + words[2:]
    return words


def _program(name: str) -> str:
    """The bare name of a program that is known, also where it is given with the folder of the system's programs."""
    for folder in _SYSTEM_FOLDERS:
        bare = name.removeprefix(folder)
        if bare != name and "/" not in bare and load_registry(bare).find((bare,)):
            return bare
    return name


def _read_known(name: str, words: tuple[Word, ...], found: ProgramMatch) -> Classification:
    fault = None
    typed = " ".join([name, *[word.text for word in words[1 : found.length]]])
    if table := found.table:
        read = parse_path_uses(table, words[found.length :])
        if not isinstance(read, str):
            return _accepted(table, typed, read)
        fault = _told(read, table, typed)
    if found.group:
        # The table knows better what is wrong, unless it is only about a part: an interpreter stays one.
        return _grouped(found, found.group, words, fault if found.group_length >= found.length else None)
    if table and fault:
        grant = _first_words(typed) if table.grantable else ""
        return _unproven("exec.option", fault, words[found.length :], grant)
    return _unknown_part(name, words)


def _told(fault: str, table: ProgramSpec, typed: str) -> str:
    """What is wrong, of the program that was typed: one table may be for several."""
    if fault.startswith((f"{table.name} ", f"{table.name}'s ")):
        return typed + fault.removeprefix(table.name)
    return fault


def _accepted(table: ProgramSpec, typed: str, read: tuple[PathUse, ...]) -> Classification:
    rule, does = _SAYS[table.effect]
    grant = "" if table.effect == "proven" or not table.grantable else _first_words(typed)
    return Classification(table.effect, rule, f"{typed} {does}", read, grant)


def _grouped(found: ProgramMatch, group: ProgramClass, words: tuple[Word, ...], fault: str | None) -> Classification:
    name = " ".join([word.text for word in words[: found.group_length]])
    rest = words[found.group_length :]
    grant = _class(name, rest, has_parts=found.has_parts) if group.grantable else ""
    return Classification(group.effect, group.rule, fault or f"{name} {group.reason}", _maybe_paths(rest), grant)


def _class(name: str, rest: tuple[Word, ...], *, has_parts: bool) -> str:
    """The commands of one kind: with their sub-command, or the script that is run; none where that cannot be told."""
    if " " in name and not name.endswith(" run"):
        return name
    wider = _with_sub_command(name, rest)
    return "" if wider == name and (" " in name or (rest and has_parts)) else wider


def _unknown_part(name: str, words: tuple[Word, ...]) -> Classification:
    """A program with sub-commands, and none of those that are known."""
    part = words[1].text if len(words) > 1 else ""
    if part.startswith("-"):
        return _unproven("exec.option", f"{name} with {part} before its sub-command may do anything", words[1:])
    reason = f"handrail does not know what {name} {part}".rstrip() + " does"
    return _unproven("exec.unknown", reason, words[1:])  # of no class: an alias may stand for anything


def _unproven(rule: str, reason: str, words: tuple[Word, ...], grant: str = "") -> Classification:
    return Classification("unproven", rule, reason, _maybe_paths(words), grant)


def _maybe_paths(words: tuple[Word, ...]) -> tuple[PathUse, ...]:
    """Of a program that is not known any operand may be a path, and so may an option's value."""
    found: list[PathUse] = []
    for word in words:
        text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
        if text and not text.startswith("-"):
            found.append(PathUse(text, "read", bool(word.globs), is_certainly_path=False))
    return tuple(found)


def _with_sub_command(name: str, words: tuple[Word, ...]) -> str:
    return f"{name} {words[0].text}" if words and _SUB_COMMAND.match(words[0].text) else name


def _first_words(name: str) -> str:
    return " ".join(name.split()[:2])
