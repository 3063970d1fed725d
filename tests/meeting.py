"""A place where a command and its test meet: the command calls, and waits until the test has done something."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from handrail.settings import Settings
from handrail.settings.model import NetworkSettings


class Meeting:
    """Answers a command that calls, once `then` is done."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.called = f"curl -sS --max-time 60 http://127.0.0.1:{port}/"
        """What the command has in it."""
        self.then: Callable[[], object] = lambda: None

    def settings(self) -> Settings:
        """Those that open the place to every command."""
        return Settings(network=NetworkSettings(allow=(self.address,)))


@contextmanager
def meeting() -> Iterator[Meeting]:
    """One place, as long as the block lasts."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place.then()
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"met\n")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    place = Meeting(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
