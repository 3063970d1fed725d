"""Reads one command as policy does."""

from handrail.policy.programs.registry import classify
from handrail.policy.programs.spec import Classification
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script


def reading(text: str) -> Classification:
    """What a text of one command does."""
    script = lex(text)
    assert isinstance(script, Script), script
    assert len(script.commands) == 1
    return classify(script.commands[0])


def used(text: str) -> list[str]:
    """The paths of a command: r, w or d, then the path; ~ where it is uncertain, * where it is a pattern."""
    return [
        f"{use.access[0]}{'' if use.is_certainly_path else '~'}{'*' if use.is_glob else ''} {use.path}"
        for use in reading(text).uses
    ]
