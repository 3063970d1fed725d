"""A server that is started here sees and does what its sandbox lets it, and is gone when nobody needs it."""

import http.server
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from serving import PYTHON, SERVERS, Place, code_of, comes_true, hostile, plain, table

from handrail.protocol.events import Network, ToolCallUpdate
from handrail.runtime.foreign.server_process import ServerProgram, ServerPrograms, ServerProgramSpec


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"reached")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Generator[int]:
    """A web server on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def processes_with(word: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word in (entry / "cmdline").read_text().split("\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_the_workspace_is_read_only_to_a_server_unless_settings_say_otherwise(place: Place) -> None:
    with place.session(plain("reader") + plain("writer", "writable = true")) as rail:
        refused = rail.call("mcp__reader__write", {"path": "new.txt"})
        written = rail.call("mcp__writer__write", {"path": "new.txt"})
        home = rail.call("mcp__reader__write", {"path": os.path.expanduser("~/of-its-own.txt")})
    assert refused.content == "Read-only file system"
    assert written.content == "written"
    assert (place.workspace / "new.txt").read_text() == "written"
    assert home.content == "written"
    assert not Path("~/of-its-own.txt").expanduser().exists()


def test_a_server_that_may_write_cannot_change_what_decides_about_it(place: Place) -> None:
    (place.workspace / "handrail.toml").write_text("")
    with place.session(plain("writer", "writable = true")) as rail:
        result = rail.call("mcp__writer__write", {"path": "handrail.toml"})
    assert result.content != "written"
    assert (place.workspace / "handrail.toml").read_text() == ""


def test_a_server_gets_its_own_variables_and_none_of_the_persons(place: Place) -> None:
    own = "env = { ITS_OWN = \"it's ${THEIRS} $HOME\", LD_DEBUG = 'none' }"
    with place.session(plain(more=own), environ={"THEIRS": "handed on", "ALSO_THEIRS": "kept"}) as rail:
        own_value = rail.call("mcp__plain__variable", {"name": "ITS_OWN"})
        others = rail.call("mcp__plain__variable", {"name": "ALSO_THEIRS"})
        shell = rail.call("mcp__plain__variable", {"name": "BASH_ENV"})
    assert own_value.content == "it's handed on $HOME"
    assert others.content == "unset"
    assert shell.content == "unset"


def test_a_secret_of_a_server_is_in_nobodys_arguments(place: Place) -> None:
    word, secret = f"seen-{os.getpid()}", f"inthememoryonly{os.getpid()}"
    with place.session(table("plain", PYTHON, "plain.py", word, more=f'env = {{ API_KEY = "sk-{secret}" }}')) as rail:
        assert rail.call("mcp__plain__echo", {"text": "hello"}).content == "hello"
        told = b"".join(_arguments())
    assert word.encode() in told
    assert secret.encode() not in told


def _arguments() -> Generator[bytes]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield entry.read_bytes()
        except OSError:
            continue


def test_what_a_server_was_given_in_secret_is_written_down_nowhere(place: Place) -> None:
    secret = "sk-livesecretofaserver99"
    with place.session(hostile("Fails", 'env = { API_KEY = "${KEY}" }'), environ={"KEY": secret}) as rail:
        result = rail.call("mcp__other__echo", {"text": "hello"})
        told = [event.output for event in rail.events() if isinstance(event, ToolCallUpdate)]
    assert code_of(result) == "IO_ERROR"
    assert "the key is [API_KEY]" in result.content
    assert told == ["1: \\x1b[1mwith [API_KEY]"]
    for file in (place.folder / "state").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_a_server_reaches_the_hosts_of_its_settings_and_no_other(place: Place, port: int) -> None:
    url = f"http://127.0.0.1:{port}/"
    other = "http://192.0.2.1:80/"
    with place.session(plain("closed") + plain("open", f'network = ["127.0.0.1:{port}"]')) as rail:
        closed = rail.call("mcp__closed__reach", {"url": url})
        opened = rail.call("mcp__open__reach", {"url": url})
        blocked = rail.call("mcp__open__reach", {"url": other})
        attempts = [event for event in rail.events() if isinstance(event, Network)]
    assert closed.content == "no network"
    assert opened.content == "reached"
    assert "403" in blocked.content
    assert [(event.host, event.allowed) for event in attempts] == [("127.0.0.1", True), ("192.0.2.1", False)]


def test_below_the_least_sandbox_a_server_is_not_started_and_says_why(place: Place) -> None:
    place.head = "[sandbox]\ntier = 1\nleast = 2\n"
    (source,) = place.found(plain()).sources
    try:
        assert source.listed() == ()
        assert "Commands need at least tier 2" in source.problems()[0]
    finally:
        source.close()


@pytest.mark.parametrize("tier", [0, 1])
def test_a_server_runs_in_a_weaker_sandbox_where_settings_say_so(place: Place, tier: int) -> None:
    place.head += f"tier = {tier}\n"
    with place.session(plain(more='env = { API_KEY = "given" }')) as rail:
        result = rail.call("mcp__plain__variable", {"name": "API_KEY"})
        written = rail.call("mcp__plain__write", {"path": "new.txt"})
    if code_of(result) == "UNKNOWN_TOOL":
        pytest.skip("this tier does not work here")
    assert result.content == "given"
    assert (written.content == "written") == (tier == 0)


def test_least_three_is_for_servers_that_may_change_something(place: Place) -> None:
    place.head += "least = 3\n"
    with place.session(plain("reader") + plain("writer", "writable = true")) as rail:
        assert rail.call("mcp__reader__echo", {"text": "hello"}).content == "hello"
        assert code_of(rail.call("mcp__writer__echo", {"text": "hello"})) == "UNKNOWN_TOOL"


def test_a_session_that_is_closed_while_its_servers_start_leaves_nothing(place: Place) -> None:
    word, names = f"hangs-{os.getpid()}", [f"name{number}" for number in range(3)]
    text = "".join(table(name, PYTHON, "hostile.py", "HangsAtStart", word) for name in names) + plain("named", "")
    for wait in ("100 ms", "1s"):
        found = place.found(text, wait=f'[mcp]\nwait = "{wait}"\n')
        with place.opened(found) as rail:
            rail.specs()
        assert not processes_with(word)
        assert [source.listed() for source in found.sources] == [(), (), (), ()]


def test_a_program_that_is_there_only_after_its_session_was_closed_is_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, start = threading.Event(), threading.Event(), ServerPrograms.start

    def slowly(programs: ServerPrograms, wanted: ServerProgramSpec) -> ServerProgram:
        begun.set()
        assert go_on.wait(60)
        return start(programs, wanted)

    monkeypatch.setattr(ServerPrograms, "start", slowly)
    word = f"late-{os.getpid()}"
    (source,) = place.found(table("late", PYTHON, "plain.py", word)).sources
    asking = threading.Thread(target=source.listed)
    asking.start()
    assert begun.wait(60)
    closing = threading.Thread(target=source.close)
    closing.start()
    asking.join(60)
    go_on.set()
    closing.join(60)
    assert not processes_with(word)
    assert not [one for one in threading.enumerate() if one.name.startswith("mcp-")]


def test_servers_that_do_not_end_by_themselves_are_ended_with_their_session(place: Place) -> None:
    word, names = f"stays-{os.getpid()}", [f"one{number}" for number in range(5)]
    with place.session("".join(table(name, PYTHON, "hostile.py", "StaysOn", word) for name in names)) as rail:
        assert rail.call("mcp__one3__echo", {"text": "hello"}).content == "hello"
        assert processes_with(word)
    assert not processes_with(word)


_VICTIM = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from serving import Place, hostile
place = Place(Path({folder!r}))
place.head += "tier = {tier}\\n"
found = place.found(hostile("StartsOthers"))
with place.opened(found) as rail:
    print(rail.call("mcp__other__echo", {{"text": {word!r}}}).content, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("tier", [1, 2])
def test_nothing_of_a_server_outlives_a_session_that_is_killed(tmp_path: Path, tier: int) -> None:
    word = f"98{os.getpid()}{tier}"
    text = _VICTIM.format(tests=str(SERVERS.parent / "client"), folder=str(tmp_path), word=word, tier=tier)
    words = [sys.executable, "-c", text]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        if victim.stdout.readline() != "started\n":
            victim.kill()
            pytest.skip("this tier does not work here")
        assert comes_true(lambda: processes_with(word))  # a moment after it began, it is not called so yet
        os.kill(victim.pid, signal.SIGKILL)
    assert comes_true(lambda: not processes_with(word))
