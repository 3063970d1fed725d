"""A recorded session, to compare a new run with."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from difflib import unified_diff
from itertools import groupby
from typing import Any, Literal, cast

import msgspec

from handrail.protocol.calls import ToolCall
from handrail.protocol.decisions import Facts, Mode
from handrail.protocol.events import (
    BrokenEvent,
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
from handrail.state import list_past_calls, open_journal
from handrail.store.journal import PastCall


class FileObservations(msgspec.Struct, frozen=True):
    """What a session knew of files, from the hashes in its reads and change sets."""

    first: dict[str, str | None]
    """The hash of each file before the session changed it. None: it did not exist."""
    meanwhile: tuple[str, ...]
    begun: datetime


def collect_observations(events: Iterable[Event | BrokenEvent]) -> FileObservations:
    """Collects observations from events. Files outside the workspace are left out."""
    first: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    meanwhile: set[str] = set()
    begun = datetime.max.replace(tzinfo=UTC)
    for time, path, before, after in _iterate_observations(events):
        begun = min(begun, time)
        if path not in first:
            first[path] = before
        elif now[path] != before:
            meanwhile.add(path)
        now[path] = after
    return FileObservations(first, tuple(sorted(meanwhile)), begun)


def _iterate_observations(
    events: Iterable[Event | BrokenEvent],
) -> Iterable[tuple[datetime, str, str | None, str | None]]:
    for event in events:
        if isinstance(event, ChangeEvent):
            changes = (
                one
                for one in event.change.changes
                if one.kind == "file" and one.replaces is None and _is_inside(one.path)
            )
            yield from ((event.time, one.path, one.before, one.after) for one in changes)
        elif isinstance(event, ToolCallEnd) and event.tool_call_name == "read":
            data: dict[str, Any] = event.result.data or {}
            if _is_inside(path := str(data.get("path", "/"))) and isinstance(found := data.get("hash"), str):
                yield event.time, path, found, found


def _is_inside(path: str) -> bool:
    """Whether a path is in the workspace: neither in another root nor a stored output."""
    return not path.startswith(("/", "@"))


class RecordedCall(msgspec.Struct, frozen=True):
    call: ToolCall
    batch_id: str
    mode: Mode | None
    answer: Answer | None
    result: ToolResult[Any] | None
    """None if it cannot be read."""
    facts: Facts = Facts()

    @property
    def args(self) -> dict[str, Any]:
        args = self.call.args
        return cast("dict[str, Any]", args) if isinstance(args, dict) else {}


class Recording(msgspec.Struct, frozen=True):
    calls: tuple[RecordedCall, ...]
    observed: FileObservations
    unreadable: int = 0

    def batches(self) -> Iterator[tuple[RecordedCall, ...]]:
        for _, calls in groupby(self.calls, lambda one: one.batch_id):
            yield tuple(calls)


def read_recording(folder: str) -> Recording:
    results: dict[str, ToolResult[Any]] = {}
    answers: dict[str, Answer] = {}
    with open_journal(folder) as journal:
        results |= {call_id: result for call_id, result in journal.list_finished() if result is not None}
        observed = collect_observations(journal.events())
        for event in journal.events():
            if isinstance(event, ToolCallPermissionGranted | ToolCallPermissionDenied):
                answers[event.tool_call_id] = event.answer
    found = list(list_past_calls(folder))
    calls = [_build_recorded_call(one, results, answers) for one in found if isinstance(one, PastCall)]
    return Recording(tuple(calls), observed, sum(isinstance(one, BrokenEvent) for one in found))


def _build_recorded_call(
    past: PastCall, results: dict[str, ToolResult[Any]], answers: dict[str, Answer]
) -> RecordedCall:
    call = build_call(past.start)
    call_id = call.tool_call_id
    decided, answer = past.decided, answers.get(call_id)
    return RecordedCall(call, decided.batch_id, decided.mode, answer, results.get(call_id), decided.facts)


Verdict = Literal["same", "times", "differs", "outside", "left-out"]

_VOLATILE_KEYS = frozenset(
    {"mtime", "durationMs", "duration_ms", "sessionId", "pid", "number", "undo", "undone", "sandbox", "protected"}
)
_TIMES = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
    r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"
    r"|\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|minutes?)\b"
)
_NUMBERED = re.compile(
    r"(\b(?:undo|Took back|Brought back|Undid|Redid|[Cc]hanges?) )(\d{1,9}(?:(?:, | and "
    r")\d{1,9})*)\b"
)
_NUMBER = re.compile(r"\d+")
_MAX_DIFF_LINES = 40


class CallComparison(Wire, frozen=True, omit_defaults=False):
    tool_call_id: str
    name: str
    title: str
    verdict: Verdict
    """`times`: equal except dates and durations. `outside`: it uses a file that is not as it was, so a difference means
    nothing. `left-out`: it was not run."""
    reason: str = ""
    """Why it was left out, or what differs."""
    difference: str = ""
    """The start of a unified diff of the contents."""


class ReplayMapping(msgspec.Struct, frozen=True):
    """Names that differ between recording and replay."""

    then: str
    """The recorded workspace."""
    now: str
    """Its copy."""
    numbers: dict[int, int] = {}
    """The recorded number of each change set of the replay."""

    def restore_paths(self, text: str) -> str:
        """The text with the recorded workspace in the place of the copy."""
        return text.replace(self.now, self.then)

    def restore(self, text: str) -> str:
        """The same, also with the recorded numbers of change sets."""
        return _NUMBERED.sub(
            lambda found: found[1] + _NUMBER.sub(self._restore_number, found[2]), self.restore_paths(text)
        )

    def _restore_number(self, found: re.Match[str]) -> str:
        number = int(found[0])
        return str(self.numbers.get(number, number))


def compare_results(then: ToolResult[Any], now: ToolResult[Any], mapping: ReplayMapping) -> CallComparison:
    old, new = _select_stable(then, str), _select_stable(now, mapping.restore)
    verdict: Verdict = "same"
    if old not in (new, _select_stable(now, mapping.restore_paths)):
        verdict = "times" if _mask_times(old) == _mask_times(new) else "differs"
    differs = verdict == "differs"
    return CallComparison(
        tool_call_id=then.tool_call_id,
        name=then.name,
        title=then.title,
        verdict=verdict,
        reason=_describe_difference(then, now) if differs else "",
        difference=_render_diff(then, now, mapping) if differs else "",
    )


def _select_stable(result: ToolResult[Any], restore: Callable[[str], str]) -> Any:
    """The parts of a result that do not depend on the moment, with texts changed by `restore`."""
    error = result.error
    stable = {
        "ok": result.ok,
        "code": error.code if error else None,
        "content": result.content,
        "data": msgspec.to_builtins(result.data),
        "meta": msgspec.to_builtins(result.meta),
        "artifacts": msgspec.to_builtins(result.artifacts),
        "warnings": result.warnings,
    }
    return msgspec.json.decode(restore(encode(_drop_volatile(stable)).decode()))


def _drop_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_volatile(one) for key, one in value.items() if key not in _VOLATILE_KEYS}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_drop_volatile(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _mask_times(value: Any) -> str:
    return _TIMES.sub("<time>", encode(value).decode())


def _describe_difference(then: ToolResult[Any], now: ToolResult[Any]) -> str:
    was, is_now = _render_outcome(then), _render_outcome(now)
    return f"was {was}, is {is_now}" if was != is_now else "the same outcome, worded differently"


def _render_outcome(result: ToolResult[Any]) -> str:
    if result.error is not None:
        return result.error.code
    data: Any = msgspec.to_builtins(result.data)
    code = data.get("exitCode") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return "ok" if code is None else f"exit {code}"


def _render_diff(then: ToolResult[Any], now: ToolResult[Any], mapping: ReplayMapping) -> str:
    old, new = then.content.splitlines(), mapping.restore(now.content).splitlines()
    lines = list(unified_diff(old, new, "recorded", "replayed", lineterm="", n=1))
    more = [f"… {len(lines) - _MAX_DIFF_LINES} more lines"] if len(lines) > _MAX_DIFF_LINES else []
    return "\n".join((*lines[:_MAX_DIFF_LINES], *more))
