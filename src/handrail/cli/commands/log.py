"""`handrail log`: the history of a session."""

import os
import shlex
from argparse import ArgumentParser
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from handrail.cli.context import (
    open_state_folder,
    resolve_session_folder,
    resolve_workspace,
    resolve_workspace_session,
)
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.files import OutFolder
from handrail.cli.format import build_event_row, choose_event_renderer, format_time
from handrail.cli.output import (
    choose_out_paint,
    print_json,
    print_json_pieces,
    print_note,
    print_out,
    print_painted,
    render_table,
    warn,
)
from handrail.cli.parser import Command, add_json_option, add_workspace_option
from handrail.cli.transcript import CallRow, Entry, Passage, TranscriptBuilder, join_text, render_transcript
from handrail.cli.usage import parse_number, parse_past_time
from handrail.protocol.changes import LineOrigin
from handrail.protocol.errors import ToolError
from handrail.protocol.events import AnyEvent, BrokenEvent, Event, ToolEvent
from handrail.protocol.permissions import AnswerKind
from handrail.protocol.records import CallStory, SessionInfo
from handrail.protocol.text import render_value, to_one_line, truncate
from handrail.protocol.wire import encode, escape_surrogates
from handrail.state import build_export_path, get_export_kind, open_journal
from handrail.terminal.call_lines import describe_unasked
from handrail.terminal.style import paint_nothing

_Listed = Entry | AnyEvent | BrokenEvent
_SCHEMA = "handrail.log/1"
_VERDICTS = {"allow": "allowed", "confirm": "asked", "deny": "refused"}
_ANSWERS: dict[AnswerKind, str] = {
    "once": "this once",
    "session": "for the session",
    "workspace": "for the workspace",
    "edits": "with plain edits in the session",
}


def run(options: SimpleNamespace) -> int:
    if (options.sessions or options.changes or options.line is not None) and _has_filter(options):
        raise CommandFailed("--since, --tool and --grep work only with the transcript and --events.")
    if options.sessions:
        return _print_sessions(options)
    if options.changes:
        from handrail.cli.commands.changes import print_changes  # noqa: PLC0415  it opens a session

        return print_changes(options)
    if options.line is not None:
        return _print_line(options)
    return _print_events(options) if options.events else _print_transcript(options)


def _has_filter(options: SimpleNamespace) -> bool:
    return any(value is not None for value in (options.since, options.tool, options.grep))


def _is_wanted(item: _Listed, options: SimpleNamespace) -> bool:
    """Whether an entry or an event passes the filters. A broken event does: nobody knows what it is about."""
    if isinstance(item, BrokenEvent):
        return True
    called = item.tool_call_name if isinstance(item, ToolEvent) else item.tool if isinstance(item, CallRow) else None
    names = {called, item.label} if isinstance(item, ToolEvent | CallRow) else {called}
    if (options.tool and options.tool not in names) or (options.since and item.time < options.since):
        return False
    text = join_text(item) if isinstance(item, Passage | CallRow) else encode(item).decode()
    return options.grep is None or options.grep.casefold() in text.casefold()


def _print_transcript(options: SimpleNamespace) -> int:
    folder = _find_session_folder(options)
    with open_journal(folder) as journal:
        last, transcript = journal.last_seq(), TranscriptBuilder(journal.events())
    after = options.after or 0
    found = [entry for entry in transcript.list_entries() if entry.seq > after and _is_wanted(entry, options)]
    shown = found[-options.limit :] if options.after is None else found[: options.limit]
    if options.json:
        body = {"schema": "handrail.transcript/1", "session": os.path.basename(folder), "lastSeq": last}
        print_json(encode(body | {"entries": shown, "broken": transcript.broken}))
        return OK
    paint = choose_out_paint()
    (print_out if paint is paint_nothing else print_painted)(render_transcript(shown, paint))
    _warn_of_broken(transcript.broken)
    _print_window_note(options, shown, len(found), last)
    return OK


# Events


def _print_events(options: SimpleNamespace) -> int:
    folder = _find_session_folder(options)
    with open_journal(folder) as journal:
        last = journal.last_seq()
        events = _select_events(options, journal.events, last)
        if options.json:
            body = {"schema": _SCHEMA, "session": os.path.basename(folder), "lastSeq": last}
            print_json_pieces(_encode_events(body, events))
            return OK
        found = list(events)
    if found:
        print_out(render_table([("seq", "time", "kind", "what"), *map(build_event_row, found)]))
    _warn_of_broken(found)
    _print_window_note(options, found, len(found) if _has_filter(options) else last - (options.after or 0), last)
    return OK


def _select_events(
    options: SimpleNamespace, read: Callable[[int], Iterator[AnyEvent | BrokenEvent]], last: int
) -> Iterable[AnyEvent | BrokenEvent]:
    """The events that pass the filters: the last ones, or the first ones after a number."""
    if not _has_filter(options):
        return islice(read(max(0, last - options.limit) if options.after is None else options.after), options.limit)
    passed = (event for event in read(options.after or 0) if _is_wanted(event, options))
    return deque(passed, maxlen=options.limit) if options.after is None else islice(passed, options.limit)


def _encode_events(body: Mapping[str, object], found: Iterable[Event | BrokenEvent]) -> Iterator[bytes]:
    """One object on a line, in pieces of one event. A journal may be larger than the memory."""
    broken: list[BrokenEvent] = []
    start = encode(body)[:-1] + b',"events":['
    for event in found:
        if isinstance(event, BrokenEvent):
            broken.append(event)
        else:
            yield start + encode(event)
            start = b","
    yield b'%b],"broken":%b}\n' % (start.removeprefix(b","), encode(broken))


def _find_session_folder(options: SimpleNamespace) -> str:
    """The folder of the named session, or of the one with the latest event."""
    workspace = os.path.realpath(resolve_workspace(options))
    found = open_state_folder().list_sessions(workspace) if options.session is None else []
    if options.session is not None:
        return resolve_workspace_session(workspace, options.session)
    if not found:
        raise CommandFailed(f"{workspace} has no session yet.", FAILED, then="handrail run PROMPT")
    _warn_of_unreadable(found[1:])
    if len(found) > 1 and not options.json:
        print_note(f"session: {found[0].id} (the last one)\nothers: handrail log --sessions")
    return os.path.join(open_state_folder().home(workspace), found[0].id)


def _warn_of_broken(found: Iterable[_Listed]) -> None:
    for event in (one for one in found if isinstance(one, BrokenEvent)):
        warn(f"warning: event {event.seq} cannot be read: {event.problem}")


def _print_window_note(options: SimpleNamespace, shown: Sequence[_Listed], total: int, last: int) -> None:
    """Says that nothing was found, or names the command that shows the rest of `total`."""
    since = options.since and options.since.isoformat(timespec="seconds")
    given = [("session", options.session), ("since", since), ("tool", options.tool), ("grep", options.grep)]
    words = ["handrail", "log", *(word for name, value in given if value is not None for word in (f"--{name}", value))]
    words += ["--events"] if options.events else []
    if not shown:
        nothing = f"no event after {options.after or 0}; the last is {last}"
        print_note("nothing in this session matches" if _has_filter(options) else nothing)
    elif len(shown) < total and options.after is None:
        print_note(f"the last {len(shown)} of {total}; from the beginning: {shlex.join(words)} --after 0")
    elif len(shown) < total:
        print_note(f"{total - len(shown)} more: {shlex.join(words)} --after {shown[-1].seq}")


def _print_sessions(options: SimpleNamespace) -> int:
    found = open_state_folder().list_sessions(os.path.realpath(resolve_workspace(options)))
    _warn_of_unreadable(found)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "sessions": found}))
    elif found:
        conversations = open_state_folder().list_conversations(os.path.realpath(options.workspace or "."))
        prompts = {one.id: truncate(to_one_line(one.prompt), 60) for one in conversations}
        rows = [
            (
                one.id,
                "unreadable" if one.problem else str(one.events),
                format_time(one.last) if one.last else "–",
                prompts.get(one.id, ""),
            )
            for one in found
        ]
        print_out(render_table([("session", "events", "last", "begun with"), *rows]))
    else:
        print_note("this workspace has no session yet")
    return OK


def _warn_of_unreadable(found: list[SessionInfo]) -> None:
    for one in found:
        if one.problem is not None:
            warn(f"warning: {one.problem}")


# Export


def run_export(options: SimpleNamespace) -> int:
    """Writes every readable event to the file of its day, and names the others."""
    out = OutFolder(options.out)
    broken: list[BrokenEvent] = []
    written: dict[str, int] = {}
    if options.dialect is not None:
        from handrail.dialects.adapters import ADAPTERS  # noqa: PLC0415  few export for other systems

        if options.dialect not in ADAPTERS:
            problem = f"there is no dialect {render_value(options.dialect)} for events. Use {', '.join(ADAPTERS)}"
            raise CommandFailed(problem)
    render = choose_event_renderer(options.dialect, resolve_workspace(options))
    folder = resolve_session_folder(options, options.task)
    session = os.path.basename(folder)

    def render_lines(name: str, events: Iterable[Event | BrokenEvent]) -> Iterator[bytes]:
        for event in events:
            written[name] = written.get(name, 0) + 1
            yield from (encode(one) + b"\n" for one in render(event)) if isinstance(event, Event) else ()

    def build_path(event: Event | BrokenEvent) -> str | None:
        return build_export_path(session, event, get_export_kind(options.dialect)) if isinstance(event, Event) else None

    with open_journal(folder) as journal:
        for name, events in groupby(journal.events(), build_path):
            if name is None:
                broken += [event for event in events if isinstance(event, BrokenEvent)]
            else:
                out.add(name, render_lines(name, events))
    for event in broken:
        warn(f"warning: event {event.seq} cannot be read and was left out: {event.problem}")
    paths = {os.path.join(options.out, name): count for name, count in written.items()}
    if options.json:
        files = [{"file": path, "events": count} for path, count in paths.items()]
        print_json(encode({"schema": _SCHEMA, "session": session, "files": files, "broken": broken}))
    else:
        print_out("".join(f"{path}  {count} events\n" for path, count in paths.items()))
    return OK


# The story of a line


class LineHistory(NamedTuple):
    """A line with its origin, and with the call that wrote it."""

    path: str
    line: int
    text: str
    origin: LineOrigin
    story: CallStory | None
    """None if no journal has the call any more."""


def _print_line(options: SimpleNamespace) -> int:
    from handrail.cli.commands.changes import open_cli_session, print_refusal  # noqa: PLC0415  it opens a session

    path, line = _split_line_place(options.line)
    try:
        with open_cli_session(options) as rail:
            real, text, origin = rail.line_origin(path, line)
            change = origin.entry if origin.kind == "made" else None
            story = change and open_state_folder().find_call_story(
                rail.workspace, change.session_id, change.tool_call_id
            )
    except ToolError as error:
        return print_refusal(options, "log-line", error, "handrail log --changes")
    history = LineHistory(real, line, text, origin, story)
    if options.json:
        print_json(encode({"schema": "handrail.log-line/1", **_build_line_data(history)}))
        return OK
    print_out(f"{real}:{line}  {text.strip()}\n\n")
    print_out(render_table(_build_line_rows(history)) if change else f"{_describe_origin(history)}\n")
    if origin.outside:
        numbers = ", ".join(map(str, origin.outside))
        print_out(f"changed outside handrail after change {numbers}, but not this line\n")
    for number in origin.brought_back:
        print_out(f"another change of the file was undone by {number}\n")
    if origin.entry is not None:
        number = origin.entry.number
        print_note(f"to see the change: handrail diff {number}; to undo: handrail undo {number}")
    return OK


def _split_line_place(spelled: str) -> tuple[str, int]:
    """The parts of `src/a.py:41`. A path may have colons too."""
    path, colon, line = spelled.rpartition(":")
    if not colon or not path or not line.isascii() or not line.isdigit() or len(line) > 9 or not int(line):
        raise CommandFailed(
            f"--line takes FILE:N, a file and the number of a line from 1, got {spelled[:80]!r}. See: src/a.py:41"
        )
    return path, int(line)


def _build_line_data(history: LineHistory) -> dict[str, Any]:
    origin, story = history.origin, history.story
    data: dict[str, Any] = {"path": history.path, "line": history.line, "text": history.text, "origin": origin.kind}
    data |= {"changedOutsideAfter": origin.outside, "broughtBackBy": origin.brought_back}
    data |= {"change": None, "call": None, "decision": None, "answer": None, "prompt": None}
    if (change := origin.entry) is not None:
        data["change"] = {
            "number": change.number,
            "time": change.time,
            "sessionId": change.session_id,
            "toolCallId": change.tool_call_id,
            "tool": change.tool,
            "summary": change.summary,
            "path": _decode_path(origin),
            "line": origin.line,
            "undoable": change.undoable,
        }
    if story is None:
        return data
    start, answer, prompt = story.start, story.answer, story.prompt
    call = {"name": start.tool_call_name, "args": start.args, "time": start.time, "traceId": start.trace_id}
    return data | {
        "call": call | {"messageId": start.message_id, "command": story.asked.command if story.asked else None},
        "decision": story.decision,
        "mode": story.mode,
        "answer": {"kind": answer.kind, "by": answer.by or "person", "time": story.answered} if answer else None,
        "prompt": {"messageId": prompt.message_id, "text": prompt.text} if prompt else None,
    }


def _build_line_rows(history: LineHistory) -> list[tuple[str, str]]:
    """The change that made a line, its call, the decision, the answer and the prompt."""
    origin, story = history.origin, history.story
    change = origin.entry
    if change is None:
        return []
    then = _decode_path(origin)
    place = f"{then}:{origin.line} then" if then != history.path else f"line {origin.line} then"
    moved = "" if (then, origin.line) == (history.path, history.line) else f", {place}"
    rows = [("made by", f"change {change.number}, {format_time(change.time)}{moved}")]
    if story is None:
        rows.append(("call", f"{change.tool}: no longer in any journal"))
    else:
        rows += [
            ("call", _describe_call(story, change.summary)),
            ("decision", _describe_decision(story)),
            ("answer", _describe_answer(story)),
            ("prompt", _describe_prompt(story)),
        ]
    return [*rows, ("session", change.session_id)]


def _describe_origin(history: LineHistory) -> str:
    """A sentence about a line that no known change made."""
    origin, change = history.origin, history.origin.entry
    if change is not None and origin.kind == "outside":
        what = f"{truncate(change.summary, 100)}, {format_time(change.time)}"
        return f"line {history.line} was changed outside handrail, after change {change.number} ({what})"
    if change is not None and origin.kind == "lost":
        when = format_time(change.time)
        return f"change {change.number} ({when}) may have written this line; its content is no longer stored"
    if origin.outside or origin.line != history.line or origin.brought_back:
        return "older than handrail's first change of this file"
    return "no change that handrail made touched this line"


def _decode_path(origin: LineOrigin) -> str:
    return escape_surrogates(origin.path.decode(errors="surrogateescape"))


def _describe_call(story: CallStory, summary: str) -> str:
    """The tool, with its command or the summary of its change."""
    args: Any = story.start.args
    command = cast("dict[str, Any]", args).get("command") if isinstance(args, dict) else None
    text = (story.asked.command if story.asked else None) or command or summary
    edited = " (changed by a person)" if story.asked is not None and story.asked.edited else ""
    return f"{story.start.label} {truncate(to_one_line(str(text)), 100)}{edited} ({story.start.tool_call_id})"


def _describe_decision(story: CallStory) -> str:
    if story.decision is None:
        return "not known"
    by = story.answer.by if story.answer is not None else None
    verdict = "needed approval" if by else "asked" if story.asked else _VERDICTS[story.decision.decision]
    decided = story.asked or story.decision
    mode = f", mode {story.mode}" if story.mode else ""
    return f"{verdict}: {to_one_line(decided.reason)} (rule {decided.rule}{mode})"


def _describe_answer(story: CallStory) -> str:
    if story.answer is None or story.answered is None:
        return "no approval needed"
    if story.answer.by is not None:
        # Only a change has a line, so the preview changed something.
        return f"{describe_unasked(story.answer.by, changed=True)}, {format_time(story.answered)}"
    preview = story.asked.preview if story.asked is not None else None
    done = "kept" if preview is not None and preview.tried is not None else "allowed"
    return f"{done} by a person, {_ANSWERS.get(story.answer.kind, story.answer.kind)}, {format_time(story.answered)}"


def _describe_prompt(story: CallStory) -> str:
    """The words of the person, and the ids of the message that the call was in."""
    start = story.start
    ids = [f"message {to_one_line(start.message_id)}"] if start.message_id else []
    ids += [f"trace {to_one_line(start.trace_id)}"] if start.trace_id != start.tool_call_id else []
    named = ", ".join(ids)
    if story.prompt is None:
        return named or "none (called from the command line)"
    return f'"{truncate(to_one_line(story.prompt.text), 100)}"' + (f" ({named})" if named else "")


def _add_arguments(parser: ArgumentParser) -> None:
    add_workspace_option(parser)
    parser.add_argument("--session", metavar="ID", help="the session, or the id's beginning (the last one)")
    parser.add_argument("--after", metavar="SEQ", type=parse_number(0), help="events after this number, oldest first")
    parser.add_argument("--limit", metavar="N", type=parse_number(1), default=100, help="at most so many entries (100)")
    parser.add_argument(
        "--since", metavar="TIME", type=parse_past_time, help="only later entries: 2h, 7d or 2026-07-01T09:30"
    )
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--grep", metavar="TEXT", help="only entries with this text, in upper or lower case")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--events", action="store_true", help="show every event instead of the transcript")
    other.add_argument("--sessions", action="store_true", help="list the sessions of the workspace instead")
    other.add_argument("--changes", action="store_true", help="list the changes of the workspace instead, newest first")
    other.add_argument("--line", metavar="FILE:N", help="show which call wrote a line and who approved it")
    add_json_option(parser)


def _add_export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the id of the session, or its beginning")
    parser.add_argument("--out", metavar="DIR", default=".tasklogs", help="where to (.tasklogs)")
    parser.add_argument("--dialect", metavar="D", help="format of another system: deepchat, devminds or onething")
    add_workspace_option(parser)
    add_json_option(parser)


COMMANDS = {
    "log": Command(
        run,
        _add_arguments,
        ("handrail log --since 2h", "handrail log --line src/a.py:41"),
        {FAILED: "there is no such session, file or line"},
    ),
    "log export": Command(
        run_export,
        _add_export_arguments,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        {FAILED: "there is no such session"},
    ),
}
