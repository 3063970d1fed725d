"""Judges a command outside the provable subset, by what the display parser saw in it: it can only get stricter."""

from handrail.policy.commands.reader import classify
from handrail.policy.commands.reading import Classification
from handrail.policy.judging.case import PolicyContext
from handrail.policy.judging.inner import judge_inner_command
from handrail.policy.judging.judged import PartVerdict, deny, judge_by_mode
from handrail.policy.judging.steps import judge_effect
from handrail.policy.script import build_simple_command, expand_inner_commands, find_start_folder
from handrail.policy.shell.lexer import MAX_SCRIPT_BYTES
from handrail.policy.shell.script import Unparsed
from handrail.protocol.decision import DisplayedCommand

WHOLE = "exec.syntax"
"""The rule of the part that is about the command as a whole."""
_MAX_SHOWN_PARTS = 50
"""Parts of a decision; what is behind them is judged all the same."""
_REDIRECTS = Classification("write", "fs.write", "it writes where it is redirected to")


def judge_unparsed(outside: Unparsed, case: PolicyContext) -> list[PartVerdict]:
    """The command as a whole, then each simple command that was seen in it."""
    fact, rules = case.fact, case.rules
    if fact.seen is None or (outside.too_large and len(fact.text.encode()) <= MAX_SCRIPT_BYTES):
        return [deny(fact.text, "exec.limit", f"it {outside.reason}, and what is in it cannot be seen")]
    if rules.restriction is not None:
        return [deny(fact.text, "restricted.command", f"it {outside.reason}; the restricted profile wants plain words")]
    why = f"it {outside.reason}, so nothing proves what it does"
    whole = judge_by_mode(fact.text, WHOLE, "unproven", rules.mode, undo=case.undo, why=why)
    folder = find_start_folder(fact.seen, fact.cwd)
    parts = [_judge_seen(one, folder, case) for one in fact.seen]
    later = [part for part in parts[_MAX_SHOWN_PARTS:] if part.final]
    return [whole, *parts[:_MAX_SHOWN_PARTS], *later[:_MAX_SHOWN_PARTS]]


def judge_displayed_commands(case: PolicyContext) -> list[PartVerdict]:
    """What the display parser saw in the strings of a command that can be read, as far as it makes it stricter."""
    if case.fact.seen is None:
        return [deny(case.fact.text, "exec.limit", "it starts a command that cannot be looked into")]
    folder = find_start_folder(case.fact.seen, case.fact.cwd)
    found = [
        judge_inner_command(one, (folder,), _shown(one), case, literal=False)
        for one in expand_inner_commands(case.fact.seen)
    ]
    return [one for one in found if one is not None][:_MAX_SHOWN_PARTS]


def _judge_seen(seen: DisplayedCommand, folder: str | None, case: PolicyContext) -> PartVerdict:
    shown = _shown(seen)
    for one in expand_inner_commands((seen,)):
        found = judge_inner_command(one, (folder,), shown, case, literal=False)
        if found is not None:
            return found
    reading = classify(build_simple_command(seen.words)) if seen.words else _REDIRECTS
    return judge_effect(reading, shown, case)


def _shown(seen: DisplayedCommand) -> str:
    return seen.text or " ".join(seen.words)
