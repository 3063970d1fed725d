"""Settles what a process left undone when it was killed: every call gets its result, every result its audit line."""

import os
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.event import Notice, ToolCallEnd, ToolCallError
from handrail.protocol.result import ToolResult
from handrail.runtime.closing import pay, record_of
from handrail.runtime.cut_off import what_became
from handrail.runtime.pipeline import close
from handrail.runtime.registry import Offer
from handrail.runtime.reloading import reloaded
from handrail.runtime.session import Session
from handrail.runtime.waiting_trials import sealed_in
from handrail.store.audit import Chain
from handrail.store.journal import Entry, Journal
from handrail.store.requests import request_about
from handrail.store.runner import Runner, bury, dead_runners, is_dead

RECOVERY_SECONDS = 10.0


def recover(session: Session) -> None:
    """To be called when a session is opened, and where a call does not get on. Costs one look into its folder when
    nothing is left undone."""
    if not dead_runners(session.folder):
        return
    lock = session.locks.of(f"recovery:{session.folder}")
    try:
        if not lock.take(RECOVERY_SECONDS):
            return  # somebody else is at it
        for runner in dead_runners(session.folder):
            _settle(session, runner)
            with suppress(StoreError):  # what cannot be kept is asked for again
                session.grants.keep_all(session.journal.database)
            session.journal.forget_runner(runner)
            bury(session.folder, runner)
    finally:
        lock.release()
    session.journal.deliver()


def settle_others(session: Session) -> None:
    """To be called when a session is opened: what a killed process left half changed in the workspace is settled,
    whatever its session was. Costs one look into a folder when nobody else is at work."""
    history = session.recorder.history
    others = history.others_at_work()
    if not others:
        return
    from handrail.runtime.person import settle_killed  # noqa: PLC0415  hardly ever needed

    home = os.path.dirname(session.folder)
    with suppress(StoreError):  # a change log that cannot be read stops changes, and nothing else
        settle_killed(session)
        for runner, name in others.items():
            if is_dead(os.path.join(home, name), runner):
                history.forget_work(runner)


def end_work(session: Session, runner: Runner) -> None:
    """To be called when a session is closed. What cannot be settled now is left to whoever opens it next."""
    end = runner.abandon
    try:
        with session.closing:
            pay(session)
        if not session.journal.has_begun_calls():
            session.journal.forget_runner(runner.id)
            end = runner.close
    except StoreError:
        pass
    finally:
        end()


class Remains(msgspec.Struct, frozen=True):
    """As much of a session as its missing audit lines need."""

    id: str
    journal: Journal
    chain: Chain
    offer: Offer
    characters: int = 0


def _settle(session: Session, runner: str) -> None:
    restore_lines(session, runner)
    for entry in session.journal.unfinished(runner, "started"):
        if entry.facts.command is not None:
            session.commands.end_left()
        _seal_interrupted(session, entry)
    from handrail.store.batches import release_claims  # noqa: PLC0415  hardly ever needed

    # Of what was answered and not begun nothing is lost: whoever asks for it next runs it, and nobody is asked again.
    release_claims(session.journal.database, runner)


def restore_lines(session: Session | Remains, runner: str) -> int:
    """Results that were written down and did not get their line before the end; how many."""
    calls, start = session.journal.unaudited(runner)
    found = session.chain.contains(session.id, set(calls), start) if calls else set[str]()
    restored = 0
    for call_id in calls:
        entry = session.journal.entry(call_id)
        if call_id not in found and entry is not None:
            flight = reloaded(session.journal, session.offer, entry, session.characters)
            result = _result_of(session, entry)
            if result is not None:
                session.chain.append(record_of(session.id, flight, result))
                restored += 1
    return restored


def _seal_interrupted(session: Session, entry: Entry) -> None:
    flight = reloaded(session.journal, session.offer, entry, session.characters)
    flight.error = None
    with suppress(StoreError):  # its trial goes with the result
        asked = request_about(session.journal.database, entry.id)
        flight.tried = sealed_in(asked) if asked is not None else None
    message = f"The runtime ended while this call ran. {what_became(session, flight)}"
    flight.fail(ToolError("INTERRUPTED", message))
    flight.drafts.append((Notice, {"code": "INTERRUPTED", "text": f"Call {entry.id} was cut off by a crash."}))
    close(session, flight)


def _result_of(session: Session | Remains, entry: Entry) -> ToolResult[Any] | None:
    event = session.journal.event(entry.end_seq or 0)
    return event.result if isinstance(event, ToolCallEnd | ToolCallError) else None
