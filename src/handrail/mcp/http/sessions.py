"""Connections with a handshake, which the protocol calls sessions: what the SDK leaves open about them."""

from collections import OrderedDict

from handrail.mcp.http.connections import MAX_CONNECTIONS
from handrail.mcp.http.guard import App, Message, Receive, Scope, Send, find_header, is_modern_request

_ID = b"mcp-session-id"


class SessionLimit:
    """Those that are open. Clients come and go without a goodbye, so the one that was idle for the longest time makes
    room for another; the SDK would keep it for half an hour, and turn the other away."""

    def __init__(self, app: App, most: int = MAX_CONNECTIONS) -> None:
        self._app = app
        self._most = most
        self._open: OrderedDict[bytes, int] = OrderedDict()
        """How many requests of each are on their way; the one that was used last is the last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Has a request answered."""
        session = find_header(scope, _ID)
        if session in self._open:
            await self._use(session, scope, receive, send)
            return
        if session is None and scope["method"] == "POST" and not is_modern_request(scope):
            await self._make_room(scope)

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._open.update({value: 0 for name, value in message["headers"] if name == _ID})
            await send(message)

        await self._app(scope, receive, say)

    async def _use(self, session: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        self._open[session] += 1
        self._open.move_to_end(session)
        try:
            await self._app(_from_now_on(scope), receive, send)
        finally:
            if session in self._open:
                self._open[session] -= 1
                if scope["method"] == "DELETE":
                    del self._open[session]

    async def _make_room(self, scope: Scope) -> None:
        idle = [session for session, count in self._open.items() if not count]
        for session in idle[: max(0, len(self._open) - self._most + 1)]:
            del self._open[session]
            await self._app({**scope, "method": "DELETE", "headers": [(_ID, session)]}, _nothing_more, _unheard)


def _from_now_on(scope: Scope) -> Scope:
    """Nothing is sent a second time here: who asks for what it missed gets what comes. The SDK would not answer."""
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]}


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: Message) -> None:
    pass
