"""The pattern of a rule about commands: the first words of one simple command, without any wildcard."""

import re

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,+@%-]+(?: +[A-Za-z0-9_./:=,+@%-]+)*")


class PatternError(ValueError):
    """A pattern that no rule can be made of; says why, in words."""


def command_words(pattern: str) -> tuple[str, ...]:
    """The words of a pattern, or a PatternError."""
    if not pattern.strip():
        raise PatternError("the pattern is empty: write the first words of a command")
    if not _PLAIN.fullmatch(pattern.strip()):
        raise PatternError(f"{pattern!r} is not the beginning of one simple command")
    return tuple(pattern.split())
