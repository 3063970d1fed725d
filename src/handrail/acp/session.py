"""One session of an editor: its turns, its model, its options."""

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol, TypedDict, cast

import msgspec
from acp import RequestError
from acp.helpers import ContentBlock
from acp.schema import (
    ConfigOptionUpdate,
    PromptResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    StopReason,
)

from handrail import ToolSource
from handrail.acp.permissions import EditorApprover, EditorLink, render_question
from handrail.acp.prompts import (
    CONTINUE,
    PromptContent,
    build_commands_update,
    parse_command,
    parse_prompt,
    run_command,
)
from handrail.acp.updates import (
    JournalFollower,
    Update,
    UpdateBuilder,
    build_message_chunk,
    build_remark_chunk,
    replay_session,
)
from handrail.agent.cancel import TurnCancelledError
from handrail.agent.loop import Agent, Person
from handrail.agent.turn import Turn, TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.models.base import Model, ModelError
from handrail.protocol.calls import Done, Parked
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST
from handrail.protocol.messages import AssistantMessage
from handrail.settings import LoadedSettings
from handrail.settings.load import find_managed_mode, pick_stricter_mode
from handrail.terminal.question_prompt import spell_out

_MODES: dict[Mode, str] = {
    "plan": "Reads only; changes nothing",
    "ask": "Asks before it writes a file, or runs a command that may change something",
    "auto": "Works in the workspace without asking if undo covers the change; asks otherwise",
    "full": "Asks nothing",
}
_Options = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]
_PARKED = "A request waits for your approval. `handrail approvals` lists it; `/continue` shows it again."


class EditorServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server of the editor: a command or an address. Neither if the agent does not support its transport."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Of its environment, besides those that every server gets."""
    url: str | None = None
    headers: dict[str, str] = {}


class AgentHost(Protocol):
    """Decides for all sessions where they work, with which settings and which model.

    Each method may raise UsageError with a text for the person.
    """

    @property
    def only_workspace(self) -> str | None:
        """The folder of all sessions, if the person named one."""
        ...

    @property
    def has_http_servers(self) -> bool:
        """Whether servers of the editor can have an address."""
        ...

    def resolve_workspace(self, cwd: str, /) -> str:
        """The folder of a session for the folder that the editor names."""
        ...

    def load_settings(self, workspace: str, /) -> LoadedSettings: ...

    def get_limits(self, loaded: LoadedSettings, /) -> TurnLimits: ...

    def list_models(self, loaded: LoadedSettings, last: str | None, /) -> tuple[str, ...]:
        """The names of the models to choose from, the preselected one first. `last`: the last one of the session."""
        ...

    def open_model(self, loaded: LoadedSettings, name: str | None, /) -> Model:
        """The model of a name. None is refused with a text on how to choose one."""
        ...

    def open_sources(
        self, loaded: LoadedSettings, workspace: str, servers: tuple[EditorServer, ...], /
    ) -> tuple[ToolSource, ...]:
        """The tools of other servers: those of the settings, and those that the editor names."""
        ...


class EditorSession:
    """A handrail session with a model. One prompt runs at a time.

    All methods run in one event loop. Tool calls run in threads of the rail.
    """

    def __init__(
        self,
        rail: AsyncHandrail,
        loaded: LoadedSettings,
        editor: EditorLink,
        model: "SessionModel",
        notes: tuple[str, ...] = (),
    ) -> None:
        """`notes`: what the person should know about the opened session."""
        self.rail = rail
        self._loaded, self._editor, self._model, self._notes = loaded, editor, model, notes
        self._approver = EditorApprover(rail, editor, self._catch_up)
        self._updates = UpdateBuilder(rail, editor.folder, model.get_window)
        self._follower: JournalFollower | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancelled = False
        self._cancels = 0
        self._ran_turn = False

    async def begin(self, *, replay: bool) -> None:
        """Sends events to the editor from now on. `replay`: first all earlier ones."""
        with self._work():
            if replay:
                last = await replay_session(self.rail, self._updates, self._send)
            else:
                last = await self.rail.in_pool(lambda: max((event.seq for event in self.rail.events()), default=0))
            self._follower = JournalFollower(self.rail, self._updates, self._send, last)

    async def greet(self) -> None:
        """Sends the slash commands and the notes."""
        await self._send(build_commands_update())
        for note in self._notes:
            await self._send(build_remark_chunk(note))

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Runs a turn, until nothing is left to do or a person has to answer."""
        if self._cancelled and not await self._wait_for_cancelled():
            return PromptResponse(stop_reason="cancelled")
        with self._work():
            self._cancelled = False
            try:
                return PromptResponse(stop_reason=await self._run(parse_prompt(blocks, self._editor.folder)))
            finally:
                await self._catch_up()

    def cancel(self) -> None:
        """Cancels the running prompt. Later ones run as usual."""
        self._cancelled = True
        self._cancels += 1
        self._model.cancel()

    def check_idle(self) -> None:
        """Refuses if a prompt or a replay is running."""
        if not self._idle.is_set():
            text = f"Session {self.rail.session_id} is busy. Wait until its prompt ends, or cancel it."
            raise RequestError(INVALID_REQUEST, text)

    async def close(self) -> None:
        """Ends all work, background processes included. Pending requests stay pending. Without a turn of its own it
        ends nothing: another process may be at work in the session."""
        await self._stop()
        await (self.rail.end_session() if self._ran_turn else self.rail.close())

    async def hand_over(self) -> None:
        """Closes the session before it is opened anew. Background processes go on."""
        await self._stop()
        await self.rail.close()

    async def _send(self, update: Update) -> None:
        with suppress(ConnectionError):  # the editor has gone, and the work goes on
            await self._editor.client.session_update(session_id=self.rail.session_id, update=update)

    async def _catch_up(self) -> None:
        if self._follower is not None:
            await self._follower.catch_up()

    @contextmanager
    def _work(self) -> Generator[None]:
        self.check_idle()
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    async def _wait_for_cancelled(self) -> bool:
        """Waits for the end of a cancelled prompt. Returns whether there was no further cancellation meanwhile."""
        before = self._cancels
        await self._idle.wait()
        return self._cancels == before

    async def _stop(self) -> None:
        if not self._approver.leave():
            self.cancel()
        await self._idle.wait()
        if self._follower is not None:
            await self._follower.close()
        await self._model.close()

    async def _run(self, prompt: PromptContent) -> StopReason:
        command = parse_command(prompt.text)
        if command is not None and command[0] != CONTINUE:
            text = await run_command(self.rail, *command)
            await self._catch_up()
            await self._send(build_message_chunk(text))
            return "end_turn"
        agent = await self._model.open_agent(self._ask_person)
        await self.rail.in_pool(self.rail.specs)  # other servers may be slow, and must not block the event loop
        questions = await self.rail.waiting_questions()
        if self._cancelled:
            return "cancelled"
        said = spell_out(questions[0], prompt.text) if questions else prompt.text
        turn = await self._run_turn(agent.go_on() if command is not None else agent.run(said, prompt.pictures))
        await self._catch_up()
        for text in _list_closing_messages(turn):
            await self._send(build_message_chunk(text))
        return await self._resolve_stop_reason(turn)

    async def _run_turn(self, work: Coroutine[Any, Any, Turn]) -> Turn:
        ran_turn, self._ran_turn = self._ran_turn, True
        try:
            return await work
        except UsageError:  # another process is at work in the session
            self._ran_turn = ran_turn
            raise

    async def _ask_person(self, parked: Parked) -> Done | Parked:
        try:
            return await self._approver(parked)
        except TurnCancelledError:
            self.cancel()  # so that the next prompt waits for the end of this one
            raise

    async def _resolve_stop_reason(self, turn: Turn) -> StopReason:
        """The protocol's word for the end of a turn. RequestError if the turn failed."""
        if turn.reason == "cancelled":
            return "cancelled"
        if turn.reason == "error":
            text = turn.message or "The turn failed. /continue resumes it."
            raise RequestError(INTERNAL_ERROR, text, {"code": turn.code} if turn.code else None)
        if turn.reason in {"parked", "question"}:
            return "end_turn"
        finish = await self._model.find_finish_reason()
        if finish == "filtered":
            return "refusal"
        if turn.reason == "limit":
            return "max_tokens" if finish == "length" or self._model.has_spent(turn) else "max_turn_requests"
        return "end_turn"

    # Options: the mode, and the model if there are several. Modes are listed twice, as modes and as an option. Clients
    # that know options ignore modes.

    def build_choices(self) -> "SessionChoices":
        """The options of an opened session, and their values."""
        modes = [SessionMode(id=mode, name=mode.capitalize(), description=text) for mode, text in self._list_modes()]
        state = SessionModeState(current_mode_id=self.rail.mode, available_modes=modes)
        return {"modes": state, "config_options": self._build_options()}

    async def choose(self, option: str, value: object) -> _Options:
        """Sets an option. Returns all of them. Another model is used from the next prompt on."""
        if option == "mode" and isinstance(value, str):
            await self.rail.set_mode(cast("Mode", value))  # which refuses unknown ones
        elif option != "model" or not isinstance(value, str) or not self._model.choose(value):
            text = f"There is no option {option[:80]!r} with a value {str(value)[:80]!r}. Nothing was changed."
            raise UsageError(text)
        return self._build_options()

    async def send_options(self) -> None:
        """Tells the editor of a choice that was not made by an option."""
        options = self._build_options()
        await self._send(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    def _build_options(self) -> _Options:
        modes = [
            SessionConfigSelectOption(value=mode, name=mode.capitalize(), description=text)
            for mode, text in self._list_modes()
        ]
        options: _Options = [_build_option("mode", self.rail.mode, modes)]
        if self._model.chosen is not None:
            models = [SessionConfigSelectOption(value=name, name=name) for name in self._model.names]
            options.append(_build_option("model", self._model.chosen, models))
        return options

    def _list_modes(self) -> list[tuple[Mode, str]]:
        loosest = find_managed_mode(self._loaded)
        return [(mode, text) for mode, text in _MODES.items() if pick_stricter_mode(mode, loosest) == mode]


class SessionChoices(TypedDict):
    """Fields of the responses that open a session."""

    modes: SessionModeState
    config_options: _Options


class SessionModel:
    """The chosen model of a session. It is opened at the first prompt: a session can be opened without one."""

    def __init__(self, rail: AsyncHandrail, loaded: LoadedSettings, host: AgentHost) -> None:
        self._rail, self._loaded, self._host = rail, loaded, host
        last = _find_last_answer(rail)
        self.names = host.list_models(loaded, last.model if last is not None else None)
        self.chosen = self.names[0] if self.names else None
        self._opened: tuple[str | None, Model, Agent] | None = None

    def choose(self, name: str) -> bool:
        """Chooses a model for the next prompt. Returns whether there is one of this name."""
        if name not in self.names:
            return False
        self.chosen = name
        return True

    async def open_agent(self, person: Person) -> Agent:
        """The loop with the chosen model."""
        if self._opened is None or self._opened[0] != self.chosen:
            model = self._host.open_model(self._loaded, self.chosen)
            await self.close()
            agent = Agent(self._rail, model, limits=self._host.get_limits(self._loaded), person=person)
            self._opened = self.chosen, model, agent
        return self._opened[2]

    def cancel(self) -> None:
        """Cancels the running turn."""
        if self._opened is not None:
            self._opened[2].cancel()

    async def close(self) -> None:
        """Closes the connections of the model."""
        if self._opened is not None:
            with suppress(ModelError):
                await self._opened[1].close()

    async def find_finish_reason(self) -> str | None:
        """How the last answer of the model ended."""
        last = await self._rail.in_pool(lambda: _find_last_answer(self._rail))
        return last.finish if last is not None else None

    def has_spent(self, turn: Turn) -> bool:
        """Whether a turn used all its tokens."""
        most = self._host.get_limits(self._loaded).tokens
        return most is not None and turn.tokens >= most

    def get_window(self) -> int | None:
        """How many tokens the model takes, if known."""
        with suppress(ModelError):
            return self._opened[1].window if self._opened is not None else None
        return None


def _find_last_answer(rail: AsyncHandrail) -> AssistantMessage | None:
    messages = (one.message for one in reversed(rail.conversation.messages()))
    return next((one for one in messages if isinstance(one, AssistantMessage)), None)


def _list_closing_messages(turn: Turn) -> tuple[str, ...]:
    """Texts for the person if a turn ended because they have to answer."""
    if turn.reason == "parked":
        return (f"\n\n> {_PARKED}\n\n",)
    return tuple(map(render_question, turn.questions)) if turn.reason == "question" else ()


def _build_option(
    name: Literal["mode", "model"], value: str, options: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        id=name, name=name.capitalize(), category=name, type="select", current_value=value, options=options
    )
