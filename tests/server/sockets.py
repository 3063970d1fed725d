"""A client of `/ws/{task}` for tests: it takes frames until one of a kind comes."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATIENCE = 60.0


class Window:
    """One window of a person."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self._sent = 0
        self._task: dict[str, Any] | None = None
        """The last one that came on the way. It may come before or after the event that changed it."""

    @property
    def seqs(self) -> list[int]:
        return [event["seq"] for event in self.events]

    def take(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The next frame that is wanted. Events on the way are collected."""
        while True:
            frame: dict[str, Any] = json.loads(self.connection.recv(PATIENCE))
            if frame["type"] == "event":
                self.events.append(frame["event"])
            if frame["type"] == "task":
                self._task = frame["task"]
            if wanted(frame):
                return frame

    def take_event(self, kind: str) -> dict[str, Any]:
        return self.take(lambda frame: frame["type"] == "event" and frame["event"]["kind"] == kind)["event"]

    def take_state(self, state: str) -> dict[str, Any]:
        """The task, once it has a state."""
        if self._task is None or self._task["state"] != state:
            self.take(lambda frame: frame["type"] == "task" and frame["task"]["state"] == state)
        task, self._task = self._task, None
        assert task is not None
        return task

    def catch_up(self) -> int:
        return self.take(lambda frame: frame["type"] == "caught_up")["seq"]

    def ask(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """Sends a frame. Returns the reply to it."""
        self._sent += 1
        frame_id = f"f{self._sent}"
        self.connection.send(json.dumps({"type": kind, "id": frame_id, **fields}))
        return self.take(lambda frame: frame.get("id") == frame_id)

    def read_to_end(self) -> int:
        """Reads on until the server closes the connection. Returns the code."""
        try:
            self.take(lambda _: False)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else 1006
        raise AssertionError("unreachable")


def wait_until(is_done: Callable[[], object]) -> None:
    """Looks again and again, for a minute at most."""
    until = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def open_window(url: str, token: str, task: str, after: int = 0, query: str = "", **options: Any) -> Iterator[Window]:
    """`query`: more of the address, such as `&events=canonical`."""
    address = f"{url.replace('http', 'ws', 1)}/ws/{task}?after={after}{query}"
    headers = {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, open_timeout=PATIENCE, proxy=None, **options) as connection:
        yield Window(connection)
