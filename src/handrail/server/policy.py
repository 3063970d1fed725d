"""Questions about the policy: why a call is decided so, what another rule would change."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from handrail.inspection import PolicyInspector, list_remarks
from handrail.protocol.errors import ToolError
from handrail.server.context import Request
from handrail.server.options import ApiFailure
from handrail.server.wire import ChangedDecision, NewRule, PolicyAnswer, PolicyQuestion, RuleEffect
from handrail.settings import SettingsError
from handrail.settings.toml_file import RULE
from handrail.terminal.decision_text import render_call, render_decision


def explain(request: Request) -> PolicyAnswer:
    question: PolicyQuestion = request.body
    if question.command is not None and question.args:
        raise ToolError("INVALID_ARGUMENT", "Give a command, or a tool with its arguments.")
    tool, args = ("exec", {"command": question.command}) if question.command else (question.tool, question.args)
    with _open_inspector(request, question.workspace) as inspector:
        decision, facts = inspector.explain(tool, args, question.mode)
        mode = inspector.get_mode(question.mode)
    text = render_decision(render_call(tool, args), decision, mode, list_remarks(decision, facts))
    return PolicyAnswer(decision=decision, facts=facts, mode=mode, text=tuple(text.splitlines()))


def try_rule(request: Request) -> RuleEffect:
    """Decides the calls of the last days again with one more rule. Nothing is stored."""
    wanted: NewRule = request.body
    since = datetime.now(UTC) - timedelta(days=wanted.days)
    with _open_inspector(request, wanted.workspace) as inspector:
        folders = request.server.options.state.sessions(inspector.workspace)
        try:
            found = inspector.try_rule(wanted.rule, folders, since)
        except SettingsError as error:
            raise ApiFailure(400, "INVALID_ARGUMENT", str(error), {"problems": list(error.problems)}) from None
    different = tuple(
        ChangedDecision(
            task=one.session,
            tool_call_id=one.tool_call_id,
            time=one.time,
            tool=one.tool,
            subject=one.subject,
            before=one.then,
            after=one.now,
        )
        for one in found.differ
    )
    return RuleEffect(toml=_render_rule(wanted.rule), calls=found.calls, different=different)


def _open_inspector(request: Request, named: str | None) -> PolicyInspector:
    options = request.server.options
    workspace = options.resolve_workspace(named)
    return PolicyInspector(options.find_folder(workspace), options.load_settings(workspace), state=options.state)


def _render_rule(table: Mapping[str, object]) -> str:
    """The rule for a settings file. Its values are strings, lists of strings and flags, as its check made sure."""
    lines = (f"{key} = {_render_value(table[key])}\n" for key in RULE if key in table)
    return f"[[rule]]\n{''.join(lines)}"


def _render_value(value: object) -> str:
    """JSON writes these values as TOML does, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
