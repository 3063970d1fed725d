"""The handlers of events: a page, a stream, the raw output of a command."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from handrail.server.context import Request
from handrail.server.dispatch import is_number
from handrail.server.feed import EventRenderer, FeedBatch, FeedEnd, TaskFeeds
from handrail.server.wire import EventPage


def list_events(request: Request) -> EventPage:
    tasks, task_id = request.server.tasks, request.params["task"]
    after: int = request.query["after"]
    with tasks.open_journal(task_id) as journal:
        renderer = EventRenderer(journal, tasks.find_workspace(task_id), request.server.options.dialect)
        found, last = renderer.read(after, after + request.query["limit"]), journal.last_seq()
    return EventPage(
        events=tuple(msgspec.Raw(text.encode()) for _, texts in found for text in texts or ()),
        next=found[-1][0] if found else after,
        last_seq=max(last, found[-1][0] if found else 0),
        broken=tuple(seq for seq, texts in found if texts is None),
    )


async def stream_events(request: Request, http: HttpRequest) -> Response:
    """Server-sent events with the number of the event as id. `Last-Event-ID` replaces `after`.

    Other frames of the WebSocket have their type as the name of the event.
    """
    server, task_id = request.server, request.params["task"]
    await server.in_thread(lambda: server.tasks.find_workspace(task_id))
    last = http.headers.get("last-event-id", "")
    after = int(last) if is_number(last) else request.query["after"]
    stream = _render_stream(server.tasks.feeds, task_id, after)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def get_output(request: Request, _http: HttpRequest) -> Response:
    server = request.server

    def read() -> bytes:
        with server.runner.rail(request.params["task"]) as rail:
            return rail.raw_output(request.params["call"])

    return Response(await server.in_thread(read), media_type="application/octet-stream")


async def _render_stream(feeds: TaskFeeds, task_id: str, after: int) -> AsyncGenerator[str]:
    try:
        async with aclosing(feeds.follow(task_id, after)) as batches:
            async for batch in batches:
                yield _render_batch(batch)
    except FeedEnd:
        return


def _render_batch(batch: FeedBatch) -> str:
    parts = [
        f"id: {one.seq}\ndata: {one.text}\n\n" if one.is_last else f"data: {one.text}\n\n" for one in batch.records
    ]
    if batch.caught_up is not None:
        parts.append(f'event: caught_up\ndata: {{"seq":{batch.caught_up}}}\n\n')
    parts += [f"event: {kind}\ndata: {frame}\n\n" for kind, frame in batch.frames]
    return "".join(parts) or ": still here\n\n"
