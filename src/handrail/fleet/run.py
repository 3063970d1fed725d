"""One run of a session on a worker: from the claim to the release."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from handrail.agent.loop import Agent
from handrail.agent.transcript import Transcript
from handrail.agent.turn import Turn, TurnLimits, build_defect_error
from handrail.api import Handrail
from handrail.fleet.sessions import Claim, FleetSessions, Outcome, State, TenantLimits, build_outcome
from handrail.fleet.workspaces import open_workspace
from handrail.models.base import Model
from handrail.protocol.errors import HandrailError, StoreError, UsageError
from handrail.protocol.events import Error, Event, Notice, Usage
from handrail.settings import Settings
from handrail.store.runner import list_dead_runners
from handrail.store.shared_store import SharedStore
from handrail.store.state_dir import StateFolder, make_private, remove_folder

if TYPE_CHECKING:
    from handrail.fleet.traces import RunTraces

FindModel = Callable[[str], Model]
OnEnd = Callable[[State, int, float], None]
"""Gets the state of the session, and the tokens and seconds of the run."""
MAX_TRIES = 5
"""How many workers may begin a run without a new event. After that the run has failed."""
_LEFT_OUT = (
    ".runner",
    ".runner-new",
    "loop.lock",
    "processes",
    "blobs",
    "trials",
    ".at-work",
    "settling",
    "swept",
    ".place",
    ".code",
)
_WAITING = {"parked", "question"}
_DROPPED = "The turn was cancelled, so the prompt that waited for it was dropped:"
_FAILED = {"error", "limit"}


class Run:
    """A run in a folder of the worker, which nothing needs after the run. `perform` blocks its thread."""

    def __init__(
        self,
        sessions: FleetSessions,
        session: str,
        *,
        worker: str,
        folder: str,
        find_model: FindModel,
        settings: Settings | None = None,
        variables: Mapping[str, str] | None = None,
        on_end: OnEnd | None = None,
        traces: "RunTraces | None" = None,
    ) -> None:
        self.session = session
        self._sessions = sessions
        self._worker = worker
        self._folder = folder
        self._find_model = find_model
        self._settings, self._variables = settings, variables
        self._on_end = on_end
        self._traces = traces
        self._agent: Agent | None = None
        self._lock = threading.Lock()
        self._cancelled = False
        self._tokens = 0
        """The tokens that this run has used."""

    def perform(self) -> None:
        """StaleWorkerError if another worker took over meanwhile. Other errors end in the journal."""
        claim = self._sessions.claim(self.session, self._worker)
        if claim is None:
            return
        began = time.monotonic()
        if claim.tries > MAX_TRIES:
            self._give_up(claim)
            return
        self._cancelled = self._cancelled or claim.cancelled
        folder = os.path.join(self._folder, f"{claim.session}-{claim.epoch}")
        try:
            make_private(folder)
            turn, branch, unsettled = self._work(claim, folder)
        except StoreError:
            raise
        except HandrailError as error:  # of the options or settings: it would fail again
            outcome = Outcome(reason="error", code="INVALID_ARGUMENT", message=str(error))
            self._sessions.release(claim, "failed", outcome, seconds=time.monotonic() - began)
            return
        finally:
            remove_folder(folder)
        seconds = time.monotonic() - began
        self._sessions.release(
            claim, get_state(turn), build_outcome(turn, branch), runners=unsettled, tokens=self._tokens, seconds=seconds
        )
        if self._on_end is not None:
            self._on_end(get_state(turn), self._tokens, seconds)

    def cancel(self) -> None:
        """Ends the turn, from any thread."""
        with self._lock:
            self._cancelled = True
            if self._agent is not None:
                self._agent.cancel()

    def _work(self, claim: Claim, folder: str) -> tuple[Turn, str | None, list[str]]:
        """Returns how the turn ended, the branch with the result, and the runners whose work is not settled."""
        scope = self._sessions.build_scope(claim.session, claim.epoch)
        workspace = open_workspace(self._sessions, claim, folder)
        with closing(SharedStore(scope, workspace.log, workspace.private_root)) as store:
            state = StateFolder(os.path.join(folder, "state"))
            session = state.session(os.path.realpath(workspace.path), claim.session)
            home = os.path.dirname(session)
            store.restore_folder("home", home)
            workspace.restore(store, state)
            with Handrail(
                workspace.path,
                mode=claim.options.mode,
                session=claim.session,
                state_dir=state.path,
                on_permission="park",
                settings=self._settings,
                variables=self._variables,
                store=store,
            ) as rail:
                rail.subscribe(self._count_tokens, kinds=(Usage,))
                self._settle_answers(rail)
                turn = self._trace_turn(rail, claim)
                rail.end_session()  # the next worker cannot use its background processes
            store.save_folder("home", home, is_left_out=is_left_out)
            return turn, workspace.save(), list_dead_runners(session)

    def _count_tokens(self, event: Event) -> None:
        if isinstance(event, Usage):
            self._tokens += event.input_tokens + event.output_tokens

    def _settle_answers(self, rail: Handrail) -> None:
        for call_id, reply in self._sessions.take_replies(self.session):
            with suppress(UsageError):  # it has its reply
                rail.reply(call_id, reply)
            self._sessions.drop_reply(self.session, call_id)
        rail.resume()

    def _trace_turn(self, rail: Handrail, claim: Claim) -> Turn:
        model = self._find_model(claim.options.model)
        if self._traces is None:
            return asyncio.run(self._run_turn(rail, claim, model))
        with self._traces.trace_run(claim.session, claim.tries) as run:
            run.follow(rail)
            turn = asyncio.run(self._run_turn(rail, claim, run.wrap(model)))
            run.end(turn.reason, self._tokens)
            return turn

    async def _run_turn(self, rail: Handrail, claim: Claim, model: Model) -> Turn:
        limits, used, tokens = TenantLimits(), TenantLimits(), None
        if self._sessions.find_limits(claim.tenant) != limits:
            limits, used = self._sessions.measure_tenant(claim.tenant)
        if limits.tokens is not None:  # earlier runs of this turn count as used, and are part of the turn
            tokens = max(0, limits.tokens - (used.tokens or 0)) + Transcript(rail.conversation).usage.tokens
        agent = Agent(rail, model, limits=TurnLimits(tokens=tokens))
        with self._lock:
            self._agent = agent
            cancelled = self._cancelled
        timer = None
        if limits.seconds is not None:
            timer = threading.Timer(max(0.0, limits.seconds - (used.seconds or 0.0)), agent.cancel)
            timer.start()
        try:
            running = asyncio.ensure_future(agent.go_on())
            if cancelled:
                asyncio.get_running_loop().call_soon(agent.cancel)
            turn = await running
            while (prompts := rail.conversation.list_prompts()) and turn.reason in {"done", "cancelled"}:
                if turn.reason == "cancelled":
                    text = "\n\n".join(one.text for one in prompts)
                    rail.conversation.add((), (Notice, {"text": f"{_DROPPED} {text}"}), taken=prompts[-1].number)
                else:
                    turn = await agent.run_waiting()
            return turn
        except HandrailError:
            raise
        except Exception as error:  # a defect; the loop has written it into the journal
            failed = build_defect_error(error)
            return Turn(reason="error", code=failed.code, message=failed.message)
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._agent = None
            await agent.close()

    def _give_up(self, claim: Claim) -> None:
        message = f"The turn was given up: {MAX_TRIES} workers ended while they ran it, without any progress."
        scope = self._sessions.build_scope(claim.session, claim.epoch)
        store = SharedStore(scope)
        store.append_event((Error, {"code": "INTERNAL", "message": message, "retryable": True}))
        self._sessions.release(claim, "failed", Outcome(reason="error", code="INTERNAL", message=message))


def get_state(turn: Turn) -> State:
    if turn.reason in _WAITING:
        return "waiting"
    return "failed" if turn.reason in _FAILED else "idle"


def is_left_out(name: str) -> bool:
    """Whether a file or folder of the state folder is of use on this machine only."""
    return name.endswith(_LEFT_OUT) or ".db" in name
