"""Answers a request of any session from the shell, and prints what came of it as `call` does."""

import os
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handrail.api import Handrail
from handrail.cli.call import get_exit_code, show
from handrail.cli.exits import FAILED, OK, WAITING, CommandFailed
from handrail.cli.inbox import shorten_request_id
from handrail.cli.output import print_json, print_note
from handrail.cli.output import print_out as answer_text
from handrail.cli.patience import print_slow_notice
from handrail.cli.preferences import load_settings
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import HandrailError, UsageError
from handrail.protocol.permissions import Answer, ApproverReply, InboxRequest, PermissionRequest
from handrail.protocol.records import shorten_ids
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import encode
from handrail.settings import LoadedSettings
from handrail.store.grants import load_variables
from handrail.terminal.changes_text import describe_outdated
from handrail.terminal.permission_prompt import RequestHooks

if TYPE_CHECKING:
    from handrail.runtime.foreign.source import ToolSource

_KEEPING = frozenset({"once", "session", "workspace"})
_OTHER_VARIABLES = (
    "the command would get other variables now (PATH, language, toolchains) than when it was asked, so a yes would not "
    "count. Nothing was answered. Deny it, and have it called again."
)


def answer_request(
    options: Namespace,
    waiting: InboxRequest,
    answer: Answer,
    *,
    report: Callable[[ApproverReply, Done | Parked], None] | None = None,
) -> int:
    """Gives the answer. The last answer of a batch runs the batch here. Returns the exit code. `report`: tells a person
    who answered a prompt the outcome."""
    if waiting.answer is not None and waiting.answer.kind != answer.kind:
        told = f"it was answered already: {waiting.answer.kind}, and not run."
        raise CommandFailed(f"{told} handrail approvals allow {waiting.request.id} runs it.", FAILED)
    with open_asking_session(options, waiting) as rail:
        _refuse_foreign(rail, waiting, answer)
        if answer.kind != "deny":
            refuse_other_variables(rail, waiting)
            _refuse_half(waiting.request, answer)
        if report is None and waiting.answer is None:
            _refuse_outdated(rail, waiting.request, answer)
        try:
            with print_slow_notice(options, waiting.request.command or waiting.request.description):
                outcome = rail.answer(waiting.request, answer)
        except UsageError as error:
            if rail.is_pending(waiting.request.id):
                raise CommandFailed(f"{error}. Nothing was run; it still waits.") from None
            raise CommandFailed(f"answered elsewhere: {error}", FAILED) from None
        if report is not None:
            report(ApproverReply(waiting.request, answer), outcome)
        if isinstance(outcome, Parked):
            return _show_rest(options, outcome)
        code = _show(options, waiting, outcome, rail)
        if answer.kind in {"session", "workspace"} and not options.json:
            print_note(_granted(waiting, answer))
        return code


def build_inbox_hooks(
    options: Namespace, waiting: InboxRequest, list_waiting: Callable[[], list[InboxRequest]]
) -> RequestHooks:
    """Where a question comes from that another session has put. That session is opened only for what takes one, and
    let go again: somebody may look at a question for hours."""

    def still_open(request: PermissionRequest) -> bool:
        here = ((one.request.id, one.request.revision) for one in list_waiting())
        return (request.id, request.revision) in here

    def outdated(request: PermissionRequest) -> tuple[str, ...]:
        return list_outdated_files(options, waiting, request)

    def retry(request_id: str, command: str | None) -> PermissionRequest:
        try:
            with open_asking_session(options, waiting) as rail:
                refuse_other_variables(rail, waiting)
                return rail.retry(request_id, command)
        except CommandFailed as stop:
            raise UsageError(str(stop)) from None

    return RequestHooks(still_open, outdated, retry)


def list_outdated_files(options: Namespace, waiting: InboxRequest, request: PermissionRequest) -> tuple[str, ...]:
    """What changed since the request was tried; nothing where that cannot be found out here, for a yes asks again."""
    if request.preview_id is None:
        return ()
    with suppress(CommandFailed, HandrailError), open_asking_session(options, waiting) as rail:
        return rail.outdated(request)
    return ()


def describe_retry(request: PermissionRequest) -> str:
    """How what is out of date is tried again, from the shell."""
    return f"handrail approvals retry {shorten_request_id(request.id)} tries it again"


def _refuse_half(request: PermissionRequest, answer: Answer) -> None:
    """Of what was stopped nothing can be committed; the request stays, with what can be had of it."""
    if answer.kind in request.answers or "once" in request.answers or "output" not in request.answers:
        return
    short = shorten_request_id(request.id)
    only = f"handrail approvals allow {short} --output-only takes what it printed, retry {short} tries it again"
    raise CommandFailed(f"it was stopped before its end, so there is no whole result to keep. It still waits: {only}.")


def _refuse_outdated(rail: Handrail, request: PermissionRequest, answer: Answer) -> None:
    """A yes that would commit nothing is not taken: the request can be tried again then, as on a terminal."""
    if answer.kind not in _KEEPING or request.preview_id is None:
        return
    if paths := rail.outdated(request):
        raise CommandFailed(
            f"{describe_outdated(paths, describe_retry(request))} Nothing was kept; it still waits.", FAILED
        )


def refuse_other_variables(rail: Handrail, waiting: InboxRequest) -> None:
    """A yes counts only for what the command would have had where it was asked about."""
    if rail.would_differ(waiting.environment):
        raise CommandFailed(_OTHER_VARIABLES, FAILED)


def open_asking_session(options: Namespace, waiting: InboxRequest) -> Handrail:
    """The session that asked, in the mode that its call was judged in and with the variables that its commands would
    have had there: an answer from another shell is to the same question. Somebody is there, whatever this one says."""
    workspace = options.workspace or waiting.workspace
    if workspace is None:
        raise CommandFailed("which workspace it belongs to was not noted. Nothing was run. Name it with --workspace.")
    if not os.path.isdir(workspace):
        gone = f"the folder {to_one_line(workspace)} that it is about is not there. Nothing was answered."
        raise CommandFailed(f"{gone} It can be answered when the folder is there again.", FAILED)
    loaded = load_settings(options, waiting.mode, workspace)
    session, asked = waiting.request.session_id, waiting.environment
    variables = load_variables(waiting.folder, asked) if asked is not None else None
    return Handrail(
        workspace,
        session=session,
        settings=loaded,
        on_permission=_later,
        variables=variables,
        sources=_sources(options, waiting, loaded, workspace),
    )


def _sources(
    options: Namespace, waiting: InboxRequest, loaded: LoadedSettings, workspace: str
) -> "tuple[ToolSource, ...]":
    """Other servers, where a call of the batch is for one of them."""
    if not any(name.startswith(MCP_PREFIX) for name in waiting.tools):
        return ()
    from handrail.cli.servers import build_server_sources  # noqa: PLC0415  few calls are another server's

    return build_server_sources(options, loaded, workspace)


def _refuse_foreign(rail: Handrail, waiting: InboxRequest, answer: Answer) -> None:
    """A tool that only the program that asked has cannot be run here, and the yes would be lost. To say no to it takes
    nothing, as long as no other call of its batch needs such a tool."""
    here = {spec.name for spec in rail.specs()}
    tools = list(waiting.tools)
    if answer.kind == "deny" and waiting.request.called in tools:
        tools.remove(waiting.request.called)
    if missing := [name for name in tools if name not in here]:
        message = f"the tool {missing[0]!r} is not here; only the program that asked for it can run it."
        raise CommandFailed(f"{message} Nothing was answered. There: rail.answer({waiting.request.id!r}, …)", FAILED)


def _show(options: Namespace, waiting: InboxRequest, done: Done, rail: Handrail) -> int:
    if options.json:
        print_json(encode({"schema": "handrail.approvals/1", "results": done.results, "waiting": ()}))
    for result in () if options.json else done.results:
        if _is_denied(result):
            answer_text(_denied(waiting, result))
        else:
            show(result, options, waiting.mode or "ask", rail.why_off(result.name))
    codes = [get_exit_code(result) for result in done.results if not _is_denied(result)]
    return next((code for code in codes if code), OK)


def _denied(waiting: InboxRequest, result: ToolResult[Any]) -> str:
    """What is not done; of what was denied before, which nobody looked up again, the tool."""
    request = waiting.request
    own = request.tool_call_id == result.tool_call_id
    what = truncate(to_one_line(request.description if own else result.name), 80)
    if own and request.preview_id is not None:
        return f"dropped: {what}; your files are untouched\n"
    return f"denied: {what}; nothing of it was run\n"


def _granted(waiting: InboxRequest, answer: Answer) -> str:
    classes = ", ".join(f"`{one}`" for one in waiting.request.grants) or "this folder"
    return f"no longer asks for {classes} in this {answer.kind}; handrail approvals lists it, revoke takes it back"


def _is_denied(result: ToolResult[Any]) -> bool:
    """Whether a person said no: that it was not run then is what they wanted, and no failure."""
    return result.error is not None and result.error.code == "PERMISSION_DENIED"


def _show_rest(options: Namespace, parked: Parked) -> int:
    ids = [request.id for request in parked.requests]
    if options.json:
        print_json(encode({"schema": "handrail.approvals/1", "results": (), "waiting": ids}))
    elif ids:
        short = shorten_ids(ids)[ids[0]]
        print_note(f"Noted. {len(ids)} more to answer before anything of it runs: handrail approvals allow {short}")
    else:
        print_note("Noted. Another process runs it.")
    return WAITING if ids else OK


def _later(_: object) -> None:
    return None
