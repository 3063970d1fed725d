"""The decisions of policy about calls, their reasons, without a session.

Nothing is run, nothing is written.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.policy.config import MCP_PREFIX, PolicyConfig, Rule, describe_rule
from handrail.policy.decide import decide, require_approval
from handrail.policy.programs.registry import build_registry, find_example_refusal
from handrail.policy.rules.lint import list_failing_examples
from handrail.protocol.arguments import build_argument_error
from handrail.protocol.decisions import Decision, Facts, ForeignFact, Mode, Verdict
from handrail.protocol.errors import Problem, StoreError, ToolError
from handrail.protocol.events import BrokenEvent
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Wire, escape_surrogates, sanitize_json
from handrail.runtime.facts import collect_command_facts, collect_process_facts
from handrail.runtime.registry import ToolSet, parse_arguments
from handrail.sandbox.profile import HostLookup
from handrail.settings import Settings
from handrail.store.grants import GrantedFolders
from handrail.store.state_dir import StateFolder
from handrail.tools.exec.spec import EXEC, ExecArguments
from handrail.tools.tool import ProcessUse, Tool
from handrail.workspace.roots import open_extra_roots
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.store.journal import PastCall

_MAX_BACKGROUND_TIER = 2
"""A background command has no overlay."""
_BEFORE_POLICY = frozenset({"call.refused", "journal.broken"})


def open_roots(workspace: str, settings: Settings, rules: PolicyConfig, state: StateFolder) -> Workspace:
    """The workspace as a session has it, without the folders of that session."""
    opened = Workspace(workspace, *open_extra_roots(settings.paths.read_only, settings.paths.writable))
    if rules.outside == "ask":
        from handrail.runtime.session import build_opened_roots  # noqa: PLC0415  few settings open folders

        folders = GrantedFolders(state.opened_folders(os.path.realpath(workspace)))
        build_opened_roots(opened, {"workspace": folders}, "", state, rules)
    return opened


class Explainer:
    """Explains calls in one workspace. Tools and sandbox are looked up when a call needs them."""

    def __init__(
        self,
        workspace: Workspace,
        offer: Callable[[], ToolSet],
        tier: Callable[[], int],
        host: HostLookup,
        listed: tuple[str, ...] = (),
        processes: str = "",
    ) -> None:
        self._workspace, self._offer, self._tier, self._host = workspace, offer, tier, host
        self._listed, self._processes = listed, processes

    def close(self) -> None:
        self._workspace.close()

    def explain(self, name: str, arguments: object, rules: PolicyConfig) -> tuple[Decision, Facts]:
        """The decision with all its parts, and the facts that it depends on. ToolError if the call is invalid."""
        spec, collect = (EXEC, self._collect_command_facts) if name == EXEC.name else self._find_tool(name)
        typed: Any = parse_arguments(spec, arguments)
        if not sanitize_json(arguments)[1]:
            problem = "the arguments hold text that is not valid Unicode, or are nested too deeply"
            raise build_argument_error(spec, (Problem(field="", problem=problem),))
        facts = collect(typed)
        decision = decide(spec, None, facts, rules)
        return msgspec.structs.replace(decision, parts=decision.parts or (decision.to_part(),)), facts

    def _collect_command_facts(self, arguments: ExecArguments) -> Facts:
        return collect_command_facts(
            self._workspace,
            arguments.command,
            arguments.cwd,
            background=arguments.background,
            yields=arguments.yield_ms is not None,
            tier=min(self._tier(), _MAX_BACKGROUND_TIER) if arguments.background else self._tier(),
            host=self._host,
            listed=self._listed,
        )

    def _find_tool(self, name: str) -> tuple[ToolSpec, Callable[[Any], Facts]]:
        offer = self._offer()
        tool = offer.get(name)
        if tool is not None:
            return tool.spec, partial(self._collect_tool_facts, tool)
        if name.startswith(MCP_PREFIX):
            from handrail.runtime.foreign.source import split_tool_name  # noqa: PLC0415  few have other servers

            if (parts := split_tool_name(name)) is not None:
                fact = ForeignFact(server=parts[0], tool=parts[1])
                return _build_foreign_spec(fact), lambda _: Facts(foreign=fact)
        message = f"Unknown Agent tool: {escape_surrogates(name)[:200]}"
        if reason := offer.why_off(name):
            message = f"{message} ({reason})"
        raise ToolError("UNKNOWN_TOOL", message, details=list(offer.names))

    def _collect_tool_facts(self, tool: Tool, arguments: Any) -> Facts:
        from handrail.runtime.decide import collect_touched_facts, resolve_touches  # noqa: PLC0415  commands need none

        touches = resolve_touches(tool, arguments, self._workspace)
        if touches.command is not None:
            return self._collect_command_facts(ExecArguments(command=touches.command.text, cwd=touches.command.cwd))
        if touches.process is not None:
            return self._collect_process_facts(touches.process)
        try:
            return collect_touched_facts(self._workspace, touches)
        finally:
            self._workspace.drop_cached()

    def _collect_process_facts(self, use: ProcessUse) -> Facts:
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  few ask about processes

        return collect_process_facts(use, lambda: ProcessSessions(self._processes), self._tier)


def _build_foreign_spec(fact: ForeignFact) -> ToolSpec:
    """The spec of a server's tool. Policy needs no more than the fact, so no server is started."""
    from handrail.runtime.foreign import call, source  # noqa: PLC0415  few have other servers

    return call.build_foreign_spec(fact.server, source.ForeignTool(name=fact.tool), read_only=False)


class Example(Wire, frozen=True):
    """An example of a rule or a built-in table, tested."""

    rule: str
    """The rule with its place, or the table."""
    example: str
    problem: str = ""
    """The reason why the test failed. Empty if it passed."""
    came_out: str = ""
    """The decision of policy about a command whose test failed."""


def run_rule_examples(rules: PolicyConfig, explainer: Explainer) -> Iterator[Example]:
    for rule in rules.rules:
        for one in _split_examples(rule):
            [example] = (*one.match, *one.no_match)
            problem = "; ".join(list_failing_examples(one))
            decision = ""
            if problem and rule.tool == EXEC.name:
                made, _ = explainer.explain(EXEC.name, {"command": example}, rules)
                decision = f"{made.decision} by {made.rule}: {made.reason}"
            yield Example(rule=describe_rule(rule), example=example, problem=problem, came_out=decision)


def run_table_examples() -> Iterator[Example]:
    registry = build_registry()
    for table in {id(table): table for table in registry.tables.values()}.values():  # a table may have many names
        name = f"table {table.name}"
        for example in table.match:
            refusal = find_example_refusal(table, registry, example)
            yield Example(rule=name, example=example, problem=f"is not accepted: {refusal}" if refusal else "")
        for example in table.no_match:
            problem = "" if find_example_refusal(table, registry, example) else "is accepted"
            yield Example(rule=name, example=example, problem=problem)


def _split_examples(rule: Rule) -> Iterator[Rule]:
    for example in rule.match:
        yield msgspec.structs.replace(rule, match=(example,), no_match=())
    for example in rule.no_match:
        yield msgspec.structs.replace(rule, match=(), no_match=(example,))


class DecisionChange(Wire, frozen=True):
    """A past call that policy would decide differently now."""

    time: datetime
    session: str
    tool_call_id: str
    tool: str
    subject: str
    then: Verdict
    now: Verdict
    rule: str
    """The rule that decides now."""
    reason: str
    rule_then: str


class PolicyReplay(Wire, frozen=True, omit_defaults=False):
    """Past calls, decided by the present rules."""

    calls: int
    """Calls that were decided again."""
    differ: tuple[DecisionChange, ...]
    """Ordered by time."""
    unjudged: int
    """Calls that were refused before policy decided: an unknown tool, invalid arguments."""
    gone: dict[str, int]
    """Calls of tools that do not exist any more, by name."""
    broken: int
    """Calls whose record cannot be read."""
    unreadable: tuple[str, ...]
    """Errors of sessions whose journal cannot be read."""


def replay(
    folders: Iterable[str],
    spec_of: Callable[[str], ToolSpec | None],
    rules: PolicyConfig,
    since: datetime | None,
    mode: Mode | None = None,
) -> PolicyReplay:
    """Decides past calls again by their recorded facts, each in its own mode or all in one.

    Answers of people are not compared.
    """
    from handrail.state import list_past_calls  # noqa: PLC0415  explaining needs no journal

    changes, gone, unreadable = list[DecisionChange](), Counter[str](), list[str]()
    calls = unjudged = broken = 0
    for folder in folders:
        try:
            for call in list_past_calls(folder, since):
                if isinstance(call, BrokenEvent):
                    broken += 1
                elif call.decided.decision.rule in _BEFORE_POLICY:
                    unjudged += 1
                elif (spec := _find_past_spec(call, spec_of)) is None:
                    gone[call.start.tool_call_name] += 1
                else:
                    calls += 1
                    changes += _redecide(os.path.basename(folder), call, spec, rules, mode)
        except StoreError as error:
            unreadable.append(str(error))
    return PolicyReplay(
        calls=calls,
        differ=tuple(sorted(changes, key=lambda one: one.time)),
        unjudged=unjudged,
        gone=dict(gone),
        broken=broken,
        unreadable=tuple(unreadable),
    )


def compare_replays(without: PolicyReplay, extended: PolicyReplay, rule: Rule) -> PolicyReplay:
    """The calls that a rule decides differently than the other rules do."""
    before = {(one.session, one.tool_call_id): one for one in without.differ}
    changes: list[DecisionChange] = []
    for one in extended.differ:
        base = before.pop((one.session, one.tool_call_id), None)
        if base is None:
            changes.append(one)
        elif base.now != one.now:
            changes.append(msgspec.structs.replace(one, then=base.now, rule_then=base.rule))
    for base in before.values():  # with the rule, they are decided as they were then
        because = rule.because or base.reason
        changed = {"then": base.now, "now": base.then, "rule_then": base.rule, "rule": rule.id, "reason": because}
        changes.append(msgspec.structs.replace(base, **changed))
    return msgspec.structs.replace(extended, differ=tuple(sorted(changes, key=lambda one: one.time)))


def _find_past_spec(call: "PastCall", spec_of: Callable[[str], ToolSpec | None]) -> ToolSpec | None:
    fact = call.decided.facts.foreign
    return spec_of(call.start.tool_call_name) or (_build_foreign_spec(fact) if fact is not None else None)


def _redecide(
    session: str, call: "PastCall", spec: ToolSpec, rules: PolicyConfig, mode: Mode | None
) -> Iterator[DecisionChange]:
    """The change of the decision, if it changed. Mode and attendance are no rules, so they stay as they were."""
    start, past, then = call.start, call.decided, call.decided.decision
    rules = msgspec.structs.replace(rules, mode=mode or past.mode or rules.mode, unattended=past.unattended)
    decide_by = partial(decide, spec, start.requested_permissions, past.facts)
    now = decide_by(rules)
    if start.confirm:
        now = require_approval(now, start.confirm, decide_by, rules)
    if now.decision != then.decision:
        yield DecisionChange(
            time=start.time,
            session=session,
            tool_call_id=start.tool_call_id,
            tool=start.tool_call_name,
            subject=now.subject or then.subject,
            then=then.decision,
            now=now.decision,
            rule=now.rule,
            reason=now.reason,
            rule_then=then.rule,
        )
