"""policy explain: what policy decides about a command or a call, and why."""

from argparse import Namespace
from contextlib import closing
from functools import cached_property

from handrail.cli.context import read_stdin_lines
from handrail.cli.exits import FAILED, OK, USAGE, WAITING
from handrail.cli.output import print_json, print_out, warn
from handrail.cli.policy_place import PolicyWorkspace
from handrail.cli.policy_question import PolicyQuery, parse_query_line, read_query
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.decisions import CommandFact, Decision
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import encode

_SCHEMA = "handrail.policy/1"
_EXITS = {"allow": OK, "deny": FAILED, "confirm": WAITING}
_WORST_FIRST = (USAGE, FAILED, WAITING, OK)


def run(options: Namespace) -> int:
    """Explains one call, or one a line."""
    question = read_query(options)
    with closing(_Asking(options)) as asking:
        return _one(asking, question, options) if question else _lines(asking, options)


class _Asking:
    """Puts questions to policy."""

    def __init__(self, options: Namespace) -> None:
        self._place = PolicyWorkspace(options, options.mode)
        self._given: int | None = options.tier
        self._explainer = self._place.explainer(lambda: self.tier)

    @cached_property
    def tier(self) -> int:
        """The sandbox that is meant; where nobody says, the one that commands have here."""
        return self._place.tier() if self._given is None else self._given

    def close(self) -> None:
        self._explainer.close()

    def decision(self, question: PolicyQuery) -> tuple[Decision, CommandFact | None]:
        rules = self._place.granted(question.mode)
        decision, facts = self._explainer.explain_with_facts(question.tool, question.args, rules)
        return decision, facts.command

    def mode(self, question: PolicyQuery) -> str:
        return self._place.rules(question.mode).mode

    def answer(self, question: PolicyQuery, decision: Decision, command: CommandFact | None) -> bytes:
        body: dict[str, object] = {
            "schema": _SCHEMA,
            "decision": decision.decision,
            "rule": decision.rule,
            "reason": decision.reason,
        }
        if decision.code is not None:
            body["code"] = decision.code
        body |= {"parts": decision.parts, "mode": self.mode(question)}
        if command is not None:
            body |= {"tier": command.tier}
            named = {"hosts": command.hosts, "unopened": command.unopened}
            body |= {name: value for name, value in named.items() if value}
        return encode(body)


def _one(asking: _Asking, question: PolicyQuery, options: Namespace) -> int:
    try:
        decision, command = asking.decision(question)
    except ToolError as error:
        if options.json:
            print_json(_failure(error))
        else:
            warn(f"{error.code}: {error.message}")
            if error.code == "UNKNOWN_TOOL":
                warn(f"The tools here: {', '.join(error.details)}.")
        return USAGE
    if options.json:
        print_json(asking.answer(question, decision, command))
    else:
        from handrail.cli.policy_tree import list_network_remarks, render_decision_tree  # noqa: PLC0415  for people

        remarks = list_network_remarks(decision, command) if command else []
        if command and options.tier is None:
            remarks.append(f"in the sandbox that commands have here: tier {command.tier}")
        if question.tool.startswith(MCP_PREFIX):
            remarks.append("no server was asked: its arguments are not checked, nor whether it was changed")
        print_out(render_decision_tree(question.called, decision, asking.mode(question), remarks))
    return _EXITS[decision.decision] if options.exit_code else OK


def _lines(asking: _Asking, options: Namespace) -> int:
    """One answer for each line, also for one that cannot be understood, so that a program can count on it."""
    exits = {OK}
    for line in read_stdin_lines():
        try:
            question = parse_query_line(line, options.cwd)
            decision, command = asking.decision(question)
            told = asking.answer(question, decision, command)
            code = _EXITS[decision.decision] if options.exit_code else OK
        except ToolError as error:
            told, code = _failure(error), USAGE
        exits.add(code)
        if not print_json(told):
            break
    return next(code for code in _WORST_FIRST if code in exits)


def _failure(error: ToolError) -> bytes:
    told = {"code": error.code, "message": error.message}
    if error.details is not None:
        told["details"] = error.details
    return encode({"schema": _SCHEMA, "error": told})
