"""What a person can do about a call that policy did not let run."""

import os
from typing import Any, cast

from handrail.policy.verdict import TABLE, Cell
from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import OVERLAY_TIER

_KEPT = 2
_NEVER = frozenset({"fs.secret", "fs.outside", "fs.read-only", "exec.limit"})
_REACHES = frozenset({"exec.network", "git.network"})


def suggest_after_request(request: PermissionRequest, mode: Mode) -> str:
    """How the same call would not ask, where there is a way; a yes opens its hosts, a looser mode does not."""
    hosts, untouched, rules = request.hosts, _untouched(request), _asking(request)
    if written := next(filter(_is_written, rules), None):
        return f"{untouched} Rule {written} asks in every mode; handrail config shows where it stands."
    looser = _all_unasked_in(rules, mode, undo=_can_undo(request))
    if looser is None:
        return f"{untouched} This asks in every mode."
    listed = f"list {', '.join(hosts)} in network.allow, since modes open no host, and " if hosts else ""
    return f"{untouched} To let it run without being asked, {listed}add --mode {looser}."


def describe_answer_commands(request: PermissionRequest, *, outdated: bool = False) -> str:
    """The commands that answer a request, with an id as short as tells it from what else waits. `outdated`: a yes would
    commit nothing."""
    from handrail.cli.inbox import shorten_request_id  # noqa: PLC0415  only where somebody has to be asked

    short = shorten_request_id(request.id)
    only = "" if "once" in request.answers else " --output-only"
    deny, retry = (
        f"or: handrail approvals deny {short} --reason TEXT",
        f"handrail approvals retry {short} [--command TEXT]",
    )
    answers = f"To answer it: handrail approvals allow {short}{only}, {deny}"
    if request.command is None:
        return answers
    if "output" not in request.answers:
        return f"{answers}\nOr to try it, or another command in its place: {retry}"
    output = "" if only else f"its output without its changes: handrail approvals allow {short} --output-only; "
    whole = f"all of it: handrail approvals show {short} --diff --output"
    if outdated:
        return f"To try it again: {retry}, {deny}\nOr {output}{whole}"
    return f"{answers}\nOr {output}to try it again: {retry}; {whole}"


def _asking(request: PermissionRequest) -> list[str]:
    """The rules that ask about it: each of its parts may have one, and one that still asks is enough to be asked."""
    return [request.rule, *(part.rule for part in request.parts if part.decision == "confirm")]


def _all_unasked_in(rules: list[str], mode: Mode, *, undo: bool) -> Mode | None:
    """The next looser mode in which none of these rules asks."""
    found = {_unasked_in(rule, mode, undo=undo) for rule in rules}
    return None if None in found else next(one for one in reversed(MODES) if one in found)


def _untouched(request: PermissionRequest) -> str:
    """What has happened by now."""
    return "Your files are untouched." if request.preview_id is not None else "Nothing was run."


def _can_undo(request: PermissionRequest) -> bool:
    """Whether undo would cover what it changes if it ran unasked: of a command, if it has an overlay, or a snapshot,
    which holds no repository."""
    if request.command is None:
        return True
    kept = request.tier == OVERLAY_TIER or (request.tier == _KEPT and "git" not in request.command)
    return kept and not request.background and not request.hosts


def suggest_after_denial(error: ErrorInfo, mode: Mode, *, unattended: bool) -> str:
    """What would have to change for the call to run; empty where policy did not refuse it."""
    rule = _rule_of(error)
    match error.code:
        case "OUTSIDE_WORKSPACE" if rule:
            return "Nothing was run. paths.read_only and paths.writable in the user file open folders to the tools."
        case "POLICY_DENIED":
            return f"Nothing was run. {_after_no(rule, mode)}"
        case "PERMISSION_DENIED" if rule:
            return f"{_why_nobody(unattended)} {_with_looser(rule, mode)}".rstrip()
        case _:
            return ""


def _rule_of(error: ErrorInfo) -> str:
    details: Any = error.details
    return cast("dict[str, str]", details).get("rule", "") if isinstance(details, dict) else ""


def _after_no(rule: str, mode: Mode) -> str:
    if _is_written(rule):
        return f"handrail config shows where the rule {rule} stands."
    if rule == "call.denied":
        return "handrail config shows which permissions [tools] deny lists."
    if rule.startswith("restricted."):
        return "The restricted profile refuses all that it does not list; handrail config shows what it lists."
    if mode == "plan" and rule not in _NEVER and not rule.startswith("deny."):
        return "Plan mode only looks; with --mode ask it would ask."
    return "No mode, rule or answer lifts this."


def _why_nobody(unattended: bool) -> str:
    return "--unattended refuses what would ask." if unattended else _CI if os.environ.get("CI") else ""


_CI = "The variable CI is set, so what would ask is refused."


def _with_looser(rule: str, mode: Mode) -> str:
    """The next looser mode is named first: only where commands have no overlay here does it take one more."""
    looser = None if _is_written(rule) else _unasked_in(rule, mode, undo=rule not in _REACHES)
    listed = "list its hosts in network.allow, since modes open none, and " if rule in _REACHES else ""
    return f"To let it run, {listed}add --mode {looser}." if looser else ""


def _unasked_in(rule: str, mode: Mode, *, undo: bool) -> Mode | None:
    """The next looser mode in which what a built-in rule asks about is let be. `undo`: whether undo would cover it."""
    if rule == "exec.no-sandbox":
        return None
    let_be = {"allow", "undoable"} if undo else {"allow"}
    rows: dict[str, dict[Mode, Cell]] = {f"fs.{subject}": row for subject, row in TABLE.items()}
    covered = not rule.startswith(("tool.", "process."))  # no undo covers what the tools and programs of others do
    row = rows.get(rule, TABLE["write" if covered else "network"])
    looser = MODES[MODES.index(mode) + 1 :]
    return next((one for one in looser if row[one] in let_be), None)


def _is_written(rule: str) -> bool:
    """Whether a person wrote it: the ids of built-in rules have a dot."""
    return "." not in rule
