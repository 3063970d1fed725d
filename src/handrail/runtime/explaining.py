"""What policy would say about a call. No session is opened, nothing is run, nothing is written down."""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from handrail.policy.config import MCP_PREFIX, PolicyConfig
from handrail.policy.decide import decide
from handrail.protocol.arguments import build_argument_error, validate
from handrail.protocol.decisions import Decision, DecisionPart, Facts
from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime.registry import ToolSet
from handrail.sandbox.host import HostLookup
from handrail.settings import Settings
from handrail.store.grants import GrantedFolders
from handrail.store.state_dir import StateFolder
from handrail.tools.contract import ProcessUse, Tool
from handrail.tools.exec_spec import EXEC, ExecArguments
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

_WITHOUT_LAYER = 2
"""The best sandbox of a command that goes on after its call from the start."""


def open_roots(workspace: str, settings: Settings, rules: PolicyConfig, state: StateFolder) -> Workspace:
    """The roots that a session has, but for what is its own: its folder, and what was opened to it alone."""
    extra = [Root(path, writable=False) for path in settings.paths.read_only]
    house = Workspace(workspace, *extra, *(Root(path) for path in settings.paths.writable))
    if rules.outside == "ask":
        from handrail.runtime.furnishing import build_opened_roots  # noqa: PLC0415  few settings let people be asked

        opened = GrantedFolders(state.opened(os.path.realpath(workspace)))
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
        from handrail.runtime.command_facts import collect_command_facts  # noqa: PLC0415  tables that only commands need

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
        from handrail.runtime.steps import collect_touched_facts  # noqa: PLC0415  it knows of journals, which commands need not

        touched = tool.touches(arguments)
        if touched.process is not None:
            return self._process_facts(touched.process)
        try:
            return collect_touched_facts(self._workspace, touched)
        finally:
            self._workspace.drop_cached()

    def _process_facts(self, use: ProcessUse) -> Facts:
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  few ask about them
        from handrail.runtime.process_facts import collect_process_facts  # noqa: PLC0415

        return collect_process_facts(use, lambda: ProcessSessions(self._processes), self._tier)


def _find_server_tool(name: str) -> tuple[ToolSpec, Callable[[Any], Facts]] | None:
    """A tool of another server, by its name alone: no server is asked."""
    if not name.startswith(MCP_PREFIX):
        return None
    from handrail.runtime.foreign.unasked import build_unlisted_spec, parse_foreign_fact  # noqa: PLC0415  few have other servers

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
