"""The public API: `Handrail`."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, cast

from msgspec import to_builtins
from msgspec.structs import replace

from handrail.protocol.calls import Done, Parked, ToolCall, check_call, check_call_id, clean_call
from handrail.protocol.decisions import MODES, Decision, Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import AnyEvent, BrokenEvent, Event, Notice
from handrail.protocol.events import Mode as ModeEvent
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.permissions import (
    PERMISSIONS,
    Answer,
    AnswerKind,
    ApproverReply,
    OpenedFolder,
    Permission,
    PermissionRequest,
    StandingGrant,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode
from handrail.runtime.batch import run_batch
from handrail.runtime.execute import digest_environment
from handrail.runtime.grants import set_client_roots
from handrail.runtime.locks import get_call_thread
from handrail.runtime.registry import HELPED, build_tool_set, load_tool_files
from handrail.runtime.results import build_pending_result
from handrail.runtime.session import Resolver, Session, SessionOptions, fork_session, load_project_tools, open_session
from handrail.settings import LoadedSettings, Settings, load, resolve_state_folder
from handrail.settings.load import build_policy_config, check_tools, find_managed_mode, pick_stricter_mode
from handrail.settings.units import parse_seconds
from handrail.store.conversation_state import read_last_todo
from handrail.store.runner import list_dead_runners
from handrail.store.state_dir import StateFolder, make_id
from handrail.tools.tool import Tool
from handrail.tools.typed_tools import LATE_TYPES, TypedTools

if TYPE_CHECKING:
    from handrail.dialects.dialect import Dialect
    from handrail.dialects.surface import SessionSurface
    from handrail.process.sessions.sessions import ProcessSession
    from handrail.protocol.changes import ChangeRecord, LineOrigin, StoredDiff
    from handrail.protocol.permissions import InboxRequest, Question, Reply
    from handrail.protocol.records import Memory, ProcessRecord, SkillEntry, TodoItem
    from handrail.runtime.approvals import Approver, OnPermission, SettledReply
    from handrail.runtime.conversation import Conversation
    from handrail.runtime.foreign.source import ToolSource
    from handrail.runtime.undo import Resolve
    from handrail.store.approvals import DeferredCalls
    from handrail.store.shared_store import SharedStore
    from handrail.tools.undo import UndoData

if not TYPE_CHECKING:
    globals().update(LATE_TYPES)

CLOSED = "this Handrail is closed"
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
SomeOutcome = TypeVar("SomeOutcome", Done, Done | Parked)
_process = os.getpid()
"""The id of this process. To ask the system for it takes longer, and a call needs it five times."""


def _update_process() -> None:
    global _process  # noqa: PLW0603  a fork changes it
    _process = os.getpid()


os.register_at_fork(after_in_child=_update_process)


def load_builtin_spec(name: str) -> ToolSpec:
    """The description of a built-in tool, without a session. UsageError if there is none of this name."""
    tool = build_tool_set(Settings()).get_registered(name)
    if tool is None:
        raise UsageError(f"there is no built-in tool {render_value(name)}")
    return tool.spec


class Handrail(TypedTools):
    """Tools over one workspace, in one session. Thread-safe. Close it, or use it in a `with` statement.

    If a call needs approval, handrail asks `on_permission`. Without it, handrail asks the person at the terminal, if
    there is one and the call comes from the main thread. Otherwise, and if the answer is None, the call waits: its
    result is PERMISSION_REQUIRED. `on_permission="park"` asks nobody. `unattended=True` refuses such calls instead.

    `project_tools=True` also loads the workspace's own tools, `.handrail/tools/*.py`. They run in this process, so use
    it only for a workspace that you trust.

    `variables` replaces this process's environment as the source of the variables of commands. Commands get only those
    that a command may get.

    `dialect` replaces the offered tools by those of another system: the names, parameters and answers of, for example,
    `claude-code`. `data` of a result is then the answer in that system's own shape.

    `store` is the database of a fleet. Then the state folder is only a cache. You close the store.

    `sources` are servers whose tools are offered as `mcp__<server>__<tool>`. This Handrail owns them: it closes them
    when it is closed or cannot be opened.
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
        on_permission: "OnPermission | None" = None,
        unattended: bool = False,
        repair: Literal["case"] | None = None,
        settings: Settings | LoadedSettings | None = None,
        resolver: Resolver | None = None,
        project_tools: bool = False,
        variables: Mapping[str, str] | None = None,
        sources: "Iterable[ToolSource]" = (),
        dialect: str | None = None,
        store: "SharedStore | None" = None,
    ) -> None:
        self._inside: dict[object, int] = {}
        """The calls that run now, each with its thread."""
        self._lock = Lock()
        self._door = Condition(self._lock)
        self._closed, self._process = False, _process
        owned_sources = tuple(sources)
        with ExitStack() as failed:
            failed.callback(_close_sources, owned_sources)
            _refuse_unusable(mode, deny, on_permission)
            folder = os.fspath(workspace)
            self._state = StateFolder(os.fspath(state_dir) if state_dir else resolve_state_folder(os.environ))
            loaded = _complete_settings(settings, mode, folder, self._state.path)
            self._loosest_mode: Mode = find_managed_mode(loaded)
            self.dialect = dialect or loaded.settings.dialect
            """The dialect that its tools speak. None: the canonical names."""
            spoken, loaded = _adopt_dialect(self.dialect, loaded)
            self._settings = loaded.settings
            repair = repair or ("case" if self._settings.tools.repair_case else None)
            rules = build_policy_config(loaded, mode, unattended)
            own_tools = load_project_tools(folder) if project_tools else load_tool_files(loaded.tool_files)
            self._session = open_session(
                SessionOptions(
                    workspace=folder,
                    session_id=session or make_id("s"),
                    state=self._state,
                    settings=self._settings,
                    rules=replace(rules, denied=(*rules.denied, *deny)),
                    custom=(*tools, *own_tools),
                    repair=repair,
                    resolver=resolver,
                    variables=variables,
                    sources=owned_sources,
                    ends_background=not session,  # a session without a name cannot be opened again
                    helpers=_list_helpers(self._settings, spoken),
                    splits_streams=spoken is not None and spoken.splits_streams,
                    store=store,
                )
            )
            failed.pop_all()
            failed.callback(self.close)
            self._surface = None if spoken is None else self._build_surface(spoken, repairs_case=repair == "case")
            self._on_permission, self._unattended = on_permission, unattended
            self._settle(loaded)
            failed.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls

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
        """Runs one call. If it waits for a person, the result is PERMISSION_REQUIRED with the request."""
        fresh = tool_call_id is None or (
            type(tool_call_id) is str and self._session.cancel_tokens.is_reserved(tool_call_id)
        )
        if not fresh:
            check_call_id(tool_call_id)
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
        return self._run_single(clean_call(call), fresh, self._surface)

    def batch(self, calls: "Iterable[ToolCall | Mapping[str, Any]]") -> Done | Parked:
        """Runs the calls of one message: all of them, or none while a person has to answer.

        If the dialect has a form of its own for a call, an object in that form will do.
        """
        surface = self._surface
        unwrapped = calls if surface is None else map(surface.unwrap, calls)
        batch = tuple(clean_call(check_call(call)) for call in unwrapped)
        for call in batch:
            check_call_id(call.tool_call_id)
            if not isinstance(call.timestamp, datetime) or call.timestamp.tzinfo is None:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"the timestamp of call {call.tool_call_id} is not a date and time with an offset")
        if len({call.tool_call_id for call in batch}) != len(batch):
            raise UsageError("two calls of one batch have the same tool_call_id")
        run = self._run_batch if self._surface is None else self._surface.run
        return self._enter(run, batch, False)

    def check_call(self, name: str, args: Any) -> tuple[Decision, PermissionRequest | None]:
        """The decision about a call, and the request with its preview that a person would see. The call is not made.

        A denied call has no request. ToolError if the call is invalid, or if it fails in its preview.
        """
        call = ToolCall(tool_call_id="check", name=name, args=args, trace_id="check", timestamp=datetime.now(UTC))
        return self._enter(_load_approvals().permission_request.check_call, self._session, clean_call(call))

    def new_call_id(self) -> str:
        """Makes an id for a future call: `call(…, tool_call_id=…)`. The call can be cancelled from now on.

        If no call is made with the id, give it back with `drop_call_id`.
        """
        self._check_open()
        call_id = self._session.journal.new_call_id()
        self._session.cancel_tokens.reserve(call_id)
        return call_id

    def run_before_audit(self, work: "Callable[[], object]") -> None:
        """Does work that makes calls and delivers their results. Afterwards the audit gets the records of the calls.

        If the process is killed before that, the journal has the calls, and the next opening adds the records.
        """
        self._check_open()
        self._session.run_before_audit(work)

    def drop_call_id(self, call_id: str) -> None:
        """Forgets an id that no call was made with."""
        self._check_open()
        if self._session.cancel_tokens.is_reserved(call_id):
            self._session.cancel_tokens.end((call_id,))

    def cancel_call(self, call_id: str) -> bool:
        """Cancels one call that runs or waits in the queue here. False if there is none, or it waits for a person."""
        self._check_open()
        return self._session.cancel_tokens.cancel(call_id)

    def cancel(self) -> None:
        """Cancels all running calls and refuses new ones until `uncancel`."""
        self._check_open()
        self._session.cancelled.set()

    def uncancel(self) -> None:
        """Lets calls run again."""
        self._check_open()
        self._session.cancelled.clear()

    def is_free(self) -> bool:
        """Whether a call with effects would not have to wait, as far as one look shows."""
        self._check_open()
        return not self._session.locks.of(f"session:{self._session.folder}").may_be_held

    def processes(self) -> "tuple[ProcessRecord, ...]":
        """The background processes of this session, running and ended, the oldest first."""
        background = self._session.background
        return self._enter(lambda: background.sessions.records() if background.any else ())

    def raw_output(self, call_id: str) -> bytes:
        """The raw output of a command, if `meta.raw` or `meta.output` of its result names it. Else NOT_FOUND."""
        return self._enter(self._session.outputs.raw, call_id)

    # Approvals

    def answer(
        self, request: str | PermissionRequest, answer: Answer | AnswerKind, *, reason: str | None = None
    ) -> Done | Parked:
        """Answers a permission request. The last answer of a batch runs the batch.

        An approval is for what was shown. If you pass the request, that is what the request shows. If you pass its id,
        it is the first version, so an approval of a retried request must name its `revision`.
        """
        given = answer if isinstance(answer, Answer) else Answer(kind=answer, reason=reason)
        request_id = request if isinstance(request, str) else request.id
        if not isinstance(request, str):
            given = _load_approvals().bind_answer(request, given)
        outcome = self._enter(_load_approvals().answer_request, self._session, request_id, given)
        if outcome is None:
            raise UsageError(f"the permission request {request_id[:80]!r} was answered already")
        return self._speak(outcome)

    def retry(self, request_id: str, command: str | None = None) -> PermissionRequest:
        """Previews the command of an open request again, or another command that a person wrote instead.

        Returns the request under the same id. ToolError if the policy refuses the new command.
        """
        return self._enter(_load_approvals().permission_request.retry, self._session, request_id, command)

    def refresh(self, request_id: str) -> PermissionRequest:
        """Returns the open request, or one with a new preview and id if an input of the preview may have changed.

        For showing an old request for a new call. ToolError if the call cannot be previewed any more.
        """
        return self._enter(_load_approvals().permission_request.refresh, self._session, request_id)

    def outdated(self, request: PermissionRequest) -> tuple[str, ...]:
        """The files that others changed since the request, as results name them. Empty if it can still be approved."""
        return self._enter(_load_approvals().permission_request.list_outdated_files, self._session, request)

    def is_pending(self, subject: "PermissionRequest | Question | str") -> bool:
        """Whether a request or a question is still open. A request also has to be as it was shown; by its id, any
        revision of it counts."""
        return self._enter(_load_approvals().is_pending, self._session, subject)

    def ask(self, parked: Parked, approver: "Approver") -> Done | Parked:
        """Asks about each request of a parked batch, until it is done or one is left for later. Results of calls that
        other processes ran are missing."""
        return self._speak(self._enter(_load_approvals().ask_in_turn, self._session, parked, approver))

    def settle_reply(self, reply: ApproverReply) -> "SettledReply | None":
        """Gives the answer of an approver. None if there is no answer and its subject stays pending."""
        settled = self._enter(_load_approvals().settle_reply, self._session, reply)
        if settled is None or self._surface is None:
            return settled
        answered = None if settled.answered is None else self._speak(settled.answered)
        return settled._replace(answered=answered, rest=self._speak(settled.rest))

    def waiting(self) -> tuple[PermissionRequest, ...]:
        """The open permission requests."""
        return self._enter(_load_approvals().load_parked, self._session).requests

    def reply(self, question: "str | Question", said: "Reply | str | None") -> Done:
        """Replies to a question of the model with options, own words, or a text that is either. None dismisses it.

        UsageError if the question had its reply, in any process, or cannot be answered so.
        """
        call_id = question if isinstance(question, str) else question.tool_call_id
        outcome = self._enter(_load_approvals().answer_question, self._session, call_id, said)
        if outcome is None:
            raise UsageError(f"the question {call_id[:80]!r} already has a reply")
        return self._speak(outcome)

    def waiting_questions(self) -> "tuple[Question, ...]":
        """The open questions of the model."""
        return self._enter(_load_approvals().load_parked, self._session).questions

    def would_differ(self, environment: str | None) -> bool:
        """Whether a command would get other variables here than its request says (`request.environment`).

        If so, an approval from here would not count.
        """
        return environment is not None and self._enter(digest_environment, self._session) != environment

    def resume(self) -> Done | None:
        """Runs the answered batches that a killed process left, and returns their results. None if there are none."""
        outcome = self._enter(_load_approvals().resume_batches, self._session)
        return None if outcome is None else self._speak(outcome)

    def grants(self) -> tuple[StandingGrant, ...]:
        """The standing grants of this session and this workspace."""
        return self._enter(self._session.grants.listed)

    def revoke(self, grant_id: str) -> None:
        """Ends a grant, at once and for every process. UsageError if there is none of this id."""
        revoked = self._enter(self._session.grants.revoke, grant_id)
        if revoked is None:
            raise UsageError(f"there is no grant {render_value(grant_id)}; see grants()")
        text = f"The grant {revoked.id} was revoked: {revoked.command} asks again."
        self._enter(self._session.journal.append, (Notice, {"text": text}))

    def opened_folders(self) -> tuple[OpenedFolder, ...]:
        """The folders outside the workspace that people opened to this session or to the workspace.

        They count only if the settings allow requests for folders (`paths.outside`).
        """
        return self._enter(self._session.opened_roots.listed)

    def close_folder(self, path: str | os.PathLike[str]) -> None:
        """Closes a folder that a person opened. UsageError if it was not opened."""
        folder = os.fspath(path)
        if not self._enter(self._session.opened_roots.close, folder):
            raise UsageError(f"the folder {render_value(folder)} was not opened; see opened_folders()")
        self._enter(self._session.journal.append, (Notice, {"text": f"The folder {folder} was closed."}))

    # Changes

    def changes(self, limit: int = 20) -> "list[ChangeRecord]":
        """The last change sets of this workspace, from all sessions, the latest first."""
        return self._enter(_load_undo().list_last_changes, self._session, limit)

    def diff(self, number: int | None = None) -> str:
        """The diff of a change set. Without a number, of the last one in effect."""
        return self.stored_diff(number).text

    def stored_diff(self, number: int | None = None, *, turn: bool = False) -> "StoredDiff":
        """The same with the number of the change set. `turn`: the diffs of the last turn, in order."""
        undo = _load_undo()
        return self._enter(undo.read_turn_diff if turn else partial(undo.read_diff, number=number), self._session)

    def undo(
        self,
        number: int | tuple[int, ...] | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> "ToolResult[UndoData]":
        """Undoes the last change set, one or several by number, all of the last turn, or all of a session.

        A file that was changed since is never overwritten: CONFLICT names the change. `resolve="later"` also undoes the
        later changes. `resolve="lines"` undoes only lines that were not changed since.
        """
        undo = _load_undo()
        return self._enter(undo.undo, self._session, undo.select_change_sets(number, turn, session), resolve)

    def preview_undo(
        self,
        number: int | tuple[int, ...] | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> str:
        """The diff that an undo would make. ToolError if it would be refused."""
        undo = _load_undo()
        return self._enter(undo.preview, self._session, undo.select_change_sets(number, turn, session), resolve)

    def list_turn_changes(self, turns: Collection[str]) -> tuple[int, ...]:
        """The change sets of these turns that are in effect, the latest first. A turn has the id of its prompt."""
        return self._enter(_load_undo().list_turn_changes, self._session, turns)

    def redo(self, *, resolve: "Resolve | None" = None) -> "ToolResult[UndoData]":
        """Undoes the last undo."""
        undo = _load_undo()
        return self._enter(undo.undo, self._session, undo.select_last_undo, resolve)

    def preview_redo(self, *, resolve: "Resolve | None" = None) -> str:
        """The diff that a redo would make. ToolError if it would be refused."""
        undo = _load_undo()
        return self._enter(undo.preview, self._session, undo.select_last_undo, resolve)

    def line_origin(self, path: str, line: int) -> "tuple[str, str, LineOrigin]":
        """The path as results name it, the line as it is now, and the change set that wrote it, if that is known.

        ToolError if there is no such line.
        """
        return self._enter(_load_undo().find_line_origin, self._session, path, line)

    # Tools

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that this session offers. Servers whose tools may have changed are asked."""
        self.look_at_servers()
        if self._surface is not None:
            return self._surface.specs()
        return tuple(tool.spec for tool in self._session.offer.tools)

    def tool_names(self) -> tuple[str, ...]:
        """The names of the offered tools. Loads no tool. The tuple is the same object until something changes."""
        self.look_at_servers()
        return self._session.offer.names if self._surface is None else self._surface.names

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of this name, if this session offers it."""
        self._check_open()
        if self._surface is not None:
            return self._surface.spec(name)
        tool = self._session.offer.get(name)
        return None if tool is None else tool.spec

    def register(self, tool: Tool) -> None:
        """Offers one more custom tool from now on. UsageError if its name is invalid, reserved or taken."""
        self._enter(self._register, tool)

    def _register(self, tool: Tool) -> None:
        if self._surface is not None and self._surface.speaks(getattr(getattr(tool, "spec", None), "name", "")):
            raise UsageError(f"the tool {tool.spec.name!r} would shadow a tool of the dialect; give it another name")
        self._session.skills.renew(lambda offer: offer.with_custom(tool))

    def look_at_servers(self) -> None:
        """Asks servers for their tools, if these may have changed. May wait for a server to start."""
        self._check_open()
        if self._session.foreign is not None:
            self._enter(self._session.refresh_servers)

    @property
    def has_servers(self) -> bool:
        return self._session.foreign is not None

    def why_off(self, name: str) -> str | None:
        """Why this session does not offer an existing tool, for a person. None otherwise."""
        self._check_open()
        return self._session.offer.why_off(name)

    def skills(self) -> "tuple[SkillEntry, ...]":
        """The skills that this session finds, by name, with those that are active marked. Reads their files."""
        return self._enter(self._session.skills.entries)

    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills, in order. Reads no file."""
        return self._enter(self._session.skills.active_names)

    def openai_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an OpenAI tool list."""
        return list(map(_load_schema().to_openai_tool, self.specs()))

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an Anthropic tool list."""
        return list(map(_load_schema().to_anthropic_tool, self.specs()))

    def mcp_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an MCP tool list. `structuredContent` of a call is then a whole ToolResult."""
        entries = to_builtins(list(map(_load_schema().to_mcp_tool, self.specs())))  # a copy, since schemas are cached
        if self._surface is not None:
            for entry in entries:
                del entry["outputSchema"]  # the answer has the shape of the dialect
        return entries

    # The session

    @property
    def session_id(self) -> str:
        return self._session.id

    @property
    def workspace(self) -> str:
        """The folder that relative paths start from."""
        return self._session.workspace.main.path

    @property
    def mode(self) -> Mode:
        return self._session.rules.mode

    def split_streams(self, split: bool) -> None:
        """Whether results of later commands have `stdout` and `stderr` apart, without their order."""
        self._check_open()
        self._session.splits_streams = split

    def set_mode(self, mode: Mode) -> None:
        """Changes the mode for all later calls."""
        _refuse_unknown("mode", mode, MODES)
        if pick_stricter_mode(mode, self._loosest_mode) != mode:
            raise UsageError(f"the managed file forbids modes looser than {self._loosest_mode}; got {mode}")
        session = self._session
        swap = partial(setattr, session, "rules", replace(session.rules, mode=mode))
        self._enter(session.journal.append, (ModeEvent, {"mode": mode}), stored=swap)

    def events(self, after: int = 0) -> Iterator[AnyEvent | BrokenEvent]:
        """The events of the session after a number, the oldest first."""
        self._check_open()
        stored = self._session.journal.events(after)
        return iter(lambda: self._enter(next, stored, None), None)

    def subscribe(
        self, listener: Callable[[Event], None], *, kinds: Collection[type[Event]] | None = None
    ) -> Callable[[], None]:
        """Calls the listener with every new event, or only those of `kinds`, once stored. Returns how to stop that.

        The thread that caused the event calls the listener, so it should be quick. A listener that raises is removed.
        """
        return self._enter(self._session.journal.subscribe, listener, kinds)

    @property
    def sandbox_tier(self) -> int:
        """The sandbox tier of commands here: 3 if their changes go into an overlay. The first read probes."""
        return self._session.commands.find_tier(self._session.workspace.roots)

    @property
    def permission_wait(self) -> float:
        """Seconds that a call of an MCP client without forms waits for an answer from elsewhere."""
        return parse_seconds(self._settings.mcp.permission_wait)

    def subscribe_to_previews(self, listener: Callable[[ToolCall, str], None]) -> None:
        """Calls the listener with a call whose preview begins, and then with new output of it. No event has these."""
        self._enter(self._session.preview_listeners.append, listener)

    @property
    def conversation(self) -> "Conversation":
        """The transcript of this session, for the code that runs the loop."""
        from handrail.runtime.conversation import Conversation  # noqa: PLC0415  only for the loop

        self._check_open()
        return Conversation(self._session, self._enter)

    @property
    def deferred_calls(self) -> "DeferredCalls":
        """The calls of this session that wait, for clients that do not know handrail's ids."""
        from handrail.store.approvals import DeferredCalls  # noqa: PLC0415  only for such clients

        self._check_open()
        return DeferredCalls(self._session.journal, self._session.folder)

    def notify_person(self, title: str, text: str) -> bool:
        """Shows a notice on the person's desktop, at most one in ten seconds. False if none was tried.

        The desktop may interpret markup in the text, so escape it."""
        self._check_open()
        from handrail.process.desktop import notify_person  # noqa: PLC0415  few sessions notify

        return notify_person(title, text, os.environ)

    def todo(self) -> "tuple[TodoItem, ...]":
        """The last todo list of the model."""
        return self._enter(read_last_todo, self._session.journal)

    def repository_map(self) -> str:
        """The most referenced definitions of the workspace, within the tokens of `agent.map`. Empty if that is 0."""
        self._check_open()
        if not self._settings.agent.map:
            return ""
        from handrail.runtime.conversation import render_repository_map  # noqa: PLC0415  only for the loop

        return self._enter(render_repository_map, self._session, self._settings)

    def list_files(self, most: int = 10_000) -> tuple[str, ...]:
        """The files of the workspace that `find` lists, without a call: nothing is logged."""
        from handrail.tools.find import list_files  # noqa: PLC0415  few programs ask
        from handrail.tools.search import SessionSearch  # noqa: PLC0415

        search = self._settings.search
        searching = SessionSearch(search.ignore, search.engine)
        return self._enter(list_files, searching, self._session.workspace, most)

    def memories(self) -> "tuple[Memory, ...]":
        """The models' notes about this workspace, the last changed at the end. A person's word counts more."""
        from handrail.store.memories import Memories  # noqa: PLC0415  few programs ask

        return self._enter(Memories(self._session.notes).list_notes)

    def set_client_roots(self, folders: Sequence[str]) -> tuple[str, ...]:
        """Sets the folders that the client works on. Those outside the workspace become roots of the session.

        The setting `paths.client_roots` limits that. Returns a text for each refused folder.
        """
        restricted = self._session.rules.restriction is not None
        arguments = (self._session.workspace, folders, self._settings.paths.client_roots, self._state.path)
        return self._enter(partial(set_client_roots, restricted=restricted), *arguments)

    def begin_conversations(self, current: Callable[[], str] = str) -> None:
        """Forgets which files earlier conversations have read, so that they do not affect a new one.

        `current` names the conversation of the calling thread, if there are several.
        """
        self._enter(self._session.journal.begin_conversations, current)

    def fork_session(self, session: str | None = None, *, before: int | None = None) -> str:
        """Starts another session of this workspace with a copy of the transcript. Returns its id.

        Grants, waiting calls and running processes are not copied. `session` chooses the id. With `before`
        only the messages with a lower number are copied.
        """
        return self._enter(fork_session, self._session, session or make_id("s"), before)

    def end_session(self) -> None:
        """Closes the session and ends its background processes."""
        self._session.ends_background = True
        self.close()

    def close(self) -> None:
        """Waits for running calls and closes the session. It can be opened again by its id.

        Background processes go on. Those of a session without a name end, since it cannot be opened again.
        """
        if self._drain():
            self._session.close()

    def _call_tool(self, name: str, args: Any) -> ToolResult[Any]:
        call_id = self._session.journal.new_call_id()
        call = ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))
        return self._run_single(call, fresh=True)

    def _run_single(self, call: ToolCall, fresh: bool, surface: "SessionSurface | None" = None) -> ToolResult[Any]:
        outcome = self._enter(self._run_batch if surface is None else surface.run, (call,), fresh)
        if isinstance(outcome, Done):
            return outcome.results[0]
        own = [request for request in outcome.requests if request.tool_call_id == call.tool_call_id]
        interim = build_pending_result(self._session, call, (*own, *outcome.requests, *outcome.questions)[0])
        return interim if surface is None else surface.name_interim(interim)

    def _speak(self, outcome: SomeOutcome) -> SomeOutcome:
        """The outcome in the dialect of the session."""
        if self._surface is None or isinstance(outcome, Parked):
            return outcome
        return cast("SomeOutcome", self._surface.answer_all(outcome))

    def _run_batch(self, calls: tuple[ToolCall, ...], fresh: bool) -> Done | Parked:
        """`fresh`: the journal knows no id of the batch."""
        outcome = run_batch(self._session, calls, fresh)
        if isinstance(outcome, Done):
            return outcome
        return _load_approvals().ask_for_batch(self._session, calls, outcome, self._find_approver)

    # Calls inside, for which `close` waits

    def _enter(
        self, work: Callable[Parameters, Returned], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Returned:
        """Does work that `close` waits for."""
        token, thread = object(), get_call_thread()
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
        """Refuses use after `close`. Takes no lock, so that signal handlers can cancel while `close` waits."""
        self._check_process()
        if self._closed and not self._inside:
            raise UsageError(CLOSED)

    def _check_process(self) -> None:
        if _process != self._process:
            raise UsageError("this Handrail belongs to the process that opened it; open one of your own after a fork")

    def _drain(self) -> bool:
        """Refuses new calls and waits for the running ones. False if closed before, or opened by another process."""
        if _process != self._process:
            return False
        with self._door:
            if get_call_thread() in self._inside.values():
                raise UsageError("a Handrail cannot be closed from inside one of its calls")
            if self._closed:
                return False
            self._closed = True
            self._door.wait_for(lambda: not self._inside)
        return True

    def _build_surface(self, dialect: "Dialect", *, repairs_case: bool) -> "SessionSurface":
        from handrail.dialects.surface import SessionSurface  # noqa: PLC0415  few sessions speak a dialect

        return SessionSurface(dialect, self._session, self._run_batch, repairs_case=repairs_case)

    def _settle(self, loaded: LoadedSettings) -> None:
        """Settles what earlier processes left, before the first call."""
        session = self._session
        if folder := loaded.settings.events.jsonl:
            session.journal.subscribe(_build_event_writer(session, folder, loaded.settings.events.dialect))
        if loaded.rules:
            check_tools(loaded, session.offer.registered)
        for text in session.offer.unmatched():
            session.journal.append((WarningEvent, {"code": "UNKNOWN_TOOL", "text": text}))
        session.commands.kill_orphans()  # first, since a command that still runs could change something
        if list_dead_runners(session.folder) or session.recorder.history.others_at_work():
            from handrail.runtime.recovery import recover, recover_workspace  # noqa: PLC0415  only after a crash

            recover(session)
            recover_workspace(session)
        session.background.commit_deferred = self._commit_deferred
        session.background.attach()
        if not self._state.is_swept():
            from handrail.state import StoredState  # noqa: PLC0415  once a day

            StoredState(self._state.path).sweep(int(loaded.settings.store.keep.removesuffix("d")))
            expire_requests(self._state, None, loaded.settings)

    def _find_approver(self) -> "Approver | None":
        """The function of the program, else the person at the terminal."""
        if callable(self._on_permission):
            return _load_approvals().CallbackApprover(self._on_permission)
        if self._unattended or self._on_permission == "park":
            return None
        from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover  # noqa: PLC0415  few calls ask

        return TerminalApprover(RequestHooks(self.is_pending, self.outdated, self.retry))

    def _commit_deferred(self, process: "ProcessSession") -> None:
        from handrail.runtime.deferred_commit import commit_deferred  # noqa: PLC0415  few commands outlive their calls

        commit_deferred(self._session, process)


def expire_requests(state: StateFolder, workspace: str | None, settings: Settings) -> int:
    """Denies the old requests of a workspace, or of all, that no process waits for. Returns their number."""
    return _load_approvals().expire_requests(state, workspace, parse_seconds(settings.ask.expire))


def deny_stored_request(waiting: "InboxRequest", answer: Answer) -> bool:
    """Denies a request without opening its session. False if it was answered before."""
    return _load_approvals().deny_stored_request(waiting, answer)


def _load_approvals():  # the type is that of the module
    from handrail.runtime import approvals  # noqa: PLC0415  most calls need no approval

    return approvals


def _load_undo():  # the type is that of the module
    from handrail.runtime import undo  # noqa: PLC0415  most sessions undo nothing

    return undo


def _complete_settings(
    given: Settings | LoadedSettings | None, mode: Mode | None, workspace: str, state: str
) -> LoadedSettings:
    """The settings of the program, or those of the settings files and the environment."""
    if isinstance(given, Settings):
        return LoadedSettings(settings=given, sources={})
    return given or load(os.environ, {"mode": mode}, workspace, state=state)


def _close_sources(sources: "tuple[ToolSource, ...]") -> None:
    if sources:
        from handrail.runtime.foreign.catalog import close_sources  # noqa: PLC0415  few sessions have servers

        close_sources(sources)


def _adopt_dialect(name: str | None, loaded: LoadedSettings) -> "tuple[Dialect | None, LoadedSettings]":
    """The dialect of a name, with the settings that it needs."""
    if name is None:
        return None, loaded
    dialect = _load_dialects().load_dialect(name)
    return dialect, replace(loaded, settings=_load_dialects().adapt_settings(dialect, loaded))


def _list_helpers(settings: Settings, dialect: "Dialect | None") -> tuple[str, ...]:
    """The tools that exist for dialects alone. The settings of a replay name them."""
    if dialect is not None:
        return _load_dialects().list_helpers(dialect)
    return tuple(name for name in HELPED if name in settings.tools.enable)


def _load_dialects():  # the type is that of the module
    from handrail.dialects import dialect  # noqa: PLC0415  few sessions speak a dialect

    return dialect


def _load_schema():  # the type is that of the module
    from handrail.protocol import schema  # noqa: PLC0415  few programs want schemas

    return schema


def _build_event_writer(session: Session, folder: str, dialect: str | None) -> Callable[[Event], None]:
    """Appends each event to a file in the workspace: a copy of the journal, for other programs.

    `dialect`: the system whose form the lines have. Its file has another name.
    """
    from handrail.state import build_export_path, get_export_kind  # noqa: PLC0415  few sessions export events

    adapter = None
    if dialect is not None:
        from handrail.dialects.adapters import ADAPTERS  # noqa: PLC0415  few sessions export events

        adapter = ADAPTERS[dialect](session.workspace.main.path)

    def append(event: Event) -> None:
        lines = (event,) if adapter is None else adapter.render(event)
        if lines:
            path = f"{folder}/{build_export_path(session.id, event, get_export_kind(dialect))}"
            session.workspace.append(path, b"".join(encode(line) + b"\n" for line in lines))

    return append


def _refuse_unusable(mode: object, deny: Sequence[object], on_permission: object) -> None:
    """Refuses arguments of wrong types, for programs without a type checker."""
    if mode is not None:
        _refuse_unknown("mode", mode, MODES)
    for permission in deny:
        _refuse_unknown("permission", permission, PERMISSIONS)
    if on_permission not in (None, "park") and not callable(on_permission):
        raise UsageError(f"on_permission must be a function, 'park' or None, not {render_value(on_permission)}")


def _refuse_unknown(kind: str, name: object, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"there is no {kind} {render_value(name)}; use {', '.join(known)}")
