"""What active skills leave of a tool: a call outside of that is refused, and one inside is judged as ever."""

from handrail.policy.judging.judged import SKILL, PartVerdict, deny
from handrail.policy.rules.skill_patterns import SkillCommand, parse_skill_command, parse_skill_paths
from handrail.policy.script import FOLLOWED, CommandStep, parse_steps
from handrail.policy.shell.script import Unparsed
from handrail.protocol.decision import CommandFact, Facts, Narrowing, PathFact, ProcessFact
from handrail.protocol.tool import ToolSpec

_MAX_NAMED_PATTERNS = 6
"""Patterns that a reason names."""


def deny_outside_skills(spec: ToolSpec, narrowed: Narrowing, facts: Facts) -> list[PartVerdict]:
    """The parts of a call that no active skill speaks of, each refused; none where all are covered."""
    if facts.command is not None:
        return _command(facts.command, narrowed)
    if facts.process is not None:
        return _process(facts.process, narrowed)
    if not facts.paths and spec.category != "builtin":
        return [_refused(spec.name, narrowed, "what it does cannot be compared with that")]
    return [_refused(fact.path, narrowed) for fact in facts.paths if not _is_covered(fact, narrowed)]


def _command(fact: CommandFact, narrowed: Narrowing) -> list[PartVerdict]:
    steps = parse_steps(fact.text, fact.cwd, fact.there)
    if isinstance(steps, Unparsed):
        why = f"this command {steps.reason}, so nobody can tell what it runs; write plain words"
        return [_refused(fact.text, narrowed, why)]
    covering = [one for pattern in narrowed.patterns if (one := parse_skill_command(pattern)) is not None]
    return [_refused(step.shown, narrowed) for step in steps if not _is_named(step, covering)]


def _is_named(step: CommandStep, covering: list[SkillCommand]) -> bool:
    """A pattern speaks of a command and of what that starts as its words tell, not of files that it is sent into."""
    if step.unread or step.endless or step.writes:
        return False
    if step.reading.rule == FOLLOWED:  # all it does is to say where the next one runs
        return True
    started = (step.words, *(inner.words for inner in step.inner))
    return all(any(one.covers(words) for one in covering) for words in started)


def _process(fact: ProcessFact, narrowed: Narrowing) -> list[PartVerdict]:
    """Who may run some commands only may look at what runs and end it; what a program is sent may be any other."""
    if fact.action != "write":
        return []
    return [_refused(f"write to {fact.command}", narrowed, "what the program makes of it is no such command")]


def _is_covered(fact: PathFact, narrowed: Narrowing) -> bool:
    paths = parse_skill_paths(narrowed.patterns)
    names = {fact.real or fact.outside or fact.path, fact.named or fact.real or fact.path}
    return all(paths.covers(name, folder=fact.kind == "directory") for name in names)


def _refused(subject: str, narrowed: Narrowing, why: str = "") -> PartVerdict:
    first, *others = narrowed.skills
    are = f"the active skills {' and '.join((first, *others))} are" if others else f"the active skill {first} is"
    named, more = narrowed.patterns[:_MAX_NAMED_PATTERNS], len(narrowed.patterns) - _MAX_NAMED_PATTERNS
    only = ", ".join(named) + (f" and {more} more" if more > 0 else "") or "nothing that can be read"
    return deny(subject, f"{SKILL}{first}", f"{are} for {only} only" + (f"; {why}" if why else ""))
