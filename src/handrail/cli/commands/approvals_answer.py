"""A parked request of any session: found by its id, answered from the shell."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from handrail.answers import AnswerObstacle, find_obstacle, list_changed_files
from handrail.api import Handrail
from handrail.cli.commands.call import get_exit_code, print_result
from handrail.cli.commands.fleet_database import answer_in_fleet, find_database, open_fleet_inbox
from handrail.cli.context import choose_id, find_server_sources, load_settings, open_state_folder
from handrail.cli.exits import FAILED, OK, WAITING, CommandFailed
from handrail.cli.output import (
    choose_out_paint,
    print_json,
    print_note,
    print_out,
    print_painted,
    print_slow_notice,
)
from handrail.cli.permission import shorten_request_id
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import HandrailError, UsageError
from handrail.protocol.permissions import (
    Answer,
    ApproverReply,
    InboxQuestion,
    InboxRequest,
    OpenedFolder,
    PermissionRequest,
)
from handrail.protocol.records import StoredGrant, list_matching_ids, shorten_ids
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value, to_one_line, truncate
from handrail.protocol.tool_spec import MCP_PREFIX
from handrail.protocol.wire import encode
from handrail.terminal.call_lines import describe_granted
from handrail.terminal.changes_text import describe_outdated
from handrail.terminal.permission_prompt import RequestHooks, has_later_line
from handrail.terminal.request_text import describe_subject, render_kept_line
from handrail.terminal.style import measure_columns

if TYPE_CHECKING:
    from handrail.fleet.inbox import FleetInbox
    from handrail.state import Inbox

SCHEMA = "handrail.approvals/1"


# Lookup


def open_inbox(options: SimpleNamespace, workspace: str | None) -> "Inbox | FleetInbox":
    """The inbox of a workspace, or of all. With a database, that of the whole fleet."""
    return open_fleet_inbox(options) or open_state_folder().open_inbox(workspace)


def resolve_request(options: SimpleNamespace) -> InboxRequest:
    """Finds a request by its id: in this workspace, else anywhere."""
    spelled = render_value(options.id)
    for workspace in _list_lookups(options):
        found = {one.request.id: one for one in open_inbox(options, workspace).list_requests()}
        subjects = {request_id: describe_subject(one.request) for request_id, one in found.items()}
        if (request_id := choose_id(options.id, subjects, "handrail approvals")) is not None:
            return found[request_id]
    inbox = open_inbox(options, None)
    answered = inbox.list_answers()
    before = list_matching_ids(options.id, answered)
    if len(before) == 1:
        problem = f"{spelled} already has an answer: {answered[before[0]].kind}."
        raise CommandFailed(f"{problem} Nothing more was run.", FAILED, then="handrail log")
    if list_matching_ids(options.id, (one.question.tool_call_id for one in inbox.list_questions())):
        reply = f"handrail approvals reply {shlex.quote(options.id)} NUMBER-OR-TEXT"
        raise CommandFailed(f"{spelled} is a question. Nothing was done.", then=reply)
    raise CommandFailed(f"there is no request {spelled}. Nothing was run.", FAILED, then="handrail approvals")


def resolve_grant(options: SimpleNamespace) -> StoredGrant:
    """Finds a grant by its id, or an opened folder by its path: in this workspace, else anywhere."""
    for workspace in _list_lookups(options):
        grants = {one.id: one for one in open_state_folder().open_inbox(workspace).list_grants()}
        for grant in grants.values() if options.id.startswith("/") else ():
            if isinstance(grant.granted, OpenedFolder) and os.path.realpath(options.id) == grant.granted.path:
                return grant
        subjects = {grant_id: describe_grant(one) for grant_id, one in grants.items()}
        if (grant_id := choose_id(options.id, subjects, "handrail approvals")) is not None:
            return grants[grant_id]
    problem = f"there is no grant {render_value(options.id)}. Nothing was revoked."
    raise CommandFailed(problem, FAILED, then="handrail approvals")


def resolve_question(options: SimpleNamespace) -> InboxQuestion:
    """Finds a question of any workspace by its id."""
    # The questions of this workspace are found even if its path was not recorded.
    lookups = [None, *filter(None, _list_lookups(options))]
    found = [one for workspace in lookups for one in open_inbox(options, workspace).list_questions()]
    questions = {one.question.tool_call_id: one for one in found}
    subjects = {question_id: to_one_line(one.question.question) for question_id, one in questions.items()}
    if (question_id := choose_id(options.id, subjects, "handrail approvals")) is not None:
        return questions[question_id]
    problem = f"there is no question {render_value(options.id)}. Nothing was replied."
    raise CommandFailed(problem, FAILED, then="handrail approvals")


def _list_lookups(options: SimpleNamespace) -> list[str | None]:
    """The workspaces to look in, one after the other. None stands for all of them."""
    everywhere: list[str | None] = [] if options.workspace else [None]
    try:
        return [os.path.realpath(options.workspace or os.getcwd()), *everywhere]
    except OSError:  # the current folder is gone
        return everywhere


def describe_grant(grant: StoredGrant) -> str:
    granted = grant.granted
    return f"{granted.path} ({granted.access})" if isinstance(granted, OpenedFolder) else granted.command


# Answers


def answer_request(
    options: SimpleNamespace,
    waiting: InboxRequest,
    answer: Answer,
    *,
    report: Callable[[ApproverReply, Done | Parked], None] | None = None,
) -> int:
    """Answers a request, and prints the outcome as `call` does. The last answer of a batch runs the batch here.

    `report`: tells a person who answered a prompt the outcome. Returns the exit code.
    """
    request = waiting.request
    if find_database(options):
        return answer_in_fleet(options, request, answer)
    if waiting.answer is not None and waiting.answer.kind != answer.kind:
        problem = f"the request already has an answer: {waiting.answer.kind}. It has not run yet."
        raise CommandFailed(problem, FAILED, then=f"handrail approvals allow {request.id}")
    with open_asking_session(options, waiting) as rail:
        checks_files = report is None and waiting.answer is None
        if (obstacle := find_obstacle(rail, waiting, answer, checks_files=checks_files)) is not None:
            raise _build_refusal(waiting, obstacle)
        try:
            with print_slow_notice(options, request.command or request.description):
                outcome = rail.answer(request, answer)
        except UsageError as error:
            if rail.is_pending(request.id):
                raise CommandFailed(f"{error}. Nothing was run.", then="handrail approvals") from None
            raise CommandFailed(f"answered elsewhere: {error}", FAILED, then="handrail log") from None
        if report is not None:
            report(ApproverReply(request, answer), outcome)
        if isinstance(outcome, Parked):
            return _print_rest(options, outcome)
        code = _print_results(options, waiting, outcome, rail, answer, told=report is not None)
        if (granted := describe_granted(request, answer)) and not options.json:
            print_note(f"{granted}; handrail approvals lists it, handrail approvals revoke ends it")
        return code


def build_inbox_hooks(
    options: SimpleNamespace, waiting: InboxRequest, list_waiting: Callable[[], list[InboxRequest]]
) -> RequestHooks:
    """The hooks of a prompt about a request of another session.

    Each hook opens that session only as long as it needs it: a person may look at a request for hours.
    """

    def still_open(request: PermissionRequest) -> bool:
        return any((one.request.id, one.request.revision) == (request.id, request.revision) for one in list_waiting())

    def outdated(request: PermissionRequest) -> tuple[str, ...]:
        return list_outdated_files(options, waiting, request)

    def retry(request_id: str, command: str | None) -> PermissionRequest:
        try:
            with open_asking_session(options, waiting) as rail:
                refuse_other_variables(rail, waiting)
                return rail.retry(request_id, command)
        except CommandFailed as failure:
            raise UsageError(str(failure)) from None

    return RequestHooks(still_open, outdated, retry)


def open_asking_session(options: SimpleNamespace, waiting: InboxRequest) -> Handrail:
    """Opens the session of a request with the mode and the variables that its commands had, so that the answer is for
    the same question."""
    workspace = options.workspace or waiting.workspace
    if workspace is None:
        raise CommandFailed("the workspace of the request is not recorded. Nothing was run. Name it with --workspace.")
    if not os.path.isdir(workspace):
        gone = f"the folder {to_one_line(workspace)} of the request does not exist. Nothing was answered."
        raise CommandFailed(gone, FAILED, then="handrail approvals clear")
    loaded = load_settings(options, waiting.mode, workspace)
    is_foreign = any(name.startswith(MCP_PREFIX) for name in waiting.tools)
    return Handrail(
        workspace,
        session=waiting.request.session_id,
        settings=loaded,
        on_permission="park",
        variables=open_state_folder().load_variables(waiting),
        sources=find_server_sources(options, loaded, workspace) if is_foreign else (),
    )


def list_outdated_files(options: SimpleNamespace, waiting: InboxRequest, request: PermissionRequest) -> tuple[str, ...]:
    """The files that changed since the preview of a request. Empty if that cannot be found out here."""
    if request.preview_id is None:
        return ()
    with suppress(CommandFailed, HandrailError), open_asking_session(options, waiting) as rail:
        return list_changed_files(rail, request)
    return ()


def describe_retry(request: PermissionRequest) -> str:
    return f"handrail approvals retry {shorten_request_id(request.id)} tries it again"


def refuse_other_variables(rail: Handrail, waiting: InboxRequest) -> None:
    """Refuses an approval if the command would get other variables than in the session that asked."""
    if rail.would_differ(waiting.environment):
        raise _build_refusal(waiting, AnswerObstacle("variables"))


def _build_refusal(waiting: InboxRequest, obstacle: AnswerObstacle) -> CommandFailed:
    """The error for a person who cannot give an answer here. The request stays pending."""
    short = shorten_request_id(waiting.request.id)
    if obstacle.kind == "tool":
        message = f"only the program that made the request has the tool {obstacle.names[0]!r}. Nothing was answered."
        return CommandFailed(f"{message} In that program, call rail.answer({waiting.request.id!r}, …).", FAILED)
    if obstacle.kind == "variables":
        problem = "the command would now get other variables (PATH, language, toolchains). Nothing was approved."
        return CommandFailed(problem, FAILED, then=f"handrail approvals deny {short}")
    if obstacle.kind == "stopped":
        problem = "the command was stopped early. Nothing was kept."
        return CommandFailed(problem, then=f"handrail approvals allow {short} --output-only")
    problem = describe_outdated(obstacle.names, "Nothing was kept")
    return CommandFailed(problem, FAILED, then=f"handrail approvals retry {short}")


def _print_results(
    options: SimpleNamespace, waiting: InboxRequest, done: Done, rail: Handrail, answer: Answer, *, told: bool
) -> int:
    if options.json:
        print_json(encode({"schema": SCHEMA, "results": done.results, "waiting": ()}))
    code = OK
    for result in done.results:
        if result.error is not None and result.error.code == "PERMISSION_DENIED":  # as the person wanted: no failure
            if not options.json:
                print_out(_render_denial(waiting, result))
            continue
        if not options.json:
            request, paint, width = waiting.request, choose_out_paint(), (measure_columns(sys.stdout) or 200) - 1
            has_line = request.tool_call_id == result.tool_call_id and has_later_line(request, answer)
            print_result(result, options, waiting.mode or "ask", why_off=rail.why_off(result.name), told=has_line)
            if has_line and not told and result.error is None:
                print_painted(f"{render_kept_line(request, answer, result, width=width, plain=False, paint=paint)}\n")
        code = code or get_exit_code(result)
    return code


def _render_denial(waiting: InboxRequest, result: ToolResult[Any]) -> str:
    request = waiting.request
    own = request.tool_call_id == result.tool_call_id
    subject = truncate(to_one_line(request.description if own else result.name), 80)
    if own and request.preview_id is not None:
        return f"dropped: {subject}; your files are untouched\n"
    return f"denied: {subject}; nothing was run\n"


def _print_rest(options: SimpleNamespace, parked: Parked) -> int:
    ids = [request.id for request in parked.requests]
    if options.json:
        print_json(encode({"schema": SCHEMA, "results": (), "waiting": ids}))
    elif ids:
        short = shorten_ids(ids)[ids[0]]
        print_note(f"Answered. {len(ids)} more to answer in this batch: handrail approvals allow {short}")
    else:
        print_note("Answered. Another process runs the call.")
    return WAITING if ids else OK
