"""The public API."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from threading import Condition, Lock, get_ident
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from handrail.asking import ApprovalDriver, OnPermission, bind_answer
from handrail.protocol.calls import Done, Parked, ToolCall, clean_call
from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import AnyEvent, Event, Notice
from handrail.protocol.events import Mode as ModeEvent
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.permissions import (
    PERMISSIONS,
    Answer,
    AnswerKind,
    OpenedFolder,
    Permission,
    PermissionRequest,
    StandingGrant,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime import approvals
from handrail.runtime.batch import answer_request, resume_batches
from handrail.runtime.decide import digest_environment
from handrail.runtime.recovery import end_work, recover, settle_others
from handrail.runtime.results import build_pending_result
from handrail.runtime.session import (
    Resolver,
    Session,
    SessionOptions,
    close_on_failure,
    load_project_tools,
    open_session,
)
from handrail.settings import LoadedSettings, Settings, load, resolve_state_folder
from handrail.settings.rules import build_policy_config, check_tools, find_managed_mode, pick_stricter_mode
from handrail.store.approvals import DeferredCalls
from handrail.store.journal import BrokenEvent
from handrail.store.state_dir import StateFolder, make_id
from handrail.tools.tool import Tool
from handrail.typed_tools import NamedTools

if TYPE_CHECKING:
    from handrail.changes.blame import LineOrigin
    from handrail.process.sessions.sessions import ProcessSession
    from handrail.protocol.changes import ChangeRecord
    from handrail.protocol.permissions import Question, Reply
    from handrail.protocol.records import Memory, ProcessRecord, SkillEntry, TodoItem
    from handrail.runtime.conversation import Conversation
    from handrail.runtime.foreign.source import ToolSource
    from handrail.runtime.undo import Resolve
    from handrail.tools.undo import UndoData


# § [entering] What the methods of the library stand on: a session, and work in it that its end waits for.

CLOSED = "this Handrail is closed"
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class CallGate:
    """Whatever has a session. Work enters it until it is shut, and whoever shuts it waits for what is inside."""

    _session: Session

    def __init__(self) -> None:
        self._inside: dict[object, int] = {}
        """The calls that are on their way, each with its thread."""
        self._lock = Lock()
        self._door = Condition(self._lock)
        self._closed = False
        self._process = os.getpid()

    def _enter(
        self, work: Callable[Parameters, Returned], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Returned:
        """Does something that `close` has to wait for."""
        token, thread = object(), get_ident()
        self._check_process()
        try:
            with self._lock:
                if self._closed and thread not in self._inside.values():
                    raise UsageError(CLOSED)
                self._inside[token] = thread
            return work(*args, **kwargs)
        finally:
            with self._lock:
                self._inside.pop(token, None)
                if self._closed:
                    self._door.notify_all()

    def _check_open(self) -> None:
        """For what waits for nothing. It takes no lock, so that a signal's handler can cancel, and lets everybody in
        while `close` waits for calls, so that they can be cancelled."""
        self._check_process()
        if self._closed and not self._inside:
            raise UsageError(CLOSED)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("this Handrail belongs to the process that opened it; open one of your own after a fork")

    def _shut(self) -> bool:
        """Lets nothing in any more and waits for what is inside. False where that is done, or not ours to do."""
        if os.getpid() != self._process:
            return False  # a forked child leaves its parent's work alone
        with self._door:
            if get_ident() in self._inside.values():
                raise UsageError("a Handrail cannot be closed from inside one of its calls")
            if self._closed:
                return False
            self._closed = True
            self._door.wait_for(lambda: not self._inside)
        return True


# § [answer_methods] What waits for a person, what they say to it and what they granted, as methods of the library.


class AnswerMethods(CallGate):
    """Whatever has a session in which somebody may be asked."""

    def answer(
        self, request: str | PermissionRequest, answer: Answer | AnswerKind, *, reason: str | None = None
    ) -> Done | Parked:
        """Answers a permission request; with the last answer of its batch, the batch runs.

        A yes is to what was shown. By the request itself it is to what that shows; by its id, to the first that was: of
        a request that was tried again since, a yes names its `revision`.
        """
        given = answer if isinstance(answer, Answer) else Answer(kind=answer, reason=reason)
        request_id = request if isinstance(request, str) else request.id
        if not isinstance(request, str):
            given = bind_answer(request, given)
        outcome = self._enter(answer_request, self._session, request_id, given)
        if outcome is None:
            raise UsageError(f"the permission request {request_id[:80]!r} was answered already")
        return outcome

    def retry(self, request_id: str, command: str | None = None) -> PermissionRequest:
        """Tries the command of a request again that nobody has answered, or another one that a person wrote in its
        place; the request as it is now, under the same id. ToolError where policy refuses what was written."""
        from handrail.runtime.approvals import retry  # noqa: PLC0415  few are tried again

        return self._enter(retry, self._session, request_id, command)

    def refresh(self, request_id: str) -> PermissionRequest:
        """The waiting request, or, if an input of its preview changed or may have, the request with a new preview and a
        new id that takes its place. For an old request that is shown for a new call. ToolError if the call cannot be
        previewed any more."""
        from handrail.runtime.approvals import refresh  # noqa: PLC0415  as above

        return self._enter(refresh, self._session, request_id)

    def outdated(self, request: PermissionRequest) -> tuple[str, ...]:
        """The files that others changed since the request was put, as results name them: a yes to it would keep
        nothing. Empty where it still counts."""
        from handrail.runtime.permission_request import list_outdated_files  # noqa: PLC0415  who asks a person

        return self._enter(list_outdated_files, self._session, request)

    def waiting(self) -> tuple[PermissionRequest, ...]:
        """The permission requests of this session that nobody has answered."""
        return self._enter(approvals.load_parked, self._session).requests

    def reply(self, question: "str | Question", said: "Reply | str | None") -> Done:
        """Replies to a question of the model: with options, with own words, or with a text that is either; None puts it
        aside, which the model is told. By any process, exactly once: UsageError where it had its reply, or where it
        cannot be answered so."""
        from handrail.runtime.approvals import reply  # noqa: PLC0415  few calls ask something

        call_id = question if isinstance(question, str) else question.tool_call_id
        outcome = self._enter(reply, self._session, call_id, said)
        if outcome is None:
            raise UsageError(f"the question {call_id[:80]!r} had its reply already")
        return outcome

    def waiting_questions(self) -> "tuple[Question, ...]":
        """What the model of this session asks, and nobody has replied to."""
        return self._enter(approvals.load_parked, self._session).questions

    def would_differ(self, environment: str | None) -> bool:
        """Whether a command would get other variables here than where it was asked about (`request.environment`): a
        yes given here would not count then."""
        return environment is not None and self._enter(digest_environment, self._session) != environment

    def resume(self) -> Done | None:
        """Runs what a process that was killed left of batches that everything is answered of: the results of those
        batches, in the order of their calls. None where nothing was left. Nobody is asked again."""
        return self._enter(resume_batches, self._session)

    def grants(self) -> tuple[StandingGrant, ...]:
        """The classes of commands that people said not to be asked about again, in this session or this workspace."""
        return self._enter(self._session.grants.listed)

    def revoke(self, grant_id: str) -> None:
        """Ends a grant, at once and for every process; UsageError where there is none of this id."""
        revoked = self._enter(self._session.grants.revoke, grant_id)
        if revoked is None:
            raise UsageError(f"there is no grant {render_value(grant_id)}; grants() says which there are")
        text = f"The grant {revoked.id} was revoked: {revoked.command} asks again."
        self._enter(self._session.journal.append, (Notice, {"text": text}))

    def opened_folders(self) -> tuple[OpenedFolder, ...]:
        """The folders outside the workspace that people opened to this session, or to every session of the workspace.
        They are in force where the settings let people be asked (`paths.outside`)."""
        return self._enter(self._session.opened_roots.listed)

    def close_folder(self, path: str | os.PathLike[str]) -> None:
        """Closes a folder that a person opened, to this session and to the workspace; UsageError where none is."""
        if not self._enter(self._session.opened_roots.close, os.fspath(path)):
            raise UsageError(
                f"the folder {render_value(os.fspath(path))} was not opened; opened_folders() says which are"
            )
        self._enter(self._session.journal.append, (Notice, {"text": f"The folder {os.fspath(path)} was closed."}))


# § [history_methods] What a person can see of changes and undo, as methods of the library.


class HistoryMethods(CallGate):
    """Whatever has a session with changes."""

    def changes(self, limit: int = 20) -> "list[ChangeRecord]":
        """The last change sets of this workspace, whatever the session, the latest first."""
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.list_last_changes, self._session, limit)

    def diff(self, number: int | None = None) -> str:
        """The differences that a change set made; without a number, the last one in effect."""
        return self.numbered_diff(number)[1]

    def numbered_diff(self, number: int | None = None) -> tuple[int, str]:
        """The same, and which change set it is."""
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.read_diff, self._session, number)

    def turn_diff(self) -> tuple[tuple[int, ...], str]:
        """The differences that the change sets of the last turn made, one after the other, and their numbers."""
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.read_turn_diff, self._session)

    def undo(
        self,
        number: int | tuple[int, ...] | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> "ToolResult[UndoData]":
        """Undoes a change set of this workspace: the last one, one or several by number, all of the last turn or
        all of a session.

        A file that was changed since is never overwritten: CONFLICT says by what. `resolve="later"` undoes the later
        changes too; `resolve="lines"` undoes only what is as it was left.
        """
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.undo, self._session, undo.select_change_sets(number, turn, session), resolve)

    def preview_undo(
        self,
        number: int | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> str:
        """The differences that an undo would make; ToolError when it would be refused."""
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.preview, self._session, undo.select_change_sets(number, turn, session), resolve)

    def redo(self, *, resolve: "Resolve | None" = None) -> "ToolResult[UndoData]":
        """Undoes the last undo."""
        from handrail.runtime import undo  # noqa: PLC0415  few take anything back

        return self._enter(undo.undo, self._session, undo.select_last_undo, resolve)

    def line_origin(self, path: str, line: int) -> "tuple[str, str, LineOrigin]":
        """Where a line of a file comes from: the path as results name it, the line as it is now, and the change set
        that made it, as far as that is known. ToolError where there is no such line."""
        from handrail.runtime.undo import find_line_origin  # noqa: PLC0415  few ask

        return self._enter(find_line_origin, self._session, path, line)


# § [offer_methods] What a session offers, as methods of the library.


class OfferMethods(CallGate):
    """Whatever has a session with tools."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools this session offers. Other servers are asked what theirs are, where that may have changed."""
        self.look_at_servers()
        return tuple(tool.spec for tool in self._session.offer.tools)

    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that this session offers; none is loaded for that. As long as it is the same tuple,
        nothing about them has changed."""
        self.look_at_servers()
        return self._session.offer.names

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of this name, if this session offers it."""
        self._check_open()
        tool = self._session.offer.get(name)
        return None if tool is None else tool.spec

    def look_at_servers(self) -> None:
        """Asks other servers what they list, where that may have changed; it may have to wait for one to start. Calls
        of their tools do so too."""
        self._check_open()
        if self._session.foreign is not None:
            self._enter(self._session.look_at_servers)

    @property
    def has_servers(self) -> bool:
        """Whether there are other servers."""
        return self._session.foreign is not None

    def why_off(self, name: str) -> str | None:
        """Why this session does not offer a tool that there is, in words for a person; None otherwise."""
        self._check_open()
        return self._session.offer.why_off(name)

    def skills(self) -> "tuple[SkillEntry, ...]":
        """The skills that this session finds, in the order of their names, and which of them are active. Their files
        are read for that."""
        return self._enter(self._session.skills.entries)

    def active_skills(self) -> tuple[str, ...]:
        """The names of the skills that are active, in order. No file is read."""
        return self._enter(self._session.skills.active_names)

    def openai_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an OpenAI tool list."""
        from handrail.protocol.schema import to_openai_tool  # noqa: PLC0415  few want the schemas

        return [to_openai_tool(spec) for spec in self.specs()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an Anthropic tool list."""
        from handrail.protocol.schema import to_anthropic_tool  # noqa: PLC0415  few want the schemas

        return [to_anthropic_tool(spec) for spec in self.specs()]

    def mcp_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an MCP tool list; `structuredContent` of a call is then a whole ToolResult."""
        from handrail.protocol.schema import to_mcp_tool  # noqa: PLC0415  few want the schemas

        return to_builtins([to_mcp_tool(spec) for spec in self.specs()])  # a copy: the schemas are made once


# § [rail] Handrail: the library, and what every face stands on.

_NOTHING_GIVEN = (None,) * 5
_MAX_NAME_CHARS = 80
_CALL_ID = re.compile(r"[!-.0-~]{1,128}")


class Handrail(NamedTools, OfferMethods, HistoryMethods, AnswerMethods):
    """Tools over one workspace, in one session. Thread-safe; close it, or use it in a `with` statement.

    Where a call needs a person's yes, `on_permission` is asked. Without it the person at this process's terminal is, if
    there is one and the call comes from the main thread; otherwise, and where the answer is None, the call waits
    (PERMISSION_REQUIRED). `unattended=True` refuses it instead.

    `project_tools=True` also loads the workspace's own tools, `.handrail/tools/*.py`. That runs them in this process:
    say it only of a workspace you trust.

    `variables` are what commands get in the place of what would be chosen for them from this process's environment.
    Of these too they get only what a command may get.

    `sources` are other servers, whose tools are offered as `mcp__<server>__<tool>`. They are this Handrail's from here
    on: it closes them when it is closed, or cannot be opened.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        *,
        mode: Mode | None = None,
        session: str | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        tools: Iterable[Tool] = (),
        deny: Sequence[Permission] = (),
        on_permission: OnPermission | None = None,
        unattended: bool = False,
        repair: Literal["case"] | None = None,
        settings: Settings | LoadedSettings | None = None,
        resolver: Resolver | None = None,
        project_tools: bool = False,
        variables: Mapping[str, str] | None = None,
        sources: "Iterable[ToolSource]" = (),
    ) -> None:
        super().__init__()
        taken = tuple(sources)
        with close_on_failure(taken):
            _refuse_unusable(mode, deny, on_permission)
            self._state = StateFolder(os.fspath(state_dir) if state_dir else resolve_state_folder(os.environ))
            loaded = _loaded(settings, mode, os.fspath(workspace), self._state)
            rules = build_policy_config(loaded, mode, unattended)
            rules = replace(rules, denied=(*rules.denied, *deny))
            terms = SessionOptions(
                workspace=os.fspath(workspace),
                session_id=session or make_id("s"),
                state=self._state,
                settings=loaded.settings,
                rules=rules,
                custom=(*tools, *(load_project_tools(os.fspath(workspace)) if project_tools else ())),
                repair=repair,
                resolver=resolver,
                variables=variables,
                sources=taken,
            )
            self._session, self._database, self._runner = open_session(terms)
        self._over = not session
        """Whether nobody comes back to the session once it is closed."""
        self._loosest: Mode = find_managed_mode(loaded)
        self._paths = loaded.settings.paths
        self._asking = ApprovalDriver(self._session, on_permission, self.outdated, self.retry, unattended=unattended)
        self._begin(loaded)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What commands leave behind

    def processes(self) -> "tuple[ProcessRecord, ...]":
        """The process sessions of this session, the oldest first: those that run, and those that have ended."""
        background = self._session.background
        return self._enter(lambda: background.sessions.records() if background.any else ())

    def raw_output(self, call_id: str) -> bytes:
        """What a command printed, byte for byte, where that is kept: `meta.raw` or `meta.output` of its result say so;
        ToolError NOT_FOUND otherwise."""
        return self._enter(self._session.outputs.raw, call_id)

    # The wire

    def call(
        self,
        name: str,
        args: Any,
        *,
        tool_call_id: str | None = None,
        version: str | None = None,
        trace_id: str | None = None,
        message_id: str | None = None,
        provider_call_id: str | None = None,
        requested_permissions: tuple[Permission, ...] | None = None,
    ) -> ToolResult[Any]:
        """Runs one call. Where a person has to answer first, the result is PERMISSION_REQUIRED with the request."""
        call_id = tool_call_id or self._session.journal.new_call_id()
        call = ToolCall(
            tool_call_id=call_id,
            name=name,
            args=args,
            trace_id=trace_id or call_id,
            timestamp=datetime.now(UTC),
            version=version,
            provider_call_id=provider_call_id,
            message_id=message_id,
            requested_permissions=requested_permissions,
        )
        given = (version, trace_id, message_id, provider_call_id, requested_permissions)
        if given != _NOTHING_GIVEN or type(name) is not str or not name.isidentifier() or len(name) > _MAX_NAME_CHARS:
            call = clean_call(call)
        fresh = tool_call_id is None or (
            type(tool_call_id) is str and self._session.cancel_tokens.is_reserved(tool_call_id)
        )
        if not fresh:
            _refuse_bad_id(tool_call_id)
        outcome = self._enter(self._asking.run, (call,), fresh)
        if isinstance(outcome, Done):
            return outcome.results[0]
        if not outcome.requests:
            from handrail.runtime.approvals import build_unanswered_result as unanswered  # noqa: PLC0415  few calls ask something

            return unanswered(self._session, call, outcome.questions[0])
        own = [request for request in outcome.requests if request.tool_call_id == call_id]
        return build_pending_result(self._session, call, (own or outcome.requests)[0])

    def batch(self, calls: Iterable[ToolCall]) -> Done | Parked:
        """Runs the calls of one message: all of them, or none while a person has to answer."""
        given = tuple(clean_call(_tool_call(call)) for call in calls)
        for call in given:
            _refuse_bad_id(call.tool_call_id)
            if not isinstance(call.timestamp, datetime) or call.timestamp.tzinfo is None:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"the timestamp of call {call.tool_call_id} is no date and time with an offset")
        if len({call.tool_call_id for call in given}) != len(given):
            raise UsageError("two calls of one batch have the same tool_call_id")
        return self._enter(self._asking.run, given, fresh=False)

    # What the model keeps besides files

    def todo(self) -> "tuple[TodoItem, ...]":
        """What the model of this session has to do, as it said last."""
        from handrail.store.transcript import read_last_todo  # noqa: PLC0415  few ask

        return self._enter(read_last_todo, self._session.journal.database)

    def memories(self) -> "tuple[Memory, ...]":
        """The notes about this workspace, those that were changed last at the end. Models wrote them: what a person
        says counts more."""
        return self._enter(self._session.memories.listed)

    # The session

    def set_client_roots(self, folders: Sequence[str]) -> tuple[str, ...]:
        """Says which folders the program works on that this session serves. Those outside the workspace become roots of
        the session as long as it is open, as far as the setting `paths.client_roots` lets them; which do not, in words.
        """
        from handrail.runtime.grants import set_client_roots  # noqa: PLC0415  few clients tell of any

        restricted = self._session.rules.restriction is not None
        arguments = (self._session.workspace, folders, self._paths.client_roots, self._state.path)
        return self._enter(partial(set_client_roots, restricted=restricted), *arguments)

    def begin_conversations(self, current: Callable[[], str] = str) -> None:
        """Forgets which files earlier conversations of this session have read, so that a new one is not refused because
        of them. `current` names the conversation that the calling thread works for, if there are several."""
        self._enter(self._session.journal.begin_conversations, current)

    @property
    def session_id(self) -> str:
        """The id of this session."""
        return self._session.id

    @property
    def workspace(self) -> str:
        """The folder that relative paths start from."""
        return self._session.workspace.main.path

    @property
    def mode(self) -> Mode:
        """The mode that is in force."""
        return self._session.rules.mode

    def set_mode(self, mode: Mode) -> None:
        """Changes the mode from here on."""
        _refuse_unknown("mode", mode, MODES)
        if pick_stricter_mode(mode, self._loosest) != mode:
            raise UsageError(f"the managed file lets no mode be that is looser than {self._loosest}; got {mode}")
        session = self._session
        swap = partial(setattr, session, "rules", replace(session.rules, mode=mode))
        self._enter(session.journal.append, (ModeEvent, {"mode": mode}), stored=swap)

    def events(self, after: int = 0) -> Iterator[AnyEvent | BrokenEvent]:
        """Every event of the session after a number, oldest first."""
        self._check_open()
        found = self._session.journal.events(after)
        return iter(lambda: self._enter(next, found, None), None)

    def subscribe(
        self, listener: Callable[[Event], None], *, kinds: Collection[type[Event]] | None = None
    ) -> Callable[[], None]:
        """Calls the listener with every event from now on, once it is stored; returns how to stop that. `kinds`: only
        with events of these.

        It is called by the thread that brought the event about, so it should be quick. One that raises is removed.
        """
        return self._enter(self._session.journal.subscribe, listener, kinds)

    @property
    def conversation(self) -> "Conversation":
        """The transcript of this session, for the code that runs the loop."""
        from handrail.runtime.conversation import Conversation  # noqa: PLC0415  who only calls tools has none

        self._check_open()
        return Conversation(self._session, self._enter)

    @property
    def left_calls(self) -> DeferredCalls:
        """The calls of this session that were left waiting, for faces whose callers know no ids of ours."""
        self._check_open()
        return DeferredCalls(self._session.journal, self._session.folder)

    def fork_session(self, session: str | None = None) -> str:
        """Begins another session of this workspace where this one is, and leaves this one alone: it has the same
        transcript up to here, and its own journal from here on. What people granted, what waits for an answer and what
        runs are not taken along. The id to open it by; `session` chooses one."""
        from handrail.runtime.session import fork_session  # noqa: PLC0415  few do

        return self._enter(fork_session, self._session, session or make_id("s"))

    def cancel(self) -> None:
        """Ends what is running and refuses what comes: CANCELLED; until `uncancel`."""
        self._check_open()
        self._session.cancelled.set()

    def is_free(self) -> bool:
        """Whether no process runs a call with effects in this session, as far as one can tell at a glance: a call with
        effects would not have to wait for its turn."""
        self._check_open()
        return not self._session.locks.of(f"session:{self._session.folder}").may_be_held

    def new_call_id(self) -> str:
        """An id for a call to come, by which it can be cancelled as soon as there is one: `call(…, tool_call_id=…)`.
        One that is not called with is given back by `drop_call_id`."""
        self._check_open()
        call_id = self._session.journal.new_call_id()
        self._session.cancel_tokens.reserve(call_id)
        return call_id

    def drop_call_id(self, call_id: str) -> None:
        """Forgets an id that no call was made with."""
        self._check_open()
        if self._session.cancel_tokens.is_reserved(call_id):
            self._session.cancel_tokens.end((call_id,))

    def cancel_call(self, call_id: str) -> bool:
        """Ends one call that is on its way here, be it that it waits for its turn: CANCELLED; all others go on. False
        where there is none of this id, or it waits for a person."""
        self._check_open()
        return self._session.cancel_tokens.cancel(call_id)

    def uncancel(self) -> None:
        """Lets calls run again."""
        self._check_open()
        self._session.cancelled.clear()

    def end_session(self) -> None:
        """Ends what the session left running, forgets it, and closes."""
        self._over = True
        self.close()

    def close(self) -> None:
        """Waits for calls that are on their way and ends the session's work here. It can be opened again by its id.

        Process sessions go on; those of a session that was given no name end, since nobody could come back to it.
        """
        if not self._shut():
            return
        session = self._session
        with ExitStack() as last_first:  # whatever fails, or is interrupted, the others are closed
            for part in (session.workspace, self._database, session.chain, session.recorder.history, session.commands):
                last_first.callback(part.close)
            last_first.callback(end_work, session, self._runner)
            if session.foreign is not None:
                last_first.callback(session.foreign.close)
            if self._over:
                last_first.callback(session.background.end_all)
            last_first.callback(session.background.close)

    def _begin(self, loaded: LoadedSettings) -> None:
        """Settles what was left before, ahead of the first call; where that cannot be, nothing stays open."""
        try:
            if folder := loaded.settings.events.jsonl:
                from handrail.runtime.event_lines import EventLines  # noqa: PLC0415  few write them

                lines = EventLines(self._session.workspace, folder, self._session.id)
                self._session.journal.subscribe(lines.add)
            if loaded.rules:
                check_tools(loaded, self._session.offer.registered)
            for text in self._session.offer.unmatched():
                self._session.journal.append((WarningEvent, {"code": "UNKNOWN_TOOL", "text": text}))
            self._session.commands.kill_orphans()  # first: what is left of a command could still change something
            recover(self._session)
            settle_others(self._session)
            self._session.background.commit_deferred = self._keep_yielded
            self._session.background.attach()
            if not self._state.is_swept():
                from handrail.store.sessions import sweep  # noqa: PLC0415  once a day

                sweep(self._state, int(loaded.settings.store.keep.removesuffix("d")))
        except BaseException:
            self.close()
            raise

    def _keep_yielded(self, process: "ProcessSession") -> None:
        from handrail.runtime.deferred_commit import commit_deferred  # noqa: PLC0415  few commands go on after their calls

        commit_deferred(self._session, process)


def _loaded(
    given: Settings | LoadedSettings | None, mode: Mode | None, workspace: str, state: StateFolder
) -> LoadedSettings:
    """The settings that a program gave, else those that the files of the machine and the workspace say."""
    loaded = given or load(os.environ, {"mode": mode}, workspace, state=state.path)
    return LoadedSettings(settings=loaded, sources={}) if isinstance(loaded, Settings) else loaded


def _refuse_unusable(mode: object, deny: Sequence[object], on_permission: object) -> None:
    """What a type checker would have found, for programs that use none."""
    if mode is not None:
        _refuse_unknown("mode", mode, MODES)
    for permission in deny:
        _refuse_unknown("permission", permission, PERMISSIONS)
    if on_permission is not None and not callable(on_permission):
        raise UsageError(f"on_permission is called with each request; {render_value(on_permission)} cannot be called")


def _refuse_unknown(what: str, name: object, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"there is no {what} {render_value(name)}; use {', '.join(known)}")


def _tool_call(call: object) -> ToolCall:
    if not isinstance(call, ToolCall):
        raise UsageError(f"a batch is made of ToolCall(tool_call_id=…, name=…, args=…, …), not of {render_value(call)}")
    return call


def _refuse_bad_id(call_id: object) -> None:
    """The id names files, rows and references."""
    if not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        rule = "1 to 128 visible ASCII characters other than /"
        raise UsageError(f"a tool_call_id is made of {rule}: {render_value(call_id)}")
