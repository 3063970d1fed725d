"""The examples of a rule: what it must be about, and what it must not."""

from handrail.policy.rules.book import RuleBook, build_rulebook
from handrail.policy.rules.operands import is_inside_by_spelling
from handrail.policy.rules.rule import Rule
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.script import Unparsed


def list_failing_examples(rule: Rule) -> list[str]:
    """What is wrong with the examples of a rule whose pattern is sound, in words."""
    book = build_rulebook((rule,))
    failing = [_failure(rule, book, example, wanted=True) for example in rule.match]
    failing += [_failure(rule, book, example, wanted=False) for example in rule.no_match]
    return [problem for problem in failing if problem]


def _failure(rule: Rule, book: RuleBook, example: str, *, wanted: bool) -> str:
    found = book.path(rule.tool, (example,)) is not None if rule.tool != "exec" else _is_about(rule, book, example)
    if isinstance(found, str):
        return f"cannot check its example {example!r}: it {found}"
    if found == wanted:
        return ""
    return f"should match its example {example!r}" if wanted else f"should not match its example {example!r}"


def _is_about(rule: Rule, book: RuleBook, example: str) -> bool | str:
    """An allow rule must be about every command of the example, a stricter one about any. Or why it cannot be read."""
    script = lex(example)
    if isinstance(script, Unparsed):
        return False if rule.verdict == "allow" else script.reason
    commands = [tuple(word.text for word in command.words) for command in script.commands]
    found = [book.command(words, is_inside_by_spelling) is not None for words in commands]
    return all(found) if rule.verdict == "allow" else any(found)
