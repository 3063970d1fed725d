"""The tools of a dialect in one session."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import repeat
from types import SimpleNamespace
from typing import Any, cast

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from handrail.dialects.dialect import (
    NOTHING,
    Answered,
    Canonical,
    Dialect,
    DialectTool,
    Shown,
    adapt_settings,
    list_helpers,
    load_dialect,
)
from handrail.dialects.limit import limit_answer, shorten_page
from handrail.dialects.render import reword
from handrail.dialects.session_view import Surface
from handrail.dialects.table import build_struct, list_renamed
from handrail.protocol.arguments import CONVERSION_ERRORS
from handrail.protocol.calls import Done, Parked, ToolCall, clean_call
from handrail.protocol.errors import ErrorInfo, HandrailError, ToolError, UsageError
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.results import ToolResult
from handrail.protocol.text import find_similar
from handrail.protocol.tool_spec import BASE_NAMES, ToolSpec
from handrail.protocol.wire import Json, convert, encode, escape_surrogates, sanitize_json
from handrail.runtime.batch import MIN_BUDGET_CHARS, refuse_batch
from handrail.runtime.pending_call import build_internal_error
from handrail.runtime.registry import build_tool_set, parse_arguments
from handrail.runtime.session import Session
from handrail.settings import LoadedSettings, Settings
from handrail.settings.merge import ToolFile

RunBatch = Callable[[tuple[ToolCall, ...], bool], Done | Parked]
_MAX_REMEMBERED = 1_000
_FIELDS = frozenset(("@purpose", "@confirm", "@shown"))
"""Canonical arguments that are none."""
_ANY_DATA: Any = Any
"""The answer in the form of the dialect, which has no schema."""
_REST_TOOL = DialectTool(name="")
"""Stands for a call of a custom or foreign tool, or one from before this process."""


class _Prepared(Struct, gc=False):
    """A call of the dialect, translated or refused."""

    tool: DialectTool
    given: ToolCall
    call: ToolCall
    """The canonical call."""
    args: Any = None
    error: ToolError | None = None
    shown: Shown | None = None


def list_dialect_specs(settings: Settings, files: tuple[ToolFile, ...] = ()) -> list[ToolSpec]:
    """The tools that a session with these settings offers in its dialect."""
    dialect = load_dialect(settings.dialect or "")
    adapted = adapt_settings(dialect, LoadedSettings(settings=settings, sources={}))
    session = SimpleNamespace(offer=build_tool_set(adapted, list_helpers(dialect), files))
    return list(SessionSurface(dialect, cast("Session", session), _refuse_run).specs())


def list_missing_tools(settings: Settings) -> list[str]:
    """The tools of the dialect that answer UNAVAILABLE."""
    dialect = load_dialect(settings.dialect or "")
    existing = build_tool_set(settings, list_helpers(dialect)).registered
    return [tool.name for tool in dialect.tools if tool.lacks or not set(tool.to) <= set(existing)]


def _refuse_run(_: tuple[ToolCall, ...], __: bool) -> Done | Parked:
    raise ToolError("UNAVAILABLE", "There is no session. Nothing was run.")


class SessionSurface(Surface):
    """Translates calls to canonical ones, and their results to answers of the dialect."""

    def __init__(self, dialect: Dialect, session: Session, run: RunBatch, *, repairs_case: bool = False) -> None:
        self.dialect = dialect
        super().__init__(session)
        self.run_canonical = run
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
        own = (self._get_spec(tool) for tool in self.dialect.tools if self.is_offered(tool))
        return (*own, *(tool.spec for tool in self.session.offer.tools if self._passes(tool.spec.name)))

    def spec(self, name: str) -> ToolSpec | None:
        tool = self._tools.get(name)
        if tool is not None and not tool.lacks:
            return self._get_spec(tool) if self.is_offered(tool) else None
        found = self.session.offer.get(name)
        return found.spec if found is not None and self._passes(name) else None

    def is_offered(self, tool: DialectTool) -> bool:
        """Whether all canonical tools that it needs are offered."""
        return tool.name in self._list_ready()

    def speaks(self, name: str) -> bool:
        """Whether the dialect has a tool of this name, offered or not. A host may bring one that it lacks."""
        tool = self._tools.get(name)
        return tool is not None and not tool.lacks

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
        return tool is not None and tool.spec.category != "builtin" and not self.speaks(name)

    def _get_spec(self, tool: DialectTool) -> ToolSpec:
        """The spec of an offered tool."""
        spec = self._specs.get(tool.name)
        if spec is None:
            spec = self._specs[tool.name] = self._build_spec(tool)
        return spec

    def _build_spec(self, tool: DialectTool) -> ToolSpec:
        """The parameters of the dialect, and what its canonical tools are."""
        built_on = [found.spec for name in tool.to if (found := self.session.offer.get(name)) is not None]
        if tool.params is None:
            return replace(built_on[0], data=_ANY_DATA)
        invalid = self.dialect.invalid
        same = {name: getattr(built_on[0], name) for name in ("title", "idempotent", "layer", "stage", "intent")}
        return ToolSpec(
            name=tool.export_name,
            description=tool.about,
            arguments=build_struct(tool.export_name, tool.params),
            data=_ANY_DATA,
            format_error=None if invalid is None else lambda texts: invalid(tool.name, texts),
            permissions=tuple(dict.fromkeys(one for own in built_on for one in own.permissions)),
            side_effects=tuple(dict.fromkeys(one for own in built_on for one in own.side_effects)),
            auto_execute=all(own.auto_execute for own in built_on),
            **same,
        )

    # Calls

    def unwrap(self, call: object) -> object:
        """A call in the system's own form as a ToolCall. Anything else as it is."""
        if self.dialect.unwrap is None or not isinstance(call, Mapping):
            return call
        known = asdict(self.build_call("", {}))
        del known["name"]
        try:
            return convert(known | self.dialect.unwrap(dict(cast("Mapping[str, Any]", call))), ToolCall)
        except CONVERSION_ERRORS as error:
            raise UsageError(f"a call of {self.dialect.name} cannot be read: {error}") from None

    def run(self, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
        """Runs the calls of one message. Refused ones do not keep the others from running."""
        prepared = list(map(self._prepare, calls, repeat(fresh)))
        refused = {one.given.tool_call_id: self._refuse(one, one.error) for one in prepared if one.error is not None}
        rest = tuple([one.call for one in prepared if one.error is None])
        outcome = self.run_canonical(rest, fresh) if rest else Done(results=())
        if isinstance(outcome, Parked):
            for one in prepared:
                self._remember(one)
            return outcome
        results = outcome.results
        if refused:
            by_id = refused | {result.tool_call_id: result for result in results}
            results = tuple(by_id[one.given.tool_call_id] for one in prepared)
        return self._answer_each(results, prepared)

    def _refuse(self, prepared: _Prepared, error: ToolError) -> ToolResult[Any]:
        if error.code != "INVALID_ARGUMENT":
            self.warn(error.code, error.message, prepared.call.tool_call_id)
        return cast("Done", refuse_batch(self.session, (prepared.call,), error)).results[0]

    def answer_all(self, outcome: Done) -> Done:
        """The answers of one batch."""
        return self._answer_each(outcome.results, repeat(None))

    def _answer_each(self, results: Iterable[ToolResult[Any]], prepared: Iterable[_Prepared | None]) -> Done:
        """Each answer gets the rest of the budget of its batch."""
        left, most = self.session.batch_characters, self.session.characters
        answers: list[ToolResult[Any]] = []
        for result, one in zip(results, prepared, strict=False):
            answers.append(self._answer(result, min(most, max(left, MIN_BUDGET_CHARS)), one))
            left -= len(answers[-1].content)
        return Done(results=tuple(answers))

    def name_interim(self, result: ToolResult[Any]) -> ToolResult[Any]:
        """The interim answer to a call that waits, under the name that was called."""
        prepared = self._prepared.get(result.tool_call_id)
        if prepared is None:
            return result
        answer = self.dialect.render(self._build_answered(prepared, result), NOTHING)
        return replace(result, name=prepared.tool.name or prepared.given.name, data=to_builtins(answer.shape))

    def _prepare(self, call: ToolCall, fresh: bool) -> _Prepared:
        before = None if fresh else self._prepared.get(call.tool_call_id)
        if before is not None:
            return before
        is_repeated = not fresh and self.session.journal.entry(call.tool_call_id) is not None
        try:
            return self._translate(call, is_repeated=is_repeated)
        except HandrailError:
            raise
        except Exception as error:
            refusal = None if is_repeated else self._explain(error)
            return _Prepared(self._tools.get(call.name, _REST_TOOL), call, call, error=refusal)

    def _remember(self, prepared: _Prepared) -> None:
        self._prepared[prepared.given.tool_call_id] = prepared
        if len(self._prepared) > _MAX_REMEMBERED:  # half of them at once: the first key of a dict takes long to find
            self._prepared = dict(list(self._prepared.items())[_MAX_REMEMBERED // 2 :])

    def _translate(self, call: ToolCall, *, is_repeated: bool) -> _Prepared:
        """A call that the journal knows gets its first result, so it becomes no canonical call."""
        tool = self._tools.get(call.name) or self._repair(call)
        if (tool is None or tool.lacks) and self._passes(call.name):
            return _Prepared(_REST_TOOL, call, call)
        if tool is None:
            raise self._build_unknown_error(escape_surrogates(call.name)[:200])
        if tool.name not in self._list_ready():
            raise self._build_unoffered_error(tool)
        given = call.args
        if tool.free_text is not None and isinstance(given, str):
            given = {tool.free_text: given}
        args = parse_arguments(self._get_spec(tool), given)
        if is_repeated:
            return _Prepared(tool, call, call, args)
        name, own = tool.translate(args, given, self)
        if not own.keys() & _FIELDS:
            return _Prepared(tool, call, replace(call, name=name, args=own), args)
        shown = own.pop("@shown", None)
        fields = {field[1:]: own.pop(field) for field in ("@purpose", "@confirm") if field in own}
        return _Prepared(tool, call, clean_call(replace(call, name=name, args=own, **fields)), args, shown=shown)

    def _build_unoffered_error(self, tool: DialectTool) -> ToolError:
        if tool.lacks:
            return ToolError("UNAVAILABLE", f"{tool.name} is not available here: {tool.lacks}.")
        missing = [name for name in tool.to if name not in self.session.offer.names]
        if all(name in self.session.offer.registered for name in missing):
            return self._build_unknown_error(tool.name)
        return ToolError("UNAVAILABLE", f"{tool.name} is not available in this version. Nothing was run.")

    def _repair(self, call: ToolCall) -> DialectTool | None:
        if not self._repairs_case:
            return None
        same = {tool.name: tool for tool in self.dialect.tools if tool.name.casefold() == call.name.casefold()}
        if len(same) != 1:
            return None
        tool = next(iter(same.values()))
        self.warn("UNKNOWN_TOOL", f"{escape_surrogates(call.name)[:80]} was taken for {tool.name}.", call.tool_call_id)
        return tool

    def _build_unknown_error(self, name: str) -> ToolError:
        names = self.names
        near = find_similar(name.lower(), names, 0.75)
        warnings = (f"Did you mean {near}?",) if near else ()
        return ToolError("UNKNOWN_TOOL", f"Unknown Agent tool: {name}", details=list(names), warnings=warnings)

    def warn(self, code: str, text: str, call_id: str) -> None:
        journal = self.session.journal
        journal.append((WarningEvent, {"code": code, "text": text, "tool_call_id": call_id}))
        journal.deliver()

    # Answers

    def _answer(self, result: ToolResult[Any], budget: int, prepared: _Prepared | None = None) -> ToolResult[Any]:
        prepared = prepared or self._prepared.get(result.tool_call_id)
        if prepared is None:
            given = self.build_call(result.name, None, result.tool_call_id)
            prepared = _Prepared(_REST_TOOL, given, given)
        try:
            return self._build_answer(prepared, result, budget)
        except HandrailError:
            raise
        except Exception as error:
            reason = self._explain(error)
            if result.error is not None:  # without the form of the dialect
                name = prepared.tool.name or prepared.given.name
                return replace(result, tool_call_id=prepared.given.tool_call_id, name=name, data=None)
            text = reason.message
            if reason is not error:
                kind = type(error).__name__
                text = f"The call ran, but an internal error ({kind}) kept its answer back. Check before you repeat it."
            info = ErrorInfo(code=reason.code, message=text, details=None, retryable=False)
            failed = replace(result, ok=False, error=info, content=text, data=None, attachments=())
            return self._answer(failed, budget, prepared)

    def _explain(self, error: Exception) -> ToolError:
        return error if isinstance(error, ToolError) else build_internal_error(error, self.session.crashes)

    def _build_answer(self, prepared: _Prepared, result: ToolResult[Any], budget: int) -> ToolResult[Any]:
        tool = prepared.tool
        if result.error is None and tool.code.then is not None and prepared.args is not None:
            following = tool.code.then(self._build_answered(prepared, result))
            result = result if following is None else self._run_following(prepared, following, result)
        if result.error is not None:
            error = self._reword_error(result.error, prepared)
            result = replace(result, error=error, content=result.content.replace(result.error.message, error.message))
        if tool.ignored and result.error is None:
            notes = tool.list_given(tool.ignored, prepared.given.args, "{} was ignored: {}")
            result = replace(result, warnings=(*notes, *result.warnings)) if notes else result
        text, shape, size = self._render(prepared, result)
        while len(text) > budget or (size > 2 * budget and not result.attachments):
            page = shorten_page(result, budget, len(text)) if result.name == "read" else None
            if page is None:
                result, text, shape = self._limit(prepared, result, budget, text)
                break
            result = page
            text, shape, size = self._render(prepared, result)
        return replace(
            result,
            tool_call_id=prepared.given.tool_call_id,
            name=tool.name or prepared.given.name,
            content=text,
            data=shape,
            meta=result.meta if result.meta.next_offset is None else replace(result.meta, next_offset=None),
            warnings=(),
        )

    def _limit(
        self, prepared: _Prepared, result: ToolResult[Any], budget: int, text: str
    ) -> tuple[ToolResult[Any], str, Json]:
        """A part of an answer with a reference to the whole text."""
        reference = result.meta.output
        if reference is None and len(text) > budget:
            reference = self.session.outputs.store(result.tool_call_id, text)
        result = replace(result, meta=replace(result.meta, truncated=True, output=reference))
        text, shape, _ = self._render(prepared, result)
        return result, *limit_answer(text, shape, budget, reference)

    def _render(self, prepared: _Prepared, result: ToolResult[Any]) -> tuple[str, Json, int]:
        """The text, the shape, and the size of the shape."""
        tool, one = prepared.tool, self._build_answered(prepared, result)
        show = self._tools.get(tool.answered_as.get(result.name, tool.name), tool).code.show
        shown = prepared.shown or NOTHING
        if one.code and (one.code != "TIMEOUT" or one.data is None):  # a command that was stopped has an output
            shown = NOTHING
        elif show is not None and prepared.args is not None:
            shown = show(one)
        answer = self.dialect.render(one, shown)
        text, shape = answer.text, answer.shape
        if text is not None:
            clean = escape_surrogates(text)
            if text is shape:
                return clean, clean, len(clean)
            text = clean
        shape = to_builtins(shape)
        if text is not None and result.name == "read" and text.isascii():
            return text, shape, len(text)  # the data of a page is its text
        try:
            encoded = encode(shape)
        except (TypeError, ValueError):  # lone surrogates, as in names of files
            shape, _ = sanitize_json(shape)
            encoded = encode(shape)
        if text is not None and result.name == "read":
            return text, shape, len(text)
        return encoded.decode() if text is None else text, shape, len(encoded)

    def _build_answered(self, prepared: _Prepared, result: ToolResult[Any]) -> Answered:
        given, args, tool, sent = prepared.given, prepared.args, prepared.tool, prepared.call.args
        return Answered(tool, args, given.args, given.tool_call_id, result, result.data, result.content, self, sent)

    def _run_following(self, prepared: _Prepared, following: Canonical, first: ToolResult[Any]) -> ToolResult[Any]:
        call = replace(self.build_call(*following), trace_id=prepared.call.trace_id)
        outcome = self.run_canonical((call,), True)
        if isinstance(outcome, Done):
            (result,) = outcome.results
            return replace(result, duration_ms=first.duration_ms + result.duration_ms)
        raise AssertionError("a reading call never waits")

    def _reword_error(self, error: ErrorInfo, prepared: _Prepared) -> ErrorInfo:
        """The error with the dialect's names of parameters instead of the canonical ones."""
        if error.code == "UNKNOWN_TOOL":
            return replace(error, message=self.dialect.unknown.format(name=prepared.given.name))
        tool = prepared.tool
        is_plain = error.code != "INVALID_ARGUMENT" or not isinstance(error.details, list)
        if tool.params is None or (prepared.args is None and not is_plain):
            return error  # already in words of the dialect
        names = self._names.get(tool.name)
        if names is None:
            names = self._names[tool.name] = list_renamed(tool.params) | dict(
                zip(tool.params, tool.params, strict=True)
            )
        message = reword(error.message, names, self._tool_names, is_plain=is_plain)
        return replace(error, message=message.replace(f"{prepared.call.name}: ", f"{tool.name}: ", 1))

    @cached_property
    def _tool_names(self) -> dict[str, str]:
        """By the canonical tool, the first offered tool of the dialect that becomes it."""
        offered = [tool for tool in reversed(self.dialect.tools) if self.is_offered(tool)]
        return {name: tool.name for tool in offered for name in tool.to[:1] if tool.params is None or tool.to[1:] == ()}
