"""The description of a program's arguments and effects."""

from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.policy.shell.syntax import Word
from handrail.protocol.decisions import Access

# § [policy.commands.reading] What a simple command does, as far as its words tell.

Effect = Literal["proven", "write", "delete", "network", "unproven"]
"""`proven`: only reads. `write`, `delete`: does just that to the paths it uses. `network`: reaches other machines.
`unproven`: may do anything."""


class PathUse(msgspec.Struct, frozen=True):
    """A path that a command names, as it is spelled there."""

    path: str
    access: Access
    is_glob: bool = False
    """A pattern: it stands for whatever matches it."""
    is_certainly_path: bool = True
    """Whether the word is a path for certain; of an unknown program any operand may be one."""


class Classification(msgspec.Struct, frozen=True):
    """What a simple command does, the rule that says so, and why in words."""

    effect: Effect
    rule: str
    reason: str
    uses: tuple[PathUse, ...] = ()
    grant: str = ""
    """The class of commands that a person may allow for good: `git commit`. Empty where none may be."""


class BuiltinDeny(msgspec.Struct, frozen=True):
    """Why a command is never run, whatever the mode: the rule, and what it would do in words."""

    rule: str
    reason: str


# § [policy.tables.form] The form of the tables. A table is data: what a program takes, and nothing that it does
# § not.

Kind = Literal["text", "read", "write", "delete"]
"""What an operand or an option's value is: text that names no file, or a path and what is done to it."""


class ParsedArgs(msgspec.Struct, frozen=True):
    """The words of a command, sorted by its table."""

    options: tuple[tuple[str, str | None], ...]
    """In order, each with its value: ("-n", "5"), ("--all", None). Bundles are taken apart; `-5` is ("-NUM", "5")."""
    operands: tuple[str, ...]
    globs: tuple[int, ...] = ()
    """Which of the operands are patterns: bash puts one word or several in the place of each."""
    ended: int | None = None
    """How many of the operands stand before the `--` that ends the options, where there is one."""
    mixed: bool = False
    """Whether an option stands behind an operand. To programs that do not look there it is an operand too."""


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or one sub-command of it. What is not listed here asks: there are no abbreviations."""

    name: str
    """`sort`, or with its sub-command `git log`, `git stash list`."""
    also: tuple[str, ...] = ()
    """Other names of the same program."""
    flags: str = ""
    """Short options without a value, a letter each; they may be bundled."""
    values: str = ""
    """Short options with a value (text), a letter each; it may be in the same word."""
    attached: str = ""
    """Short options whose value, if there is one, can only be in the same word: `-I`, `-Iseconds`."""
    long_flags: str = ""
    """Long options without a value, without their dashes, separated by blanks; also `name=` where a value may follow
    an equals sign but never as a word of its own (`color=`), and `name==` where it must."""
    long_values: str = ""
    """Long options with a value (text), in the same word behind `=` or in the next one."""
    paths: dict[str, Kind] = {}
    """Those options whose value is a path: {"-f": "read", "--file": "read"}. They need not be listed above."""
    numbers: bool = False
    """Whether `-5` is an option (head, tail, git log)."""
    operands: Kind | None = "read"
    """What operands are; None where there may be none."""
    first: Kind | None = None
    """What the first operand is, where it is something else, such as grep's pattern …"""
    unless_options: frozenset[str] = frozenset()
    """… but not when one of these options is there (grep -e)."""
    last: Kind | None = None
    """What the last of at least two operands is, where it is something else, such as cp's destination; also subject to
    `unless`."""
    most: int | None = None
    """How many operands there may be, where one more would be something else, such as the output of uniq."""
    always_ends: Callable[[ParsedArgs], bool] | None = None
    """Whether it ends also where it reads a device that does not (/dev/zero)."""
    guards: str = ""
    """Options that a proven command runs with besides its own: they keep it from starting other programs."""
    effect: Effect = "proven"
    reject: Callable[[ParsedArgs], str | None] | None = None
    """Why a command that the rest of the table accepts asks all the same, in words, or None."""
    extra_paths: Callable[[ParsedArgs], tuple[PathUse, ...]] | None = None
    """Paths that are neither a whole operand nor a whole value: git's `HEAD:src/a.py`, dd's `of=disk.img`."""
    custom_parser: Callable[[tuple[Word, ...]], tuple[PathUse, ...] | str] | None = None
    """Reads the words of a program that has rules of its own (find, test): the paths it uses, or why it asks in words.
    Where it is given, only the names and examples of the table count besides."""
    grantable: bool = True
    """Whether a person may allow for good what the table does not accept; not so where an option runs a program."""
    match: tuple[str, ...] = ()
    """Commands, whole, that must be accepted …"""
    no_match: tuple[str, ...] = ()
    """… and must not. Both are checked when the tables are loaded."""


class ProgramClass(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that nobody can judge by their words: a named class that always asks."""

    rule: str
    """`exec.interpreter`"""
    reason: str
    """Why it asks, in words: runs the code it is given."""
    programs: frozenset[str]
    """Each `make`, or with its sub-command `cargo test`; the longest that a command begins with counts."""
    effect: Effect = "unproven"
    grantable: bool = False
    """Whether a person may allow one of them for good, with its sub-command; never so for interpreters and wrappers."""
