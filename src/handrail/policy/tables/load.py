"""One registry of all tables and groups, by the words that a command begins with."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TypeVar

import msgspec

from handrail.policy.tables.form import ProgramClass, ProgramSpec
from handrail.policy.tables.groups import GROUPS

# Which programs the tables of a module speak for. A command pays only for the module that it needs: all of them take
# as long as a hundred commands.
_MODULES = {
    "binary": "od hexdump hd xxd strings nm readelf objdump size zipinfo gzip unzip",
    "builtin": "echo printf test [ true false : exit pwd type command help umask ulimit which sleep expr bc factor",
    "columns": "cut tr sort uniq comm join paste column shuf tsort numfmt seq",
    "comparing": "diff cmp",
    "data": "jq yq",
    "digests": "sha256sum md5sum sha1sum sha224sum sha384sum sha512sum b2sum cksum sum base64 base32 basenc",
    "files": "ls dir vdir stat du df tree file realpath readlink basename dirname",
    "find": "find",
    "git": "git",
    "search": "grep egrep fgrep rg fd fdfind",
    "sed": "sed",
    "system": "date cal ncal env printenv id whoami logname arch groups users uname hostname uptime nproc getconf "
    "locale ps pgrep free lscpu tty who w",
    "text": "cat head tail wc nl tac rev fold fmt expand unexpand iconv",
    "writing": "rm rmdir unlink mv cp ln install rsync mkdir touch tee truncate chmod chown chgrp dd",
}
_FOR_MANY = "versions"
"""The module whose table speaks for programs of all kinds."""

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
    return _classes().extend(table for module in (*_MODULES, _FOR_MANY) for table in _tables(module))


def load_registry(program: str) -> ProgramRegistry:
    """As much of the registry as a command of this program needs; put together when the first one is judged."""
    return _part(_modules().get(program))


@cache
def _part(module: str | None) -> ProgramRegistry:
    return _part(None).extend(_tables(module)) if module else _classes().extend(_tables(_FOR_MANY))


@cache
def _classes() -> ProgramRegistry:
    return ProgramRegistry((), GROUPS)


@cache
def _modules() -> dict[str, str]:
    return {program: module for module, programs in _MODULES.items() for program in programs.split()}


def _tables(module: str) -> tuple[ProgramSpec, ...]:
    return import_module(f"handrail.policy.tables.{module}").TABLES
