"""`handrail approvals`: the inbox of a person."""

import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from handrail.answers import end_grant
from handrail.api import Handrail, deny_stored_request, expire_requests
from handrail.cli.commands.approvals_answer import (
    SCHEMA,
    answer_request,
    build_inbox_hooks,
    describe_grant,
    describe_retry,
    list_outdated_files,
    open_asking_session,
    open_inbox,
    refuse_other_variables,
    resolve_grant,
    resolve_question,
    resolve_request,
)
from handrail.cli.commands.fleet_database import add_database_option, find_database, reply_in_fleet
from handrail.cli.context import load_settings, open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, LIMIT, OK, WAITING, CommandFailed
from handrail.cli.format import shorten_session
from handrail.cli.output import (
    print_diff,
    print_error,
    print_json,
    print_note,
    print_out,
    print_slow_notice,
    render_table,
    warn,
)
from handrail.cli.parser import Command, add_json_option, add_plain_option, add_workspace_option
from handrail.cli.permission import (
    can_ask,
    describe_answer_commands,
    render_question,
    render_request_text,
    shorten_request_id,
)
from handrail.cli.usage import parse_nonempty_text, parse_past_time
from handrail.protocol.changes import Preview
from handrail.protocol.errors import HandrailError, ToolError, UsageError
from handrail.protocol.permissions import (
    Answer,
    AnswerKind,
    InboxQuestion,
    InboxRequest,
    OpenedFolder,
    PermissionRequest,
    StandingGrant,
)
from handrail.protocol.records import StoredGrant, format_age, shorten_ids
from handrail.protocol.text import format_count, to_one_line, truncate
from handrail.protocol.tool_spec import MCP_PREFIX, format_tool_label
from handrail.protocol.wire import encode
from handrail.settings import load
from handrail.terminal.changes_text import summarize_changes
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover
from handrail.terminal.question_prompt import parse_reply
from handrail.terminal.request_text import describe_subject

_UNKNOWN = "?"
_STATES = {"waiting": "waiting", "ready": "answered, not run"}
_POLL_SECONDS = 0.5
_MIN_EXPIRY = timedelta(minutes=1)


def add_arguments(parser: ArgumentParser) -> None:
    add_workspace_option(parser)
    add_database_option(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace")
    parser.add_argument("--watch", action="store_true", help="keep running, and show each new request")
    add_plain_option(parser)
    add_json_option(parser)


def run(options: SimpleNamespace) -> int:
    """Lists the inbox, or watches it."""
    state, is_fleet = open_state_folder(), find_database(options) is not None
    workspace = None if is_fleet else _resolve_scope(options)
    inbox = open_inbox(options, workspace)
    if not is_fleet and any(one.time < datetime.now(UTC) - _MIN_EXPIRY for one in inbox.list_requests()):
        settings = load(os.environ, {}).settings
        if (expired := expire_requests(state, workspace, settings)) and not options.json:
            print_note(f"{format_count(expired, 'request')} expired, unanswered for {settings.ask.expire}")
    if options.watch:
        return _watch(options, inbox.list_requests)
    waiting, granted, asked = inbox.list_requests(), inbox.list_grants(), inbox.list_questions()
    names = _build_short_ids(waiting, granted, asked)
    for problem in inbox.unreadable.values():
        warn(f"warning: {problem}")
    if options.json:
        body = {"waiting": [_build_request_row(one, names) for one in waiting]}
        body |= {"questions": [_build_question_row(one, names) for one in asked]}
        body |= {"granted": [_build_grant_row(one, names) for one in granted]}
        print_json(encode({"schema": SCHEMA, **body}))
    elif waiting or granted or asked:
        print_out(_render_inbox(waiting, granted, asked, names, places=workspace is None))
        if asked:
            print_note(f"to reply: handrail approvals reply {names[asked[0].question.tool_call_id]} NUMBER-OR-TEXT")
        if waiting:
            first = names[waiting[0].request.id]
            print_note(f"to answer: handrail approvals allow {first} | deny {first} --reason TEXT")
    else:
        where = "" if workspace is None else " here"
        print_note(f"no request waits{where}, and nothing is granted{'; every workspace: --all' if where else ''}")
    return OK


def _resolve_scope(options: SimpleNamespace) -> str | None:
    """The workspace whose requests are meant. None stands for all."""
    return None if options.all else os.path.realpath(resolve_workspace(options))


def _add_request_arguments(parser: ArgumentParser, subject: str = "request") -> None:
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help=f"the {subject}, or the beginning of its id")


def _add_place_arguments(parser: ArgumentParser) -> None:
    add_database_option(parser)
    add_workspace_option(parser, "its workspace (here first, then anywhere)")
    add_json_option(parser)


def _add_allow_arguments(parser: ArgumentParser) -> None:
    _add_request_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--scope",
        choices=("once", "session", "workspace", "edits"),
        default="once",
        help="scope of the approval, if the request offers it (once)",
    )
    how.add_argument("--output-only", action="store_true", help="keep only the output of the preview, drop its changes")
    parser.add_argument(
        "--grant",
        metavar="CLASS",
        action="append",
        default=[],
        type=parse_nonempty_text,
        help="with --scope session or workspace: grant only this",
    )
    _add_place_arguments(parser)


def run_allow(options: SimpleNamespace) -> int:
    """Approves a request, and runs it if it was answered before and not run."""
    waiting = resolve_request(options)
    kind: AnswerKind = "output" if options.output_only else options.scope
    return answer_request(options, waiting, waiting.answer or Answer(kind=kind, grants=tuple(options.grant)))


def _add_deny_arguments(parser: ArgumentParser) -> None:
    _add_request_arguments(parser)
    parser.add_argument("--reason", metavar="TEXT", help="the reason; the model reads it")
    _add_place_arguments(parser)


def run_deny(options: SimpleNamespace) -> int:
    return answer_request(options, resolve_request(options), Answer(kind="deny", reason=options.reason or None))


def _add_reply_arguments(parser: ArgumentParser) -> None:
    _add_request_arguments(parser, "question")
    parser.add_argument("words", metavar="REPLY", nargs="*", help="numbers or texts of options, or your own words")
    parser.add_argument("--put-aside", action="store_true", help="no reply: the model decides by itself")
    _add_place_arguments(parser)


def run_reply(options: SimpleNamespace) -> int:
    """Replies to a question of the model."""
    asked = resolve_question(options)
    question = asked.question
    if not options.words and not options.put_aside:
        raise CommandFailed(f"the reply is missing. Nothing was replied.\n{render_question(question)}")
    reply = None if options.put_aside else parse_reply(question, " ".join(options.words))
    if find_database(options):
        return reply_in_fleet(options, asked, reply)
    workspace = options.workspace or asked.workspace
    if workspace is None or not os.path.isdir(workspace):
        problem = f"the folder {to_one_line(workspace)} is not there" if workspace else "its workspace was not noted"
        raise CommandFailed(f"{problem}. Nothing was replied. Name it with --workspace.", FAILED)
    with Handrail(workspace, session=asked.session_id, settings=load_settings(options, None, workspace)) as rail:
        try:
            done = rail.reply(question, reply)
        except UsageError as error:
            if rail.is_pending(question):
                raise CommandFailed(f"{error} Nothing was replied.", then="handrail approvals") from None
            raise CommandFailed(f"the question has a reply already: {error}", FAILED, then="handrail log") from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "results": done.results, "waiting": ()}))
        return OK
    print_out(f"put aside: {to_one_line(question.question)}\n" if reply is None else f"{done.results[0].content}\n")
    print_note(f"session {to_one_line(asked.session_id)} has the reply, and continues with it")
    return OK


def _add_show_arguments(parser: ArgumentParser) -> None:
    _add_request_arguments(parser)
    parser.add_argument("--diff", action="store_true", help="also show the diff")
    parser.add_argument("--output", action="store_true", help="also show the output of the preview")
    _add_place_arguments(parser)


def run_show(options: SimpleNamespace) -> int:
    """Prints a request with its preview."""
    waiting = resolve_request(options)
    request = waiting.request
    if options.json:
        row = _build_request_row(waiting, {request.id: shorten_request_id(request.id)})
        print_json(encode({"schema": SCHEMA, "waiting": [row], "granted": ()}))
        return OK
    outdated = list_outdated_files(options, waiting, request)
    print_out(render_request_text(request, outdated, describe_retry(request)))
    if request.preview is not None and request.preview.tried is not None:
        _print_preview(options, request.preview)
    print_note(describe_answer_commands(request, outdated=bool(outdated)))
    return OK


def _print_preview(options: SimpleNamespace, preview: Preview) -> None:
    if options.diff:
        print_diff(f"\n{preview.text}")
        if preview.truncated:
            print_note("the diff is cut: it is too long to be kept whole")
    if options.output:
        print_out(f"\n{preview.output}")


def _add_retry_arguments(parser: ArgumentParser) -> None:
    _add_request_arguments(parser)
    parser.add_argument("--command", metavar="TEXT", type=parse_nonempty_text, help="another command instead")
    _add_place_arguments(parser)


def run_retry(options: SimpleNamespace) -> int:
    """Previews the command of a request again, or another command instead."""
    waiting = resolve_request(options)
    if waiting.request.command is None:
        label = to_one_line(format_tool_label(waiting.request.tool_name, waiting.request.server_name))
        raise CommandFailed(f"only a command has a preview, and this is {label}. Nothing was run.", FAILED)
    with open_asking_session(options, waiting) as rail:
        refuse_other_variables(rail, waiting)
        try:
            with print_slow_notice(options, f"{options.command or waiting.request.command}, run in a copy"):
                request = rail.retry(waiting.request.id, options.command)
        except (ToolError, UsageError) as error:
            problem = error.message if isinstance(error, ToolError) else str(error)
            raise CommandFailed(
                f"no new preview: {problem.rstrip('.')}. The request is unchanged.",
                FAILED,
                then=f"handrail approvals show {options.id}",
            ) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "request": request}))
        return WAITING
    print_out(render_request_text(request))
    print_note(describe_answer_commands(request))
    return WAITING


def _add_clear_arguments(parser: ArgumentParser) -> None:
    add_workspace_option(parser, "their workspace (the current folder)")
    parser.add_argument("--all", action="store_true", help="of every workspace")
    parser.add_argument("--older-than", metavar="AGE", type=parse_past_time, help="only older requests: 30m, 2h, 7d")
    add_json_option(parser)


def run_clear(options: SimpleNamespace) -> int:
    """Denies the requests that wait."""
    waiting = [one for one in open_state_folder().open_inbox(_resolve_scope(options)).list_requests() if not one.answer]
    old = [one for one in waiting if options.older_than is None or one.time < options.older_than]
    answer = Answer(kind="deny", reason="cleared from the inbox")
    cleared = [one.request.id for one in old if deny_stored_request(one, answer)]
    if options.json:
        print_json(encode({"schema": SCHEMA, "cleared": cleared}))
    else:
        print_out(f"{format_count(len(cleared), 'request')} denied. Nothing ran; your files are untouched.\n")
        if left := len(waiting) - len(cleared):
            print_note(f"{format_count(left, 'request')} still waiting: handrail approvals")
    return OK


def _add_revoke_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the grant, or the path of an opened folder")
    _add_place_arguments(parser)


def run_revoke(options: SimpleNamespace) -> int:
    """Revokes a grant, or closes a folder."""
    grant = resolve_grant(options)
    workspace = options.workspace or grant.workspace
    if workspace is None:
        raise CommandFailed(
            "the workspace of this grant is not recorded. Nothing was revoked. Name it with --workspace."
        )
    end_grant(open_state_folder(), grant, load_settings(options, None, workspace), workspace=workspace)
    granted = grant.granted
    if options.json:
        print_json(encode({"schema": SCHEMA, "revoked": grant.id}))
    else:
        verb = "ask" if isinstance(granted, StandingGrant) and granted.command == StandingGrant.EDITS else "asks"
        print_out(f"revoked: {to_one_line(describe_grant(grant))} {verb} again\n")
    return OK


COMMANDS = {
    "approvals": Command(run, add_arguments, ("handrail approvals --watch", "handrail approvals allow 8f2")),
    "approvals allow": Command(
        run_allow,
        _add_allow_arguments,
        (
            "handrail approvals allow 8f2 --scope session --grant 'ruff format'",
            "handrail approvals allow 8f2 --output-only",
        ),
        {
            FAILED: "no request has this id, or the result is an error",
            WAITING: "other requests of its batch wait",
            LIMIT: "a limit ended it",
        },
    ),
    "approvals deny": Command(
        run_deny,
        _add_deny_arguments,
        ("handrail approvals deny 8f2", "handrail approvals deny 8f2 --reason 'use the staging config'"),
        {FAILED: "no request has this id", WAITING: "other requests of its batch wait"},
    ),
    "approvals reply": Command(
        run_reply,
        _add_reply_arguments,
        ("handrail approvals reply 8f2 1", "handrail approvals reply 8f2 only in the checkout"),
        {FAILED: "no question has this id"},
    ),
    "approvals show": Command(
        run_show,
        _add_show_arguments,
        ("handrail approvals show 8f2 --diff", "handrail approvals show 8f2 --output --json"),
        {FAILED: "no request has this id"},
    ),
    "approvals retry": Command(
        run_retry,
        _add_retry_arguments,
        ("handrail approvals retry 8f2", "handrail approvals retry 8f2 --command 'make -n'"),
        {
            FAILED: "no request has this id, or policy denies it",
            WAITING: "the preview ran; the request waits for an answer",
        },
    ),
    "approvals clear": Command(
        run_clear,
        _add_clear_arguments,
        ("handrail approvals clear --older-than 2h", "handrail approvals clear --all"),
    ),
    "approvals revoke": Command(
        run_revoke,
        _add_revoke_arguments,
        ("handrail approvals revoke 1c9", "handrail approvals revoke /data/shared"),
        {FAILED: "no grant has this id"},
    ),
}


# The inbox as rows


def _build_short_ids(
    waiting: Sequence[InboxRequest], granted: Sequence[StoredGrant] = (), asked: Sequence[InboxQuestion] = ()
) -> dict[str, str]:
    """The short ids of all of them. None means two."""
    questions = (one.question.tool_call_id for one in asked)
    return shorten_ids([*(one.request.id for one in waiting), *(one.id for one in granted), *questions])


def _build_request_row(one: InboxRequest, names: dict[str, str]) -> dict[str, Any]:
    request = one.request
    row = {"id": request.id, "short": names[request.id], "state": one.state, "sessionId": request.session_id}
    return row | {"workspace": one.workspace, "time": one.time, "mode": one.mode, "request": request}


def _build_question_row(one: InboxQuestion, names: dict[str, str]) -> dict[str, Any]:
    question = one.question
    row = {"id": question.tool_call_id, "short": names[question.tool_call_id], "sessionId": one.session_id}
    return row | {"workspace": one.workspace, "time": one.time, "question": question}


def _build_grant_row(grant: StoredGrant, names: dict[str, str]) -> dict[str, Any]:
    granted, name = grant.granted, grant.id
    row = {"id": name, "short": names[name], "scope": granted.scope, "sessionId": granted.session_id}
    row |= {"workspace": grant.workspace, "time": granted.time}
    if isinstance(granted, OpenedFolder):
        return row | {"kind": "folder", "path": granted.path, "access": granted.access}
    if granted.command.startswith(MCP_PREFIX):
        return row | {"kind": "tool", "tool": granted.command}
    kind = "edits" if granted.command == StandingGrant.EDITS else "command"
    return row | {"kind": kind, "command": granted.command}


def _render_inbox(
    waiting: list[InboxRequest],
    granted: list[StoredGrant],
    asked: list[InboxQuestion],
    names: dict[str, str],
    *,
    places: bool,
) -> str:
    """The inbox as a table. `places`: with the workspaces."""
    now = datetime.now(UTC)

    def build_row(name: str, state: str, since: datetime, session: str, workspace: str | None, what: str) -> list[str]:
        place = [workspace or _UNKNOWN] if places else []
        return [names[name], state, format_age(now - since), shorten_session(session), *place, what]

    rows = [["id", "state", "since", "session", *(["workspace"] if places else []), "what"]]
    for one in asked:
        choices = (f"{number} {truncate(option, 30)}" for number, option in enumerate(one.question.options, start=1))
        what = " · ".join((truncate(one.question.question, 80), *choices))
        rows.append(build_row(one.question.tool_call_id, "question", one.time, one.session_id, one.workspace, what))
    for one in waiting:
        request, subject = one.request, describe_subject(one.request)
        what = truncate(subject if request.command is None else f"{request.tool_name} {subject}", 80)
        what = f"{what}{_summarize_changes(request)} ({request.rule})"
        rows.append(build_row(request.id, _STATES[one.state], one.time, request.session_id, one.workspace, what))
    for one in granted:
        state, what = f"granted, {one.granted.scope}", truncate(describe_grant(one), 80)
        grant_id, since = one.id, one.granted.time
        rows.append(build_row(grant_id, state, since, one.granted.session_id, one.workspace, what))
    return render_table(rows)


def _summarize_changes(request: PermissionRequest) -> str:
    """The changes of the preview, in a few words."""
    tried = request.preview.tried if request.preview is not None else None
    return f": {summarize_changes(tried)}" if tried is not None else ""


# --watch


def _watch(options: SimpleNamespace, list_waiting: Callable[[], list[InboxRequest]]) -> int:
    """Asks about each new request on a terminal. Into a pipe, prints a line for each change. Ends with Ctrl-C, or when
    the pipe is closed."""
    asks = can_ask(options)
    known: dict[str, InboxRequest] = {}
    if not options.json:
        print_note("waiting for requests; Ctrl-C ends it")
    while True:
        found = {one.request.id: one for one in list_waiting()}
        gone = [one for name, one in known.items() if name not in found]
        new = [one for name, one in found.items() if name not in known]
        known = found
        if asks:
            for number, one in enumerate(new, start=1):
                _ask(options, one, build_inbox_hooks(options, one, list_waiting), number, len(new))
        else:
            changes = [(one, "answered") for one in gone] + [(one, one.state) for one in new]
            if not all(_print_change(options, one, change, known) for one, change in changes):
                return OK
        time.sleep(_POLL_SECONDS)


def _ask(options: SimpleNamespace, one: InboxRequest, hooks: RequestHooks, number: int, total: int) -> None:
    """Asks about one request, and answers it. If it cannot be answered here, prints why."""
    request = one.request
    if not hooks.still_open(request):
        return
    if one.answer is not None:
        print_note(f"answered, not run: {describe_subject(request)} (handrail approvals allow {request.id} runs it)")
        return
    warn(f"session {to_one_line(request.session_id)} in {to_one_line(one.workspace or '?')}")
    approver = TerminalApprover(hooks, plain=options.plain)
    reply = approver.ask(request, number, total)
    if not isinstance(reply.answer, Answer) or not isinstance(reply.subject, PermissionRequest):
        return
    try:
        answer_request(options, structs.replace(one, request=reply.subject), reply.answer, report=approver.report)
    except (CommandFailed, HandrailError) as error:
        print_error(str(error), "handrail approvals")


def _print_change(options: SimpleNamespace, one: InboxRequest, change: str, known: dict[str, InboxRequest]) -> bool:
    """Prints what happened to a request. Returns whether the output may still be read."""
    names = _build_short_ids([*known.values(), one])
    if options.json:
        return print_json(encode({"schema": SCHEMA, "change": change, **_build_request_row(one, names)}))
    subject = f"{describe_subject(one.request)}{_summarize_changes(one.request)}"
    print_out(f"{change}  {names[one.request.id]}  {one.request.session_id}  {subject}\n")
    return True
