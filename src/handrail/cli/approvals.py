"""approvals: what waits for a yes, and what was granted."""

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from handrail.cli.exits import OK
from handrail.cli.inbox import build_grant_id, build_short_ids, describe_grant, open_inbox
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.permissions import InboxQuestion, InboxRequest, OpenedFolder, PermissionRequest
from handrail.protocol.records import StoredGrant
from handrail.protocol.text import format_age, truncate
from handrail.protocol.wire import encode
from handrail.terminal.changes_text import summarize_changes
from handrail.terminal.request_text import describe_subject

SCHEMA = "handrail.approvals/1"
_UNKNOWN = "?"
_STATES = {"waiting": "waiting", "ready": "answered, not run"}


def run(options: Namespace) -> int:
    """Lists what waits and what is granted, or stays and tells what comes."""
    inbox = open_inbox(options)
    if options.watch:
        from handrail.cli.watching import watch  # noqa: PLC0415  only who stays needs it

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
