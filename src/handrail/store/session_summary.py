"""The summary of a session for lists, read from its journal."""

import os
from collections import OrderedDict
from contextlib import closing
from datetime import datetime
from threading import Lock

import msgspec
from msgspec.structs import replace

from handrail.protocol.decisions import Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.events import BrokenEvent, ChangeEvent, End, Error, Event, Notice, User
from handrail.protocol.events import Mode as ModeEvent
from handrail.store.database import ReadOnlyDatabase, Stamp, is_fresh, read_stamp
from handrail.store.inbox import list_pending_questions, list_pending_requests
from handrail.store.journal import SessionJournal
from handrail.store.transcript import Messages

_MAX_CACHED = 2_000
_KINDS = ("user", "end", "error", "mode", "notice", "change")


class SessionSummary(msgspec.Struct, frozen=True):
    last_seq: int = 0
    prompt: str = ""
    """The first prompt. A fork has that of the first session."""
    is_task: bool = False
    """Whether it has a transcript, or began with its mode, as a task that waits for a prompt does."""
    model: str | None = None
    mode: Mode | None = None
    created: datetime | None = None
    updated: datetime | None = None
    last_turn_event: User | End | Error | None = None
    limit: str = ""
    """The limit that ended the last turn, for a person."""
    waiting: int = 0
    """Requests and questions without an answer."""
    has_prompts: bool = False
    """Whether prompts wait until the model can get them."""
    changed_paths: frozenset[str] = frozenset()
    problem: str = ""
    """Why the journal cannot be read."""


class SessionSummaries:
    """The summaries of session folders. A journal is read again when its stamp has changed, from its new events on."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, tuple[Stamp, bool, SessionSummary]] = OrderedDict()
        self._lock = Lock()

    def read(self, folder: str) -> SessionSummary:
        path = os.path.join(folder, "journal.db")
        stamp = read_stamp(path)
        fresh = is_fresh(stamp)
        with self._lock:
            cached = self._cache.get(folder)
        if cached is not None and cached[0] == stamp and not cached[1]:
            return cached[2]
        try:
            with closing(ReadOnlyDatabase(path)) as database:
                journal = SessionJournal(database, os.path.basename(folder), "")
                summary = update_summary(journal, cached[2] if cached is not None else SessionSummary())
        except (StoreError, TypeError) as error:  # TypeError: a damaged row holds another type
            summary = SessionSummary(problem=str(error))
        with self._lock:
            self._cache[folder] = stamp, fresh, summary
            self._cache.move_to_end(folder)
            while len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
        return summary


def update_summary(journal: SessionJournal, known: SessionSummary) -> SessionSummary:
    """The summary with the events that came since."""
    if known.problem or journal.seq < known.last_seq:  # the journal was moved away, and the session began anew
        known = SessionSummary()
    if known.created is None and journal.seq:
        first = journal.event(1)
        created = first.time if isinstance(first, Event) else None
        known = replace(known, created=created, is_task=isinstance(first, ModeEvent))
    for event in journal.list_events_of(None, *_KINDS, after=known.last_seq):
        if not isinstance(event, BrokenEvent):
            known = _add(known, event)
    messages = Messages(journal)
    last = journal.event(journal.seq) if journal.seq else None
    return replace(
        known,
        last_seq=journal.seq,
        prompt=known.prompt or messages.first_prompt() or "",
        is_task=known.is_task or messages.has_any(),
        model=messages.last_model(),
        updated=last.time if isinstance(last, Event) else known.updated,
        has_prompts=bool(messages.list_prompts()),
        waiting=len(list_pending_requests(journal.database, None)) + len(list_pending_questions(journal)),
    )


def _add(known: SessionSummary, event: Event) -> SessionSummary:
    match event:
        case User():
            return replace(known, last_turn_event=event, limit="")
        case End() | Error():
            return replace(known, last_turn_event=event)
        case ModeEvent():
            return replace(known, mode=event.mode)
        case Notice(code="LIMIT_EXCEEDED"):
            return replace(known, limit=event.text)
        case ChangeEvent():
            paths = frozenset(change.path for change in event.change.changes)
            return replace(known, changed_paths=known.changed_paths | paths)
        case _:
            return known
