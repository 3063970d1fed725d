"""Decides a shell command, step by step."""

import posixpath

import msgspec
from msgspec.structs import replace

from handrail.policy.builtin_denies import FORK_BOMB, RIGHTS, find_builtin_deny
from handrail.policy.config import PolicyConfig, Rule, find_grant
from handrail.policy.names import find_protection, may_name_credential
from handrail.policy.parse import (
    CommandStep,
    build_simple_command,
    expand_inner_commands,
    find_start_folder,
    list_displayed_uses,
    parse_steps,
    to_fact_use,
    to_workspace_path,
)
from handrail.policy.programs.registry import classify
from handrail.policy.programs.spec import Classification, PathUse, to_base_name
from handrail.policy.rules.command_match import build_prefix, is_about
from handrail.policy.rules.rulebook import MCP_PREFIX, RuleBook, build_rulebook
from handrail.policy.shell.lexer import MAX_SCRIPT_BYTES
from handrail.policy.shell.syntax import Unparsed
from handrail.policy.verdict import (
    ACCESSES,
    GRANTED,
    PartVerdict,
    allow,
    ask,
    deny,
    deny_credential,
    drop_grant,
    judge_by_mode,
    judge_by_rule,
    judge_path,
    pick_strictest,
    restrict_command,
    restrict_path,
)
from handrail.policy.wrappers import can_run_code, has_program_option
from handrail.protocol.decisions import Access, CommandFact, DecisionPart, DisplayedCommand, Facts, PathFact

# § [policy.judging.case] A command and everything that judging it depends on.


class PolicyContext(msgspec.Struct, frozen=True):
    """One command, the facts about the paths it names, and what people decided beforehand."""

    fact: CommandFact
    rules: PolicyConfig
    known: dict[tuple[str, Access], PathFact]
    book: RuleBook
    undo: bool
    """Whether what the command changes can be undone."""

    @property
    def network(self) -> str:
        """What a person is told of the network that the command asks for."""
        from handrail.policy.network.needs import describe_network_access  # noqa: PLC0415  most commands ask for none

        return describe_network_access(self.fact)

    def find_fact(self, use: PathUse) -> PathFact | None:
        """What is known of a path; of a glob, of the folder it starts from."""
        asked = to_fact_use(use)
        return self.known.get((asked.path, asked.access))

    def is_plain_read(self, use: PathUse) -> bool:
        """Whether a use is plain reading inside the roots, which needs no verdict of its own."""
        if use.access != "read" or use.is_glob or self.rules.restriction is not None or self.book.tools:
            return False
        fact = self.known.get((use.path, "read"))
        if fact is None or fact.real is None or fact.kind == "other" or fact.named is not None:
            return False
        if fact.credential or find_protection(fact.real) == "credential":
            return False
        return fact.real == use.path or find_protection(use.path) != "credential"

    def is_inside(self, word: str, folders: tuple[str, ...]) -> bool:
        """Whether an operand is a path inside the roots, wherever the command runs, and one that is not protected."""
        return all(self._is_inside(to_workspace_path(word, folder)) for folder in folders)

    def _is_inside(self, path: str) -> bool:
        if find_protection(path) is not None:
            return False
        for access in ("read", "write", "delete"):
            fact = self.known.get((path, access))
            if fact is not None and (fact.real is None or fact.credential or find_protection(fact.real) is not None):
                return False
        return (not path.startswith(("/", "~")) and ".." not in path.split("/")) or (path, "read") in self.known


def build_context(fact: CommandFact, facts: Facts, rules: PolicyConfig, book: RuleBook) -> PolicyContext:
    """The case of a call."""
    known: dict[tuple[str, Access], PathFact] = {(path.path, path.access): path for path in facts.paths}
    return PolicyContext(fact, rules, known, book, undo=fact.has_overlay or (fact.snapshot and not fact.background))


# § [policy.judging.uses] Judges what a simple command does to one path that it names.


def judge_use(use: PathUse, program: str, shown: str, case: PolicyContext) -> PartVerdict | None:
    """The verdict on one use of a path; None where it says nothing."""
    judged = _path_by_default(use, program, shown, case)
    said = _path_by_rule(use, shown, case) if case.book.tools else None
    if judged is None or said is None:
        return judged or said
    return pick_strictest([judged, said])


def _path_by_rule(use: PathUse, shown: str, case: PolicyContext) -> PartVerdict | None:
    """What a deny or ask rule for every tool says. A word that only may be a path counts where there is a file."""
    fact = case.find_fact(use)
    if fact is None or fact.real is None or (fact.kind == "missing" and not use.is_certainly_path):
        return None
    rule = case.book.path("exec", (fact.real,) if fact.named is None else (fact.real, fact.named))
    return judge_by_rule(shown, rule).with_path(use.path) if rule is not None and rule.verdict != "allow" else None


def _path_by_default(use: PathUse, program: str, shown: str, case: PolicyContext) -> PartVerdict | None:
    if may_name_credential(use.path) if use.is_glob else find_protection(use.path) == "credential":
        return deny_credential(shown, use.path)
    fact = case.find_fact(use)
    if not use.is_certainly_path:
        return _judge_guess(use, fact, shown, case)
    if fact is None:
        return deny(shown, "fs.unknown", f"nothing is known about {use.path}")
    return _judge_place(use, fact, program, shown, case)


def _judge_place(use: PathUse, fact: PathFact, program: str, shown: str, case: PolicyContext) -> PartVerdict:
    if use.is_glob and _climbs(use.path):
        return deny(shown, "fs.outside", f"the pattern {use.path} may lead outside the workspace", "OUTSIDE_WORKSPACE")
    if case.rules.restriction is not None and use.is_glob:  # a link in a folder may match it, and lead elsewhere
        return deny(shown, "restricted.path", f"the restricted profile wants each file by its name, not {use.path}")
    if _is_whole_root(use, fact) and (use.access == "delete" or _owns(use, program)):
        return deny(shown, "deny.workspace", "a root as a whole is neither deleted nor given away")
    if fact.real is None and _is_temporary(use.path, case):
        return judge_by_mode(shown, f"fs.{use.access}", ACCESSES[use.access], case.rules.mode, undo=True)
    if fact.real is not None and fact.kind == "other" and use.access == "read":
        return ask(shown, "fs.special", f"it is no regular file, so reading it may never end: {use.path}")
    return _judge_fact(fact, use, shown, case)


def _judge_fact(fact: PathFact, use: PathUse, shown: str, case: PolicyContext) -> PartVerdict:
    judged = judge_path(fact, case.rules, undo=case.undo, subject=shown)
    if case.rules.restriction is not None:
        judged = restrict_path(judged, fact, case.rules, case.rules.restriction)
    return judged.with_path(use.path)


def _judge_guess(use: PathUse, fact: PathFact | None, shown: str, case: PolicyContext) -> PartVerdict | None:
    """A word that may be a path: all it can tell is that it leads to a credential, or to what is changed by asking."""
    found = find_protection(use.path) if fact is None or fact.real is None else find_protection(fact.real)
    if found == "credential" or (fact is not None and fact.credential):
        return deny_credential(shown, use.path)
    if found == "protected" and use.access != "read":
        return judge_by_mode(shown, "fs.protected", "protected", case.rules.mode, undo=case.undo).with_path(use.path)
    return None


def _is_whole_root(use: PathUse, fact: PathFact) -> bool:
    """A pattern in a root is not all of it, but one in a folder around it may be."""
    return fact.root and fact.real is None if use.is_glob else fact.root or fact.real == "."


def _owns(use: PathUse, program: str) -> bool:
    return use.access == "write" and to_base_name(program) in RIGHTS


def _climbs(pattern: str) -> bool:
    """Whether a pattern goes up somewhere: behind a wildcard nobody knows from where."""
    return ".." in pattern.split("/")


def _is_temporary(path: str, case: PolicyContext) -> bool:
    """Whether a path is in the sandbox's own /tmp, which begins empty, so that no link leads out of it."""
    if case.fact.tier < 2 or case.rules.restriction is not None:
        return False
    return f"{posixpath.normpath(path)}/".startswith("/tmp/")  # noqa: S108  nothing is made there


# § [policy.judging.inner] Judges a command that stands inside another, seen by its words alone: it can only make
# § the answer stricter.

Folders = tuple[str | None, ...]


def judge_inner_command(
    seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext, *, literal: bool
) -> PartVerdict | None:
    """What is never done, what it would do to paths that it must not touch, and what a rule forbids or asks about.

    `folders`: where it may run, None where nobody knows; `literal`: nothing in its words is left to expand.
    """
    if seen.forks_itself:
        return deny(shown, FORK_BOMB.rule, FORK_BOMB.reason)
    never = find_builtin_deny(seen.words, seen.writes, literal=literal)
    if never is not None:
        return deny(shown, never.rule, never.reason)
    named = _secret(seen, shown) or _path(seen, folders, shown, case)
    return named or _inner_rule(seen, shown, case) or _path_rule(seen, folders, shown, case)


def _secret(seen: DisplayedCommand, shown: str) -> PartVerdict | None:
    uses = classify(build_simple_command(seen.words)).uses if seen.words else ()
    named = [*(use.path for use in uses), *seen.writes]
    found = next((path for path in named if find_protection(path) == "credential"), None)
    return None if found is None else deny_credential(shown, found)


def _path(seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext) -> PartVerdict | None:
    program = seen.words[0] if seen.words else ""
    for use in (use for folder in folders for use in list_displayed_uses(seen, folder)):
        found = judge_use(use, program, shown, case)
        if found is not None and found.part.decision == "deny":
            return found
    return None


def _inner_rule(seen: DisplayedCommand, shown: str, case: PolicyContext) -> PartVerdict | None:
    rule = case.book.stricter(seen.words)
    return None if rule is None else judge_by_rule(shown, rule)


def _path_rule(seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext) -> PartVerdict | None:
    """What a rule for every tool says of paths as they are spelled; where those lead that are read, nobody looked."""
    uses = classify(build_simple_command(seen.words)).uses if seen.words and case.book.tools else ()
    paths = [*(use.path for use in uses), *(seen.writes if case.book.tools else ())]
    for path in (
        posixpath.normpath(to_workspace_path(path, folder or ".")) for path in paths if path for folder in folders
    ):
        rule = case.book.path("exec", (path,))
        if rule is not None and rule.verdict != "allow":
            return judge_by_rule(shown, rule).with_path(path)
    return None


# § [policy.judging.steps] Judges the simple commands of a script, each on its own: what is never done, its paths,
# § its effect, the rules.

_GIT_DELETES = tuple(
    build_prefix(("git", *words.split()))
    for words in (
        *("rm", "clean", "prune", "branch -d", "branch -D", "tag -d", "tag --delete", "stash drop", "stash clear"),
        *("worktree remove", "update-ref -d", "reflog delete", "reflog expire", "notes remove", "replace -d"),
    )
)


def judge_step(step: CommandStep, case: PolicyContext) -> PartVerdict:
    """The verdict on one simple command: a built-in no, else what rules say, else grants, else the mode."""
    if step.endless:
        return deny(step.shown, "exec.limit", "it starts more commands than can be looked at")
    by_default = _grantable(pick_strictest(_by_default(step, case)), _class_of(step))
    judged = [by_default if by_default.code is not None else _by_rule(step, case, by_default)]
    # A rule about a program says nothing of where its output goes, nor of what else it starts.
    judged += (one for use in step.redirected if (one := judge_use(use, "", step.shown, case)))
    judged += (
        one for inner in step.inner if (one := judge_inner_command(inner, step.folders, step.shown, case, literal=True))
    )
    return _restricted(_only_question(judged), step, case)


def _class_of(step: CommandStep) -> str:
    """The class that a person may allow for good; none if the command deletes, or runs what its words say."""
    grant = step.reading.grant
    return "" if grant and (_deletes(step) or can_run_code(step.words) or has_program_option(step.words)) else grant


def _deletes(step: CommandStep) -> bool:
    if step.reading.effect == "delete" or any(use.access == "delete" for use in step.uses):
        return True
    words = ("git", *step.words[1:])
    return to_base_name(step.words[0]) == "git" and any(is_about(one, words) for one in _GIT_DELETES)


def _only_question(judged: list[PartVerdict]) -> PartVerdict:
    """The strictest of them; where more than one asks, a grant for the program would not end the asking."""
    found = pick_strictest(judged)
    asking = sum(one.part.decision == "confirm" for one in judged)
    return found if asking < 2 else drop_grant(found)


def _restricted(judged: PartVerdict, step: CommandStep, case: PolicyContext) -> PartVerdict:
    if case.rules.restriction is None:
        return judged
    if step.redirected:
        return deny(step.shown, "restricted.command", "the restricted profile redirects nothing")
    proven = step.reading.effect == "proven"
    return restrict_command(judged, step.words, case.rules.restriction, proven=proven)


def _by_default(step: CommandStep, case: PolicyContext) -> list[PartVerdict]:
    never = find_builtin_deny(step.words, step.writes, literal=True)
    if never is not None:
        return [deny(step.shown, never.rule, never.reason)]
    uses = step.uses if step.reading.effect != "proven" else [_settled(use, case) for use in step.uses]
    found = [judge_use(use, step.words[0], step.shown, case) for use in uses if not case.is_plain_read(use)]
    judged = [one for one in found if one is not None]
    # What changes just the files it names is judged by these; `ln -s a` names none that it changes.
    named = any(use.is_certainly_path and use.access != "read" for use in step.uses)
    if not named or step.reading.effect not in {"write", "delete"}:
        judged.insert(0, judge_effect(step.reading, step.shown, case))
    return judged


def _settled(use: PathUse, case: PolicyContext) -> PathUse:
    """What only may be a path is one for certain where it leads outside: no branch is called like a link."""
    fact = None if use.is_certainly_path else case.find_fact(use)
    return PathUse(use.path, use.access, use.is_glob) if fact is not None and fact.real is None else use


def judge_effect(reading: Classification, shown: str, case: PolicyContext) -> PartVerdict:
    """What the mode says to what a command does; of the network, also what a yes opens."""
    judged = judge_by_mode(shown, reading.rule, reading.effect, case.rules.mode, undo=case.undo, why=reading.reason)
    return judged.with_remark(case.network) if reading.effect == "network" else judged


def _by_rule(step: CommandStep, case: PolicyContext, by_default: PartVerdict) -> PartVerdict:
    rule = _rule(step, case) if case.rules.rules else None
    if rule is not None:
        said = judge_by_rule(step.shown, rule)
        return pick_strictest([by_default, said]) if by_default.final else said
    grant = find_grant(case.rules.grants, by_default.part.grant)
    if grant is None:
        return by_default
    return allow(step.shown, f"{GRANTED}{grant.id}", f"a person allowed {grant.command} for good")


def _rule(step: CommandStep, case: PolicyContext) -> Rule | None:
    at_root = step.folders == (".",)
    return case.book.command(step.words, lambda word: case.is_inside(word, step.folders), at_root=at_root)


def _grantable(judged: PartVerdict, grant: str) -> PartVerdict:
    if judged.final or judged.part.decision != "confirm" or grant.startswith(MCP_PREFIX):
        return judged
    return PartVerdict(msgspec.structs.replace(judged.part, grant=grant), judged.code, judged.final)


# § [policy.judging.seen] Judges a command outside the provable subset, by what the display parser saw in it: it can
# § only get stricter.

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


# § [policy.judging.commands] Judges a command as a whole.


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
