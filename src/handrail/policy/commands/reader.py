"""Reads what a simple command does from the table of its program."""

import re

from handrail.policy.commands.examples import check
from handrail.policy.commands.options import read_words
from handrail.policy.commands.reading import Effect, Reading, Use
from handrail.policy.shell.script import SimpleCommand, Word
from handrail.policy.tables.form import Group, Table
from handrail.policy.tables.load import Found, Registry, registry

_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")
_SUB_COMMAND = re.compile(r"[a-z][a-z-]*\Z")
_SAYS: dict[Effect, tuple[str, str]] = {
    "proven": ("exec.read-only", "only reads"),
    "write": ("exec.write", "writes the files that it names"),
    "delete": ("exec.delete", "deletes the files that it names"),
    "network": ("exec.network", "reaches other machines"),
}


def read_command(command: SimpleCommand) -> Reading:
    """What a command does by its words alone; its redirections are not looked at. What is not known is unproven."""
    words = _without_pager(command.words)
    known = registry()
    name = _program(words[0].text, known)
    if "/" in name:
        return _unproven("exec.script", f"{name} is a program given by its path", words[1:])
    found = known.find((name, *[word.text for word in words[1:]]))
    if found is None:
        grant = _with_sub_command(name, words[1:])
        return _unproven("exec.unknown", f"handrail does not know what {name} does", words[1:], grant)
    return _read_known(name, words, found)


def _without_pager(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """git's one option before its sub-command that only says how to show."""
    dropped = len(words) > 2 and words[0].text == "git" and words[1].text in {"--no-pager", "-P"}
    return (words[0], *words[2:]) if dropped else words


def _program(name: str, known: Registry) -> str:
    """The bare name of a program that is known, also where it is given with the folder of the system's programs."""
    for folder in _SYSTEM_FOLDERS:
        bare = name.removeprefix(folder)
        if bare != name and "/" not in bare and known.find((bare,)):
            return bare
    return name


def _read_known(name: str, words: tuple[Word, ...], found: Found) -> Reading:
    fault = None
    if table := found.table:
        check(table)
        read = read_words(table, words[found.length :])
        if not isinstance(read, str):
            return _accepted(table, read)
        fault = read
    if found.group:
        # The table knows better what is wrong, unless it is only about a part: an interpreter stays one.
        reason = fault if fault and found.group_length >= found.length else f"{name} {found.group.reason}"
        return _grouped(found.group, found.group_length, reason, words)
    if table and fault:
        grant = _first_words(table.name) if table.grantable else ""
        return _unproven("exec.option", fault, words[found.length :], grant)
    return _unknown_part(name, words)


def _accepted(table: Table, read: tuple[Use, ...]) -> Reading:
    rule, does = _SAYS[table.effect]
    grant = "" if table.effect == "proven" or not table.grantable else _first_words(table.name)
    return Reading(table.effect, rule, f"{table.name} {does}", read, grant)


def _grouped(group: Group, length: int, reason: str, words: tuple[Word, ...]) -> Reading:
    named = " ".join([word.text for word in words[:length]])
    grant = named if length > 1 else _with_sub_command(named, words[1:])
    return Reading(group.effect, group.rule, reason, _maybe_paths(words[1:]), grant if group.grantable else "")


def _unknown_part(name: str, words: tuple[Word, ...]) -> Reading:
    """A program with sub-commands, and none of those that are known."""
    part = words[1].text if len(words) > 1 else ""
    if part.startswith("-"):
        return _unproven("exec.option", f"{name} with {part} before its sub-command may do anything", words[1:])
    reason = f"handrail does not know what {name} {part}".rstrip() + " does"
    return _unproven("exec.unknown", reason, words[1:], _with_sub_command(name, words[1:]))


def _unproven(rule: str, reason: str, words: tuple[Word, ...], grant: str = "") -> Reading:
    return Reading("unproven", rule, reason, _maybe_paths(words), grant)


def _maybe_paths(words: tuple[Word, ...]) -> tuple[Use, ...]:
    """Of a program that is not known any operand may be a path, and so may an option's value."""
    found: list[Use] = []
    for word in words:
        text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
        if text and not text.startswith("-"):
            found.append(Use(text, "read", bool(word.globs), certain=False))
    return tuple(found)


def _with_sub_command(name: str, words: tuple[Word, ...]) -> str:
    return f"{name} {words[0].text}" if words and _SUB_COMMAND.match(words[0].text) else name


def _first_words(name: str) -> str:
    return " ".join(name.split()[:2])
