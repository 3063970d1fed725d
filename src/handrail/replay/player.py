"""Runs recorded calls again, confined to a copy of the workspace."""

import os
import re
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
from handrail.replay.session_record import (
    CallComparison,
    FileObservations,
    RecordedCall,
    Recording,
    ReplayMapping,
    compare_results,
    read_recording,
)
from handrail.settings import LoadedSettings
from handrail.store.state_dir import StateFolder
from handrail.workspace.tree_copy import copy_tree, make_copy_folder
from handrail.workspace.workspace import Workspace

_NAMESPACES = 2
"""The weakest tier that protects files outside: Landlock lets a command change their modes and times."""
_PATH_ARGUMENTS = ("path", "command", "cwd")
"""Arguments that name paths. Others are contents and stay unchanged."""
_OUT_OF_REACH = {
    "OUTSIDE_WORKSPACE": "it reaches outside the copy",
    "SANDBOX_UNAVAILABLE": "no sandbox confines it to the copy",
}


def _confine_settings(loaded: LoadedSettings) -> LoadedSettings:
    """The settings of a replay: other roots are read-only, no recorded answer opens a folder, and commands run only in
    namespaces."""
    settings = loaded.settings
    paths = replace(
        settings.paths, read_only=(*settings.paths.read_only, *settings.paths.writable), writable=(), outside="deny"
    )
    sandbox = replace(settings.sandbox, least=max(_NAMESPACES, settings.sandbox.least))
    return replace(loaded, settings=replace(settings, paths=paths, sandbox=sandbox))


def _relocate_call(call: ToolCall, then: str, now: str) -> ToolCall:
    """The call with the path of the copy in the place of the workspace's."""
    given: Any = call.args
    if not isinstance(given, dict):
        return call
    args = cast("dict[str, Any]", given)
    name = re.compile(rf"(?<![\w./-]){re.escape(then)}(?![\w.-])")
    moved = {key: name.sub(lambda _: now, args[key]) for key in _PATH_ARGUMENTS if isinstance(args.get(key), str)}
    return replace(call, args={**args, **moved})


def _is_outside(path: str, workspace: str) -> bool:
    """Whether a path, relative to the workspace, leads out of it."""
    full = os.path.normpath(os.path.join(workspace, path))
    return full != workspace and not full.startswith(f"{workspace.rstrip('/')}/")


def _find_unreachable_reason(then: ToolResult[Any], now: ToolResult[Any]) -> str:
    """Why a call cannot run in a copy. Empty if it can."""
    if now.error is None or (then.error is not None and then.error.code == now.error.code):
        return ""
    return _OUT_OF_REACH.get(now.error.code, "")


_ALL = 1_000_000


class ReplayStart(msgspec.Struct, frozen=True):
    """A copy of the workspace from before the session, with a state folder of its own."""

    workspace: str
    state: str
    taken_back: tuple[int, ...]
    outside: tuple[str, ...]
    """Files that are not as the session saw them."""
    meanwhile: tuple[str, ...]
    """Those that others changed between two calls of the session."""
    left_out: tuple[str, ...]


def make_start(
    folder: str,
    state: StateFolder,
    workspace: str,
    session_id: str,
    settings: LoadedSettings,
    observed: FileObservations,
) -> ReplayStart:
    """Makes the copy in an empty folder. The workspace is only read."""
    copy, own = os.path.join(folder, os.path.basename(workspace) or "workspace"), os.path.join(folder, "state")
    copied = copy_tree(workspace, copy)
    copy_history(state.home(workspace), StateFolder(own).changes(os.path.realpath(copy)))
    taken, outside = _undo_session(copy, own, session_id, _confine_settings(settings), observed)
    others = {*outside, *_list_differing(copy, observed)}
    meanwhile = tuple(path for path in observed.meanwhile if path not in others)
    return ReplayStart(copy, own, taken, tuple(sorted({*others, *meanwhile})), meanwhile, copied.left_out)


def _list_differing(copy: str, observed: FileObservations) -> list[str]:
    """Files that differ from what the session first saw, after its changes were undone."""
    with Workspace(copy) as workspace:
        return [path for path, then in observed.first.items() if workspace.hash_of(path) != then]


def _undo_session(
    copy: str, own: str, session_id: str, settings: LoadedSettings, observed: FileObservations
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    with Handrail(copy, state_dir=own, session="replay-start", settings=settings, unattended=True) as rail:
        sets = rail.changes(_ALL)
        done = rail.undo(session=session_id, resolve="later")
        taken, left = (done.data.undone, set[str]()) if done.data is not None else _undo_separately(rail, session_id)
        taken += _undo_later(rail, copy, sets, observed)
        left |= _list_not_restored(copy, [one for one in rail.changes(_ALL) if one.session_id == session_id])
        return taken, tuple(sorted({*_list_conflicts(done), *(path for path in left if not _is_outside(path, copy))}))


def _undo_later(rail: Handrail, copy: str, sets: list[ChangeRecord], observed: FileObservations) -> tuple[int, ...]:
    """Undoes later changes of others in files that differ from what the session saw."""
    later = {one.number: one for one in sets if one.time >= observed.begun}
    left, taken = set(_list_differing(copy, observed)), list[int]()
    for number, one in later.items():  # newest first
        undone = one.undoes and later.keys() >= set(one.undoes)  # both came later: nothing to restore
        concerned = left.intersection(change.path for change in one.changes)
        if one.in_effect and concerned and not undone and rail.undo(number).ok:
            taken.append(number)
            left = set(_list_differing(copy, observed))
    return tuple(taken)


def _list_not_restored(copy: str, sets: list[ChangeRecord]) -> set[str]:
    """Files that differ from what the session found when it first changed them."""
    found = {
        change.path: change.before
        for one in sets
        if not one.undoes
        for change in one.changes
        if change.kind == "file" and change.replaces is None and not os.path.isabs(change.path)
    }  # sets are listed newest first, so the oldest of a path remains
    with Workspace(copy) as workspace:
        return {path for path, before in found.items() if workspace.hash_of(path) != before}


def _undo_separately(rail: Handrail, session_id: str) -> tuple[tuple[int, ...], set[str]]:
    """Undoes each change set that can be undone. Returns their numbers, and the files of the others."""
    sets = [one for one in rail.changes(_ALL) if one.session_id == session_id and one.in_effect and not one.undoes]
    taken = [one for one in sets if rail.undo(one.number, resolve="lines").ok]
    left = {change.path for one in sets if one not in taken for change in one.changes}
    return tuple(one.number for one in taken), left


def _list_conflicts(refused: ToolResult[Any]) -> tuple[str, ...]:
    details: Any = refused.error.details if refused.error else None
    return tuple(sorted({str(one["path"]) for one in details.get("conflicts", ())})) if details else ()


BY_PERSON = "undo"
_CUT_OFF = frozenset({"INTERRUPTED", "CANCELLED", "TIMEOUT"})


def _isolate_settings(settings: LoadedSettings, recording: Recording) -> LoadedSettings:
    """Confined settings that offer every tool which the recording used."""
    confined = _confine_settings(settings)
    old = confined.settings
    named = {one.call.name for one in recording.calls if _has_offered_tool(one)} - {BY_PERSON}
    tools = replace(old.tools, enable=tuple(sorted({*old.tools.enable, *named})))
    return replace(confined, settings=replace(old, tools=tools, dialect=None))


def _has_offered_tool(one: RecordedCall) -> bool:
    result = one.result
    return (
        result is not None and result.version != "0" and (result.error is None or result.error.code != "UNKNOWN_TOOL")
    )


def find_skip_reason(one: RecordedCall) -> str:  # noqa: PLR0911  one a reason
    """Why a call is not run again. Empty if it is."""
    result = one.result
    if result is None:
        return "it has no result"
    if one.call.name == "question":
        return ""  # a question without a reply was closed, which can be repeated
    if result.error is not None and result.error.code in _CUT_OFF:
        return "it was cut off"
    if one.call.name == "memory":
        return "the notes changed since"
    if one.call.name == "process" or one.args.get("background") or one.args.get("yieldMs"):
        return "background processes differ between runs"
    if any(_is_fact_outside(fact, result) for fact in one.facts.paths):
        return "it uses files outside the workspace, which were not copied"
    return "it could reach hosts" if result.meta.sandbox is not None and result.meta.sandbox.net != "none" else ""


def _is_fact_outside(fact: PathFact, result: Any) -> bool:
    return fact.real.startswith("/") if fact.real is not None else result.ok and fact.outside is not None


_MAX_NAMED_PATHS = 3


def _list_used(one: RecordedCall, paths: set[str]) -> list[str]:
    """The first of the paths that a call uses. A command may have read any file."""
    result = one.result
    named = {fact.real for fact in one.facts.paths if fact.real is not None}
    named |= set(result.artifacts.files_changed) if result is not None else set()
    return [path for path in sorted(paths) if one.call.name == "exec" or _is_among(path, named)][:_MAX_NAMED_PATHS]


def _is_among(path: str, named: set[str]) -> bool:
    """Whether it is one of the paths, or in a folder among them."""
    return any(one in {path, "."} or path.startswith(f"{one}/") for one in named)


_REFUSED = frozenset({"PERMISSION_DENIED", "POLICY_DENIED"})


class SessionReplay(msgspec.Struct, frozen=True):
    calls: tuple[CallComparison, ...]
    start: ReplayStart
    unreadable: int = 0

    @property
    def same(self) -> bool:
        """Whether no comparable call differs."""
        return all(one.verdict != "differs" for one in self.calls)


def replay_session(
    folder: str, workspace: str, state: StateFolder, settings: LoadedSettings, keep: str | None = None
) -> SessionReplay:
    """Replays the session of a folder on a copy of its workspace: temporary, or at the path `keep`."""
    with make_copy_folder(workspace, keep) as place:
        recording = read_recording(folder)
        start = make_start(place, state, workspace, os.path.basename(folder), settings, recording.observed)
        return play(recording, start, workspace, settings)


def play(recording: Recording, start: ReplayStart, workspace: str, settings: LoadedSettings) -> SessionReplay:
    """Runs the calls of a recording. `workspace`: where it was recorded."""
    with Handrail(
        start.workspace,
        state_dir=start.state,
        session="replay",
        settings=_isolate_settings(settings, recording),
        on_permission=lambda _: None,  # `_Player` answers with the recorded answers
    ) as rail:
        player = _Player(rail, start, ReplayMapping(workspace, start.workspace, {}))
        calls = [one for batch in recording.batches() for one in player.play(batch)]
    return SessionReplay(tuple(calls), start, recording.unreadable)


class _Player:
    def __init__(self, rail: Handrail, start: ReplayStart, mapping: ReplayMapping) -> None:
        self._rail, self._mapping = rail, mapping
        self._unknown = set(start.outside)
        """Files that are not as they were. A difference about them means nothing."""
        self._custom = {spec.name for spec in rail.specs() if spec.category != "builtin" and spec.side_effects}
        """Custom tools with effects: nothing confines them to the copy."""
        self._numbers: dict[int, int] = {}
        """Numbers of recorded change sets, with those of the replay."""

    def play(self, batch: tuple[RecordedCall, ...]) -> list[CallComparison]:
        skipped = {one.call.tool_call_id: reason for one in batch if (reason := self._find_skip_reason(one))}
        calls = [one for one in batch if one.call.tool_call_id not in skipped and one.call.name != BY_PERSON]
        results = self._run(calls)
        comparisons: list[CallComparison] = []
        for one in batch:
            reason = skipped.get(one.call.tool_call_id, "")
            is_undo = one.call.name == BY_PERSON and not reason
            now = self._undo(one) if is_undo else results.get(one.call.tool_call_id)
            if now is not None and one.result is not None and (far := _find_unreachable_reason(one.result, now)):
                now, reason = None, far
            comparisons.append(self._skip(one, reason) if now is None else self._compare(one, now))
        return comparisons

    def _find_skip_reason(self, one: RecordedCall) -> str:
        name = one.call.name
        if name == BY_PERSON:
            made = {*one.args.get("numbers", ())} & self._numbers.keys()
            return "" if made else "the change that it undid was not replayed"
        if name.startswith(MCP_PREFIX):
            return "a replay calls no other servers"
        if _has_offered_tool(one) and all(spec.name != name for spec in self._rail.specs()):
            return "there is no such tool here"
        if name in self._custom:
            return "a custom tool is not confined to the copy"
        if one.result is not None and any(
            _is_outside(path, self._mapping.then) for path in one.result.artifacts.files_changed
        ):
            return "it changed files outside the workspace"
        return find_skip_reason(one)

    def _run(self, calls: list[RecordedCall]) -> dict[str, ToolResult[Any]]:
        if not calls:
            return {}
        if calls[0].mode is not None and calls[0].mode != self._rail.mode:
            self._rail.set_mode(calls[0].mode)
        self._rail.split_streams(any(_has_streams(one.result) for one in calls))
        known = {one.call.tool_call_id: one for one in calls}
        outcome = self._rail.batch([_relocate_call(one.call, self._mapping.then, self._mapping.now) for one in calls])
        while isinstance(outcome, Parked):
            outcome = self._answer(outcome, known)
        return {result.tool_call_id: result for result in outcome.results}

    def _answer(self, parked: Parked, known: dict[str, RecordedCall]) -> Done | Parked:
        if parked.requests:
            request = parked.requests[0]
            return self._rail.answer(request, _choose_answer(known[request.tool_call_id], request))
        question = parked.questions[0]
        result = known[question.tool_call_id].result
        return self._rail.reply(question, convert(result.data, Reply) if result is not None and result.ok else None)

    def _undo(self, one: RecordedCall) -> ToolResult[Any]:
        """Undoes the change sets that a person undid, as far as the replay made them."""
        numbers = tuple(self._numbers[number] for number in one.args["numbers"] if number in self._numbers)
        return self._rail.undo(numbers, resolve="lines" if one.args.get("lines") else None)

    def _compare(self, one: RecordedCall, now: ToolResult[Any]) -> CallComparison:
        then = one.result
        if then is None:
            raise AssertionError("only recorded values are compared")
        if then.meta.undo is not None and now.meta.undo is not None:
            self._numbers[then.meta.undo] = now.meta.undo
            self._mapping.numbers[now.meta.undo] = then.meta.undo
        found = compare_results(then, now, self._mapping)
        if found.verdict == "differs" and (files := _list_used(one, self._unknown)):
            return replace(found, verdict="outside", reason=f"changed since: {', '.join(files)}")
        return found

    def _skip(self, one: RecordedCall, reason: str) -> CallComparison:
        title = one.result.title if one.result else one.call.name
        if one.result is not None:
            self._unknown.update(one.result.artifacts.files_changed)
        return CallComparison(
            tool_call_id=one.call.tool_call_id, name=one.call.name, title=title, verdict="left-out", reason=reason
        )


def _has_streams(result: ToolResult[Any] | None) -> bool:
    """Whether it is of a command with two output streams, as some dialects have them."""
    data: Any = None if result is None else msgspec.to_builtins(result.data)
    return isinstance(data, dict) and "stdout" in data


def _choose_answer(one: RecordedCall, request: PermissionRequest) -> Answer:
    """The recorded answer. If there was no request, the recorded result tells whether the call was allowed."""
    if one.answer is None:
        error = one.result.error if one.result else None
        return Answer(kind="deny" if error is not None and error.code in _REFUSED else "once")
    # The nearest that the request takes. A denial stays a denial.
    instead = "once" if one.answer.approves else "deny"
    return Answer(kind=one.answer.kind if one.answer.kind in request.answers else instead, reason=one.answer.reason)
