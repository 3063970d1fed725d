"""The transcript of a session: prompts, answers, one row for each call."""

import re
import sys
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal

import msgspec

from handrail.cli.format import describe_event
from handrail.protocol import events
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_control, to_one_line, truncate
from handrail.protocol.wire import Time, Wire, to_dict
from handrail.terminal.call_lines import describe_subject, describe_to_person
from handrail.terminal.style import Paint, measure_columns, measure_painted, pad_painted, paint_nothing, wrap_line

CallDecision = Literal["allowed", "asked", "not asked", "refused"]
_NOTED = (events.Display, events.Error, events.Mode, events.Network, events.Notice, events.Process, events.Warning)
_REFUSALS = frozenset({"POLICY_DENIED", "PERMISSION_DENIED"})
_UNDECIDED = frozenset({"UNKNOWN_TOOL", "INVALID_ARGUMENT", "UNSUPPORTED_VERSION"})
_MAX_SUBJECT_CHARS = 60
_MAX_OUTCOME_CHARS = 100
_MAX_FILES = 3
_MIN_ALIGNED_COLUMNS = 100
_FULL_STOP = re.compile(r"(?<=\w)\.$")
_NO_BREAK = "\u00a0"
_UNIT = re.compile(r"(?<=\d) (?=s\b|−\d|match|file)|(?<=undo) (?=\d)|(?<=exit) (?=code \d)|(?<=exit code) (?=\d)")
"""The space between a value and its unit. Both stay on one row."""


class Passage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A prompt, an answer of the model, or a note about something else that happened."""

    kind: Literal["prompt", "answer", "note"]
    seq: int
    time: Time
    text: str
    event: str

    @property
    def label(self) -> str:
        return {"prompt": "you", "answer": "model"}.get(self.kind, "says" if self.event == "display" else self.event)


class CallRow(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A call with its decision and its outcome."""

    kind: Literal["call"] = "call"
    seq: int
    time: Time
    tool_call_id: str
    tool: str
    label: str
    """The tool for people: `read`, `create_issue (github)`."""
    subject: str
    decision: CallDecision | None = None
    """Null: it has not been decided, or the call was invalid. `ok` is null until it has ended."""
    outcome: str = "not finished"
    ok: bool | None = None
    files: tuple[str, ...] = ()
    undo: int | None = None
    duration_ms: float | None = None
    warnings: tuple[str, ...] = ()


Entry = Passage | CallRow


class TranscriptBuilder:
    """Collects the entries from events, which come in order."""

    def __init__(self, stored: Iterable[events.Event | events.BrokenEvent]) -> None:
        self._entries: dict[int, Entry] = {}
        """By the number of the first event."""
        self._calls: dict[str, int] = {}
        self._answers: dict[str, tuple[int, list[str]]] = {}
        """The number and the pieces of each answer, by the id of its message."""
        self.broken: list[events.BrokenEvent] = []
        for event in stored:
            if isinstance(event, events.BrokenEvent):
                self.broken.append(event)
            elif isinstance(event, events.ToolEvent):
                self._add_call_event(event)
            else:
                self._add_event(event)

    def list_entries(self) -> list[Entry]:
        for seq, pieces in self._answers.values():
            self._entries[seq] = msgspec.structs.replace(self._entries[seq], text="".join(pieces))
        return list(self._entries.values())

    def _add_event(self, event: events.Event) -> None:
        match event:
            case events.User():
                self._add_passage("prompt", event, event.text)
            case events.Text() if event.message_id in self._answers:
                self._answers[event.message_id][1].append(event.text)
            case events.Text():
                self._answers[event.message_id] = event.seq, [event.text]
                self._add_passage("answer", event, "")
            case events.End() if event.reason != "done":
                self._add_passage("note", event, f"the turn ended: {event.reason}")
            case events.Warning() if event.tool_call_id is not None:
                pass  # the row of the call has it
            case _ if isinstance(event, _NOTED):
                self._add_passage("note", event, describe_event(event))
            case _:
                pass

    def _add_passage(self, kind: Literal["prompt", "answer", "note"], event: events.Event, text: str) -> None:
        self._entries[event.seq] = Passage(
            kind=kind, seq=event.seq, time=event.time, text=text, event=events.get_event_kind(event)
        )

    def _add_call_event(self, event: events.ToolEvent) -> None:
        seq = self._calls.setdefault(event.tool_call_id, event.seq)
        row = self._entries.get(seq) or _begin_row(event)
        if isinstance(row, CallRow):
            self._entries[seq] = msgspec.structs.replace(row, **_read_facts(event, row))


def _begin_row(event: events.ToolEvent) -> CallRow:
    return CallRow(
        seq=event.seq,
        time=event.time,
        tool_call_id=event.tool_call_id,
        tool=event.tool_call_name,
        label=event.label,
        subject=describe_subject(event.tool_call_name, getattr(event, "args", None)),
    )


def _read_facts(event: events.ToolEvent, row: CallRow) -> dict[str, Any]:
    """The fields of a row that an event settles."""
    facts: dict[str, Any] = {}
    match event:
        case events.ToolCallPermissionRequired():
            facts = {"decision": "asked", "outcome": "waiting for approval"}
        case events.ToolCallPermissionGranted():
            subject = event.permission_request.command or row.subject  # a person may have edited the command
            decision = "asked" if event.answer.by is None else "not asked"
            facts = {"decision": decision, "outcome": "not finished", "subject": subject}
        case events.ToolCallPermissionDenied():
            facts = {"decision": "refused"}
        case events.ToolCallQuestionRequired():
            facts = {"outcome": f"waiting for a reply: {event.question}"}
        case events.ChangeEvent():
            facts = _read_change(event.change)
        case events.ToolCallEnd() | events.ToolCallError():
            facts = _read_result(event.result, row)
        case _:
            pass
    return facts


def _read_change(change: ChangeSet) -> dict[str, Any]:
    paths = tuple(one.path for one in change.changes if one.kind != "folder")
    added, removed = (sum(getattr(one, side) or 0 for one in change.changes) for side in ("added", "removed"))
    undone = ", ".join(map(str, change.undoes))
    subject = {"subject": f"change {undone}"} if undone else {}
    return {"files": paths, "undo": change.number, "outcome": f"+{added} −{removed}", **subject}


def _read_result(result: ToolResult[Any], row: CallRow) -> dict[str, Any]:
    facts: dict[str, Any] = {"ok": result.ok, "duration_ms": result.duration_ms, "warnings": result.warnings}
    error = result.error
    if error is not None:
        return facts | {"decision": _decide_failed(error, row), "outcome": f"{error.code}: {describe_to_person(error)}"}
    code = to_dict(result.data).get("exitCode") if row.files else None
    outcome = f"exit code {code}, {row.outcome}" if code is not None else row.outcome if row.files else result.summary
    return facts | {"decision": row.decision or "allowed", "outcome": outcome}


def _decide_failed(error: ErrorInfo, row: CallRow) -> CallDecision | None:
    if error.code in _REFUSALS or "rule" in to_dict(error.details):
        return "refused"
    return None if error.code in _UNDECIDED else row.decision or "allowed"


# Text


def render_transcript(entries: list[Entry], paint: Paint = paint_nothing) -> str:
    """The entries for people. Words of others are indented, so that they cannot pass for rows. They are escaped if
    there is a painter."""
    calls = [entry for entry in entries if isinstance(entry, CallRow)]
    width = max((len(to_one_line(entry.label)) for entry in entries), default=0)
    columns = measure_columns(sys.stdout)
    most = min(_MAX_SUBJECT_CHARS, (columns or 200) // 2 - 10)
    subject = max((len(_clip(row.subject, most)) for row in calls), default=0)
    lines: list[str] = []
    indent = len("12:00:00") + width + 4
    for day, of_day in groupby(entries, lambda entry: f"{entry.time.astimezone():%Y-%m-%d}"):
        lines.append(paint(day, "heading"))
        for entry in of_day:
            time = paint(f"{entry.time.astimezone():%H:%M:%S}", "dim")
            head = f"{time}  {pad_painted(to_one_line(entry.label), width)}  "
            if isinstance(entry, CallRow):
                lines.append(_render_row(head, entry, paint, subject=(most, subject), columns=columns))
                lines += [f"{' ' * indent}warning: {to_one_line(text)}" for text in entry.warnings]
            else:
                text = entry.text if paint is paint_nothing else escape_control(entry.text)
                first, *more = text.strip().splitlines() or [""]
                lines += [head + first, *(f"{' ' * indent}{line}" for line in more)]
    text = "".join(wrap_line(line.rstrip(), columns, indent) for line in lines)
    return text.replace(_NO_BREAK, " ")


def join_text(entry: Entry) -> str:
    """Everything that a person reads of an entry."""
    return (
        entry.text
        if isinstance(entry, Passage)
        else "\n".join((entry.label, entry.subject, entry.outcome, *entry.files))
    )


def _render_row(head: str, row: CallRow, paint: Paint, *, subject: tuple[int, int], columns: int | None) -> str:
    """The row in columns, or without their blanks if it is too wide for a narrow screen."""
    name, (decision, facts) = _clip(row.subject, subject[0]), _render_facts(row, paint)
    aligned = f"{head}{pad_painted(name, subject[1])}  {pad_painted(decision, 9)}  {facts}"
    is_too_wide = columns is not None and columns < _MIN_ALIGNED_COLUMNS and measure_painted(aligned) > columns
    return f"{head}{name}  {decision}  {facts}" if is_too_wide else aligned


def _render_facts(row: CallRow, paint: Paint) -> tuple[str, str]:
    """The decision and the outcome."""
    names = [to_one_line(path) for path in row.files[:_MAX_FILES]]
    more = [f"{len(row.files) - _MAX_FILES} more"] if len(row.files) > _MAX_FILES else []
    code, *rest = _FULL_STOP.sub("", _clip(row.outcome, _MAX_OUTCOME_CHARS)).split(":", 1)
    outcome = ":".join([paint(code, "failed") if row.ok is False else code, *rest])
    facts = [outcome, ", ".join([*names, *more])]
    facts += [paint(f"undo {row.undo}" if row.undo is not None else "", "dim")]
    facts += [paint(f"{row.duration_ms / 1000:.2f} s" if row.duration_ms is not None else "", "dim")]
    decision = paint("refused", "refused") if row.decision == "refused" else row.decision or "–"
    return decision, _UNIT.sub(_NO_BREAK, "; ".join(filter(None, facts)))


def _clip(text: str, most: int) -> str:
    return truncate(to_one_line(text.strip()), most)
