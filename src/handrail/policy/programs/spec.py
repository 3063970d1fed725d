"""The declared arguments of a program, with their effects."""

from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.policy.shell.syntax import Word
from handrail.protocol.decisions import Access

Effect = Literal["proven", "write", "delete", "network", "unproven"]
"""`proven`: only reads. `write`, `delete`: does only that, to the paths it uses. `network`: reaches other machines.
`unproven`: may do anything."""
Kind = Literal["text", "read", "write", "delete"]
"""The kind of an operand or an option's value: text that names no file, or a path and its use."""
SINKS = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr"])
"""Devices that anything may be written to."""
SOURCES = frozenset(["/dev/null", "/dev/stdin"])
"""Devices that anything may read. Reading /dev/stdout would wait forever."""


class PathUse(msgspec.Struct, frozen=True):
    """A path as a command spells it."""

    path: str
    access: Access
    is_glob: bool = False
    is_certainly_path: bool = True
    """False for a word that may be a path, such as an operand of an unknown program."""


class Classification(msgspec.Struct, frozen=True):
    """The effect of a simple command, with the rule and the reason."""

    effect: Effect
    rule: str
    reason: str
    uses: tuple[PathUse, ...] = ()
    grant: str = ""
    """The class of commands that a grant may cover, such as `git commit`. Empty if there is none."""


class ParsedArgs(msgspec.Struct, frozen=True):
    """Options and operands of a command, by the table of its program."""

    options: tuple[tuple[str, str | None], ...]
    """In order, with values: ("-n", "5"), ("--all", None). Bundles are split; `-5` is ("-NUM", "5")."""
    operands: tuple[str, ...]
    globs: tuple[int, ...] = ()
    """Positions of the operands that are patterns. bash replaces each by one word or several."""
    ended: int | None = None
    """Number of operands before `--`. None without `--`."""
    mixed: bool = False
    """True if an option follows an operand. Some programs take that option for an operand."""

    def has_option(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)


class ProgramSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One program or sub-command. A command with anything that is not listed needs approval."""

    name: str
    """`sort`, or with its sub-command `git log`, `git stash list`."""
    also: tuple[str, ...] = ()
    """Other names of the same program."""
    flags: str = ""
    """Letters of short options without a value. They may be bundled."""
    values: str = ""
    """Letters of short options with a text value, in the same word or the next."""
    attached: str = ""
    """Letters of short options whose value, if any, is in the same word: `-I`, `-Iseconds`."""
    long_flags: str = ""
    """Long options without a value, without dashes, separated by blanks. `name=` may have a value behind an equals
    sign, `name==` must have one. Neither takes the next word."""
    long_values: str = ""
    """Long options with a text value, behind `=` or in the next word."""
    paths: dict[str, Kind] = {}
    """Options whose value is a path: {"-f": "read", "--file": "read"}. They need not be listed above."""
    numbers: bool = False
    """Whether `-5` is an option, as for head."""
    operands: Kind | None = "read"
    """The kind of operands. None if the program takes none."""
    first: Kind | None = None
    """The kind of the first operand if it differs, such as grep's pattern."""
    unless_options: frozenset[str] = frozenset()
    """With one of these options (grep -e), `first` and `last` do not apply."""
    last: Kind | None = None
    """The kind of the last of at least two operands if it differs, such as cp's destination."""
    most: int | None = None
    """Maximum number of operands. One more would differ, such as uniq's output."""
    always_ends: Callable[[ParsedArgs], bool] | None = None
    """Whether the program ends even if it reads an endless device (/dev/zero)."""
    guards: str = ""
    """Options added to a proven command that keep its program from starting others."""
    only_loopback: bool = False
    """Whether the table holds only if loopback hosts are the session's own network."""
    effect: Effect = "proven"
    reject: Callable[[ParsedArgs], str | None] | None = None
    """Why a command that the rest of the table accepts needs approval."""
    extra_paths: Callable[[ParsedArgs], tuple[PathUse, ...]] | None = None
    """Paths that are parts of operands or values: git's `HEAD:src/a.py`, dd's `of=disk.img`."""
    custom_parser: Callable[[tuple[Word, ...]], tuple[PathUse, ...] | str] | None = None
    """Parses the words of a program with its own syntax (find, test): the paths it uses, or why it needs approval.
    Then only the names and examples of the table count besides."""
    grantable: bool = True
    """Whether a grant may cover what the table does not accept. False if an option runs a program."""
    match: tuple[str, ...] = ()
    """Commands that the table must accept. CI and `handrail policy test` check them."""
    no_match: tuple[str, ...] = ()
    """Commands that the table must not accept."""


class ProgramClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of programs whose arguments do not show their effects. They always need approval."""

    rule: str
    """`exec.interpreter`"""
    reason: str
    """Completes a sentence that begins with the program: "runs the code that it is given"."""
    programs: frozenset[str]
    """`make`, or with its sub-command `cargo test`. The longest match counts."""
    effect: Effect = "unproven"
    grantable: bool = False
    """Whether a grant may cover one of them with its sub-command. False for interpreters and wrappers."""


def to_base_name(word: str) -> str:
    """The name of a program without its path, and without the backslash that bypasses aliases."""
    return word.removeprefix("\\").rpartition("/")[2]
