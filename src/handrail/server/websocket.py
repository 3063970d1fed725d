"""The WebSocket of a task: its connection, its events to the client, its answers from the client."""

import asyncio
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import State

from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.server import wire
from handrail.server.access import check_role
from handrail.server.context import Request, ServerContext
from handrail.server.dispatch import explain_error, is_number
from handrail.server.feed import FeedBatch, FeedEnd
from handrail.server.options import ApiFailure

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_GOODBYE_SECONDS = 5.0
_MAX_UNREAD_BYTES = 1_000_000
_MAX_PARTS = 10_000
_WRITTEN_CHARS = 50_000
"""Frames are written together up to this length. A client has `slow_seconds` to read that."""


async def serve_task(server: ServerContext, caller: wire.ApiCaller, websocket: WebSocket) -> None:
    """Sends the events after `?after=`, then the new ones, until the client goes.

    With `?events=canonical` they are those of the protocol, also if the server speaks a dialect.
    """
    await websocket.accept()
    task_id, after = websocket.path_params["task"], websocket.query_params.get("after", "0")
    if not is_number(after):
        await websocket.close(4400, "after is the number of an event")
        return
    canonical = websocket.query_params.get("events") == "canonical"
    client = _SocketClient(server, caller, websocket, task_id)
    tasks = {
        asyncio.ensure_future(client.send_events(int(after), canonical=canonical)),
        asyncio.ensure_future(client.obey_frames()),
    }
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        with suppress(WebSocketDisconnect):  # the client has gone
            await websocket.close(task.result())


class _SocketClient:
    """One client that follows a task. Its coroutines return the code to close the connection with."""

    def __init__(self, server: ServerContext, caller: wire.ApiCaller, websocket: WebSocket, task_id: str) -> None:
        self._server, self._caller, self._websocket, self._task_id = server, caller, websocket, task_id

    async def send_events(self, after: int, *, canonical: bool) -> int:
        follow = self._server.tasks.feeds.follow
        try:
            async with aclosing(follow(self._task_id, after, canonical=canonical)) as batches:
                async for batch in batches:
                    await self._send_batch(batch)
        except FeedEnd as end:
            return end.code
        except TimeoutError:
            return wire.Closing.SLOW
        except ApiFailure as failure:
            return 4_000 + failure.status
        raise AssertionError("a feed ends with FeedEnd")

    async def _send_batch(self, batch: FeedBatch) -> None:
        """TimeoutError if the client does not read."""
        frames = [record.frame for record in batch.records]
        if batch.caught_up is not None:
            frames.append(encode(wire.CaughtUpFrame(seq=batch.caught_up)).decode())
        frames += [frame for _, frame in batch.frames]
        loop, seconds, chars = self._server.tasks.loop, self._server.options.slow_seconds, 0
        async with asyncio.timeout(seconds) as limit:
            for number, frame in enumerate(frames, start=1):
                chars += len(frame)
                more = number < len(frames) and chars < _WRITTEN_CHARS
                await self._websocket.send({"type": "websocket.send", "text": frame, "more": more})
                if not more:
                    limit.reschedule(loop.time() + seconds)
                    chars = 0

    async def _send(self, frame: wire.DoneFrame | wire.ErrorFrame) -> None:
        await self._websocket.send({"type": "websocket.send", "text": encode(frame).decode()})

    async def obey_frames(self) -> int:
        """Obeys one frame after the other."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"])
            try:
                frame = decode_json(message.get("text") or message.get("bytes") or "", wire.ClientFrame)
            except UNREADABLE as error:
                await self._send(wire.ErrorFrame(code="INVALID_ARGUMENT", message=f"The frame is not valid: {error}"))
                continue
            await self._send(await self._server.in_thread(partial(self._obey, frame)))

    def _obey(self, frame: wire.ClientFrame) -> wire.DoneFrame | wire.ErrorFrame:
        try:
            return wire.DoneFrame(id=frame.id, left=self._do(frame))
        except Exception as error:
            failure = explain_error(error, self._server.options.note)
            return wire.ErrorFrame(code=failure.code, message=failure.message, id=frame.id)

    def _do(self, frame: wire.ClientFrame) -> int:
        """Does what the route for a frame does. Returns how many requests and questions still wait."""
        check_role(self._caller, "operator")
        match frame:
            case wire.AnswerFrame():
                handler, params = "approvals.answer_request", {"request": frame.request}
            case wire.ReplyFrame():
                handler, params = "approvals.reply_to_question", {"question": frame.question}
            case wire.PromptFrame():
                handler, params = "tasks.prompt_task", {"task": self._task_id}
            case wire.CancelFrame():
                handler, params = "tasks.cancel_task", {"task": self._task_id}
        request = Request(self._server, self._caller, params, {}, frame)
        outcome: wire.AnswerOutcome | wire.Accepted = self._server.find_handler(handler)(request)
        return outcome.left if isinstance(outcome, wire.AnswerOutcome) else 0


class SocketConnection(WebSocketsSansIOProtocol):
    """Writes frames that are sent with `more` together with the next one: a system call takes longer than a frame.

    uvicorn would wait for the client before it sends the close frame, and then for ever.
    """

    def handle_ping(self) -> None:
        """Overrides uvicorn, which would keep the pongs of a client that sends pings and reads nothing."""
        if self.close_sent:
            self.conn.data_to_send()  # drops the pong
            return
        super().handle_ping()
        if self.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            self.transport.abort()

    def handle_cont(self, event: Frame) -> None:
        """Overrides uvicorn, which would keep empty parts of a message without end."""
        super().handle_cont(event)
        if len(self.frames) > _MAX_PARTS:
            self.transport.abort()

    async def send(self, message: "ASGISendEvent") -> None:
        if message.get("more") and self.conn.state is State.OPEN:
            self.conn.send_text(cast("str", message.get("text")).encode())
            return
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)
        await super().send(message)
