"""The pattern of a rule about commands: the first words of one simple command, without any wildcard."""

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.script import Script, Unparsed


class PatternError(ValueError):
    """A pattern that no rule can be made of; says why, in words."""


def parse_command_pattern(pattern: str) -> tuple[str, ...]:
    """The words of a pattern, or a PatternError."""
    if not pattern.strip():
        raise PatternError("the pattern is empty; write the first words of a command")
    script = lex(pattern)
    if isinstance(script, Unparsed):
        raise PatternError(f"the pattern {pattern!r} cannot be read: it {script.reason}")
    return _only_words(pattern, script)


def _only_words(pattern: str, script: Script) -> tuple[str, ...]:
    command = script.commands[0]
    if len(script.commands) > 1 or command.redirections:
        raise PatternError(f"the pattern {pattern!r} is more than one simple command; write a rule for each")
    if any(word.globs for word in command.words):
        raise PatternError(f"the pattern {pattern!r} has a wildcard; a rule is about the first words, just as they are")
    return tuple(word.text for word in command.words)
