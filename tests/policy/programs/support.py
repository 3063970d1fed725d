"""Parses and classifies the commands of tests."""

from handrail.policy.programs.registry import ProgramRegistry, build_registry, classify, find_example_refusal
from handrail.policy.programs.spec import Classification, ProgramSpec
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, SimpleCommand, Word

TABLES: list[ProgramSpec] = list({id(table): table for table in build_registry().tables.values()}.values())


def command(text: str) -> SimpleCommand:
    """The one command of a text that is inside the subset."""
    script = lex(text)
    assert isinstance(script, Script), (text, script)
    (only,) = script.commands
    return only


def words(*texts: str) -> tuple[Word, ...]:
    """Words without patterns."""
    return tuple(Word(text) for text in texts)


def read(text: str) -> Classification:
    """What policy says of a command."""
    return classify(command(text))


def used(text: str) -> list[str]:
    """The paths of a command: r, w or d, then the path; ~ where it is uncertain, * where it is a pattern."""
    return [
        f"{use.access[0]}{'' if use.is_certainly_path else '~'}{'*' if use.is_glob else ''} {use.path}"
        for use in read(text).uses
    ]


def list_example_faults(table: ProgramSpec, registry: ProgramRegistry) -> list[str]:
    """The examples of a table that come out wrong."""
    wrong = [(example, find_example_refusal(table, registry, example)) for example in table.match]
    faults = [f"the table of {table.name} must accept {example!r}, but {why}" for example, why in wrong if why]
    accepted = [example for example in table.no_match if not find_example_refusal(table, registry, example)]
    return faults + [f"the table of {table.name} must not accept {example!r}" for example in accepted]
