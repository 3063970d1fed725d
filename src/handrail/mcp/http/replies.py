"""What becomes of the answers. A client may hang up before it has its own, and what was kept for it stays kept then."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from handrail.mcp.http.callers import Context
from handrail.mcp.http.guard import App, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from starlette.requests import Request

_KEY = "handrail.reply"

Then = Callable[[bool], Awaitable[None]]


class HttpReply:
    """The answer to one request."""

    def __init__(self) -> None:
        self._over = self._reached = False
        self._then: list[Then] = []

    @property
    def is_lost(self) -> bool:
        """Whether nobody hears any more what is answered."""
        return self._over and not self._reached

    async def then(self, do: Then) -> None:
        """Has something done once it is over, at once where it is: with whether all of it was sent to the client."""
        if self._over:
            await do(self._reached)
        else:
            self._then.append(do)

    def end(self, *, reached: bool) -> None:
        """What comes first counts."""
        if not self._over:
            self._over, self._reached = True, reached

    async def follow(self) -> None:
        """Does what was to be done then."""
        self.end(reached=False)
        for do in self._then:
            await do(self._reached)


class ReplyTracker:
    """Watches the answers of a server."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Has a request answered."""
        reply = HttpReply()

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                reply.end(reached=False)
            return message

        async def say(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                reply.end(reached=True)

        try:
            await self._app({**scope, _KEY: reply}, hear, say)
        finally:
            await reply.follow()


def get_reply(context: Context) -> HttpReply:
    """The answer to the request that a handler is at."""
    return cast("HttpReply", cast("Request", context.request).scope[_KEY])
