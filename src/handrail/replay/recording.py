"""A recorded session."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from difflib import unified_diff
from itertools import groupby
from typing import Any, Literal, cast

import msgspec

from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import Change as Changed
from handrail.protocol.decisions import Facts, Mode
from handrail.protocol.events import (
    ChangeEvent,
    Event,
    ToolCallEnd,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
)
from handrail.protocol.permissions import Answer
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import Wire, encode
from handrail.runtime.pending_call import build_call
from handrail.store.journal import BrokenEvent, PastCall
from handrail.store.sessions import list_past_calls, open_journal

# § [agent.replay.observing] What a session knew of files: how each was when it first met it, and which became
# § others without it.


class FileObservations(msgspec.Struct, frozen=True):
    """By the hashes in its reads and its change sets."""

    first: dict[str, str | None]
    """Each file, and its hash before the session changed it; None where it was not there."""
    meanwhile: tuple[str, ...]
    """Files that somebody else changed while the session was at work."""
    begun: datetime
    """When it first met one."""


def collect_observations(events: Iterable[Event | BrokenEvent]) -> FileObservations:
    """Goes through the events of a session. Files outside the workspace are not among them."""
    first: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    meanwhile: set[str] = set()
    begun = datetime.max.replace(tzinfo=UTC)
    for time, path, before, after in _met(events):
        begun = min(begun, time)
        if path not in first:
            first[path] = before
        elif now[path] != before:
            meanwhile.add(path)
        now[path] = after
    return FileObservations(first, tuple(sorted(meanwhile)), begun)


def _met(events: Iterable[Event | BrokenEvent]) -> Iterable[tuple[datetime, str, str | None, str | None]]:
    for event in events:
        if isinstance(event, ChangeEvent):
            changes = (one for one in event.change.changes if _is_file(one))
            yield from ((event.time, one.path, one.before, one.after) for one in changes)
        elif isinstance(event, ToolCallEnd) and event.tool_call_name == "read":
            data: dict[str, Any] = event.result.data or {}
            if _is_inside(path := str(data.get("path", "/"))) and isinstance(found := data.get("hash"), str):
                yield event.time, path, found, found


def _is_file(one: Changed) -> bool:
    return one.kind == "file" and one.replaces is None and _is_inside(one.path)


def _is_inside(path: str) -> bool:
    """Whether it is a path in the workspace: neither one in another root nor kept output."""
    return not path.startswith(("/", "@"))


# § [agent.replay.recorded] The calls of a session as the journal has them: what came in, how it was answered, what
# § came of it.


class RecordedCall(msgspec.Struct, frozen=True):
    """One call."""

    call: ToolCall
    batch_id: str
    mode: Mode | None
    answer: Answer | None
    result: ToolResult[Any] | None
    """None where it has none that can be read."""
    facts: Facts = Facts()
    """What it was decided on."""

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, where they are named ones."""
        given = self.call.args
        return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


class Recording(msgspec.Struct, frozen=True):
    """All calls of a session."""

    calls: tuple[RecordedCall, ...]
    observed: FileObservations
    unreadable: int = 0

    def batches(self) -> Iterator[tuple[RecordedCall, ...]]:
        """The calls that came in one message, in their order."""
        for _, calls in groupby(self.calls, lambda one: one.batch_id):
            yield tuple(calls)


def read_recording(folder: str) -> Recording:
    """Reads the journal in the folder of a session."""
    results: dict[str, ToolResult[Any]] = {}
    answers: dict[str, Answer] = {}
    with open_journal(folder) as journal:
        results |= {call_id: result for call_id, result in journal.finished() if result is not None}
        seen = collect_observations(journal.events())
        for event in journal.events():
            if isinstance(event, ToolCallPermissionGranted | ToolCallPermissionDenied):
                answers[event.tool_call_id] = event.answer
    found = list(list_past_calls(folder))
    calls = [_recorded(one, results, answers) for one in found if isinstance(one, PastCall)]
    return Recording(tuple(calls), seen, sum(isinstance(one, BrokenEvent) for one in found))


def _recorded(past: PastCall, results: dict[str, ToolResult[Any]], answers: dict[str, Answer]) -> RecordedCall:
    call = build_call(past.start)
    call_id = call.tool_call_id
    decided, answer = past.decided, answers.get(call_id)
    return RecordedCall(call, decided.batch_id, decided.mode, answer, results.get(call_id), decided.facts)


# § [agent.replay.comparing] Compares a result with the one that was recorded. What is of the moment only does not
# § count: times, ids, numbers.

Verdict = Literal["same", "times", "differs", "outside", "left-out"]

_OF_THE_MOMENT = frozenset(
    {"mtime", "durationMs", "duration_ms", "sessionId", "pid", "number", "undo", "undone", "sandbox"}
)
_TIMES = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
    r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"
    r"|\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|minutes?)\b"
)
_NUMBERED = re.compile(r"(\b(?:undo|Took back|Brought back|[Cc]hanges?) )(\d{1,9}(?:(?:, | and )\d{1,9})*)\b")
_NUMBER = re.compile(r"\d+")
_MAX_DIFF_LINES = 40


class CallComparison(Wire, frozen=True, omit_defaults=False):
    """What came of a call this time."""

    tool_call_id: str
    name: str
    title: str
    verdict: Verdict
    """`times`: the same but for dates and durations; `outside`: it is about a file that is not as it was then, so
    a difference says nothing; `left-out`: it was not made again."""
    reason: str = ""
    """Why it was left out, or what differs in a few words."""
    difference: str = ""
    """Of the content, as a unified diff; the beginning of a long one."""


class ReplayMapping(msgspec.Struct, frozen=True):
    """What goes by another name now than then: results are compared as if it were the same."""

    then: str
    """The workspace."""
    now: str
    numbers: dict[int, int] = {}
    """Of change sets: each of now with that of then."""

    def there(self, text: str) -> str:
        """A text of now as if it were about the workspace."""
        return text.replace(self.now, self.then)

    def as_then(self, text: str) -> str:
        """The same, with the numbers of then where it speaks of change sets, or seems to."""
        return _NUMBERED.sub(lambda found: found[1] + _NUMBER.sub(self._renumbered, found[2]), self.there(text))

    def _renumbered(self, found: re.Match[str]) -> str:
        number = int(found[0])
        return str(self.numbers.get(number, number))


def compare_results(then: ToolResult[Any], now: ToolResult[Any], places: ReplayMapping) -> CallComparison:
    """How they differ, if they do."""
    old, new = _lasting(then, str), _lasting(now, places.as_then)
    verdict: Verdict = "same"
    if old not in (new, _lasting(now, places.there)):
        verdict = "times" if _without_times(old) == _without_times(new) else "differs"
    differs = verdict == "differs"
    return CallComparison(
        tool_call_id=then.tool_call_id,
        name=then.name,
        title=then.title,
        verdict=verdict,
        reason=_reason(then, now) if differs else "",
        difference=_difference(then, now, places) if differs else "",
    )


def _lasting(result: ToolResult[Any], worded: Callable[[str], str]) -> Any:
    """What of a result should be the same whenever the call is made."""
    error = result.error
    said = {
        "ok": result.ok,
        "code": error.code if error else None,
        "content": result.content,
        "data": msgspec.to_builtins(result.data),
        "meta": msgspec.to_builtins(result.meta),
        "artifacts": msgspec.to_builtins(result.artifacts),
        "warnings": result.warnings,
    }
    return msgspec.json.decode(worded(encode(_pruned(said)).decode()))


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(one) for key, one in value.items() if key not in _OF_THE_MOMENT}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_pruned(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _without_times(value: Any) -> str:
    return _TIMES.sub("<time>", encode(value).decode())


def _reason(then: ToolResult[Any], now: ToolResult[Any]) -> str:
    was, came = _outcome(then), _outcome(now)
    return f"was {was}, is {came}" if was != came else "the same outcome in other words"


def _outcome(result: ToolResult[Any]) -> str:
    if result.error is not None:
        return result.error.code
    data: Any = msgspec.to_builtins(result.data)
    code = data.get("exitCode") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return "ok" if code is None else f"exit {code}"


def _difference(then: ToolResult[Any], now: ToolResult[Any], places: ReplayMapping) -> str:
    old, new = then.content.splitlines(), places.as_then(now.content).splitlines()
    lines = list(unified_diff(old, new, "recorded", "replayed", lineterm="", n=1))
    more = [f"… {len(lines) - _MAX_DIFF_LINES} more lines"] if len(lines) > _MAX_DIFF_LINES else []
    return "\n".join((*lines[:_MAX_DIFF_LINES], *more))
