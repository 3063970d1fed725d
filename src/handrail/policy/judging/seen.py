"""Judges a command outside the provable subset, by what the display parser saw in it: it can only get stricter."""

from handrail.policy.commands.reader import read_command
from handrail.policy.commands.reading import Reading
from handrail.policy.judging.case import Case
from handrail.policy.judging.inner import refused
from handrail.policy.judging.judged import Judged, denied, moded
from handrail.policy.judging.steps import by_effect
from handrail.policy.script import as_simple, start_of, with_inner
from handrail.policy.shell.lexer import MOST_BYTES
from handrail.policy.shell.script import Outside
from handrail.protocol.decision import SeenCommand

WHOLE = "exec.syntax"
"""The rule of the part that is about the command as a whole."""
_MOST_SHOWN = 50
"""Parts of a decision; what is behind them is judged all the same."""
_REDIRECTS = Reading("write", "fs.write", "it writes where it is redirected to")


def judge_unreadable(outside: Outside, case: Case) -> list[Judged]:
    """The command as a whole, then each simple command that was seen in it."""
    fact, rules = case.fact, case.rules
    if fact.seen is None or (outside.too_large and len(fact.text.encode()) <= MOST_BYTES):
        return [denied(fact.text, "exec.limit", f"it {outside.reason}, and what is in it cannot be seen")]
    if rules.restriction is not None:
        return [
            denied(fact.text, "restricted.command", f"it {outside.reason}; the restricted profile wants plain words")
        ]
    why = f"it {outside.reason}, so nothing proves what it does"
    whole = moded(fact.text, WHOLE, "unproven", rules.mode, undo=case.undo, why=why)
    folder = start_of(fact.seen, fact.cwd)
    parts = [_judge_seen(one, folder, case) for one in fact.seen]
    later = [part for part in parts[_MOST_SHOWN:] if part.firm]
    return [whole, *parts[:_MOST_SHOWN], *later[:_MOST_SHOWN]]


def refused_inside(case: Case) -> list[Judged]:
    """What the display parser saw in the strings of a command that can be read, as far as it makes it stricter."""
    if case.fact.seen is None:
        return [denied(case.fact.text, "exec.limit", "it starts a command that cannot be looked into")]
    folder = start_of(case.fact.seen, case.fact.cwd)
    found = [refused(one, (folder,), _shown(one), case, literal=False) for one in with_inner(case.fact.seen)]
    return [one for one in found if one is not None][:_MOST_SHOWN]


def _judge_seen(seen: SeenCommand, folder: str | None, case: Case) -> Judged:
    shown = _shown(seen)
    for one in with_inner((seen,)):
        found = refused(one, (folder,), shown, case, literal=False)
        if found is not None:
            return found
    reading = read_command(as_simple(seen.words)) if seen.words else _REDIRECTS
    return by_effect(reading, shown, case)


def _shown(seen: SeenCommand) -> str:
    return seen.text or " ".join(seen.words)
