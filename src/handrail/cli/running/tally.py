"""What a turn came to, counted from its events."""

from handrail.protocol.events import (
    ChangeEvent,
    End,
    Error,
    Event,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionGranted,
    Usage,
    User,
)
from handrail.protocol.results import ToolResult

_DENIED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE"})


class Tally:
    """Counts the events of a turn; each is seen once. A prompt begins another turn."""

    def __init__(self) -> None:
        self.events = 0
        self.ended = False
        """Whether the turn's end was among them."""
        self._begin()

    def _begin(self) -> None:
        self.calls = self.kept = self.denied = 0
        self.input_tokens = self.output_tokens = 0
        self.cost: float | None = None
        self.files: dict[str, tuple[int, int]] = {}
        """Lines that came and went, by path."""
        self.not_covered: list[str] = []
        self.undoable = False
        """Whether there is something that can be undone."""

    def add(self, event: Event) -> None:
        """Takes one event into account."""
        self.events += 1
        self.ended |= isinstance(event, End | Error)
        self.preload(event)

    def preload(self, event: Event) -> None:
        """The same for what happened in this turn before anybody looked."""
        match event:
            case User():
                self._begin()
            case ToolCallEnd() | ToolCallError():
                self._add_call(event.result)
            case ToolCallPermissionGranted():
                self.kept += 1
            case ChangeEvent():
                self._add_change(event)
            case Usage():
                self.input_tokens += event.input_tokens
                self.output_tokens += event.output_tokens
                self.cost = self.cost if event.cost is None else (self.cost or 0.0) + event.cost
            case _:
                pass

    def _add_call(self, result: ToolResult[object]) -> None:
        self.calls += 1
        self.denied += result.error is not None and result.error.code in _DENIED
        if result.meta.sandbox is not None and not result.meta.sandbox.not_covered:
            from handrail.cli.coverage import describe_result_gap  # noqa: PLC0415  only commands have something to say

            told = describe_result_gap(result)
            self._not_covered(told.removeprefix("not covered by undo: ") if told else "")
        elif result.meta.sandbox is not None:
            for text in result.meta.sandbox.not_covered:
                self._not_covered(text)

    def _add_change(self, event: ChangeEvent) -> None:
        self.undoable |= event.change.undoable
        for text in event.change.not_covered:
            self._not_covered(text)
        for change in (one for one in event.change.changes if one.kind != "folder"):
            added, removed = self.files.get(change.path, (0, 0))
            self.files[change.path] = (added + (change.added or 0), removed + (change.removed or 0))

    def _not_covered(self, text: str) -> None:
        if text and text not in self.not_covered:
            self.not_covered.append(text)
