"""Compares a result with the one that was recorded. What is of the moment only does not count: times, ids, numbers."""

import re
from collections.abc import Callable
from difflib import unified_diff
from typing import Any, Literal

import msgspec

from handrail.protocol.results import ToolResult
from handrail.protocol.wire import Wire, encode

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
