"""Finds the description of a program, and classifies a command by it."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TypeVar

import msgspec

from handrail.policy.programs.classes import GROUPS, VERSIONS
from handrail.policy.programs.options import parse_path_uses
from handrail.policy.programs.spec import Classification, Effect, PathUse, ProgramClass, ProgramSpec
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import SimpleCommand, Unparsed, Word

# § [policy.tables.load] One registry of all tables and groups, by the words that a command begins with.

# Which programs the tables of a module speak for. A command pays only for the module that it needs: all of them take
# as long as a hundred commands.
_MODULES = {
    "data": "jq yq od hexdump hd xxd strings nm readelf objdump size zipinfo gzip unzip",
    "files": "ls dir vdir stat du df tree file realpath readlink basename dirname find grep egrep fgrep rg fd fdfind",
    "git": "git",
    "system": "echo printf test [ true false : exit pwd type command help umask ulimit which sleep expr bc factor "
    "date cal ncal env printenv id whoami logname arch groups users uname hostname uptime nproc getconf "
    "locale ps pgrep free lscpu tty who w",
    "text": "cat head tail wc nl tac rev fold fmt expand unexpand iconv cut tr sort uniq comm join paste column shuf "
    "tsort numfmt seq diff cmp sed sha256sum md5sum sha1sum sha224sum sha384sum sha512sum b2sum cksum sum base64 "
    "base32 basenc",
    "write": "rm rmdir unlink mv cp ln install rsync mkdir touch tee truncate chmod chown chgrp dd",
}

_Name = tuple[str, ...]
_Entry = TypeVar("_Entry", ProgramSpec, ProgramClass)


class ProgramMatch(msgspec.Struct, frozen=True):
    """What is known of the program that a command begins with."""

    table: ProgramSpec | None
    length: int
    """How many words the name of the table has."""
    group: ProgramClass | None
    """What the program is where no table accepts the command."""
    group_length: int
    """How many words the name of the group has."""
    has_parts: bool
    """Whether the program has sub-commands."""


class ProgramRegistry:
    """Tables and groups by name. A name may have a table and a group: what the table does not accept is the group's."""

    def __init__(self, tables: Iterable[ProgramSpec], groups: Iterable[ProgramClass]) -> None:
        self.tables: dict[_Name, ProgramSpec] = {}
        self.groups: dict[_Name, ProgramClass] = {}
        self._longest: dict[str, int] = {}
        self._with_parts: set[str] = set()
        for group in groups:
            for name in sorted(group.programs):
                self._add(self.groups, name, group)
        self._add_tables(tables)

    def extend(self, tables: Iterable[ProgramSpec]) -> "ProgramRegistry":
        """A registry with more tables."""
        other = ProgramRegistry((), ())
        other.tables, other.groups = dict(self.tables), self.groups
        other._longest, other._with_parts = dict(self._longest), set(self._with_parts)
        other._add_tables(tables)
        return other

    def find(self, words: _Name) -> ProgramMatch | None:
        """The longest names that the words begin with; None where not even the program is known."""
        length, grouped = self._length(self.tables, words), self._length(self.groups, words)
        group = self.groups.get(words[:grouped])
        if group is None:  # python3.11 and gcc-12 are of the class of python and gcc, but no table speaks for them
            plain = (words[0].rstrip("0123456789.-"), *words[1:])
            grouped = self._length(self.groups, plain)
            group = self.groups.get(plain[:grouped])
        known = words[0] in self._longest or group
        has_parts = words[0] in self._with_parts
        return ProgramMatch(self.tables.get(words[:length]), length, group, grouped, has_parts) if known else None

    def _length(self, entries: Mapping[_Name, ProgramSpec] | Mapping[_Name, ProgramClass], words: _Name) -> int:
        longest = min(self._longest.get(words[0], 0), len(words))
        return next((length for length in range(longest, 0, -1) if words[:length] in entries), 0)

    def _add_tables(self, tables: Iterable[ProgramSpec]) -> None:
        for table in tables:
            for name in (table.name, *table.also):
                self._add(self.tables, name, table)

    def _add(self, entries: dict[_Name, _Entry], name: str, entry: _Entry) -> None:
        words = tuple(name.split())
        if words in entries:
            raise ValueError(f"{name} is in two tables")
        entries[words] = entry
        self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))
        if len(words) > 1 and not words[1].startswith("-"):
            self._with_parts.add(words[0])


@cache
def build_registry() -> ProgramRegistry:
    """All that is built in."""
    return _classes().extend(table for module in _MODULES for table in _tables(module))


def load_registry(program: str) -> ProgramRegistry:
    """As much of the registry as a command of this program needs; put together when the first one is judged."""
    return _part(_modules().get(program))


@cache
def _part(module: str | None) -> ProgramRegistry:
    return _classes().extend(_tables(module)) if module else _classes()


@cache
def _classes() -> ProgramRegistry:
    return ProgramRegistry(VERSIONS, GROUPS)


@cache
def _modules() -> dict[str, str]:
    return {program: module for module, programs in _MODULES.items() for program in programs.split()}


def _tables(module: str) -> tuple[ProgramSpec, ...]:
    return import_module(f"handrail.policy.programs.{module}").TABLES


# § [policy.commands.reader] Reads what a simple command does from the table of its program.

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


# § [policy.commands.examples] Checks the examples that a table carries: what it says of them must come out.


def list_example_faults(table: ProgramSpec, registry: ProgramRegistry) -> list[str]:
    """Which examples come out wrong, in words."""
    wrong = [(example, find_example_refusal(table, registry, example)) for example in table.match]
    found = [f"the table of {table.name} must accept {example!r}, but {why}" for example, why in wrong if why]
    accepted = [example for example in table.no_match if not find_example_refusal(table, registry, example)]
    return found + [f"the table of {table.name} must not accept {example!r}" for example in accepted]


def find_example_refusal(table: ProgramSpec, registry: ProgramRegistry, text: str) -> str | None:
    """Why a table does not accept a command, in words, or None where it does."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return f"it {script.reason}"
    if len(script.commands) != 1:
        return "it is more than one command"
    words = script.commands[0].words
    found = registry.find(tuple([word.text for word in words]))
    if found is None or found.table is not table:
        return "it is not about it"
    read = parse_path_uses(table, words[found.length :])
    return read if isinstance(read, str) else None
