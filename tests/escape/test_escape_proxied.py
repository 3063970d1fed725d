"""A command that has a proxy gets no further than one that has none: the attacks of the corpus that go by sockets, and
some on the proxy itself. What came in is seen from outside."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.escape.attack import REACHED, TRIED, text_of
from tests.escape.case import Case
from tests.escape.corpus.sockets import CASES
from tests.escape.outside.files import SECRET
from tests.escape.outside.listeners import Listeners
from tests.sandbox.namespaces import PROGRAM, World
from tests.sandbox.proxied import Proxied, serving

from handrail.sandbox.proxy.handover import PLACE, PORT

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")

# Those in the workspace are covered by whoever looks through it for them, and others need more of an outside.
_LEFT_OUT = ("workspace-", "by-descriptor", "by-any-root", "agent", "pipe-", "pass-descriptor", "terminal", "services")

_ASKING = f"""
def ask(text):
    for place in (("127.0.0.1", {PORT}), "{PLACE}"):
        way = socket.socket(socket.AF_INET if isinstance(place, tuple) else socket.AF_UNIX)
        way.settimeout(10)
        way.connect(place)
        way.sendall(text.encode("latin-1"))
        print(way.recv(65536).decode("latin-1")[:200], flush=True)
        way.close()
"""
_ON_THE_PROXY = {
    "spellings": """
hosts = ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0.0.0.0", "localhost", "localhost.", "[::1]",
         "[::ffff:127.0.0.1]", "[::]", "listed.example", "listed.example\\0", "listed.example@127.0.0.1",
         "127.0.0.1#listed.example", "127.0.0.1\\\\listed.example", "127.0.0.1%23.listed.example"]
for host in hosts:
    for port in (PORT, PORT6):
        attempt(ask, f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: listed.example\\r\\n\\r\\n")
        attempt(ask, f"GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: listed.example\\r\\n\\r\\n")
        attempt(ask, f"GET http://{host}:{port}/ HTTP/1.0\\r\\n\\r\\n")
""",
    "a second request": """
for between in ("", "\\r\\n", "X", "0\\r\\n\\r\\n"):
    for head in ("", "Content-Length: 1\\r\\n", "Transfer-Encoding: chunked\\r\\n", "Connection: keep-alive\\r\\n"):
        first = f"GET http://127.0.0.1:{LISTED}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{LISTED}\\r\\n{head}\\r\\n{between}"
        attempt(ask, first + f"GET http://127.0.0.1:{PORT}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{PORT}\\r\\n\\r\\n")
        attempt(ask, first + f"CONNECT 127.0.0.1:{PORT} HTTP/1.1\\r\\n\\r\\n")
        attempt(ask, first + "GET / HTTP/1.1\\r\\nHost: smuggled\\r\\n\\r\\n")
""",
    "descriptors": f"""
for _ in range(20):
    way = socket.socket(socket.AF_UNIX)
    way.connect("{PLACE}")
    listener = socket.create_server(("127.0.0.1", 0))
    attempt(socket.send_fds, way, [b"listen"], [listener.fileno(), os.open("/", os.O_PATH), 0, 1, 2])
    way.settimeout(10)
    if attempt(way.recv, 100) == b"+":
        print("REACHED the proxy with a socket of its own")
""",
}


class _Field:
    """Listeners outside, a workspace inside, and a proxy that leads to one server that is nobody's secret."""

    def __init__(self, place: Path, proxied: Proxied, listed: int) -> None:
        self.world = World(place / "world")
        self.proxied = proxied
        (place / "repositories").mkdir()
        self.listeners = Listeners(place, place.name, root=os.geteuid() == 0)
        self._constants = {"SOCKET_IN_RUN": "/run/none", "LISTED": listed} | self.listeners.constants()

    def fight(self, attacks: dict[str, str]) -> str:
        """What they print, one after the other in one sandbox."""
        for number, text in enumerate(attacks.values()):
            self.world.write(f"home/projects/mine/{number:03}.py", text)
        text = "for file in *.py; do echo at $file; timeout 20 /usr/bin/python3 -I -S $file 2>&1; done"
        proxy = self.proxied.proxy.path
        confinement = self.world.confinement(proxy=proxy, listed=self.proxied.entries)
        return self.world.run(text, confinement, toolchains=(str(self.listeners.place / "shown-sockets"),)).out

    def text_of(self, case: Case) -> str:
        return text_of(case, self._constants)


@pytest.fixture
def heard() -> list[bytes]:
    return []


@pytest.fixture
def field(heard: list[bytes]) -> Iterator[_Field]:
    def answer(connection: socket.socket) -> None:
        got = connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65_536):
            got += piece
        heard.append(got)

    place = Path(tempfile.mkdtemp(prefix="handrail-escape-", dir="/tmp"))
    with serving(answer) as server:
        listed = (f"127.0.0.1:{server.port}", "listed.example")
        proxied = Proxied(place / "proxy", *listed, resolve=lambda *_: ["127.0.0.1"])
        made = _Field(place, proxied, server.port)
        yield made
        proxied.proxy.close()
        made.listeners.close()
    shutil.rmtree(place)


def came_in(field: _Field) -> dict[str, object]:
    return field.listeners.fingerprint()


def test_attacks_by_sockets_get_no_further_with_a_proxy(field: _Field) -> None:
    cases = [case for case in CASES if not case.id.removeprefix("sockets/").startswith(_LEFT_OUT)]
    cases = [case for case in cases if case.command is None and not case.shell and "TERMINAL" not in case.program]
    assert len(cases) >= 20
    said = field.fight({case.id: field.text_of(case) for case in cases})
    assert said.count(TRIED) == len(cases), said
    assert [line for line in said.splitlines() if line.startswith(REACHED)] == []
    assert SECRET not in said
    assert came_in(field) == {}


def test_attacks_on_the_proxy_reach_nobody_but_the_listed(field: _Field, heard: list[bytes]) -> None:
    attacks = {
        name: field.text_of(Case(id=name, family="proxy", tries=name, program=_ASKING + program))
        for name, program in _ON_THE_PROXY.items()
    }
    said = field.fight(attacks)
    assert said.count(TRIED) == len(attacks), said
    assert [line for line in said.splitlines() if line.startswith(REACHED)] == []
    assert SECRET not in said
    assert came_in(field) == {}
    assert heard
    assert not any(b"smuggled" in piece or piece.count(b"HTTP/1.1") > 1 for piece in heard)
    allowed = {(attempt.host, attempt.port) for attempt in field.proxied.attempts if attempt.allowed}
    assert len(allowed) == 1
