"""One registry of all tables and groups, by the words that a command begins with."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec

from handrail.policy.tables import (
    binary,
    builtin,
    columns,
    comparing,
    data,
    digests,
    files,
    find,
    git,
    groups,
    search,
    sed,
    system,
    text,
    versions,
    writing,
)
from handrail.policy.tables.form import Group, Table

_TABLES = (
    text.TABLES, columns.TABLES, comparing.TABLES, digests.TABLES, files.TABLES, search.TABLES, find.TABLES,
    data.TABLES, sed.TABLES, binary.TABLES, builtin.TABLES, system.TABLES, versions.TABLES,
    git.TABLES, writing.TABLES,
)  # fmt: skip
_GROUPS: tuple[tuple[Group, ...], ...] = (groups.GROUPS,)

_Name = tuple[str, ...]


class Found(msgspec.Struct, frozen=True):
    """What is known of the program that a command begins with."""

    table: Table | None
    length: int
    """How many words the name of the table has."""
    group: Group | None
    """What the program is where no table accepts the command."""
    group_length: int
    """How many words the name of the group has."""
    has_parts: bool
    """Whether the program has sub-commands."""


class Registry:
    """Tables and groups by name. A name may have a table and a group: what the table does not accept is the group's."""

    def __init__(self, tables: Iterable[Table], groups: Iterable[Group]) -> None:
        self.tables: dict[_Name, Table] = {}
        self.groups: dict[_Name, Group] = {}
        for table in tables:
            for name in (table.name, *table.also):
                _add(self.tables, name, table)
        for group in groups:
            for name in sorted(group.programs):
                _add(self.groups, name, group)
        self._longest: dict[str, int] = {}
        for name in (*self.tables, *self.groups):
            self._longest[name[0]] = max(len(name), self._longest.get(name[0], 0))

    def find(self, words: _Name) -> Found | None:
        """The longest names that the words begin with; None where not even the program is known."""
        length, grouped = self._length(self.tables, words), self._length(self.groups, words)
        group = self.groups.get(words[:grouped])
        if group is None:  # python3.11 and gcc-12 are of the class of python and gcc, but no table speaks for them
            plain = (words[0].rstrip("0123456789.-"), *words[1:])
            grouped = self._length(self.groups, plain)
            group = self.groups.get(plain[:grouped])
        longest = self._longest.get(words[0], 0)
        found = Found(self.tables.get(words[:length]), length, group, grouped, longest > 1)
        return found if longest or group else None

    def _length(self, entries: Mapping[_Name, Table] | Mapping[_Name, Group], words: _Name) -> int:
        longest = min(self._longest.get(words[0], 0), len(words))
        return next((length for length in range(longest, 0, -1) if words[:length] in entries), 0)


_Entry = TypeVar("_Entry", Table, Group)


def _add(entries: dict[_Name, _Entry], name: str, entry: _Entry) -> None:
    words = tuple(name.split())
    if words in entries:
        raise ValueError(f"{name} is in two tables")
    entries[words] = entry


@lru_cache(maxsize=1)
def registry() -> Registry:
    """All that is built in, put together when the first command is judged."""
    return Registry(
        (table for tables in _TABLES for table in tables), (group for groups in _GROUPS for group in groups)
    )
