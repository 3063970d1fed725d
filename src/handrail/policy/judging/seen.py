"""Judges a command outside the provable subset, by what the display parser saw in it: it can only get stricter."""

from handrail.policy.commands.reader import read_command
from handrail.policy.commands.reading import Reading
from handrail.policy.commands.wrapped import inner_commands
from handrail.policy.judging.case import Case
from handrail.policy.judging.judged import Judged, denied, moded, ruled
from handrail.policy.judging.steps import by_effect, never_run
from handrail.policy.judging.uses import judge_use
from handrail.policy.names import protection
from handrail.policy.script import as_simple, seen_uses, start_of
from handrail.policy.shell.lexer import MOST_BYTES
from handrail.policy.shell.script import Outside
from handrail.protocol.decision import SeenCommand

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
    whole = moded(fact.text, "exec.syntax", "unproven", rules.mode, undo=case.undo, why=why)
    folder = start_of(fact.seen, fact.cwd)
    parts = [_judge_seen(one, folder, case) for one in fact.seen]
    refused = [part for part in parts[_MOST_SHOWN:] if part.part.decision != "allow"]
    return [whole, *parts[:_MOST_SHOWN], *refused[:_MOST_SHOWN]]


def _judge_seen(seen: SeenCommand, folder: str | None, case: Case) -> Judged:
    shown = seen.text or " ".join(seen.words)
    if seen.forks_itself:
        return denied(shown, "deny.fork-bomb", "it starts itself again and again")
    never = never_run((seen.words, *inner_commands(seen.words)), seen.writes, shown)
    if never is not None:
        return never
    reading = read_command(as_simple(seen.words)) if seen.words else _REDIRECTS
    secret = next((use.path for use in reading.uses if protection(use.path) == "credential"), None)
    if secret is not None:
        return denied(shown, "fs.secret", f"credentials are neither read nor written: {secret}")
    return _refused_path(seen, folder, shown, case) or _by_rule(seen, shown, case) or by_effect(reading, shown, case)


def _refused_path(seen: SeenCommand, folder: str | None, shown: str, case: Case) -> Judged | None:
    program = seen.words[0] if seen.words else ""
    for use in seen_uses(seen, folder):
        found = judge_use(use, program, shown, case)
        if found is not None and found.part.decision == "deny":
            return found
    return None


def _by_rule(seen: SeenCommand, shown: str, case: Case) -> Judged | None:
    for words in (seen.words, *inner_commands(seen.words)):
        rule = case.book.stricter(words)
        if rule is not None:
            return ruled(shown, rule)
    return None
