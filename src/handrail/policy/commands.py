"""Decides a shell command, step by step."""

import posixpath
import re

import msgspec
from msgspec.structs import replace

from handrail.policy.builtin_denies import FORK_BOMB, RIGHTS, find_builtin_deny
from handrail.policy.config import GRANTED, PolicyConfig, find_grant
from handrail.policy.granted_changes import has_git_table, is_local_git
from handrail.policy.names import find_protection, may_name_credential
from handrail.policy.parse import (
    CommandStep,
    expand_inner_commands,
    find_start_folder,
    list_displayed_uses,
    parse_fact,
    to_fact_use,
    to_workspace_path,
)
from handrail.policy.programs.registry import LOOPBACK_RULE, classify_words
from handrail.policy.programs.spec import Classification, PathUse, to_base_name
from handrail.policy.rules.command_match import build_prefix, is_about
from handrail.policy.rules.rulebook import MCP_PREFIX, RuleBook, build_rulebook
from handrail.policy.shell.lexer import MAX_SCRIPT_BYTES
from handrail.policy.shell.syntax import Unparsed
from handrail.policy.verdict import (
    PartVerdict,
    allow,
    ask,
    deny,
    deny_credential,
    judge_by_mode,
    judge_by_rule,
    judge_path,
    pick_strictest,
    restrict_path,
)
from handrail.policy.wrappers import can_run_code, has_program_option
from handrail.protocol.decisions import Access, CommandFact, DecisionPart, DisplayedCommand, Facts, Mode, PathFact
from handrail.protocol.permissions import StandingGrant


class PolicyContext(msgspec.Struct, frozen=True):
    """The facts about one command, with the rules that apply to it."""

    fact: CommandFact
    rules: PolicyConfig
    path_facts: dict[tuple[str, Access], PathFact]
    book: RuleBook
    undo: bool
    """Whether undo covers the changes of the command."""

    @property
    def network(self) -> str:
        """The remark about the network for the permission request."""
        from handrail.policy.network.needs import describe_network_access  # noqa: PLC0415  most commands ask for none

        return describe_network_access(self.fact)

    def is_own_network(self, words: tuple[str, ...]) -> bool:
        """Whether a command reaches loopback hosts alone, and these are the session's own network."""
        from handrail.policy.network.needs import reaches_only_loopback  # noqa: PLC0415  as above

        return self.fact.loopback and reaches_only_loopback(words)

    def find_fact(self, use: PathUse) -> PathFact | None:
        """The fact about a path. For a glob it is about the folder that the glob starts from."""
        fact_use = to_fact_use(use)
        return self.path_facts.get((fact_use.path, fact_use.access))

    def is_plain_read(self, use: PathUse) -> bool:
        """Whether a use is plain reading inside the roots, which needs no verdict of its own."""
        if use.access != "read" or use.is_glob or self.rules.restriction is not None or self.book.tools:
            return False
        fact = self.path_facts.get((use.path, "read"))
        if fact is None or fact.real is None or fact.kind == "other" or fact.named is not None:
            return False
        if fact.credential or find_protection(fact.real) == "credential":
            return False
        return fact.real == use.path or find_protection(use.path) != "credential"

    def is_inside(self, word: str, folders: tuple[str, ...]) -> bool:
        """Whether an operand is an unprotected path inside the roots, from each folder that the command may run in."""
        return all(self._is_path_inside(to_workspace_path(word, folder)) for folder in folders)

    def _is_path_inside(self, path: str) -> bool:
        if find_protection(path) is not None:
            return False
        for access in ("read", "write", "delete"):
            fact = self.path_facts.get((path, access))
            if fact is not None and (fact.real is None or fact.credential or find_protection(fact.real) is not None):
                return False
        return (not path.startswith(("/", "~")) and ".." not in path.split("/")) or (path, "read") in self.path_facts


def judge_command(fact: CommandFact, facts: Facts, rules: PolicyConfig) -> list[PartVerdict]:
    """A verdict on each simple command, and on the command as a whole."""
    context = build_context(fact, facts, rules, build_rulebook(rules.rules))
    command = parse_fact(fact)
    if command.unparsed is not None:
        verdicts = _judge_unparsed(command.unparsed, context)
    else:
        verdicts = [_judge_step(step, context) for step in command.steps]
        verdicts += _judge_together(command.steps, context)
        verdicts += _judge_displayed_commands(context) if command.needs_display else []
    if (fact.background or fact.yields) and rules.restriction is not None:
        verdicts.append(
            deny("background", "restricted.command", "the restricted profile runs nothing in the background")
        )
    elif fact.background:
        verdicts.append(judge_by_mode("background", "exec.background", "process", rules.mode, undo=False))
    if not _shows_all_effects(fact):
        verdicts = [replace(verdict, kind=None) for verdict in verdicts]
    verdicts = _name_hosts(verdicts, context) if fact.hosts or fact.unopened else verdicts
    return verdicts if fact.tier > 0 else [_ask_without_sandbox(verdict) for verdict in verdicts]


def _shows_all_effects(fact: CommandFact) -> bool:
    """Whether a preview shows all that the command does. A git command also sees the credentials that git tracks."""
    reaches = fact.hosts or fact.unopened or fact.yields
    return fact.has_overlay and not reaches and parse_fact(fact).git_use != "alone"


def build_context(fact: CommandFact, facts: Facts, rules: PolicyConfig, book: RuleBook) -> PolicyContext:
    path_facts: dict[tuple[str, Access], PathFact] = {(path.path, path.access): path for path in facts.paths}
    undo = fact.has_overlay or (fact.snapshot and not fact.background)
    return PolicyContext(fact, rules, path_facts, book, undo)


def _judge_together(steps: tuple[CommandStep, ...], context: PolicyContext) -> list[PartVerdict]:
    if len(steps) > 1 and context.rules.restriction is not None:
        return [deny(context.fact.text, "restricted.command", "the restricted profile runs one command at a time")]
    deleted = {use.path for step in steps for use in step.uses if use.access == "delete" and not use.is_glob}
    if len(deleted) > context.rules.bulk_deleted:
        why = f"it deletes {len(deleted)} paths at once"
        return [judge_by_mode(context.fact.text, "fs.bulk", "bulk", context.rules.mode, undo=context.undo, why=why)]
    return []


def _name_hosts(verdicts: list[PartVerdict], context: PolicyContext) -> list[PartVerdict]:
    """Name the hosts, also if an inner command reaches them: `timeout 9 curl …`."""
    if verdicts[0].part.rule != _SYNTAX_RULE and any(verdict.names_hosts for verdict in verdicts):
        return verdicts
    place = next((place for place, verdict in enumerate(verdicts) if verdict.part.decision == "confirm"), 0)
    return [*verdicts[:place], verdicts[place].with_hosts(context.network), *verdicts[place + 1 :]]


def _ask_without_sandbox(verdict: PartVerdict) -> PartVerdict:
    """Without a sandbox nothing contains a command, so even a proven one needs approval."""
    if verdict.part.decision == "deny":
        return verdict
    if verdict.part.decision == "confirm":
        reason = f"{verdict.part.reason}; and there is no sandbox here"
        return replace(verdict, part=replace(verdict.part, reason=reason, effect="", grant=""))
    reason = "without a sandbox, every command needs approval"
    return PartVerdict(
        DecisionPart(subject=verdict.part.subject, decision="confirm", rule="exec.no-sandbox", reason=reason)
    )


# One simple command.

_GIT_DELETES = tuple(
    build_prefix(("git", *words.split()))
    for words in (
        *("rm", "clean", "prune", "branch -d", "branch -D", "tag -d", "tag --delete", "stash drop", "stash clear"),
        *("worktree remove", "update-ref -d", "reflog delete", "reflog expire", "notes remove", "replace -d"),
    )
)


def _judge_step(step: CommandStep, context: PolicyContext) -> PartVerdict:
    """A built-in deny, else the rules, else the grants, else the mode."""
    if step.is_too_deep:
        return deny(step.text, "exec.limit", "it starts more commands than handrail can analyse")
    default = _offer_grant(pick_strictest(_list_default_verdicts(step, context)), _find_grant_class(step, context.fact))
    verdicts = [default if default.code is not None else _judge_by_rules(step, context, default)]
    # A rule about a program does not cover its redirections and inner commands.
    others = [_judge_use(use, "", step.text, context) for use in step.redirections]
    others += [_judge_inner(inner, step.folders, step.text, context, literal=True) for inner in step.inner]
    verdicts += filter(None, others)
    strictest = pick_strictest(verdicts)
    if sum(verdict.part.decision == "confirm" for verdict in verdicts) > 1:  # a grant would answer only one question
        strictest = strictest.with_grant("")
    return _restrict_step(strictest, step, context)


def _list_default_verdicts(step: CommandStep, context: PolicyContext) -> list[PartVerdict]:
    denied = find_builtin_deny(step.words, step.writes, literal=True)
    if denied is not None:
        return [deny(step.text, denied.rule, denied.reason)]
    effect = step.classification.effect
    uses = step.uses if effect != "proven" else [_confirm_outside_path(use, context) for use in step.uses]
    judged = [_judge_use(use, step.words[0], step.text, context) for use in uses if not context.is_plain_read(use)]
    verdicts = [verdict for verdict in judged if verdict is not None]
    # The paths decide about a command that changes only the files it names. `ln -s a` names none that it changes.
    names_changes = any(use.is_certainly_path and use.access != "read" for use in step.uses)
    if not names_changes or effect not in {"write", "delete"}:
        verdicts.insert(0, _judge_effect(step.classification, step.words, step.text, context))
    return verdicts


def _confirm_outside_path(use: PathUse, context: PolicyContext) -> PathUse:
    """A word that may be a path is one if it leads outside: no branch has the name of such a link."""
    fact = None if use.is_certainly_path else context.find_fact(use)
    return PathUse(use.path, use.access, use.is_glob) if fact is not None and fact.real is None else use


def _judge_effect(
    classification: Classification, words: tuple[str, ...], text: str, context: PolicyContext
) -> PartVerdict:
    effect, rule, reason = classification.effect, classification.rule, classification.reason
    if effect == "network" and context.is_own_network(words):
        effect, rule = "unproven", LOOPBACK_RULE
        reason = f"{to_base_name(words[0])} may send data to background processes of this session"
    verdict = judge_by_mode(text, rule, effect, context.rules.mode, undo=context.undo, why=reason)
    return verdict.with_hosts(context.network) if effect == "network" else verdict


def _judge_by_rules(step: CommandStep, context: PolicyContext, default: PartVerdict) -> PartVerdict:
    rules = context.rules
    if rules.rules:
        at_root = step.folders == (".",)
        rule = context.book.find_command_rule(
            step.words, lambda word: context.is_inside(word, step.folders), at_root=at_root
        )
        if rule is not None:
            verdict = judge_by_rule(step.text, rule)
            return pick_strictest([default, verdict]) if default.final else verdict
    grant = find_grant(rules.grants, default.part.grant) if rules.grants else None
    if grant is None and default.part.grant == StandingGrant.LOCAL_GIT:  # a grant of before is for one sub-command
        grant = find_grant(rules.grants, step.classification.grant)
    if grant is None:
        return default
    return allow(step.text, f"{GRANTED}{grant.id}", f"a person allowed {grant.command} for good")


def _offer_grant(verdict: PartVerdict, grant: str) -> PartVerdict:
    if verdict.final or verdict.part.decision != "confirm" or grant.startswith(MCP_PREFIX):
        return verdict
    return verdict.with_grant(grant)


def _find_grant_class(step: CommandStep, fact: CommandFact) -> str:
    """The class that a grant may cover. Empty if the command deletes, or runs what its words say. The grant for local
    git needs an overlay, in which the changes are judged before they count."""
    grant = step.classification.grant
    if not grant or _is_deletion(step) or can_run_code(step.words) or has_program_option(step.words):
        return ""
    if not grant.startswith("git ") or not has_git_table(step.words) or fact.yields or not fact.has_overlay:
        return grant
    return StandingGrant.LOCAL_GIT if is_local_git(step.words) else ""


def _is_deletion(step: CommandStep) -> bool:
    if step.classification.effect == "delete" or any(use.access == "delete" for use in step.uses):
        return True
    words = ("git", *step.words[1:])
    return to_base_name(step.words[0]) == "git" and any(is_about(prefix, words) for prefix in _GIT_DELETES)


# The restricted profile.

_SAFE_GIT_ARGUMENT = re.compile(
    r"-n|-?\d{1,9}|-n\d{1,9}|--max-count=\d{1,9}|--(?:no-)?decorate|--graph|--reverse|--all|-s|-b|-sb|--short|--branch"
    r"|--porcelain(?:=v?[12])?"
)
"""Arguments that may follow a listed git command: how many, and their layout. Others may show other folders."""
_WIDE_LS_OPTION = re.compile(r"-[A-Za-z0-9]*[RLH].*|--recursive|--dereference.*")
"""Options of ls that may show other folders."""


def _restrict_step(verdict: PartVerdict, step: CommandStep, context: PolicyContext) -> PartVerdict:
    """Allow a listed command, and a proven one that begins like it. Rules still hold."""
    restriction = context.rules.restriction
    if restriction is None:
        return verdict
    if step.redirections:
        return deny(step.text, "restricted.command", "the restricted profile redirects nothing")
    if verdict.part.decision == "deny" or (verdict.part.decision == "confirm" and verdict.final):
        return verdict
    is_proven = step.classification.effect == "proven" and verdict.part.decision == "allow"
    for command in restriction.commands:
        prefix = tuple(command.split())
        if step.words == prefix or (is_proven and _is_safe_continuation(step.words, prefix)):
            return allow(verdict.part.subject, "restricted.command", "the restricted profile runs this command")
    return deny(verdict.part.subject, "restricted.command", "the restricted profile runs only the commands it lists")


def _is_safe_continuation(words: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    arguments = words[len(prefix) :]
    if words[: len(prefix)] != prefix:
        return False
    if words[0] == "git":
        return all(_SAFE_GIT_ARGUMENT.fullmatch(word) for word in arguments)
    return words[0] != "ls" or not any(_WIDE_LS_OPTION.fullmatch(word) for word in arguments)


# One path that a command names.


def _judge_use(use: PathUse, program: str, text: str, context: PolicyContext) -> PartVerdict | None:
    """The verdict on one use of a path. None if the path does not matter."""
    default = _judge_use_by_default(use, program, text, context)
    by_rule = _judge_use_by_rule(use, text, context) if context.book.tools else None
    if default is None or by_rule is None:
        return default or by_rule
    return pick_strictest([default, by_rule])


def _judge_use_by_rule(use: PathUse, text: str, context: PolicyContext) -> PartVerdict | None:
    """A deny or ask rule for all tools. A word that may be a path counts if the file exists."""
    fact = context.find_fact(use)
    if fact is None or fact.real is None or (fact.kind == "missing" and not use.is_certainly_path):
        return None
    rule = context.book.find_path_rule("exec", (fact.real,) if fact.named is None else (fact.real, fact.named))
    return judge_by_rule(text, rule).with_path(use.path) if rule is not None and rule.verdict != "allow" else None


def _judge_use_by_default(use: PathUse, program: str, text: str, context: PolicyContext) -> PartVerdict | None:
    if may_name_credential(use.path) if use.is_glob else find_protection(use.path) == "credential":
        return deny_credential(text, use.path)
    fact = context.find_fact(use)
    if not use.is_certainly_path:
        return _judge_possible_path(use, fact, text, context)
    if fact is None:
        return deny(text, "fs.unknown", f"handrail does not know {use.path}")
    return _judge_certain_path(use, fact, program, text, context)


def _judge_possible_path(use: PathUse, fact: PathFact | None, text: str, context: PolicyContext) -> PartVerdict | None:
    """A word that may be a path matters only if it leads to a credential or a protected file."""
    protection = find_protection(use.path) if fact is None or fact.real is None else find_protection(fact.real)
    if protection == "credential" or (fact is not None and fact.credential):
        return deny_credential(text, use.path)
    if protection == "protected" and use.access != "read":
        verdict = judge_by_mode(text, "fs.protected", "protected", context.rules.mode, undo=context.undo)
        return verdict.with_path(use.path)
    return None


def _judge_certain_path(use: PathUse, fact: PathFact, program: str, text: str, context: PolicyContext) -> PartVerdict:
    rules = context.rules
    if use.is_glob and ".." in use.path.split("/"):
        return deny(text, "fs.outside", f"the pattern {use.path} may lead outside the workspace", "OUTSIDE_WORKSPACE")
    if rules.restriction is not None and use.is_glob:  # the pattern may match a link that leads elsewhere
        return deny(text, "restricted.path", f"the restricted profile needs each file by name, not {use.path}")
    changes_rights = use.access == "write" and to_base_name(program) in RIGHTS
    if _covers_root(use, fact) and (use.access == "delete" or changes_rights):
        return deny(text, "deny.workspace", "a root folder can be neither deleted nor given away")
    if fact.real is None and _is_private_temporary(use.path, context):
        return _judge_temporary(use, text, rules.mode)
    if fact.real is not None and fact.kind == "other" and use.access == "read":
        return ask(text, "fs.special", f"it is not a regular file, so reading may never end: {use.path}")
    verdict = judge_path(fact, rules, undo=context.undo, subject=text)
    if rules.restriction is not None:
        verdict = restrict_path(verdict, fact, rules, rules.restriction)
    return verdict.with_path(use.path)


def _judge_temporary(use: PathUse, text: str, mode: Mode) -> PartVerdict:
    if mode == "plan" and use.access != "read":
        return judge_by_mode(text, "fs.temporary", use.access, mode, undo=True)
    return allow(text, "fs.temporary", "the sandbox removes its own /tmp after the command")


def _covers_root(use: PathUse, fact: PathFact) -> bool:
    if use.is_glob:  # a pattern inside a root covers a part of it, but one in a folder around the root may cover all
        return fact.root and fact.real is None
    return fact.root or fact.real == "."


def _is_private_temporary(path: str, context: PolicyContext) -> bool:
    """Whether a path is in the sandbox's own /tmp. It starts empty, so no link leads out of it."""
    if context.fact.tier < 2 or context.rules.restriction is not None:
        return False
    return f"{posixpath.normpath(path)}/".startswith("/tmp/")  # noqa: S108  nothing is made there


# A command inside another, known by its words alone. Its verdict can only be stricter.

_Folders = tuple[str | None, ...]


def _judge_inner(
    displayed: DisplayedCommand, folders: _Folders, text: str, context: PolicyContext, *, literal: bool
) -> PartVerdict | None:
    """The strict verdict on an inner command. None if there is none.

    It may run in any of the `folders`. None stands for an unknown one. With `literal` nothing in its words is left to
    expand.
    """
    if displayed.forks_itself:
        return deny(text, FORK_BOMB.rule, FORK_BOMB.reason)
    denied = find_builtin_deny(displayed.words, displayed.writes, literal=literal)
    if denied is not None:
        return deny(text, denied.rule, denied.reason)
    uses = classify_words(displayed.words).uses if displayed.words else ()
    paths = (*(use.path for use in uses), *displayed.writes)
    credential = next((path for path in paths if find_protection(path) == "credential"), None)
    if credential is not None:
        return deny_credential(text, credential)
    by_path = _deny_inner_path(displayed, folders, text, context)
    if by_path is not None:
        return by_path
    rule = context.book.find_stricter(displayed.words)
    return judge_by_rule(text, rule) if rule is not None else _judge_inner_paths_by_rule(paths, folders, text, context)


def _deny_inner_path(
    displayed: DisplayedCommand, folders: _Folders, text: str, context: PolicyContext
) -> PartVerdict | None:
    program = displayed.words[0] if displayed.words else ""
    uses = (use for folder in folders for use in list_displayed_uses(displayed, folder))
    verdicts = (_judge_use(use, program, text, context) for use in uses)
    return next((verdict for verdict in verdicts if verdict is not None and verdict.part.decision == "deny"), None)


def _judge_inner_paths_by_rule(
    paths: tuple[str, ...], folders: _Folders, text: str, context: PolicyContext
) -> PartVerdict | None:
    """A rule for all tools, by the spelling of the paths. Links are not resolved."""
    if not context.book.tools:
        return None
    placed = (to_workspace_path(path, folder or ".") for path in paths if path for folder in folders)
    for path in map(posixpath.normpath, placed):
        rule = context.book.find_path_rule("exec", (path,))
        if rule is not None and rule.verdict != "allow":
            return judge_by_rule(text, rule).with_path(path)
    return None


# A command outside the provable subset, by what the display parser found in it. Its verdict can only be stricter.

_SYNTAX_RULE = "exec.syntax"
"""The rule of the part about the whole command."""
_MAX_SHOWN_PARTS = 50
"""Parts in a decision. Later parts are judged too."""
_REDIRECTION = Classification("write", "fs.write", "it writes to a file (redirection)")


def _judge_unparsed(unparsed: Unparsed, context: PolicyContext) -> list[PartVerdict]:
    """The command as a whole, then each displayed command."""
    fact, rules = context.fact, context.rules
    if fact.seen is None or (unparsed.too_large and len(fact.text.encode()) <= MAX_SCRIPT_BYTES):
        return [deny(fact.text, "exec.limit", f"it {unparsed.reason}, and handrail cannot see its commands")]
    if rules.restriction is not None:
        why = f"it {unparsed.reason}; the restricted profile needs plain words"
        return [deny(fact.text, "restricted.command", why)]
    why = f"it {unparsed.reason}, so handrail cannot analyse it"
    command = judge_by_mode(fact.text, _SYNTAX_RULE, "unproven", rules.mode, undo=context.undo, why=why)
    folder = find_start_folder(fact.seen, fact.cwd)
    parts = [_judge_displayed(command, folder, context) for command in fact.seen]
    later = [part for part in parts[_MAX_SHOWN_PARTS:] if part.final]
    return [command, *parts[:_MAX_SHOWN_PARTS], *later[:_MAX_SHOWN_PARTS]]


def _judge_displayed_commands(context: PolicyContext) -> list[PartVerdict]:
    """The strict verdicts on displayed commands in the strings of a parsed command."""
    displayed = context.fact.seen
    if displayed is None:
        return [deny(context.fact.text, "exec.limit", "it starts a command that handrail cannot analyse")]
    folders = (find_start_folder(displayed, context.fact.cwd),)
    verdicts = [
        _judge_inner(inner, folders, _render_displayed(inner), context, literal=False)
        for inner in expand_inner_commands(displayed)
    ]
    return [verdict for verdict in verdicts if verdict is not None][:_MAX_SHOWN_PARTS]


def _judge_displayed(displayed: DisplayedCommand, folder: str | None, context: PolicyContext) -> PartVerdict:
    text = _render_displayed(displayed)
    for inner in expand_inner_commands((displayed,)):
        verdict = _judge_inner(inner, (folder,), text, context, literal=False)
        if verdict is not None:
            return verdict
    is_loopback = context.fact.loopback
    classification = classify_words(displayed.words, loopback=is_loopback) if displayed.words else _REDIRECTION
    return _judge_effect(classification, displayed.words, text, context)


def _render_displayed(displayed: DisplayedCommand) -> str:
    return displayed.text or " ".join(displayed.words)
