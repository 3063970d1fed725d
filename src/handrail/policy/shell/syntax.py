"""The syntax tree of a script in the provable subset of bash."""

import re
from collections.abc import Callable
from typing import Literal

import msgspec

Join = Literal["&&", "||", ";", "|"]
Operator = Literal["<", ">", ">>", "2>", "2>>", "&>", "&>>", "2>&1", ">&2"]


class Word(msgspec.Struct, frozen=True):
    """One argument as the program gets it."""

    text: str
    globs: tuple[int, ...] = ()
    """Positions of the unquoted `* ? [ ]`. bash expands nothing else."""


class Redirection(msgspec.Struct, frozen=True):
    """A redirected stream. `2>&1` and `>&2` have no target."""

    operator: Operator
    target: Word | None = None


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program with its arguments. The first word exists and is not a glob."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()
    prefix: tuple[str, ...] = ()
    """Words before the program that change nothing: `time`, and variables such as `LC_ALL=C`."""

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple([word.text for word in self.words])


class Script(msgspec.Struct, frozen=True):
    """Simple commands in order. `joins[n]` stands between commands n and n + 1."""

    commands: tuple[SimpleCommand, ...]
    joins: tuple[Join, ...] = ()


class Unparsed(msgspec.Struct, frozen=True):
    """Why a text is outside the provable subset."""

    reason: str
    """Completes a sentence that begins with "it": "uses a variable or a substitution ($)"."""
    at: int
    """Position of the character that was refused."""
    too_large: bool = False
    """True if the text exceeds a limit, so that the strictest decision applies."""


def to_bash(script: Script) -> str:
    """The text for bash, which never gets the original. Globs are the only signs outside single quotes."""
    joins = ("", *(f" {join} " for join in script.joins))
    commands = [_render(command, _quote_around_globs, "") for command in script.commands]
    return "".join(join + command for join, command in zip(joins, commands, strict=True))


def render_command(command: SimpleCommand) -> str:
    """The command on one line for people, quoted where needed."""
    return _render(command, _quote_if_needed, " ")


def _render(command: SimpleCommand, render_word: Callable[[Word], str], space: str) -> str:
    texts = [*command.prefix, *(render_word(word) for word in command.words)]
    for redirection in command.redirections:
        target = "" if redirection.target is None else space + render_word(redirection.target)
        texts.append(redirection.operator + target)
    return " ".join(texts)


def _quote_around_globs(word: Word) -> str:
    text, globs = word.text, word.globs
    if not globs:
        return _quote(text)
    parts, done, number = list[str](), 0, 0
    while number < len(globs):
        start = globs[number]
        # Brackets stay unquoted with their content: quoted, a-z would be three characters.
        number += 2 if text[start] == "[" else 1
        end = globs[number - 1] + 1
        parts += (_quote(text[done:start]) if start > done else "", text[start:end])
        done = end
    return "".join(parts) + (_quote(text[done:]) if text[done:] else "")


_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]+")


def _quote_if_needed(word: Word) -> str:
    return word.text if word.globs or _PLAIN.fullmatch(word.text) else _quote(word.text)


def _quote(text: str) -> str:
    escaped = text.replace("'", r"'\''")
    return f"'{escaped}'"
