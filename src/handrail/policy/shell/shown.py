"""A parsed command as a person reads it."""

import re

from handrail.policy.shell.script import SimpleCommand, Word

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
