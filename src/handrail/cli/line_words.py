"""Why a line is there, in words."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from handrail.changes.blame import LineOrigin
from handrail.cli.format import format_time
from handrail.protocol.permissions import AnswerKind
from handrail.protocol.records import CallStory
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import escape_surrogates

_VERDICTS = {"allow": "allowed", "confirm": "asked", "deny": "refused"}
_ANSWERS: dict[AnswerKind, str] = {"once": "this once", "session": "for the session", "workspace": "for the workspace"}


class LineHistory(NamedTuple):
    """A line as it is now, and all that is known of how it came there."""

    path: str
    line: int
    text: str
    origin: LineOrigin
    story: CallStory | None


def build_line_chain(why: LineHistory) -> list[tuple[str, str]]:
    """The chain of a line that a change made: by which call, on which decision, by whose yes, and what led to it."""
    rows = [("made by", _made(why))]
    entry, story = why.origin.entry, why.story
    if story is None:
        rows.append(("call", f"{entry.body.tool if entry else '?'}: not in any journal any more"))
    else:
        rows += [("call", _call(why, story)), ("decision", _decision(story)), ("answer", _answer(story))]
        rows.append(("led there", _led(story)))
    rows.append(("session", entry.session if entry else "?"))
    return rows


def describe_origin(why: LineHistory) -> str:
    """What is said where no change that is known made the line."""
    entry, line = why.origin.entry, why.line
    match why.origin.kind:
        case "outside" if entry is not None:
            told = f"line {line} was changed outside handrail since"
            what = truncate(entry.body.summary, 100)
            return f"{told}: after change {entry.number} ({what}, {format_time(entry.time)})"
        case "lost" if entry is not None:
            return (
                f"change {entry.number} ({format_time(entry.time)}) may have made it; what it changed is no longer kept"
            )
        case _ if why.origin.outside or why.origin.line != line or why.origin.brought_back:
            return "older than handrail's first change of this file"
        case _:
            return "no change that handrail made touched this line"


def list_remarks(why: LineHistory) -> Iterator[str]:
    """What happened to the file around the line."""
    if why.origin.outside:
        numbers = ", ".join(map(str, why.origin.outside))
        yield f"changed outside handrail after change {numbers}, but not this line"
    for number in why.origin.brought_back:
        yield f"another change of the file was taken back by {number}"


def _made(why: LineHistory) -> str:
    entry, then = why.origin.entry, escape_surrogates(why.origin.path.decode(errors="surrogateescape"))
    if entry is None:
        return "?"
    called = f"{then}:{why.origin.line} then" if then != why.path else f"line {why.origin.line} then"
    moved = "" if (then, why.origin.line) == (why.path, why.line) else f", {called}"
    return f"change {entry.number}, {format_time(entry.time)}{moved}"


def _call(why: LineHistory, story: CallStory) -> str:
    """The tool and what it was called for: of a command, the command as it was kept."""
    args: Any = story.start.args
    called = cast("dict[str, Any]", args).get("command") if isinstance(args, dict) else None
    kept = story.asked.command if story.asked is not None else None
    entry = why.origin.entry
    told = kept or called or (entry.body.summary if entry else "")
    edited = " (changed by a person)" if story.asked is not None and story.asked.edited else ""
    return f"{story.start.label} {truncate(to_one_line(str(told)), 100)}{edited} ({story.start.tool_call_id})"


def _decision(story: CallStory) -> str:
    decision, mode = story.decision, story.mode
    if decision is None:
        return "not known"
    asked = story.asked
    if asked is not None:
        return f"asked: {to_one_line(asked.reason)} (rule {asked.rule}{f', mode {mode}' if mode else ''})"
    verdict = _VERDICTS[decision.decision]
    return f"{verdict}: {to_one_line(decision.reason)} (rule {decision.rule}{f', mode {mode}' if mode else ''})"


def _answer(story: CallStory) -> str:
    if story.answer is None or story.answered is None:
        return "nobody had to be asked"
    preview = story.asked.preview if story.asked is not None else None
    done = "kept" if preview is not None and preview.tried is not None else "allowed"
    return f"{done} by a person, {_ANSWERS.get(story.answer.kind, story.answer.kind)}, {format_time(story.answered)}"


def _led(story: CallStory) -> str:
    """The words of the person, or what names the message that the call was in."""
    start = story.start
    ids = [f"message {to_one_line(start.message_id)}"] if start.message_id else []
    ids += [f"trace {to_one_line(start.trace_id)}"] if start.trace_id != start.tool_call_id else []
    named = ", ".join(ids)
    if story.prompt is None:
        return named or "not known: the call named no message"
    return f'"{truncate(to_one_line(story.prompt.text), 100)}"' + (f" ({named})" if named else "")
