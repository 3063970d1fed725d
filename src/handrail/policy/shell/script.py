"""A command inside the provable subset: simple commands and how they are joined. Nothing in it is left to expand."""

from typing import Literal

import msgspec

Join = Literal["&&", "||", ";", "|"]
Operator = Literal["<", ">", ">>", "2>", "2>>", "&>", "&>>", "2>&1", ">&2"]


class Word(msgspec.Struct, frozen=True):
    """One argument as the program gets it."""

    text: str
    globs: tuple[int, ...] = ()
    """Where in the text an unquoted `* ? [ ]` stands that bash may expand; nothing else is ever expanded."""


class Redirection(msgspec.Struct, frozen=True):
    """Where a stream goes to or comes from; `2>&1` and `>&2` have no target."""

    operator: Operator
    target: Word | None = None


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program and its arguments. There is always a first word, and it is no glob."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()


class Script(msgspec.Struct, frozen=True):
    """Simple commands in order; `joins[n]` stands between the commands n and n + 1."""

    commands: tuple[SimpleCommand, ...]
    joins: tuple[Join, ...] = ()


class Unparsed(msgspec.Struct, frozen=True):
    """Why a text is not in the subset; nobody can then say from the text alone what bash would do."""

    reason: str
    """In words, after "it ": uses a variable or a substitution ($)."""
    at: int
    """The character."""
    too_large: bool = False
    """A limit was reached: the answer must be the strictest there is."""
