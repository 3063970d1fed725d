"""Runs what belongs to one request: it is told of while it runs, and ends with the request."""

from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

from handrail.api import Handrail
from handrail.mcp.http.connections import works_for
from handrail.mcp.http.hand import Found, HeldCall
from handrail.mcp.http.threads import CallThreads
from handrail.mcp.news import ServerNotification, build_notification
from handrail.mcp.stdio.workers import Workers
from handrail.protocol.events import Event

Returned = TypeVar("Returned")


class RequestRunner:
    """The calls of one request, as far as they run here."""

    def __init__(
        self,
        threads: CallThreads,
        workers: Workers,
        rail: Handrail,
        hand: HeldCall,
        tell: Callable[[ServerNotification], None],
    ) -> None:
        self._threads = threads
        self._workers = workers
        self._rail = rail
        self._hand = hand
        self._tell = tell
        self.own: set[str] = set()
        """What the calls are called. One that is answered runs under the name that it was asked about with, and others
        of its batch with it: they are known by the thread that they begin in."""

    async def run(self, work: Callable[[], Found], call_id: str | None = None) -> Found:
        """What some work comes to that makes a call, answers one or leaves it; it is in hand from then on, or not."""
        if call_id is not None:
            self.own.add(call_id)
        return await self._threads.run(lambda: self._followed(work), self._stop, self._workers)

    async def query(self, work: Callable[[], Returned]) -> Returned:
        """What some work comes to that runs nothing."""
        return await self._threads.run(work)

    def _followed(self, work: Callable[[], Found]) -> Found:
        thread = get_ident()
        works_for.connection = self._hand.connection

        def hear(event: Event) -> None:
            about: str | None = getattr(event, "tool_call_id", None)
            if about is not None and get_ident() == thread:
                self.own.add(about)
            own = about in self.own if about is not None else get_ident() == thread
            if own and (news := build_notification(event)) is not None:
                self._tell(news)

        silence = self._rail.subscribe(hear)
        try:
            return self._hand.hold(work())
        finally:
            silence()

    def _stop(self) -> None:
        for call_id in tuple(self.own):
            self._rail.cancel_call(call_id)
