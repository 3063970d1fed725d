"""Judges a command as a whole."""

from msgspec.structs import replace

from handrail.policy.configuration import PolicyConfig
from handrail.policy.judging.case import PolicyContext, build_context
from handrail.policy.judging.judged import PartVerdict, deny, judge_by_mode
from handrail.policy.judging.seen import WHOLE, judge_displayed_commands, judge_unparsed
from handrail.policy.judging.steps import judge_step
from handrail.policy.rules.book import build_rulebook
from handrail.policy.script import CommandStep, parse_steps
from handrail.policy.shell.script import Unparsed
from handrail.protocol.decision import CommandFact, DecisionPart, Facts


def judge_command(fact: CommandFact, facts: Facts, rules: PolicyConfig) -> list[PartVerdict]:
    """A part for every simple command, and for what holds of the command as a whole."""
    case = build_context(fact, facts, rules, build_rulebook(rules.rules))
    steps = parse_steps(fact.text, fact.cwd, fact.there)
    if isinstance(steps, Unparsed):
        judged = judge_unparsed(steps, case)
    else:
        judged = [judge_step(step, case) for step in steps]
        judged += _together(steps, case)
        judged += judge_displayed_commands(case) if any(step.unread for step in steps) else []
    if (fact.background or fact.yields) and rules.restriction is not None:
        judged.append(deny("background", "restricted.command", "the restricted profile leaves nothing running"))
    elif fact.background:
        judged.append(judge_by_mode("background", "exec.background", "process", rules.mode, undo=False))
    judged = _with_hosts(judged, case) if fact.hosts or fact.unopened else judged
    return judged if fact.tier > 0 else [_unsandboxed(one) for one in judged]


def _together(steps: tuple[CommandStep, ...], case: PolicyContext) -> list[PartVerdict]:
    if len(steps) > 1 and case.rules.restriction is not None:
        return [deny(case.fact.text, "restricted.command", "the restricted profile runs one command at a time")]
    deleted = {use.path for step in steps for use in step.uses if use.access == "delete" and not use.is_glob}
    if len(deleted) > case.rules.bulk_deleted:
        why = f"it deletes {len(deleted)} paths at once"
        return [judge_by_mode(case.fact.text, "fs.bulk", "bulk", case.rules.mode, undo=case.undo, why=why)]
    return []


def _with_hosts(judged: list[PartVerdict], case: PolicyContext) -> list[PartVerdict]:
    """Who is asked is told of the hosts, also where what reaches them stands inside: `timeout 9 curl …`."""
    words = case.network
    told = [one.part.reason.endswith(words) for one in judged]
    if any(told) and judged[0].part.rule != WHOLE:
        return judged
    place = next((place for place, one in enumerate(judged) if one.part.decision == "confirm"), 0)
    return [*judged[:place], judged[place].with_remark(words), *judged[place + 1 :]]


def _unsandboxed(judged: PartVerdict) -> PartVerdict:
    """Without a sandbox nothing contains a command, so even what is proven asks, and who is asked is told."""
    if judged.part.decision == "deny":
        return judged
    if judged.part.decision == "confirm":
        reason = f"{judged.part.reason}; and there is no sandbox here"
        return replace(judged, part=replace(judged.part, reason=reason, grant=""))
    reason = "there is no sandbox here, so every command asks"
    return PartVerdict(
        DecisionPart(subject=judged.part.subject, decision="confirm", rule="exec.no-sandbox", reason=reason)
    )
