"""Judges a command as a whole."""

from msgspec.structs import replace

from handrail.policy.configuration import Rules
from handrail.policy.judging.case import Case, case_of
from handrail.policy.judging.judged import Judged, denied, moded
from handrail.policy.judging.seen import WHOLE, judge_unreadable, refused_inside
from handrail.policy.judging.steps import judge_step
from handrail.policy.rules.book import book_of
from handrail.policy.script import Step, read_script
from handrail.policy.shell.script import Outside
from handrail.protocol.decision import CommandFact, DecisionPart, Facts


def judge_command(fact: CommandFact, facts: Facts, rules: Rules) -> list[Judged]:
    """A part for every simple command, and for what holds of the command as a whole."""
    case = case_of(fact, facts, rules, book_of(rules.rules))
    steps = read_script(fact.text, fact.cwd, fact.there)
    if isinstance(steps, Outside):
        judged = judge_unreadable(steps, case)
    else:
        judged = [judge_step(step, case) for step in steps]
        judged += _together(steps, case)
        judged += refused_inside(case) if any(step.unread for step in steps) else []
    if (fact.background or fact.yields) and rules.restriction is not None:
        judged.append(denied("background", "restricted.command", "the restricted profile leaves nothing running"))
    elif fact.background:
        judged.append(moded("background", "exec.background", "process", rules.mode, undo=False))
    judged = _with_hosts(judged, case) if fact.hosts or fact.unopened else judged
    return judged if fact.tier > 0 else [_unsandboxed(one) for one in judged]


def _together(steps: tuple[Step, ...], case: Case) -> list[Judged]:
    if len(steps) > 1 and case.rules.restriction is not None:
        return [denied(case.fact.text, "restricted.command", "the restricted profile runs one command at a time")]
    deleted = {use.path for step in steps for use in step.uses if use.access == "delete" and not use.is_glob}
    if len(deleted) > case.rules.bulk_deleted:
        why = f"it deletes {len(deleted)} paths at once"
        return [moded(case.fact.text, "fs.bulk", "bulk", case.rules.mode, undo=case.undo, why=why)]
    return []


def _with_hosts(judged: list[Judged], case: Case) -> list[Judged]:
    """Who is asked is told of the hosts, also where what reaches them stands inside: `timeout 9 curl …`."""
    words = case.network
    told = [one.part.reason.endswith(words) for one in judged]
    if any(told) and judged[0].part.rule != WHOLE:
        return judged
    place = next((place for place, one in enumerate(judged) if one.part.decision == "confirm"), 0)
    return [*judged[:place], judged[place].adding(words), *judged[place + 1 :]]


def _unsandboxed(judged: Judged) -> Judged:
    """Without a sandbox nothing contains a command, so even what is proven asks, and who is asked is told."""
    if judged.part.decision == "deny":
        return judged
    if judged.part.decision == "confirm":
        reason = f"{judged.part.reason}; and there is no sandbox here"
        return replace(judged, part=replace(judged.part, reason=reason, grant=""))
    reason = "there is no sandbox here, so every command asks"
    return Judged(DecisionPart(subject=judged.part.subject, decision="confirm", rule="exec.no-sandbox", reason=reason))
