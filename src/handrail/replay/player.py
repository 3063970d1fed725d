"""Runs recorded calls again, in a copy."""

import os
import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from handrail.api import Handrail
from handrail.changes.history import copy_history
from handrail.policy.config import MCP_PREFIX
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.decisions import PathFact
from handrail.protocol.permissions import Answer, PermissionRequest, Reply
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.replay.recording import (
    CallComparison,
    FileObservations,
    RecordedCall,
    Recording,
    ReplayMapping,
    compare_results,
)
from handrail.settings import LoadedSettings
from handrail.store.state_dir import StateFolder
from handrail.workspace.tree_copy import copy_tree
from handrail.workspace.workspace import Workspace

# § [agent.replay.confining] Keeps a replay to its copy: what the session could write elsewhere then, nobody writes
# § now.

_NAMESPACES = 2
"""The weakest tier that keeps a command from files outside wholly: Landlock lets it change their modes and times."""
_PATHS = ("path", "command", "cwd")
"""Arguments that name places. Others hold contents, which stay as they are."""
_OUT_OF_REACH = {
    "OUTSIDE_WORKSPACE": "it reaches outside of the copy",
    "SANDBOX_UNAVAILABLE": "no sandbox here keeps it to the copy",
}


def confine_settings(loaded: LoadedSettings) -> LoadedSettings:
    """The settings of a replay: other roots are only read, nothing outside can be opened by a yes that was given for
    another moment, and no command runs that could leave the copy."""
    settings = loaded.settings
    paths = replace(
        settings.paths, read_only=(*settings.paths.read_only, *settings.paths.writable), writable=(), outside="deny"
    )
    sandbox = replace(settings.sandbox, least=max(_NAMESPACES, settings.sandbox.least))
    return replace(loaded, settings=replace(settings, paths=paths, sandbox=sandbox))


def relocate_call(call: ToolCall, then: str, now: str) -> ToolCall:
    """The call with the workspace's whole name in it replaced by that of the copy."""
    args: Any = call.args
    if not isinstance(args, dict):
        return call
    given = cast("dict[str, Any]", args)
    name = re.compile(rf"(?<![\w./-]){re.escape(then)}(?![\w.-])")
    named = {key: name.sub(lambda _: now, given[key]) for key in _PATHS if isinstance(given.get(key), str)}
    return replace(call, args={**given, **named})


def has_outside_changes(result: ToolResult[Any], workspace: str) -> bool:
    """Whether a call changed files that are not part of the workspace, and so not of the copy."""
    return any(is_elsewhere(path, workspace) for path in result.artifacts.files_changed)


def is_elsewhere(path: str, workspace: str) -> bool:
    """Whether a path, relative in the workspace, is of somewhere else."""
    whole = os.path.normpath(os.path.join(workspace, path))
    return whole != workspace and not whole.startswith(f"{workspace.rstrip('/')}/")


def find_unreachable_reason(then: ToolResult[Any], now: ToolResult[Any]) -> str:
    """Why a call could be made then, and cannot be made in a copy; empty where it can."""
    if now.error is None or (then.error is not None and then.error.code == now.error.code):
        return ""
    return _OUT_OF_REACH.get(now.error.code, "")


# § [agent.replay.start] Where a replay begins: a copy of the workspace as it is now, with the change sets of the
# § session undone in it.

_ALL = 1_000_000


class ReplayStart(msgspec.Struct, frozen=True):
    """A workspace and a state folder of its own."""

    workspace: str
    state: str
    taken_back: tuple[int, ...]
    """The change sets."""
    outside: tuple[str, ...]
    """Files that are not always as they were then."""
    meanwhile: tuple[str, ...]
    """Those of them that were changed between two calls of the session, and not by it."""
    left_out: tuple[str, ...]
    """What could not be copied."""


def make_start(
    folder: str,
    state: StateFolder,
    workspace: str,
    session_id: str,
    settings: LoadedSettings,
    observed: FileObservations,
) -> ReplayStart:
    """Makes it in an empty folder. The workspace itself is only read."""
    copy, own = os.path.join(folder, os.path.basename(workspace) or "workspace"), os.path.join(folder, "state")
    copied = copy_tree(workspace, copy)
    copy_history(state.home(workspace), StateFolder(own).changes(os.path.realpath(copy)))
    taken, outside = _take_back(copy, own, session_id, confine_settings(settings), observed)
    others = {*outside, *_not_as_then(copy, observed)}
    meanwhile = tuple(path for path in observed.meanwhile if path not in others)
    return ReplayStart(copy, own, taken, tuple(sorted({*others, *meanwhile})), meanwhile, copied.left_out)


def _not_as_then(copy: str, observed: FileObservations) -> list[str]:
    """The files that are not now as the session met them, although all that it changed was undone."""
    with Workspace(copy) as workspace:
        return [path for path, then in observed.first.items() if workspace.hash_of(path) != then]


def _take_back(
    copy: str, own: str, session_id: str, settings: LoadedSettings, observed: FileObservations
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    with Handrail(copy, state_dir=own, session="replay-start", settings=settings, unattended=True) as rail:
        sets = rail.changes(_ALL)
        done = rail.undo(session=session_id, resolve="later")
        taken, left = (done.data.undone, set[str]()) if done.data is not None else _one_by_one(rail, session_id)
        taken += _take_back_later(rail, copy, sets, observed)
        left |= _otherwise(copy, [one for one in rail.changes(_ALL) if one.session_id == session_id])
        return taken, tuple(sorted({*_paths(done), *(path for path in left if not is_elsewhere(path, copy))}))


def _take_back_later(
    rail: Handrail, copy: str, sets: list[ChangeRecord], observed: FileObservations
) -> tuple[int, ...]:
    """Undoes what other sessions and undo changed since, in files that are not as the session met them."""
    later = {one.number: one for one in sets if one.time >= observed.begun}
    left, taken = set(_not_as_then(copy, observed)), list[int]()
    for number, one in later.items():  # the latest first
        undone = one.undoes and later.keys() >= set(one.undoes)  # both came later: there is nothing to bring back
        concerned = left.intersection(change.path for change in one.changes)
        if one.in_effect and concerned and not undone and rail.undo(number).ok:
            taken.append(number)
            left = set(_not_as_then(copy, observed))
    return tuple(taken)


def _otherwise(copy: str, sets: list[ChangeRecord]) -> set[str]:
    """The files that are not what the session found when it first changed them, whoever undid its changes."""
    found = {
        change.path: change.before
        for one in sets
        if not one.undoes
        for change in one.changes
        if change.kind == "file" and change.replaces is None and not os.path.isabs(change.path)
    }  # the sets come the latest first, so that the first of a path is what stays
    with Workspace(copy) as house:
        return {path for path, before in found.items() if house.hash_of(path) != before}


def _one_by_one(rail: Handrail, session_id: str) -> tuple[tuple[int, ...], set[str]]:
    """Undoes what stands as it was left; the rest stays as it is, and nobody guesses what it was. Returns the numbers
    of the sets that were undone, and the files of those that were not."""
    sets = [one for one in rail.changes(_ALL) if one.session_id == session_id and one.in_effect and not one.undoes]
    taken = [one for one in sets if rail.undo(one.number, resolve="lines").ok]
    left = {change.path for one in sets if one not in taken for change in one.changes}
    return tuple(one.number for one in taken), left


def _paths(refused: ToolResult[Any]) -> tuple[str, ...]:
    """The files that stand in the way of an undo."""
    details: Any = refused.error.details if refused.error else None
    return tuple(sorted({str(one["path"]) for one in details.get("conflicts", ())})) if details else ()


# § [agent.replay.apart] How a replay is kept away from everything but its copy: what it may use, and which calls
# § are not made again.

BY_PERSON = "undo"
_CUT_OFF = frozenset({"INTERRUPTED", "CANCELLED", "TIMEOUT"})
_OWN_NOTES, _ASKS = "memory", "question"


def isolate_settings(settings: LoadedSettings, recording: Recording) -> LoadedSettings:
    """With every tool that was offered then, as far as calls show it; with no folder to write to but the copy; and with
    commands only in a sandbox that holds them."""
    held = confine_settings(settings)
    old = held.settings
    named = {one.call.name for one in recording.calls if has_offered_tool(one)} - {BY_PERSON}
    tools = replace(old.tools, enable=tuple(sorted({*old.tools.enable, *named})))
    return replace(held, settings=replace(old, tools=tools))


def has_offered_tool(one: RecordedCall) -> bool:
    """Whether there was such a tool then."""
    result = one.result
    return (
        result is not None and result.version != "0" and (result.error is None or result.error.code != "UNKNOWN_TOOL")
    )


def find_skip_reason(one: RecordedCall) -> str:  # noqa: PLR0911  one a reason
    """Why a call is not made again, whatever tools there are; empty where it is."""
    result = one.result
    if result is None:
        return "it has no result"
    if one.call.name == _ASKS:
        return ""  # nothing cuts it off: what has no reply is put aside, and that can be done again
    if result.error is not None and result.error.code in _CUT_OFF:
        return "it was cut off"
    if one.call.name == _OWN_NOTES:
        return "the notes of now are not those of then"
    if one.call.name == "process" or one.args.get("background") or one.args.get("yieldMs"):
        return "what goes on by itself is not the same twice"
    if any(_is_elsewhere(fact, result) for fact in one.facts.paths):
        return "it is about files outside the workspace, of which there is no copy"
    return "it could reach hosts" if result.meta.sandbox is not None and result.meta.sandbox.net != "none" else ""


def _is_elsewhere(fact: PathFact, result: Any) -> bool:
    return fact.real.startswith("/") if fact.real is not None else result.ok and fact.outside is not None


# § [agent.replay.unknown] The files of a replay that are not as they were then: what a call makes of them cannot be
# § compared.

_MAX_NAMED_PATHS = 3
_READS_ANYTHING = "exec"


class UnknownFiles:
    """They become more: what a call that is left out would have changed is not as it was then either."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Files from here on."""
        self._paths.update(paths)

    def concerning(self, one: RecordedCall) -> tuple[str, ...]:
        """Those that a call is about, the first of many; a command may have read any."""
        result = one.result
        named = {fact.real for fact in one.facts.paths if fact.real is not None}
        named |= set(result.artifacts.files_changed) if result is not None else set()
        found = [path for path in sorted(self._paths) if one.call.name == _READS_ANYTHING or _is_in(path, named)]
        return tuple(found[:_MAX_NAMED_PATHS])


def _is_in(path: str, named: set[str]) -> bool:
    """Whether it is one of them, or in a folder that is."""
    return any(one in {path, "."} or path.startswith(f"{one}/") for one in named)


# § [agent.replay.playing] Makes the calls of a recording once more, in their order and with the answers that were
# § given.

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
