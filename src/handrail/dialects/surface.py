"""The tools of a dialect in one session."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from handrail.dialects.dialect import (
    Answered,
    Canonical,
    Dialect,
    DialectTool,
    Shown,
    adapt_settings,
    list_helpers,
    load_dialect,
)
from handrail.dialects.table import build_struct, list_renamed
from handrail.protocol.arguments import CONVERSION_ERRORS
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import ErrorInfo, ToolError, UsageError
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.records import ProcessRecord, TodoItem
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import BASE_NAMES, ToolSpec
from handrail.protocol.wire import Wire, convert, escape_surrogates
from handrail.runtime.batch import refuse_batch
from handrail.runtime.registry import ToolSet, build_tool_set, find_nearest_name, parse_arguments
from handrail.runtime.session import Session
from handrail.settings import LoadedSettings, Settings
from handrail.settings.merge import ToolFile
from handrail.store.conversation_state import read_last_todo

RunBatch = Callable[[tuple[ToolCall, ...], bool], Done | Parked]
_EPOCH = datetime.fromtimestamp(0, UTC)
_MAX_REMEMBERED = 1_000
_WORD = re.compile(r"\b[a-z]+[A-Z]\w+\b|\bcwd\b")
"""Names of canonical parameters in messages. Other names are plain words."""
_REST_TOOL = DialectTool(name="")
"""Stands for a call of a custom or foreign tool, or one from before this process."""


class _AnyData(Wire, frozen=True):
    """The answer in the form of the dialect."""


class _Prepared:
    """A call of the dialect, translated or refused."""

    __slots__ = ("args", "call", "error", "given", "tool")

    def __init__(self, tool: DialectTool, given: ToolCall) -> None:
        self.tool = tool
        self.given = given
        self.args: Any = None
        self.call = given
        """The canonical call."""
        self.error: ToolError | None = None


class _OfferOnly(Struct):
    """A session that only describes its tools."""

    offer: ToolSet


def list_dialect_specs(settings: Settings, files: tuple[ToolFile, ...] = ()) -> list[ToolSpec]:
    """The tools that a session with these settings offers in its dialect."""
    dialect = load_dialect(settings.dialect or "")
    adapted = adapt_settings(dialect, LoadedSettings(settings=settings, sources={}))
    session = _OfferOnly(build_tool_set(adapted, list_helpers(dialect), files))
    return list(SessionSurface(dialect, cast("Session", session), _refuse_run).specs())


def list_missing_tools(settings: Settings) -> list[str]:
    """The tools of the dialect that answer UNAVAILABLE."""
    dialect = load_dialect(settings.dialect or "")
    existing = build_tool_set(settings, list_helpers(dialect)).registered
    return [tool.name for tool in dialect.tools if tool.lacks or not set(tool.to) <= set(existing)]


def _refuse_run(_: tuple[ToolCall, ...], __: bool) -> Done | Parked:
    raise ToolError("UNAVAILABLE", "There is no session. Nothing was run.")


class SessionSurface:
    """Translates calls to canonical ones, and their results to answers of the dialect."""

    def __init__(self, dialect: Dialect, session: Session, run: RunBatch, *, repairs_case: bool = False) -> None:
        self.dialect = dialect
        self.session = session
        self.memory: dict[str, Any] = {}
        """What the tools of the dialect remember, such as fields of a todo item that no canonical call has."""
        self._run = run
        self._repairs_case = repairs_case or dialect.repairs_case
        self._tools = {name: tool for tool in dialect.tools for name in (tool.name, tool.export_name)}
        self._specs: dict[str, ToolSpec] = {}
        self._names: dict[str, dict[str, str]] = {}
        """By tool, its names of canonical parameters."""
        self._prepared: dict[str, _Prepared] = {}
        self._offered: tuple[str, ...] = ()
        self._ready: frozenset[str] = frozenset()

    # Tools

    @property
    def names(self) -> tuple[str, ...]:
        """The offered tools: those of the dialect, then custom and foreign ones."""
        return tuple(spec.name for spec in self.specs())

    def specs(self) -> tuple[ToolSpec, ...]:
        own = (self._complete_spec(tool) for tool in self.dialect.tools if self.is_offered(tool))
        return (*own, *(tool.spec for tool in self.session.offer.tools if self._passes(tool.spec.name)))

    def spec(self, name: str) -> ToolSpec | None:
        tool = self._tools.get(name)
        if tool is not None:
            return self._complete_spec(tool) if self.is_offered(tool) else None
        found = self.session.offer.get(name)
        return found.spec if found is not None and self._passes(name) else None

    def is_offered(self, tool: DialectTool) -> bool:
        """Whether all canonical tools that it needs are offered."""
        return tool.name in self._list_ready()

    def speaks(self, name: str) -> bool:
        """Whether the dialect has a tool of this name, offered or not."""
        return name in self._tools

    def _list_ready(self) -> frozenset[str]:
        """The offered tools of the dialect. Skills and servers may change them."""
        offered = self.session.offer.names
        if offered is not self._offered:
            ready = (tool.name for tool in self.dialect.tools if not tool.lacks and set(tool.to) <= set(offered))
            self._offered, self._ready = offered, frozenset(ready)
        return self._ready

    def _passes(self, name: str) -> bool:
        """Whether a tool of the session is called as it is: a custom one, or one of another server."""
        tool = self.session.offer.get(name) if name not in BASE_NAMES else None
        return tool is not None and tool.spec.category != "builtin" and name not in self._tools

    def _get_spec(self, tool: DialectTool) -> ToolSpec:
        """The spec that arguments are checked against."""
        spec = self._specs.get(tool.name)
        if spec is None:
            same = self.session.offer.get(tool.to[0]) if tool.params is None else None
            spec = self._specs[tool.name] = same.spec if same is not None else self._build_spec(tool)
        return spec

    def _build_spec(self, tool: DialectTool) -> ToolSpec:
        invalid = self.dialect.invalid
        return ToolSpec(
            name=tool.export_name,
            title=tool.name,
            description=tool.about,
            arguments=build_struct(tool.export_name, tool.params or {}),
            data=_AnyData,
            format_error=None if invalid is None else lambda texts: invalid(tool.name, texts),
        )

    def _complete_spec(self, tool: DialectTool) -> ToolSpec:
        """The spec with what its canonical tools are."""
        spec = self._get_spec(tool)
        if tool.params is None:
            return spec
        built_on = [found.spec for name in tool.to if (found := self.session.offer.get(name)) is not None]
        first = built_on[0]
        return replace(
            spec,
            title=first.title,
            permissions=tuple(dict.fromkeys(one for own in built_on for one in own.permissions)),
            side_effects=tuple(dict.fromkeys(one for own in built_on for one in own.side_effects)),
            auto_execute=all(own.auto_execute for own in built_on),
            idempotent=first.idempotent,
            layer=first.layer,
            stage=first.stage,
            intent=first.intent,
        )

    # Calls

    def unwrap(self, call: object) -> object:
        """A call in the system's own form as a ToolCall. Anything else as it is."""
        if self.dialect.unwrap is None or not isinstance(call, Mapping):
            return call
        call_id = self.session.journal.new_call_id()
        known: dict[str, Any] = {
            "tool_call_id": call_id,
            "trace_id": call_id,
            "timestamp": datetime.now(UTC),
            "args": {},
        }
        given: dict[str, Any] = known | self.dialect.unwrap(dict(cast("Mapping[str, Any]", call)))
        try:
            return convert(given, ToolCall)
        except CONVERSION_ERRORS as error:
            raise UsageError(f"a call of {self.dialect.name} cannot be read: {error}") from None

    def run(self, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
        """Runs the calls of one message. Refused ones do not keep the others from running."""
        if len(calls) == 1:
            only = self._prepare(calls[0], fresh)
            if only.error is None:
                outcome = self._run((only.call,), fresh)
                return Done(results=(self._answer(outcome.results[0]),)) if isinstance(outcome, Done) else outcome
        prepared = [self._prepare(call, fresh) for call in calls]
        known: dict[str, ToolResult[Any]] = {}
        for one in prepared:
            if one.error is not None:
                if one.error.code == "UNKNOWN_TOOL":
                    self.warn("UNKNOWN_TOOL", one.error.message, one.call.tool_call_id)
                refused = refuse_batch(self.session, (one.call,), one.error)
                known |= _by_id(refused)
        rest = tuple(one.call for one in prepared if one.error is None)
        if rest:
            outcome = self._run(rest, fresh)
            if isinstance(outcome, Parked):
                return outcome
            known |= _by_id(outcome)
        return Done(results=tuple(self._answer(known[one.given.tool_call_id]) for one in prepared))

    def answer_all(self, outcome: Done) -> Done:
        """Renders the results of calls that were parked."""
        return Done(results=tuple(map(self._answer, outcome.results)))

    def name_interim(self, result: ToolResult[Any]) -> ToolResult[Any]:
        """The interim answer to a call that waits, under the name that was called."""
        prepared = self._prepared.get(result.tool_call_id)
        if prepared is None:
            return result
        _, shape = self.dialect.render(self._build_answered(prepared, result), Shown())
        return replace(result, name=prepared.tool.name or prepared.given.name, data=to_builtins(shape))

    def _prepare(self, call: ToolCall, fresh: bool) -> _Prepared:
        before = None if fresh else self._prepared.get(call.tool_call_id)
        if before is not None:
            return before
        if not fresh and self.session.journal.entry(call.tool_call_id) is not None:
            return self._remember(self._prepare_repeated(call))
        try:
            return self._remember(self._translate(call))
        except ToolError as error:
            prepared = _Prepared(self._tools.get(call.name, _REST_TOOL), call)
            prepared.error = error
            return self._remember(prepared)

    def _prepare_repeated(self, call: ToolCall) -> _Prepared:
        """A call that the journal knows. It gets its first result, so nothing is checked."""
        try:
            return self._translate(call)
        except ToolError:
            return _Prepared(self._tools.get(call.name, _REST_TOOL), call)

    def _remember(self, prepared: _Prepared) -> _Prepared:
        self._prepared[prepared.given.tool_call_id] = prepared
        if len(self._prepared) > _MAX_REMEMBERED:  # half of them at once: the first key of a dict takes long to find
            self._prepared = dict(list(self._prepared.items())[_MAX_REMEMBERED // 2 :])
        return prepared

    def _translate(self, call: ToolCall) -> _Prepared:
        tool = self._tools.get(call.name) or self._repair(call)
        if tool is None:
            if self._passes(call.name):
                return _Prepared(_REST_TOOL, call)
            raise self._build_unknown_error(call)
        if tool.name not in self._list_ready():
            raise self._build_unoffered_error(tool)
        prepared = _Prepared(tool, call)
        given = call.args
        if tool.free_text is not None and isinstance(given, str):
            given = {tool.free_text: given}
        prepared.args = parse_arguments(self._get_spec(tool), given)
        name, args = tool.translate(prepared.args, given, self)
        prepared.call = replace(call, name=name, args=args)
        return prepared

    def _build_unoffered_error(self, tool: DialectTool) -> ToolError:
        if tool.lacks:
            return ToolError("UNAVAILABLE", f"{tool.name} is not available here: {tool.lacks}.")
        missing = [name for name in tool.to if name not in self.session.offer.names]
        if all(name in self.session.offer.registered for name in missing):
            return self._build_unknown_error_of(tool.name)
        text = f"{tool.name} is not available: it needs {' and '.join(missing)}, which this version does not have"
        return ToolError("UNAVAILABLE", f"{text}. Nothing was run.")

    def _repair(self, call: ToolCall) -> DialectTool | None:
        if not self._repairs_case:
            return None
        same = {tool.name: tool for tool in self.dialect.tools if tool.name.casefold() == call.name.casefold()}
        if len(same) != 1:
            return None
        tool = next(iter(same.values()))
        self.warn("UNKNOWN_TOOL", f"{escape_surrogates(call.name)[:80]} was taken for {tool.name}.", call.tool_call_id)
        return tool

    def _build_unknown_error(self, call: ToolCall) -> ToolError:
        return self._build_unknown_error_of(escape_surrogates(call.name)[:200])

    def _build_unknown_error_of(self, name: str) -> ToolError:
        names = self.names
        near = find_nearest_name(name, names)
        warnings = (f"Did you mean {near}?",) if near else ()
        return ToolError("UNKNOWN_TOOL", f"Unknown Agent tool: {name}", details=list(names), warnings=warnings)

    def warn(self, code: str, text: str, call_id: str) -> None:
        journal = self.session.journal
        journal.append((WarningEvent, {"code": code, "text": text, "tool_call_id": call_id}))
        journal.deliver()

    # Answers

    def _answer(self, result: ToolResult[Any]) -> ToolResult[Any]:
        prepared = self._prepared.get(result.tool_call_id)
        if prepared is None:
            call_id = result.tool_call_id
            call = ToolCall(tool_call_id=call_id, name=result.name, args=None, trace_id=call_id, timestamp=_EPOCH)
            prepared = _Prepared(_REST_TOOL, call)
        tool = prepared.tool
        first = None
        if result.error is None and tool.code.then is not None and prepared.args is not None:
            following = tool.code.then(self._build_answered(prepared, result))
            if following is not None:
                first, result = result, self._run_following(prepared, following)
        if result.error is not None:
            result = replace(result, error=self._reword_error(result.error, prepared))
        answered = self._build_answered(prepared, result, first)
        show = self._tools.get(tool.answered_as.get(result.name, tool.name), tool).code.show
        is_shown = result.error is None and prepared.args is not None
        text, shape = self.dialect.render(answered, show(answered) if is_shown and show else Shown())
        return replace(
            result,
            tool_call_id=prepared.given.tool_call_id,
            name=tool.name or prepared.given.name,
            content=text,
            data=to_builtins(shape),
            meta=result.meta if result.meta.next_offset is None else replace(result.meta, next_offset=None),
            warnings=(),
        )

    def _build_answered(
        self, prepared: _Prepared, result: ToolResult[Any], first: ToolResult[Any] | None = None
    ) -> Answered:
        return Answered(
            tool=prepared.tool,
            args=prepared.args,
            given=prepared.given.args,
            call_id=prepared.given.tool_call_id,
            result=result,
            data=result.data,
            content=result.content,
            surface=self,
            first=first,
        )

    def _run_following(self, prepared: _Prepared, following: Canonical) -> ToolResult[Any]:
        name, args = following
        call = replace(prepared.call, tool_call_id=self.session.journal.new_call_id(), name=name, args=args)
        outcome = self._run((call,), True)
        if isinstance(outcome, Done):
            return outcome.results[0]
        raise AssertionError("a reading call never waits")

    def _reword_error(self, error: ErrorInfo, prepared: _Prepared) -> ErrorInfo:
        """The error with the dialect's names of parameters instead of the canonical ones."""
        if error.code == "UNKNOWN_TOOL":
            return replace(error, message=self.dialect.unknown.format(name=prepared.given.name))
        names = self._names.get(prepared.tool.name)
        if names is None:
            names = self._names[prepared.tool.name] = list_renamed(prepared.tool.params or {})
        return replace(error, message=_WORD.sub(lambda found: names.get(found[0], found[0]), error.message))

    # The workspace, for translations

    @cached_property
    def _root(self) -> str:
        return self.session.workspace.main.path

    def find_kind(self, path: str) -> str:
        """`missing`, `empty`, `file` or `folder`. A path that cannot be opened is a file."""
        try:
            with self.session.workspace.open_file(path) as opened:
                return "file" if opened.status.st_size else "empty"
        except ToolError as error:
            return {"NOT_FOUND": "missing", "NOT_A_FILE": "folder"}.get(error.code, "file")

    def find_time(self, path: str) -> int:
        """When a file was changed last, in nanoseconds. 0 if it cannot be opened."""
        try:
            with self.session.workspace.open_file(path) as opened:
                return opened.status.st_mtime_ns
        except ToolError:
            return 0

    def sort_newest(self, paths: tuple[str, ...]) -> list[str]:
        """Paths by the time of their last change, the newest first."""
        return sorted(sorted(paths), key=self.find_time, reverse=True)

    def to_absolute(self, path: str) -> str:
        if path.startswith("/"):
            return path
        return self._root if path == "." else f"{self._root}/{path}"

    def to_relative(self, path: str) -> str:
        """A path below the workspace as the canonical tools name it."""
        return "." if path == self._root else path.removeprefix(f"{self._root}/")

    def list_todo(self) -> tuple[TodoItem, ...]:
        """The last todo list of the session."""
        return read_last_todo(self.session.journal)

    def read_small_file(self, path: str, most: int) -> bytes:
        return self.session.workspace.read_small_file(path, most)

    def list_processes(self) -> tuple[ProcessRecord, ...]:
        """The background processes of the session."""
        background = self.session.background
        return background.sessions.records() if background.any else ()

    def wait_for_end(self, process_id: str, milliseconds: float) -> None:
        """Waits until a background process has ended, or for a time."""
        try:
            found = self.session.background.sessions.find(process_id)
        except ToolError:
            return  # the call that follows answers so
        found.wait(milliseconds / 1000, self.session.cancelled.is_set)


def _by_id(outcome: Done | Parked) -> dict[str, ToolResult[Any]]:
    return {} if isinstance(outcome, Parked) else {result.tool_call_id: result for result in outcome.results}
