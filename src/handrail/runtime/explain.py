"""Explains, tests and replays the policy without a session."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from handrail.policy.config import MCP_PREFIX, PolicyConfig, Rule, describe_rule
from handrail.policy.decide import decide
from handrail.policy.programs.registry import ProgramRegistry, build_registry, find_example_refusal
from handrail.policy.programs.spec import ProgramSpec
from handrail.policy.rules.lint import list_failing_examples
from handrail.protocol.arguments import build_argument_error, validate
from handrail.protocol.decisions import Decision, DecisionPart, Facts, Mode, Verdict
from handrail.protocol.errors import Problem, StoreError, ToolError
from handrail.protocol.events import BrokenEvent
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Wire, escape_surrogates, sanitize_json
from handrail.runtime.registry import ToolSet
from handrail.sandbox.profile import HostLookup
from handrail.settings import Settings
from handrail.state import list_past_calls
from handrail.store.grants import GrantedFolders
from handrail.store.journal import CallContext, PastCall
from handrail.store.state_dir import StateFolder
from handrail.tools.exec.spec import EXEC, ExecArguments
from handrail.tools.tool import ProcessUse, Tool
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

# § [runtime.explaining] What policy would say about a call. No session is opened, nothing is run, nothing is
# § written down.

_WITHOUT_LAYER = 2
"""The best sandbox of a command that goes on after its call from the start."""


def open_roots(workspace: str, settings: Settings, rules: PolicyConfig, state: StateFolder) -> Workspace:
    """The roots that a session has, but for what is its own: its folder, and what was opened to it alone."""
    extra = [Root(path, writable=False) for path in settings.paths.read_only]
    house = Workspace(workspace, *extra, *(Root(path) for path in settings.paths.writable))
    if rules.outside == "ask":
        from handrail.runtime.session import build_opened_roots  # noqa: PLC0415  few settings let people be asked

        opened = GrantedFolders(state.opened_folders(os.path.realpath(workspace)))
        build_opened_roots(house, {"workspace": opened}, "", state, rules)
    return house


class Explainer:
    """Explains calls in one workspace. The tools are looked up when the first is asked about; commands need none, but
    for the sandbox, which is tried when the first is asked about."""

    def __init__(
        self,
        workspace: Workspace,
        offer: Callable[[], ToolSet],
        tier: Callable[[], int],
        host: HostLookup,
        processes: str = "",
    ) -> None:
        self._workspace, self._offer, self._tier, self._host = workspace, offer, tier, host
        self._processes = processes
        """The folder of the process sessions that calls may be about."""

    def close(self) -> None:
        """Lets go of the workspace."""
        self._workspace.close()

    def explain(self, name: str, arguments: object, rules: PolicyConfig) -> Decision:
        """The decision with all its parts; ToolError where the call is wrong before policy is asked."""
        return self.explain_with_facts(name, arguments, rules)[0]

    def explain_with_facts(self, name: str, arguments: object, rules: PolicyConfig) -> tuple[Decision, Facts]:
        """The same, and what it was decided from."""
        spec, gather = (EXEC, self._command_facts) if name == EXEC.name else self._tool(name)
        facts = gather(_checked(spec, arguments))
        return fill_parts(decide(spec, None, facts, rules)), facts

    def _command_facts(self, arguments: ExecArguments) -> Facts:
        from handrail.runtime.facts import collect_command_facts  # noqa: PLC0415  tables that only commands need

        return collect_command_facts(
            self._workspace,
            arguments.command,
            arguments.cwd,
            background=arguments.background,
            yields=arguments.yield_ms is not None,
            tier=min(self._tier(), _WITHOUT_LAYER) if arguments.background else self._tier(),
            host=self._host,
        )

    def _tool(self, name: str) -> tuple[ToolSpec, Callable[[Any], Facts]]:
        offer = self._offer()
        tool = offer.get(name)
        if tool is None and (found := _find_server_tool(name)) is not None:
            return found
        if tool is None:
            raise _unknown(name, offer)
        return tool.spec, lambda arguments: self._tool_facts(tool, arguments)

    def _tool_facts(self, tool: Tool, arguments: Any) -> Facts:
        from handrail.runtime.decide import collect_touched_facts  # noqa: PLC0415  it knows of journals, which commands need not

        touched = tool.touches(arguments)
        if touched.process is not None:
            return self._process_facts(touched.process)
        try:
            return collect_touched_facts(self._workspace, touched)
        finally:
            self._workspace.drop_cached()

    def _process_facts(self, use: ProcessUse) -> Facts:
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  few ask about them
        from handrail.runtime.facts import collect_process_facts  # noqa: PLC0415

        return collect_process_facts(use, lambda: ProcessSessions(self._processes), self._tier)


def _find_server_tool(name: str) -> tuple[ToolSpec, Callable[[Any], Facts]] | None:
    """A tool of another server, by its name alone: no server is asked."""
    if not name.startswith(MCP_PREFIX):
        return None
    from handrail.runtime.foreign.call import build_unlisted_spec, parse_foreign_fact  # noqa: PLC0415  few have other servers

    fact = parse_foreign_fact(name)
    return None if fact is None else (build_unlisted_spec(fact), lambda _: Facts(foreign=fact))


def fill_parts(decision: Decision) -> Decision:
    """The decision with its only part named as one."""
    if decision.parts:
        return decision
    part = DecisionPart(
        subject=decision.subject, decision=decision.decision, rule=decision.rule, reason=decision.reason
    )
    return msgspec.structs.replace(decision, parts=(part,))


def _checked(spec: ToolSpec, arguments: object) -> Any:
    typed = validate(spec, arguments)
    if not sanitize_json(arguments)[1]:
        problem = "the arguments hold text that is not valid Unicode, or are nested too deeply"
        raise build_argument_error(spec, (Problem(field="", problem=problem),))
    return typed


def _unknown(name: str, offer: ToolSet) -> ToolError:
    message = f"Unknown Agent tool: {escape_surrogates(name)[:200]}"
    if off := offer.why_off(name):
        message = f"{message} ({off})"
    return ToolError("UNKNOWN_TOOL", message, details=list(offer.names))


# § [runtime.examples] Tries the examples that rules and built-in tables carry.


class Example(Wire, frozen=True):
    """An example, and whether what its rule or table says of it comes out."""

    rule: str
    """The rule with its place, or the table."""
    example: str
    problem: str = ""
    """What is wrong with it, in words; empty where nothing is."""
    came_out: str = ""
    """What policy decides about a command that came out wrong."""


def run_rule_examples(rules: PolicyConfig, explainer: Explainer) -> Iterator[Example]:
    """Every example of the rules that people wrote."""
    for rule in rules.rules:
        for one in _apart(rule):
            [example] = (*one.match, *one.no_match)
            problem = "; ".join(list_failing_examples(one))
            came_out = _decided(explainer, example, rules) if problem and rule.tool == EXEC.name else ""
            yield Example(rule=describe_rule(rule), example=example, problem=problem, came_out=came_out)


def run_table_examples() -> Iterator[Example]:
    """Every example of the tables of programs."""
    known = build_registry()
    for table in {id(table): table for table in known.tables.values()}.values():  # once, whatever its names
        yield from _examples_of(table, known)


def _apart(rule: Rule) -> Iterator[Rule]:
    """The rule with one example at a time."""
    for example in rule.match:
        yield msgspec.structs.replace(rule, match=(example,), no_match=())
    for example in rule.no_match:
        yield msgspec.structs.replace(rule, match=(), no_match=(example,))


def _decided(explainer: Explainer, command: str, rules: PolicyConfig) -> str:
    decision = explainer.explain(EXEC.name, {"command": command}, rules)
    return f"{decision.decision} by {decision.rule}: {decision.reason}"


def _examples_of(table: ProgramSpec, known: ProgramRegistry) -> Iterator[Example]:
    name = f"table {table.name}"
    for example in table.match:
        why = find_example_refusal(table, known, example)
        yield Example(rule=name, example=example, problem=f"is not accepted: {why}" if why else "")
    for example in table.no_match:
        problem = "" if find_example_refusal(table, known, example) else "is accepted"
        yield Example(rule=name, example=example, problem=problem)


# § [runtime.replaying] Judges calls of before under the rules of today, from the facts that were written down. No
# § file is looked at.

_BEFORE_POLICY = frozenset({"call.refused", "journal.broken"})


class DecisionChange(Wire, frozen=True):
    """A call that would be decided otherwise."""

    time: datetime
    session: str
    tool_call_id: str
    tool: str
    subject: str
    then: Verdict
    now: Verdict
    rule: str
    """The one that decides now."""
    reason: str
    rule_then: str


class PolicyReplay(Wire, frozen=True, omit_defaults=False):
    """What today's rules would make of the calls."""

    calls: int
    """Those that could be judged again."""
    differ: tuple[DecisionChange, ...]
    """In the order of time."""
    unjudged: int
    """Refused before policy was asked: an unknown tool, wrong arguments."""
    gone: dict[str, int]
    """Calls of tools that are not here any more, by their name."""
    broken: int
    """Calls whose record cannot be read."""
    unreadable: tuple[str, ...]
    """Why the journals of whole sessions cannot be read."""


def replay(
    folders: Iterable[str],
    spec_of: Callable[[str], ToolSpec | None],
    rules: PolicyConfig,
    since: datetime | None,
    mode: Mode | None = None,
) -> PolicyReplay:
    """Judges every call of some sessions again, in its own mode or in one for all. An answer that a person gave is no
    part of the comparison."""
    counts = _Counts(spec_of, rules, mode)
    for folder in folders:
        try:
            for call in list_past_calls(folder, since):
                counts.add(os.path.basename(folder), call)
        except StoreError as error:
            counts.unreadable.append(str(error))
    return counts.replay()


class _Counts:
    def __init__(self, spec_of: Callable[[str], ToolSpec | None], rules: PolicyConfig, mode: Mode | None) -> None:
        self.unreadable: list[str] = []
        self._spec_of, self._rules = spec_of, rules
        self._mode: Mode | None = mode
        self._calls = self._unjudged = self._broken = 0
        self._gone: dict[str, int] = {}
        self._differ: list[DecisionChange] = []

    def add(self, session: str, call: PastCall | BrokenEvent) -> None:
        if isinstance(call, BrokenEvent):
            self._broken += 1
        elif call.decided.decision.rule in _BEFORE_POLICY:
            self._unjudged += 1
        elif (spec := self._spec_of(name := call.start.tool_call_name) or _to_server_spec(call.decided.facts)) is None:
            self._gone[name] = self._gone.get(name, 0) + 1
        else:
            self._judge(session, call, spec)

    def _judge(self, session: str, call: PastCall, spec: ToolSpec) -> None:
        self._calls += 1
        then = call.decided.decision
        now = decide(
            spec, call.start.requested_permissions, call.decided.facts, _as_then(self._rules, call.decided, self._mode)
        )
        if now.decision != then.decision:
            self._differ.append(_difference(session, call, now))

    def replay(self) -> PolicyReplay:
        return PolicyReplay(
            calls=self._calls,
            differ=tuple(sorted(self._differ, key=lambda one: one.time)),
            unjudged=self._unjudged,
            gone=self._gone,
            broken=self._broken,
            unreadable=tuple(self.unreadable),
        )


def _to_server_spec(facts: Facts) -> ToolSpec | None:
    """Of another server's tool the facts have what policy goes by; no server is asked."""
    if facts.foreign is None:
        return None
    from handrail.runtime.foreign.call import build_unlisted_spec  # noqa: PLC0415  few call other servers

    return build_unlisted_spec(facts.foreign)


def _as_then(rules: PolicyConfig, then: CallContext, mode: Mode | None) -> PolicyConfig:
    """In which mode a call was made, and whether somebody was there to be asked, is no rule: that stays as it was."""
    return msgspec.structs.replace(rules, mode=mode or then.mode or rules.mode, unattended=then.unattended)


def _difference(session: str, call: PastCall, now: Decision) -> DecisionChange:
    then = call.decided.decision
    return DecisionChange(
        time=call.start.time,
        session=session,
        tool_call_id=call.start.tool_call_id,
        tool=call.start.tool_call_name,
        subject=now.subject or then.subject,
        then=then.decision,
        now=now.decision,
        rule=now.rule,
        reason=now.reason,
        rule_then=then.rule,
    )
