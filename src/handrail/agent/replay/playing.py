"""Makes the calls of a recording once more, in their order and with the answers that were given."""

from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.agent.replay.apart import BY_PERSON, find_skip_reason, has_offered_tool, isolate_settings
from handrail.agent.replay.comparing import CallComparison, ReplayMapping, compare_results
from handrail.agent.replay.confining import find_unreachable_reason, has_outside_changes, relocate_call
from handrail.agent.replay.recorded import RecordedCall, Recording
from handrail.agent.replay.start import ReplayStart
from handrail.agent.replay.unknown import UnknownFiles
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import Answer, PermissionRequest, Reply
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.rail import Handrail
from handrail.settings import LoadedSettings

_REFUSED = frozenset({"PERMISSION_DENIED", "POLICY_DENIED"})
"""Codes of a call that a person or the policy refused."""


class SessionReplay(msgspec.Struct, frozen=True):
    """What came of all of them."""

    calls: tuple[CallComparison, ...]
    start: ReplayStart
    unreadable: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing differs that can be compared."""
        return all(one.verdict != "differs" for one in self.calls)


def play(recording: Recording, start: ReplayStart, workspace: str, settings: LoadedSettings) -> SessionReplay:
    """Plays a recording on its start; `workspace`: where it was recorded."""
    with Handrail(
        start.workspace,
        state_dir=start.state,
        session="replay",
        settings=isolate_settings(settings, recording),
        on_permission=_later,
    ) as rail:
        player = _Player(rail, start, ReplayMapping(workspace, start.workspace, {}))
        calls = [one for batch in recording.batches() for one in player.play(batch)]
    return SessionReplay(tuple(calls), start, recording.unreadable)


def _later(_: PermissionRequest) -> None:
    """The answers of the recording are given where its calls are known."""


class _Player:
    def __init__(self, rail: Handrail, start: ReplayStart, places: ReplayMapping) -> None:
        self._rail, self._places = rail, places
        self._unknown = UnknownFiles(start.outside)
        self._custom = {spec.name for spec in rail.specs() if spec.category != "builtin" and spec.side_effects}
        """What they reach nothing keeps to the copy."""
        self._numbers: dict[int, int] = {}
        """The change sets of the recording, and those that stand for them here."""

    def play(self, batch: tuple[RecordedCall, ...]) -> list[CallComparison]:
        left = {one.call.tool_call_id: reason for one in batch if (reason := self._why_left_out(one))}
        calls = [one for one in batch if one.call.tool_call_id not in left and one.call.name != BY_PERSON]
        results = self._results(calls)
        told: list[CallComparison] = []
        for one in batch:
            reason = left.get(one.call.tool_call_id, "")
            undone = one.call.name == BY_PERSON and not reason
            now = self._undone(one) if undone else results.get(one.call.tool_call_id)
            if now is not None and one.result is not None and (far := find_unreachable_reason(one.result, now)):
                now, reason = None, far
            told.append(self._left_out(one, reason) if now is None else self._compared(one, now))
        return told

    def _why_left_out(self, one: RecordedCall) -> str:
        name = one.call.name
        if name == BY_PERSON:
            made = {*one.args.get("numbers", ())} & self._numbers.keys()
            return "" if made else "what it took back was not made again"
        if name.startswith(MCP_PREFIX):
            return "no other server is called for a replay"
        if has_offered_tool(one) and all(spec.name != name for spec in self._rail.specs()):
            return "there is no such tool here"
        if name in self._custom:
            return "what a custom tool does is not kept to the copy"
        if one.result is not None and has_outside_changes(one.result, self._places.then):
            return "it changed files outside of the workspace"
        return find_skip_reason(one)

    def _results(self, calls: list[RecordedCall]) -> dict[str, ToolResult[Any]]:
        if not calls:
            return {}
        if calls[0].mode is not None and calls[0].mode != self._rail.mode:
            self._rail.set_mode(calls[0].mode)
        known = {one.call.tool_call_id: one for one in calls}
        outcome = self._rail.batch([relocate_call(one.call, self._places.then, self._places.now) for one in calls])
        while isinstance(outcome, Parked):
            outcome = self._answered(outcome, known)
        return {result.tool_call_id: result for result in outcome.results}

    def _answered(self, parked: Parked, known: dict[str, RecordedCall]) -> Done | Parked:
        if parked.requests:
            request = parked.requests[0]
            return self._rail.answer(request, _answer(known[request.tool_call_id], request))
        question = parked.questions[0]
        return self._rail.reply(question, _reply(known[question.tool_call_id]))

    def _undone(self, one: RecordedCall) -> ToolResult[Any]:
        """A person undid something: the same sets are undone here, as far as they were made here."""
        numbers = tuple(self._numbers[number] for number in one.args["numbers"] if number in self._numbers)
        return self._rail.undo(numbers, resolve="lines" if one.args.get("lines") else None)

    def _compared(self, one: RecordedCall, now: ToolResult[Any]) -> CallComparison:
        then = one.result
        if then is None:
            raise AssertionError("only what was recorded is compared")
        if then.meta.undo is not None and now.meta.undo is not None:
            self._numbers[then.meta.undo] = now.meta.undo
            self._places.numbers[now.meta.undo] = then.meta.undo
        found = compare_results(then, now, self._places)
        if found.verdict == "differs" and (files := self._unknown.concerning(one)):
            return replace(found, verdict="outside", reason=f"not as then: {', '.join(files)}")
        return found

    def _left_out(self, one: RecordedCall, reason: str) -> CallComparison:
        title = one.result.title if one.result else one.call.name
        if one.result is not None:
            self._unknown.add(one.result.artifacts.files_changed)
        return CallComparison(
            tool_call_id=one.call.tool_call_id, name=one.call.name, title=title, verdict="left-out", reason=reason
        )


def _answer(one: RecordedCall, request: PermissionRequest) -> Answer:
    """As it was then; where nobody was asked then, what came of the call says what was allowed."""
    if one.answer is None:
        error = one.result.error if one.result else None
        return Answer(kind="deny" if error is not None and error.code in _REFUSED else "once")
    # The nearest that the request takes; a no stays a no.
    instead = "once" if one.answer.kind in {"session", "workspace"} else "deny"
    return Answer(kind=one.answer.kind if one.answer.kind in request.answers else instead, reason=one.answer.reason)


def _reply(one: RecordedCall) -> Reply | None:
    """The person's words, as the result has them; None where they did not reply."""
    result = one.result
    return convert(result.data, Reply) if result is not None and result.ok else None
