"""Makes the calls of a recording once more, in their order and with the answers that were given."""

from typing import Any

import msgspec

from handrail.agent.replay.comparing import Compared, Places, compared
from handrail.agent.replay.confining import changed_elsewhere, confined, moved, out_of_reach
from handrail.agent.replay.recorded import Recorded, Recording
from handrail.agent.replay.start import Start
from handrail.protocol.batch import Done
from handrail.protocol.permission import Answer, PermissionRequest
from handrail.protocol.result import ToolResult
from handrail.rail import Handrail
from handrail.settings import Loaded

_BY_PERSON = "undo"
_CUT_OFF = frozenset({"INTERRUPTED", "CANCELLED", "TIMEOUT"})


class Replay(msgspec.Struct, frozen=True):
    """What came of all of them."""

    calls: tuple[Compared, ...]
    start: Start
    outside: tuple[str, ...]
    """Files that others changed since, those included that only a call showed: what they were nobody knows."""
    unreadable: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing differs that can be compared."""
        return all(one.verdict != "differs" for one in self.calls)


def play(recording: Recording, start: Start, workspace: str, settings: Loaded) -> Replay:
    """Plays a recording on its start; `workspace`: where it was recorded. Nothing is written but there."""
    enabled = _with_tools(confined(settings), recording)
    with Handrail(
        start.workspace, state_dir=start.state, session="replay", settings=enabled, on_permission=_later
    ) as rail:
        player = _Player(rail, start, Places(workspace, start.workspace, {}))
        calls = [one for batch in recording.batches() for one in player.play(batch)]
    return Replay(tuple(calls), start, tuple(sorted(player.outside)), recording.unreadable)


def _with_tools(settings: Loaded, recording: Recording) -> Loaded:
    """With every tool that was offered then, as far as calls show it."""
    tools = settings.settings.tools
    named = {one.call.name for one in recording.calls if one.result is not None and one.result.version != "0"}
    offered = msgspec.structs.replace(tools, enable=tuple(sorted({*tools.enable, *named - {_BY_PERSON}})))
    return msgspec.structs.replace(settings, settings=msgspec.structs.replace(settings.settings, tools=offered))


def _later(_: PermissionRequest) -> None:
    """The answers of the recording are given where its calls are known."""


class _Player:
    def __init__(self, rail: Handrail, start: Start, places: Places) -> None:
        self._rail, self._places = rail, places
        self.outside = set(start.outside)
        self._changed: set[str] = set()
        """What the session had changed so far."""
        self._custom = {spec.name for spec in rail.specs() if spec.category != "builtin" and spec.side_effects}
        """What they reach nothing keeps to the copy."""
        self._numbers: dict[int, int] = {}
        """The change sets of the recording, and those that stand for them here."""

    def play(self, batch: tuple[Recorded, ...]) -> list[Compared]:
        left = {one.call.tool_call_id: reason for one in batch if (reason := self._why_left_out(one))}
        calls = [one for one in batch if one.call.tool_call_id not in left and one.call.name != _BY_PERSON]
        results = self._results(calls)
        told: list[Compared] = []
        for one in batch:
            now = self._undone(one) if one.call.name == _BY_PERSON else results.get(one.call.tool_call_id)
            reason = left.get(one.call.tool_call_id, "it waits for an answer that nobody recorded")
            told.append(_left_out(one, reason) if now is None or one.result is None else self._compared(one, now))
        return told

    def _why_left_out(self, one: Recorded) -> str:
        """Why a call is not made again; empty where it is."""
        if one.call.name in self._custom:
            return "what a custom tool does is not kept to the copy"
        if one.result is not None and changed_elsewhere(one.result, self._places.then):
            return "it changed files outside of the workspace"
        return _why_not_again(one)

    def _results(self, calls: list[Recorded]) -> dict[str, ToolResult[Any]]:
        if not calls:
            return {}
        answers = {one.call.tool_call_id: one.answer for one in calls}
        if calls[0].mode is not None and calls[0].mode != self._rail.mode:
            self._rail.set_mode(calls[0].mode)
        outcome = self._rail.batch([moved(one.call, self._places.then, self._places.now) for one in calls])
        while not isinstance(outcome, Done):
            request = outcome.requests[0] if outcome.requests else None
            answer = answers.get(request.tool_call_id) if request else None
            if request is None or answer is None:
                return {}
            outcome = self._rail.answer(request, _possible(answer, request))
        return {result.tool_call_id: result for result in outcome.results}

    def _undone(self, one: Recorded) -> ToolResult[Any] | None:
        """A person took something back: the same sets are taken back here, as far as they were made here."""
        numbers = [self._numbers.get(number) for number in one.args.get("numbers", ())]
        resolve = "lines" if one.args.get("lines") else "later"
        last = None
        for number in numbers:
            last = self._rail.undo(number, resolve=resolve) if number is not None else None
        return last

    def _compared(self, one: Recorded, now: ToolResult[Any]) -> Compared:
        then = one.result
        if then is None:
            raise AssertionError("only what was recorded is compared")
        if reason := out_of_reach(then, now):
            return _left_out(one, reason)
        if then.meta.undo is not None and now.meta.undo is not None:
            self._numbers[then.meta.undo] = now.meta.undo
            self._places.numbers[now.meta.undo] = then.meta.undo
        found = compared(then, now, self._places)
        touched = {*then.artifacts.files_changed, one.args.get("path")}
        if found.verdict == "differs" and one.call.name == "read" and then.ok and not touched & self._changed:
            self.outside |= touched  # what nobody in the session had changed was read as it was at the start
        self._changed.update(then.artifacts.files_changed)
        if found.verdict == "differs" and touched & self.outside:
            return msgspec.structs.replace(found, verdict="outside")
        return found


def _possible(answer: Answer, request: PermissionRequest) -> Answer:
    """The answer, or the nearest to it that the request takes; a no stays a no."""
    instead = "once" if answer.kind in {"session", "workspace"} else "deny"
    return Answer(kind=answer.kind if answer.kind in request.answers else instead, reason=answer.reason)


def _why_not_again(one: Recorded) -> str:
    """Why a call cannot come out the same; empty where it can."""
    if one.result is None:
        return "it has no result"
    if one.result.error is not None and one.result.error.code in _CUT_OFF:
        return "it was cut off"
    if one.call.name == "process" or one.args.get("background") or one.args.get("yieldMs"):
        return "what goes on by itself is not the same twice"
    sandbox = one.result.meta.sandbox
    if sandbox is not None and sandbox.net != "none":
        return "it could reach hosts"
    return "the person's reply is not made again" if one.call.name == "question" else ""


def _left_out(one: Recorded, reason: str) -> Compared:
    title = one.result.title if one.result else one.call.name
    return Compared(
        tool_call_id=one.call.tool_call_id, name=one.call.name, title=title, verdict="left-out", reason=reason
    )
