"""A policy decision as text: the call, its parts, the reason."""

from typing import Any

import msgspec

from handrail.protocol.decisions import Decision
from handrail.protocol.text import escape_control, escape_exact_line, truncate
from handrail.terminal.style import wrap_line
from handrail.terminal.tables import layout_table

_MAX_SUBJECT_CHARS = 60
_MAX_CALL_CHARS = 2_000


def render_call(tool: str, args: Any) -> str:
    """A call whose arguments are known to be valid."""
    if tool == "exec":
        return f"$ {args['command']}"
    return f"{tool} {truncate(msgspec.json.encode(args).decode(), _MAX_CALL_CHARS)}"


def render_decision(
    call: str, decision: Decision, mode: str, remarks: list[str], *, columns: int | None = None, plain: bool = False
) -> str:
    """The whole call with every character visible, a branch for each part, the decision, and remarks."""
    between, last = ("|- ", "`- ") if plain else ("├ ", "└ ")
    signs = [between] * (len(decision.parts) - 1) + [last]
    branches = [
        (f"{sign}{truncate(part.subject, _MAX_SUBJECT_CHARS)}", name_decision(part.decision), part.rule, part.reason)
        for sign, part in zip(signs, decision.parts, strict=True)
    ]
    ending = f"= {name_decision(decision.decision)} in mode {mode}: {_describe_reason(decision)}"
    first, *others = map(escape_exact_line, call.split("\n"))
    head = (wrap_line(line, columns, 2) for line in (first, *(f"  {one}" for one in others)))
    tail = (wrap_line(line, columns, 4) for line in (ending, *(f"  {one}" for one in remarks)))
    return f"{''.join(head)}{layout_table(branches, columns)}{''.join(tail)}"


def name_decision(decision: str) -> str:
    return "needs approval" if decision == "confirm" else decision


def _describe_reason(decision: Decision) -> str:
    """The part that decides, and the number of other parts that decide the same."""
    if decision.decision == "allow" and len(decision.parts) > 1:
        return "every part is allowed"
    more = sum(part.decision == decision.decision for part in decision.parts) - 1
    others = f", and {more} more" if decision.decision == "confirm" and more > 0 else ""
    return f"{escape_control(decision.reason)} ({decision.rule}){others}"
