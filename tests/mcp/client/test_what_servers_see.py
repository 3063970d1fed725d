"""What a server that is started here can see of the person: nothing that is not the workspace's, whoever started it."""

import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest
from serving import PYTHON, Place, table

from handrail import Handrail

DOES_ANYTHING = """
from plain import Server, answer, text, tool

class DoesAnything(Server):
    def tools(self):
        return [tool("do", ["code"])]

    def call(self, request, name, arguments):
        try:
            said = str(eval(arguments["code"], {}))
        except Exception as error:
            said = type(error).__name__
        answer(request, text(said))

DoesAnything().run()
"""
"""A server that runs what it is told: it tries whatever a bad one would."""
SECRET = "sk-aprivatekeythatstays"


@pytest.fixture
def listening() -> Generator[socket.socket]:
    """Somebody on this machine whom only this machine reaches."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def home(place: Place) -> Path:
    """A person's home, with a key in it, and a variable that says the same."""
    home = place.folder / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text(SECRET)
    place.environ |= {"HOME": str(home), "ANTHROPIC_API_KEY": SECRET}
    return home


class Bad:
    """The server, as the test has it do things."""

    def __init__(self, rail: Handrail) -> None:
        self._rail = rail

    def __call__(self, code: str) -> str:
        result = self._rail.call("mcp__bad__do", {"code": code})
        assert result.ok, result
        return result.content


@pytest.fixture
def bad(place: Place, home: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Bad]:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    (place.workspace / "bad.py").write_text(DOES_ANYTHING)
    (place.workspace / ".env").write_text(SECRET)
    (place.folder / "beside.txt").write_text(SECRET)
    with place.session(table("bad", PYTHON, "bad.py")) as rail:
        yield Bad(rail)


def test_it_reads_the_workspace_and_nothing_of_the_person(bad: Bad, place: Place, home: Path) -> None:
    assert "plain" in bad("open('plain.py').read()")
    state = place.folder / "state"
    assert (state / "audit.jsonl").exists()
    for hidden in (home / ".ssh" / "id_ed25519", place.folder / "beside.txt", state / "audit.jsonl"):
        assert bad(f"open({str(hidden)!r}).read()") == "FileNotFoundError", hidden
    assert SECRET not in bad("open('.env').read()")
    assert SECRET not in bad("open(__import__('os').path.expanduser('~/.ssh/id_ed25519')).read()")


def test_it_writes_neither_the_workspace_nor_beside_it(bad: Bad, place: Place) -> None:
    for path in ("new.txt", "plain.py", ".mcp.json"):
        assert bad(f"open({path!r}, 'a').write('x')") == "OSError"
    bad(f"open({str(place.folder / 'beside.txt')!r}, 'w').write('x')")
    assert (place.folder / "beside.txt").read_text() == SECRET
    assert not (place.workspace / "new.txt").exists()


def test_it_has_none_of_our_variables_nor_of_our_processes(bad: Bad) -> None:
    assert SECRET not in bad("dict(__import__('os').environ)")
    everybodys = (
        "[open(f'/proc/{one}/environ', 'rb').read() for one in __import__('os').listdir('/proc') if one.isdigit()]"
    )
    assert SECRET not in bad(everybodys)
    seen = bad("[one for one in __import__('os').listdir('/proc') if one.isdigit()]")
    assert str(os.getpid()) not in seen.strip("[]").replace("'", "").split(", ")
    held = (
        "[__import__('os').readlink(f'/proc/self/fd/{one}') for one in __import__('os').listdir('/proc/self/fd')[:-1]]"
    )
    assert all(one.strip("' ").startswith("pipe:") for one in bad(held).strip("[]").split(","))


def test_it_reaches_nobody(bad: Bad, listening: socket.socket) -> None:
    host, port = listening.getsockname()
    assert bad(f"__import__('socket').create_connection(({host!r}, {port}), 2)") == "ConnectionRefusedError"
    outside = "__import__('socket').create_connection(('192.0.2.1', 80), 2)"
    assert bad(outside) in {"OSError", "PermissionError"}, "the network is not even there"
    listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        listening.accept()
