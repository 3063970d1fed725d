"""Commands of tests, read as policy reads them."""

from handrail.policy.programs.registry import build_registry, classify
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
