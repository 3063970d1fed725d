"""What policy would say about a call. No session is opened, nothing is run, nothing is written down."""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from handrail.policy.configuration import Rules
from handrail.policy.rules.foreign_names import FOREIGN
from handrail.policy.verdict import decide
from handrail.protocol.arguments import Problem, checked, invalid
from handrail.protocol.decision import Decision, DecisionPart, Facts
from handrail.protocol.error import ToolError
from handrail.protocol.plain import plain, readable
from handrail.protocol.tool import ToolSpec
from handrail.runtime.registry import Offer
from handrail.settings import Settings
from handrail.store.folder import StateFolder
from handrail.store.opened import OpenedFolders
from handrail.tools.contract import ProcessUse, Tool
from handrail.tools.exec import EXEC, ExecArguments
from handrail.workspace.root import Root
from handrail.workspace.workspace import Workspace

_WITHOUT_LAYER = 2
"""The best sandbox of a command that goes on after its call from the start."""


def open_roots(workspace: str, settings: Settings, rules: Rules, state: StateFolder) -> Workspace:
    """The roots that a session has, but for what is its own: its folder, and what was opened to it alone."""
    extra = [Root(path, writable=False) for path in settings.paths.read_only]
    house = Workspace(workspace, *extra, *(Root(path) for path in settings.paths.writable))
    if rules.outside == "ask":
        from handrail.runtime.furnishing import open_outside  # noqa: PLC0415  few settings let people be asked

        opened = OpenedFolders(state.opened(os.path.realpath(workspace)))
        open_outside(house, {"workspace": opened}, "", state, rules)
    return house


class Explainer:
    """Explains calls in one workspace. The tools are looked up when the first is asked about; commands need none, but
    for the sandbox, which is tried when the first is asked about."""

    def __init__(
        self, workspace: Workspace, offer: Callable[[], Offer], tier: Callable[[], int], processes: str = ""
    ) -> None:
        self._workspace, self._offer, self._tier = workspace, offer, tier
        self._processes = processes
        """The folder of the process sessions that calls may be about."""

    def close(self) -> None:
        """Lets go of the workspace."""
        self._workspace.close()

    def explain(self, name: str, arguments: object, rules: Rules) -> Decision:
        """The decision with all its parts; ToolError where the call is wrong before policy is asked."""
        return self.explain_with_facts(name, arguments, rules)[0]

    def explain_with_facts(self, name: str, arguments: object, rules: Rules) -> tuple[Decision, Facts]:
        """The same, and what it was decided from."""
        spec, gather = (EXEC, self._command_facts) if name == EXEC.name else self._tool(name)
        facts = gather(_checked(spec, arguments))
        return with_parts(decide(spec, None, facts, rules)), facts

    def _command_facts(self, arguments: ExecArguments) -> Facts:
        from handrail.runtime.command_facts import command_facts  # noqa: PLC0415  tables that only commands need

        return command_facts(
            self._workspace,
            arguments.command,
            arguments.cwd,
            background=arguments.background,
            yields=arguments.yield_ms is not None,
            tier=min(self._tier(), _WITHOUT_LAYER) if arguments.background else self._tier(),
        )

    def _tool(self, name: str) -> tuple[ToolSpec, Callable[[Any], Facts]]:
        offer = self._offer()
        tool = offer.get(name)
        if tool is None and (found := _of_server(name)) is not None:
            return found
        if tool is None:
            raise _unknown(name, offer)
        return tool.spec, lambda arguments: self._tool_facts(tool, arguments)

    def _tool_facts(self, tool: Tool, arguments: Any) -> Facts:
        from handrail.runtime.steps import touched_facts  # noqa: PLC0415  it knows of journals, which commands need not

        touched = tool.touches(arguments)
        if touched.process is not None:
            return self._process_facts(touched.process)
        try:
            return touched_facts(self._workspace, touched)
        finally:
            self._workspace.let_go()

    def _process_facts(self, use: ProcessUse) -> Facts:
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  few ask about them
        from handrail.runtime.process_facts import process_facts  # noqa: PLC0415

        return process_facts(use, lambda: ProcessSessions(self._processes), self._tier)


def _of_server(name: str) -> tuple[ToolSpec, Callable[[Any], Facts]] | None:
    """A tool of another server, by its name alone: no server is asked."""
    if not name.startswith(FOREIGN):
        return None
    from handrail.runtime.foreign.unasked import fact_by_name, unasked_spec  # noqa: PLC0415  few have other servers

    fact = fact_by_name(name)
    return None if fact is None else (unasked_spec(fact), lambda _: Facts(foreign=fact))


def with_parts(decision: Decision) -> Decision:
    """The decision with its only part named as one."""
    if decision.parts:
        return decision
    part = DecisionPart(
        subject=decision.subject, decision=decision.decision, rule=decision.rule, reason=decision.reason
    )
    return msgspec.structs.replace(decision, parts=(part,))


def _checked(spec: ToolSpec, arguments: object) -> Any:
    typed = checked(spec, arguments)
    if not plain(arguments)[1]:
        problem = "the arguments hold text that is not valid Unicode, or are nested too deeply"
        raise invalid(spec, (Problem(field="", problem=problem),))
    return typed


def _unknown(name: str, offer: Offer) -> ToolError:
    message = f"Unknown Agent tool: {readable(name)[:200]}"
    if off := offer.why_off(name):
        message = f"{message} ({off})"
    return ToolError("UNKNOWN_TOOL", message, details=list(offer.names))
