"""Runs `handrail approvals`."""

import os
import time
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from handrail.api import Handrail
from handrail.cli.commands.approvals_answer import (
    answer_request,
    build_grant_id,
    build_inbox_hooks,
    build_short_ids,
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
from handrail.cli.context import load_settings
from handrail.cli.exits import FAILED, OK, WAITING, CommandFailed
from handrail.cli.output import print_json, print_note, print_out, print_slow_notice, render_table, warn
from handrail.cli.permission import (
    can_ask,
    describe_answer_commands,
    render_question,
    render_request_text,
    shorten_request_id,
)
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.errors import HandrailError, ToolError, UsageError
from handrail.protocol.permissions import (
    Answer,
    AnswerKind,
    InboxQuestion,
    InboxRequest,
    OpenedFolder,
    PermissionRequest,
    Preview,
    StoredGrant,
)
from handrail.protocol.text import format_age, to_one_line, truncate
from handrail.protocol.tool_spec import format_tool_label
from handrail.protocol.wire import encode
from handrail.terminal.approver import TerminalApprover
from handrail.terminal.changed import summarize_changes
from handrail.terminal.question import RequestHooks
from handrail.terminal.replying import parse_reply
from handrail.terminal.request import describe_subject

# § [cli.approvals] approvals: what waits for a yes, and what was granted.

SCHEMA = "handrail.approvals/1"
_UNKNOWN = "?"
_STATES = {"waiting": "waiting", "ready": "answered, not run"}


def run(options: Namespace) -> int:
    """Lists what waits and what is granted, or stays and tells what comes."""
    inbox = open_inbox(options)
    if options.watch:
        return watch(options, inbox.list_requests)
    waiting, granted, asked = inbox.list_requests(), inbox.list_grants(), inbox.list_questions()
    names = build_short_ids(waiting, granted, asked)
    for problem in inbox.unreadable.values():
        warn(f"warning: {problem}")
    if options.json:
        told = {"waiting": [build_waiting_row(one, names) for one in waiting]}
        told |= {"questions": [_question_row(one, names) for one in asked]}
        print_json(encode({"schema": SCHEMA, **told, "granted": [_grant_row(one, names) for one in granted]}))
    elif waiting or granted or asked:
        rows = _rows(waiting, granted, names, places=options.all)
        print_out(render_table([*rows[:1], *_question_rows(asked, names, places=options.all), *rows[1:]]))
        if asked:
            print_note(f"to reply: handrail approvals reply {names[asked[0].question.tool_call_id]} NUMBER-OR-TEXT")
        if waiting:
            first = names[waiting[0].request.id]
            print_note(f"to answer: handrail approvals allow {first} | deny {first} --reason TEXT")
    else:
        where = "" if options.all else " here"
        print_note(f"nobody waits for you{where}, and nothing is granted{'; every workspace: --all' if where else ''}")
    return OK


def build_waiting_row(one: InboxRequest, names: dict[str, str]) -> dict[str, Any]:
    """A request as JSON."""
    request = one.request
    told = {"id": request.id, "short": names[request.id], "state": one.state, "sessionId": request.session_id}
    return told | {"workspace": one.workspace, "time": one.time, "mode": one.mode, "request": request}


def _question_row(one: InboxQuestion, names: dict[str, str]) -> dict[str, Any]:
    question = one.question
    told = {"id": question.tool_call_id, "short": names[question.tool_call_id], "sessionId": one.session_id}
    return told | {"workspace": one.workspace, "time": one.time, "question": question}


def _question_rows(asked: list[InboxQuestion], names: dict[str, str], *, places: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    now = datetime.now(UTC)
    for one in asked:
        question, place = one.question, (one.workspace or _UNKNOWN,) if places else ()
        options = (f"{number} {truncate(option, 30)}" for number, option in enumerate(question.options, start=1))
        what = " · ".join((truncate(question.question, 80), *options))
        told = (names[question.tool_call_id], "question", format_age(now - one.time), one.session_id)
        rows.append((*told, *place, what))
    return rows


def _grant_row(kept: StoredGrant, names: dict[str, str]) -> dict[str, Any]:
    granted, name = kept.granted, build_grant_id(kept)
    told = {"id": name, "short": names[name], "scope": granted.scope, "sessionId": granted.session_id}
    told |= {"workspace": kept.workspace, "time": granted.time}
    if isinstance(granted, OpenedFolder):
        return told | {"kind": "folder", "path": granted.path, "access": granted.access}
    if granted.command.startswith(MCP_PREFIX):
        return told | {"kind": "tool", "tool": granted.command}
    return told | {"kind": "command", "command": granted.command}


def _rows(
    waiting: list[InboxRequest], granted: list[StoredGrant], names: dict[str, str], *, places: bool
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("id", "state", "since", "session", *(("workspace",) if places else ()), "what")]
    now = datetime.now(UTC)
    for one in waiting:
        request = one.request
        what = (
            f"{request.tool_name} {describe_subject(request)}"
            if request.command is not None
            else describe_subject(request)
        )
        place = (one.workspace or _UNKNOWN,) if places else ()
        told = (names[request.id], _STATES[one.state], format_age(now - one.time), request.session_id)
        rows.append((*told, *place, f"{truncate(what, 80)}{summarize_request_changes(request)} ({request.rule})"))
    for kept in granted:
        place = (kept.workspace or _UNKNOWN,) if places else ()
        told = (names[build_grant_id(kept)], f"granted, {kept.granted.scope}", format_age(now - kept.granted.time))
        rows.append((*told, kept.granted.session_id, *place, truncate(describe_grant(kept), 80)))
    return rows


def summarize_request_changes(request: PermissionRequest) -> str:
    """What a yes would commit, in a few words, if there is a preview."""
    tried = request.preview.tried if request.preview is not None else None
    return f": {summarize_changes(tried)}" if tried is not None else ""


# § [cli.approvals_allow] approvals allow: a yes, and what came of it.


def run_allow(options: Namespace) -> int:
    """Answers yes, and runs what waited for it. What was answered already and not run is run."""
    waiting = resolve_request(options)
    kind: AnswerKind = "output" if options.output_only else options.scope
    return answer_request(options, waiting, waiting.answer or Answer(kind=kind))


# § [cli.approvals_deny] approvals deny: a no, with the reason that the model reads.


def run_deny(options: Namespace) -> int:
    """Answers no; what else was in the batch runs, where nothing more of it waits."""
    return answer_request(options, resolve_request(options), Answer(kind="deny", reason=options.reason or None))


# § [cli.approvals_reply] approvals reply: what a person says to a question of the model.


def run_reply(options: Namespace) -> int:
    """Gives the question its reply; without one it is only shown."""
    asked = resolve_question(options)
    question = asked.question
    if not options.words and not options.put_aside:
        raise CommandFailed(f"say what you reply, or --put-aside.\n{render_question(question)}")
    workspace = options.workspace or asked.workspace
    if workspace is None or not os.path.isdir(workspace):
        told = f"the folder {to_one_line(workspace)} is not there" if workspace else "its workspace was not noted"
        raise CommandFailed(f"{told}. Nothing was replied. Name it with --workspace.", FAILED)
    said = None if options.put_aside else parse_reply(question, " ".join(options.words))
    with Handrail(workspace, session=asked.session_id, settings=load_settings(options, None, workspace)) as rail:
        try:
            done = rail.reply(question, said)
        except UsageError as error:
            if rail.is_pending(question):
                raise CommandFailed(f"{error} Nothing was replied; it still waits.") from None
            raise CommandFailed(f"replied elsewhere: {error}", FAILED) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "results": done.results, "waiting": ()}))
        return OK
    print_out(f"put aside: {to_one_line(question.question)}\n" if said is None else f"{done.results[0].content}\n")
    print_note(f"session {to_one_line(asked.session_id)} has it, and goes on from there when its loop does")
    return OK


# § [cli.approvals_retry] approvals retry: tries the command of a request again, as it is or as somebody changed it.


def run_retry(options: Namespace) -> int:
    """Tries it, and prints what came of it as a question; the question that it takes the place of is gone."""
    waiting = resolve_request(options)
    if waiting.request.command is None:
        called = to_one_line(format_tool_label(waiting.request.tool_name, waiting.request.server_name))
        raise CommandFailed(f"only commands are tried, and this is {called}. Nothing was done.", FAILED)
    with open_asking_session(options, waiting) as rail:
        refuse_other_variables(rail, waiting)
        try:
            with print_slow_notice(options, f"{options.command or waiting.request.command}, tried in a copy"):
                request = rail.retry(waiting.request.id, options.command)
        except (ToolError, UsageError) as error:
            told = error.message if isinstance(error, ToolError) else str(error)
            raise CommandFailed(f"not tried: {told.rstrip('.')}. The request waits as it was.", FAILED) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "request": request}))
        return WAITING
    print_out(render_request_text(request))
    print_note(describe_answer_commands(request))
    return WAITING


# § [cli.approvals_revoke] approvals revoke: ends what was granted, at once and for every process.


def run_revoke(options: Namespace) -> int:
    """Revokes a grant, or closes a folder."""
    kept = resolve_grant(options)
    workspace = options.workspace or kept.workspace
    if workspace is None:
        raise CommandFailed(
            "which workspace it belongs to was not noted. Nothing was revoked. Name it with --workspace."
        )
    granted = kept.granted
    with Handrail(workspace, session=granted.session_id, settings=load_settings(options, None, workspace)) as rail:
        if isinstance(granted, OpenedFolder):
            rail.close_folder(granted.path)
        else:
            rail.revoke(granted.id)
    if options.json:
        print_json(encode({"schema": "handrail.approvals/1", "revoked": build_grant_id(kept)}))
    else:
        print_out(f"revoked: {to_one_line(describe_grant(kept))} asks again\n")
    return OK


# § [cli.approvals_show] approvals show: a request as it waits, with what its preview would change and what it
# § printed.


def run_show(options: Namespace) -> int:
    """Shows the question; the differences and the output where they are asked for."""
    waiting = resolve_request(options)
    request = waiting.request
    if options.json:
        row = build_waiting_row(waiting, {request.id: shorten_request_id(request.id)})
        print_json(encode({"schema": SCHEMA, "waiting": [row], "granted": ()}))
        return OK
    again = describe_retry(request)
    outdated = list_outdated_files(options, waiting, request)
    print_out(render_request_text(request, outdated, again))
    if request.preview is not None and request.preview.tried is not None:
        _print_trial(options, request.preview)
    print_note(describe_answer_commands(request, outdated=bool(outdated)))
    return OK


def _print_trial(options: Namespace, preview: Preview) -> None:
    if options.diff:
        print_out(f"\n{preview.text}")
        if preview.truncated:
            print_note("the diff is cut: it is too long to be kept whole")
    if options.output:
        print_out(f"\n{preview.output}")


# § [cli.watching] approvals --watch: an inbox that stays open. On a terminal it asks; into a pipe it tells, one
# § line a change.

_POLL_SECONDS = 0.5
"""Between two looks."""


def watch(options: Namespace, list_waiting: Callable[[], list[InboxRequest]]) -> int:
    """Goes on until somebody ends it (Ctrl-C), or nobody reads it any more."""
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
            if not all(_tell(options, one, change, known) for one, change in changes):
                return OK
        time.sleep(_POLL_SECONDS)


def _ask(options: Namespace, one: InboxRequest, source: RequestHooks, number: int, of: int) -> None:
    """Asks about one request, and answers it. One that cannot be answered here is told, and the next one comes."""
    request = one.request
    if not source.still_open(request):
        return
    if one.answer is not None:
        print_note(f"answered, not run: {describe_subject(request)} (handrail approvals allow {request.id} runs it)")
        return
    warn(f"session {to_one_line(request.session_id)} in {to_one_line(one.workspace or '?')}")
    approver = TerminalApprover(source, plain=options.plain)
    reply = approver.ask(request, number, of)
    if not isinstance(reply.answer, Answer) or not isinstance(reply.subject, PermissionRequest):
        return
    try:
        answer_request(options, structs.replace(one, request=reply.subject), reply.answer, report=approver.report)
    except (CommandFailed, HandrailError) as error:
        warn(f"handrail: {error}")


def _tell(options: Namespace, one: InboxRequest, change: str, known: dict[str, InboxRequest]) -> bool:
    """One line of what changed; whether somebody may still read it."""
    names = build_short_ids([*known.values(), one], [])
    if options.json:
        told: dict[str, Any] = {"schema": SCHEMA, "change": change}
        return print_json(encode(told | build_waiting_row(one, names)))
    what = f"{describe_subject(one.request)}{summarize_request_changes(one.request)}"
    print_out(f"{change}  {names[one.request.id]}  {one.request.session_id}  {what}\n")
    return True
