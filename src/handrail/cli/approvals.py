"""approvals: what waits for a yes, and what was granted."""

from argparse import Namespace
from typing import Any

from handrail.cli.exits import OK
from handrail.cli.inbox import grant_id, grant_name, inbox_of, short_names
from handrail.cli.output import answer, answer_json, cut, note, table, warn
from handrail.policy.rules.foreign_names import FOREIGN
from handrail.protocol.permission import OpenedFolder, PermissionRequest
from handrail.protocol.wire import encode
from handrail.store.inbox import Asked, Kept, Waiting
from handrail.terminal.changed import gist
from handrail.terminal.request import subject
from handrail.terminal.tried import age

SCHEMA = "handrail.approvals/1"
_UNKNOWN = "?"
_STATES = {"waiting": "waiting", "ready": "answered, not run"}


def run(options: Namespace) -> int:
    """Lists what waits and what is granted, or stays and tells what comes."""
    inbox = inbox_of(options)
    if options.watch:
        from handrail.cli.watching import watch  # noqa: PLC0415  only who stays needs it

        return watch(options, inbox)
    waiting, granted, asked = inbox.waiting(), inbox.granted(), inbox.questions()
    names = short_names(waiting, granted, asked)
    for problem in inbox.unreadable.values():
        warn(f"warning: {problem}")
    if options.json:
        told = {"waiting": [waiting_row(one, names) for one in waiting]}
        told |= {"questions": [_question_row(one, names) for one in asked]}
        answer_json(encode({"schema": SCHEMA, **told, "granted": [_grant_row(one, names) for one in granted]}))
    elif waiting or granted or asked:
        rows = _rows(waiting, granted, names, places=options.all)
        answer(table([*rows[:1], *_question_rows(asked, names, places=options.all), *rows[1:]]))
        if asked:
            note(f"to reply: handrail approvals reply {names[asked[0].question.tool_call_id]} NUMBER-OR-TEXT")
        if waiting:
            first = names[waiting[0].request.id]
            note(f"to answer: handrail approvals allow {first} | deny {first} --reason TEXT")
    else:
        where = "" if options.all else " here"
        note(f"nobody waits for you{where}, and nothing is granted{'; every workspace: --all' if where else ''}")
    return OK


def waiting_row(one: Waiting, names: dict[str, str]) -> dict[str, Any]:
    """A request as JSON."""
    request = one.request
    told = {"id": request.id, "short": names[request.id], "state": one.state, "sessionId": request.session_id}
    return told | {"workspace": one.workspace, "time": one.time, "mode": one.mode, "request": request}


def _question_row(one: Asked, names: dict[str, str]) -> dict[str, Any]:
    question = one.question
    told = {"id": question.tool_call_id, "short": names[question.tool_call_id], "sessionId": one.session_id}
    return told | {"workspace": one.workspace, "time": one.time, "question": question}


def _question_rows(asked: list[Asked], names: dict[str, str], *, places: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in asked:
        question, place = one.question, (one.workspace or _UNKNOWN,) if places else ()
        options = (f"{number} {cut(option, 30)}" for number, option in enumerate(question.options, start=1))
        what = " · ".join((cut(question.question, 80), *options))
        rows.append((names[question.tool_call_id], "question", age(one.time), one.session_id, *place, what))
    return rows


def _grant_row(kept: Kept, names: dict[str, str]) -> dict[str, Any]:
    granted, name = kept.granted, grant_id(kept)
    told = {"id": name, "short": names[name], "scope": granted.scope, "sessionId": granted.session_id}
    told |= {"workspace": kept.workspace, "time": granted.time}
    if isinstance(granted, OpenedFolder):
        return told | {"kind": "folder", "path": granted.path, "access": granted.access}
    if granted.command.startswith(FOREIGN):
        return told | {"kind": "tool", "tool": granted.command}
    return told | {"kind": "command", "command": granted.command}


def _rows(waiting: list[Waiting], granted: list[Kept], names: dict[str, str], *, places: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("id", "state", "since", "session", *(("workspace",) if places else ()), "what")]
    for one in waiting:
        request = one.request
        what = f"{request.tool_name} {subject(request)}" if request.command is not None else subject(request)
        place = (one.workspace or _UNKNOWN,) if places else ()
        told = (names[request.id], _STATES[one.state], age(one.time), request.session_id)
        rows.append((*told, *place, f"{cut(what, 80)}{would_change(request)} ({request.rule})"))
    for kept in granted:
        place = (kept.workspace or _UNKNOWN,) if places else ()
        told = (names[grant_id(kept)], f"granted, {kept.granted.scope}", age(kept.granted.time))
        rows.append((*told, kept.granted.session_id, *place, cut(grant_name(kept), 80)))
    return rows


def would_change(request: PermissionRequest) -> str:
    """What a yes would keep, in a few words, where it was tried."""
    tried = request.preview.tried if request.preview is not None else None
    return f": {gist(tried)}" if tried is not None else ""
