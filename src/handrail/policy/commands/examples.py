"""Checks the examples that a table carries: what it says of them must come out."""

from handrail.policy.commands.options import parse_path_uses
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.script import Unparsed
from handrail.policy.tables.form import ProgramSpec
from handrail.policy.tables.load import ProgramRegistry


def list_example_faults(table: ProgramSpec, registry: ProgramRegistry) -> list[str]:
    """Which examples come out wrong, in words."""
    wrong = [(example, find_example_refusal(table, registry, example)) for example in table.match]
    found = [f"the table of {table.name} must accept {example!r}, but {why}" for example, why in wrong if why]
    accepted = [example for example in table.no_match if not find_example_refusal(table, registry, example)]
    return found + [f"the table of {table.name} must not accept {example!r}" for example in accepted]


def find_example_refusal(table: ProgramSpec, registry: ProgramRegistry, text: str) -> str | None:
    """Why a table does not accept a command, in words, or None where it does."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return f"it {script.reason}"
    if len(script.commands) != 1:
        return "it is more than one command"
    words = script.commands[0].words
    found = registry.find(tuple([word.text for word in words]))
    if found is None or found.table is not table:
        return "it is not about it"
    read = parse_path_uses(table, words[found.length :])
    return read if isinstance(read, str) else None
