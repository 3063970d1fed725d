"""Settles what a process left undone when it was killed: every call gets its result, every result its audit line."""

import os
import time
from typing import Any

import msgspec

from handrail.protocol.call import ToolCall
from handrail.protocol.error import ToolError
from handrail.protocol.event import Notice, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.result import ToolResult
from handrail.runtime.closing import record_of
from handrail.runtime.pipeline import close
from handrail.runtime.registry import Offer
from handrail.runtime.session import NO_TOOL, Flight, Session
from handrail.store.audit import Chain
from handrail.store.journal import Entry, Journal
from handrail.store.runner import bury, dead_runners
from handrail.tools.write import temporary_name

_INTERRUPTED = "The runtime ended while this call ran. What it did is not known; look before you repeat it."
_NOT_BEGUN = "The runtime ended before this call ran. Nothing was done."


def recover(session: Session) -> None:
    """To be called when a session is opened. Costs one look into its folder when nothing is left undone."""
    dead = dead_runners(session.folder)
    if not dead:
        return
    release = session.locks.take(f"recovery:{session.folder}", 10.0)
    try:
        for runner in dead:
            _settle(session, runner)
            session.journal.forget_runner(runner)
            bury(session.folder, runner)
    finally:
        if release:
            release()


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
        _remove_temporary(session, entry)
        _seal_interrupted(session, entry, _INTERRUPTED)
    for entry in session.journal.unfinished(runner, "claimed"):
        _seal_interrupted(session, entry, _NOT_BEGUN)
    for entry in session.journal.unfinished(runner, "parked"):
        if not session.journal.has_batch(entry.batch_id):
            _seal_interrupted(session, entry, _NOT_BEGUN)


def restore_lines(session: Session | Remains, runner: str) -> int:
    """Results that were written down and did not get their line before the end; how many."""
    calls, start = session.journal.unaudited(runner)
    found = session.chain.contains(set(calls), start) if calls else set[str]()
    restored = 0
    for call_id in calls:
        entry = session.journal.entry(call_id)
        if call_id not in found and entry is not None:
            flight, result = _flight_of(session, entry), _result_of(session, entry)
            if result is not None:
                session.chain.append(record_of(session.id, flight, result))
                restored += 1
    return restored


def _seal_interrupted(session: Session, entry: Entry, message: str) -> None:
    flight = _flight_of(session, entry)
    flight.fail(ToolError("INTERRUPTED", message))
    flight.drafts.append((Notice, {"code": "INTERRUPTED", "text": f"Call {entry.id} was cut off by a crash."}))
    close(session, flight)


def _remove_temporary(session: Session, entry: Entry) -> None:
    """A write that was cut off may have left its unfinished file: its name is known."""
    for fact in entry.facts.paths:
        if fact.access != "read" and fact.real is not None:
            try:
                landing, _ = session.workspace.land(fact.real)
            except ToolError:
                continue
            with landing:
                try:
                    os.unlink(temporary_name(entry.id), dir_fd=landing.folder)
                except OSError:
                    continue


def _flight_of(session: Session | Remains, entry: Entry) -> Flight:
    event = session.journal.event(entry.start_seq)
    if isinstance(event, ToolCallStart):
        name, args, trace, when = event.tool_call_name, event.args, event.trace_id, event.time
    else:
        raise ToolError("INTERNAL", f"the start of call {entry.id} cannot be read")
    call = ToolCall(tool_call_id=entry.id, name=name, args=args, trace_id=trace, timestamp=when)
    flight = Flight(call, time.perf_counter(), session.characters)
    flight.batch_id = entry.batch_id
    flight.tool = session.offer.get(name) or NO_TOOL
    flight.facts, flight.decision, flight.recorded = entry.facts, entry.decision, entry.state
    return flight


def _result_of(session: Session | Remains, entry: Entry) -> ToolResult[Any] | None:
    event = session.journal.event(entry.end_seq or 0)
    return event.result if isinstance(event, ToolCallEnd | ToolCallError) else None
