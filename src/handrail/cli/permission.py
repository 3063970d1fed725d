"""A call that needs approval, at the shell: the prompt, the request as text, the next command to type."""

import os
import sys
from types import SimpleNamespace
from typing import Any

from handrail.api import Handrail
from handrail.cli.context import open_state_folder
from handrail.cli.output import print_out, warn
from handrail.protocol.calls import Done, Parked
from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.permissions import PermissionRequest, Question
from handrail.protocol.records import shorten_ids
from handrail.protocol.results import OVERLAY_TIER, ToolResult
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import convert, to_dict
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover, is_person_present
from handrail.terminal.request_text import describe_question, render_request, render_title
from handrail.terminal.style import measure_columns

_SNAPSHOT_TIER = 2
_REACHES = frozenset({"exec.network", "git.network"})
LEFT_WAITING = "Left waiting. Your files are untouched. handrail approvals lists it."
"""For a person who ended the prompt without an answer."""


def can_ask(options: SimpleNamespace) -> bool:
    """Whether a prompt may be shown. A prompt never interrupts output for a pipe or a program."""
    return not options.json and sys.stdout is not None and sys.stdout.isatty() and is_person_present()


def ask_until_answered(
    rail: Handrail, result: ToolResult[Any], options: SimpleNamespace
) -> tuple[ToolResult[Any], bool]:
    """Returns the result of a call after the answer of the person, and whether the prompt has shown its outcome. If
    they leave the request for later, it still waits."""
    if result.error is None or result.error.code != "PERMISSION_REQUIRED":
        return result, False
    request = convert(result.error.details, PermissionRequest)
    approver = TerminalApprover(RequestHooks(rail.is_pending, rail.outdated, rail.retry), plain=options.plain)
    try:
        outcome = rail.ask(Parked(batch_id=request.batch_id, requests=(request,)), approver)
    except KeyboardInterrupt:
        warn(LEFT_WAITING)
        raise
    results = outcome.results if isinstance(outcome, Done) else ()
    own = [one for one in results if one.tool_call_id == request.tool_call_id]
    # Otherwise the call is still parked, or another process ran it.
    if own:
        return own[0], True
    return rail.call(request.called, {}, tool_call_id=request.tool_call_id), False


# Texts


def print_request(error: ErrorInfo, mode: Mode) -> None:
    """Prints the request of an error, and the commands that help."""
    request = convert(error.details, PermissionRequest)
    print_out(render_request_text(request))
    warn(suggest_after_request(request, mode))
    warn(describe_answer_commands(request))


def print_answer_commands(error: ErrorInfo) -> None:
    warn(describe_answer_commands(convert(error.details, PermissionRequest)))


def print_question(question: Question) -> None:
    """Prints a question of the model, and the command that replies to it."""
    print_out(render_question(question))
    reply = "1" if question.options else "'TEXT'"
    more = " (or in your own words)" if question.options and question.custom else ""
    warn(f"to reply: handrail approvals reply {question.tool_call_id} {reply}{more}")


def render_request_text(request: PermissionRequest, outdated: tuple[str, ...] = (), again: str = "") -> str:
    """The request with its reasons, everything that would change, and the question."""
    width = measure_columns(sys.stdout)
    lines = render_request(request, width=width, diff=None, files=None, outdated=outdated, again=again)
    return "\n".join([render_title(request), *lines, *([] if outdated else [describe_question(request)]), ""])


def render_question(question: Question) -> str:
    """A question with its options, each with the number that chooses it."""
    rows = [f"  {number}  {to_one_line(option)}" for number, option in enumerate(question.options, start=1)]
    return "\n".join((question.question.rstrip(), *rows, ""))


def shorten_request_id(request_id: str) -> str:
    """The shortest id of a request among all pending ones."""
    pending = [one.request.id for one in open_state_folder().open_inbox(None).list_requests()]
    return shorten_ids(dict.fromkeys([request_id, *pending]))[request_id]


def describe_answer_commands(request: PermissionRequest, *, outdated: bool = False) -> str:
    """The commands that answer a request. `outdated`: an approval would commit nothing."""
    short = shorten_request_id(request.id)
    only = "" if "once" in request.answers else " --output-only"
    deny = f"or: handrail approvals deny {short} --reason TEXT"
    retry = f"handrail approvals retry {short} [--command TEXT]"
    answers = f"To answer it: handrail approvals allow {short}{only}, {deny}"
    if request.command is None:
        return answers
    if "output" not in request.answers:
        return f"{answers}\nOr to try it, or another command instead: {retry}"
    output = "" if only else f"its output without its changes: handrail approvals allow {short} --output-only; "
    whole = f"all of it: handrail approvals show {short} --diff --output"
    if outdated:
        return f"To try it again: {retry}, {deny}\nOr {output}{whole}"
    return f"{answers}\nOr {output}to try it again: {retry}; {whole}"


# How the same call would run without approval


def suggest_after_request(request: PermissionRequest, mode: Mode) -> str:
    """Suggests a looser mode. An approval opens the hosts of a request, a looser mode does not."""
    untouched = "Your files are untouched." if request.preview_id is not None else "Nothing was run."
    rules = [request.rule, *(part.rule for part in request.parts if part.decision == "confirm")]
    if written := next(filter(_is_written, rules), None):
        return f"{untouched} Rule {written} asks in every mode; handrail config shows its file."
    found = {_find_looser_mode(rule, mode, undo=_can_undo(request)) for rule in rules}
    if None in found:
        return f"{untouched} This call needs approval in every mode."
    looser = next(one for one in reversed(MODES) if one in found)
    hosts = f"list {', '.join(request.hosts)} in network.allow, since modes open no host, and " if request.hosts else ""
    return f"{untouched} To let it run without being asked, {hosts}add --mode {looser}."


def suggest_after_denial(error: ErrorInfo, mode: Mode, *, unattended: bool) -> str:
    """Explains why nobody was asked, and suggests a looser mode. Empty if that is not why the call failed."""
    rule = to_dict(error.details).get("rule", "")
    if error.code != "PERMISSION_DENIED" or not rule:
        return ""
    cause = "--unattended is set" if unattended else "the variable CI is set" if os.environ.get("CI") else ""
    looser = None if _is_written(rule) else _find_looser_mode(rule, mode, undo=rule not in _REACHES)
    hosts = "list its hosts in network.allow, since modes open none, and " if rule in _REACHES else ""
    step = f"To let it run, {hosts}add --mode {looser}." if looser else ""
    return f"Requests are denied, because {cause}. {step}".rstrip() if cause else step


def _can_undo(request: PermissionRequest) -> bool:
    """Whether undo would cover the request if it ran without approval. A snapshot holds no repository."""
    if request.command is None:
        return True
    covered = request.tier == OVERLAY_TIER or (request.tier == _SNAPSHOT_TIER and "git" not in request.command)
    return covered and not request.background and not request.hosts


def _find_looser_mode(rule: str, mode: Mode, *, undo: bool) -> Mode | None:
    """The next looser mode in which a built-in rule does not ask. `undo`: whether undo would cover the call."""
    if rule == "exec.no-sandbox":
        return None
    from handrail.inspection import MODE_TABLE  # noqa: PLC0415  only a suggestion needs it

    allowing = {"allow", "undoable"} if undo else {"allow"}
    rows = {f"fs.{kind}": row for kind, row in MODE_TABLE.items()}
    is_foreign = rule.startswith(("tool.", "process."))  # undo covers no tools and programs of others
    row = rows.get(rule, MODE_TABLE["network" if is_foreign else "write"])
    return next((one for one in MODES[MODES.index(mode) + 1 :] if row[one] in allowing), None)


def _is_written(rule: str) -> bool:
    """Whether a person wrote the rule: the ids of built-in rules have a dot."""
    return "." not in rule
