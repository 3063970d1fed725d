"""Words and commands of a parsed script."""

import re
from typing import Literal

import msgspec

# § [policy.shell.script] A command inside the provable subset: simple commands and how they are joined. Nothing in
# § it is left to expand.

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


# § [policy.shell.rewrite] Writes a script for bash so that nothing is left to interpret: bash runs this, never the
# § text that was read.


def to_bash(script: Script) -> str:
    """Every word in single quotes but for its globs, every operator from the fixed list."""
    text = _command(script.commands[0])
    for join, command in zip(script.joins, script.commands[1:], strict=True):
        text += f" {join} {_command(command)}"
    return text


def _command(command: SimpleCommand) -> str:
    words = [_word(word) for word in command.words]
    return " ".join([*words, *(_redirection(one) for one in command.redirections)])


def _redirection(redirection: Redirection) -> str:
    target = redirection.target
    return redirection.operator if target is None else f"{redirection.operator}{_word(target)}"


def _word(word: Word) -> str:
    text, globs = word.text, word.globs
    if not globs:
        return _quoted(text)
    parts, done, number = list[str](), 0, 0
    while number < len(globs):
        start = globs[number]
        # What stands between brackets stays as it is: in quotes, a-z would be three signs.
        number += 2 if text[start] == "[" else 1
        end = globs[number - 1] + 1
        parts += (_quoted(text[done:start]) if start > done else "", text[start:end])
        done = end
    return "".join(parts) + (_quoted(text[done:]) if text[done:] else "")


def _quoted(text: str) -> str:
    escaped = text.replace("'", r"'\''")
    return f"'{escaped}'"


# § [policy.shell.shown] A parsed command as a person reads it.

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]+")


def render_command(command: SimpleCommand) -> str:
    """The command on one line, quoted where it must be."""
    texts = [_shown_word(word) for word in command.words]
    for redirection in command.redirections:
        target = "" if redirection.target is None else f" {_shown_word(redirection.target)}"
        texts.append(redirection.operator + target)
    return " ".join(texts)


def _shown_word(word: Word) -> str:
    if word.globs or _PLAIN.fullmatch(word.text):
        return word.text
    return "'" + word.text.replace("'", "'\\''") + "'"
