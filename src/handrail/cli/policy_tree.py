"""A decision as a person reads it: the call, a branch for each part, and what it comes to."""

import os
import sys
from collections.abc import Iterator

from handrail.cli.output import can_show, render_table
from handrail.protocol.decisions import CommandFact, Decision, DecisionPart
from handrail.protocol.text import escape_control, truncate

_MAX_SUBJECT_CHARS = 60


def render_decision_tree(called: str, decision: Decision, mode: str, remarks: list[str]) -> str:
    """The whole call, then its parts, then the decision, and what it goes by."""
    ending = [f"= {decision.decision} in mode {mode}: {_why(decision)}\n"]
    ending += [f"  {remark}\n" for remark in remarks]
    return f"{_wrapped(called)}{render_table(_branches(decision.parts))}{''.join(ending)}"


def list_network_remarks(decision: Decision, command: CommandFact) -> list[str]:
    """Which hosts a command names, and what would open them."""
    from handrail.policy.network.needs import MIN_NETWORK_TIER, render_host  # noqa: PLC0415  few commands name any

    hosts = ", ".join(map(render_host, command.hosts))
    if not hosts or command.tier == 0 or decision.rule == "call.denied":
        remarks: list[str] = []
    elif command.tier < MIN_NETWORK_TIER:
        remarks = [f"the network takes a sandbox of tier {MIN_NETWORK_TIER}, so it cannot reach {hosts}"]
    elif decision.decision == "confirm":
        remarks = [f"a yes opens, for this call: {hosts}"]
    else:
        remarks = [f"it names {hosts}; without a question only what network.allow lists is open"]
    return [*remarks, *(f"not opened: {escape_control(one)}" for one in command.unopened if one not in decision.reason)]


def _why(decision: Decision) -> str:
    """The part that decides, and how many others say the same; of several that are all let be, none does."""
    if decision.decision == "allow" and len(decision.parts) > 1:
        return "every part is allowed"
    more = sum(part.decision == decision.decision for part in decision.parts) - 1
    others = f", and {more} more" if decision.decision == "confirm" and more > 0 else ""
    return f"{escape_control(decision.reason)} ({decision.rule}){others}"


def _branches(parts: tuple[DecisionPart, ...]) -> list[tuple[str, ...]]:
    between, last = ("├ ", "└ ") if can_show("├└") else ("|- ", "`- ")
    signs = [between] * (len(parts) - 1) + [last]
    return [
        (f"{sign}{truncate(part.subject, _MAX_SUBJECT_CHARS)}", part.decision, part.rule, part.reason)
        for sign, part in zip(signs, parts, strict=True)
    ]


def _wrapped(called: str) -> str:
    """All of it, with nothing hidden in it, not even a blank at an end; as wide as the terminal."""
    first, *others = (_with_blanks(line) for line in escape_control(called).split("\n"))
    return "".join(f"{piece}\n" for line in (first, *(f"  {line}" for line in others)) for piece in _pieces(line))


def _with_blanks(line: str) -> str:
    shown = line.rstrip(" \t")
    return shown + "".join("\\u0020" if char == " " else "\\u0009" for char in line[len(shown) :])


def _pieces(line: str) -> Iterator[str]:
    width = _width()
    yield line[:width]
    for at in range(width, len(line), width - 2):
        yield f"  {line[at : at + width - 2]}"


def _width() -> int:
    """Into a pipe lines go as long as they are."""
    try:
        return max(20, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError, AttributeError):
        return sys.maxsize
