"""The network of commands: real programs fetch what is listed, and every trick to reach another host fails, each as one
attempt with its reason. All servers are on this machine's loopback."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.must_hold.web_servers import WHEEL, Elsewhere, Git, fill_index, make_repository, secure_web
from tests.sandbox.namespaces import PROGRAM, Ended, World
from tests.sandbox.proxied import Proxied, leading_to, serving, web

from handrail import Handrail
from handrail.protocol.events import Network as NetworkEvent
from handrail.sandbox.proxy.handover import PORT
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings

needs_bubblewrap = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")
PYTHON_FOLDER = os.path.dirname(sys.executable)


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, PATH=f"{PYTHON_FOLDER}:{os.environ['PATH']}")


Run = Callable[..., Ended]


@pytest.fixture
def run(world: World) -> Iterator[Run]:
    """Runs a command with a proxy of its own, which has to end with the test."""
    made: list[Proxied] = []

    def with_proxy(text: str, *entries: str, **options: object) -> tuple[Ended, Proxied]:
        asked = Proxied(world.folder / "state" / f"proxy{len(made)}", *entries, **options)
        made.append(asked)
        return world.run(text, world.confinement(proxy=asked.proxy.path, listed=entries)), asked

    yield with_proxy
    for one in made:
        one.proxy.close()


@needs_bubblewrap
def test_pip_downloads_from_a_listed_index(world: World, run: Run, tmp_path: Path) -> None:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this Python has no pip")
    fill_index(tmp_path / "index")
    with web(tmp_path / "index") as server:
        url = f"http://127.0.0.1:{server.server_port}/simple/"
        text = f"{sys.executable} -m pip download -q --disable-pip-version-check --no-deps --no-cache-dir"
        done, asked = run(f"{text} --index-url {url} sample && ls", f"127.0.0.1:{server.server_port}")
    assert WHEEL in done.out, done.out
    assert asked.attempts
    assert all(attempt.allowed for attempt in asked.attempts)


@needs_bubblewrap
@needs("npm")
def test_npm_looks_at_a_package_of_a_listed_registry(run: Run, tmp_path: Path) -> None:
    fill_index(tmp_path / "registry")
    with web(tmp_path / "registry") as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        text = f"npm view sample version --registry {url} --cache /tmp/npm --fetch-retries 0 --no-update-notifier"
        done, asked = run(text, f"127.0.0.1:{server.server_port}")
    assert done.out.strip().endswith("4.2.0"), done.out
    assert {attempt.allowed for attempt in asked.attempts} == {True}


@needs_bubblewrap
@needs("git")
@pytest.mark.parametrize("smart", [True, False], ids=["smart", "dumb"])
def test_git_lists_a_remote_that_is_listed(run: Run, tmp_path: Path, smart: bool) -> None:
    (tmp_path / "web").mkdir()
    commit = make_repository(tmp_path / "web")
    with web(tmp_path / "web", *([Git] if smart else [])) as server:
        url = f"http://127.0.0.1:{server.server_port}/repository.git"
        done, asked = run(
            f"git ls-remote {url} && git clone -q {url} copy && ls -d copy/.git", f"127.0.0.1:{server.server_port}"
        )
    assert f"{commit}\trefs/heads/main\n" in done.out, done.out
    assert done.out.endswith("copy/.git\n"), done.out
    assert {attempt.allowed for attempt in asked.attempts} == {True}


@needs_bubblewrap
@needs("curl")
@needs("openssl")
def test_curl_fetches_by_http_and_by_https(world: World, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "large.bin").write_bytes(bytes(range(256)) * 20_000)
    with web(folder) as plain, secure_web(folder) as secure:
        shutil.copy(folder / "certificate.pem", world.workspace)
        ports = f"{plain.server_port},{secure.server_port}"
        done, asked = run(
            f"curl -sS -o plain http://127.0.0.1:{plain.server_port}/large.bin &&"
            f" curl -sS -o secure --cacert certificate.pem https://127.0.0.1:{secure.server_port}/large.bin &&"
            f" cmp plain secure && stat -c %s plain",
            f"127.0.0.1:{ports}",
        )
    assert done.out == "5120000\n"
    assert [(attempt.port, attempt.allowed) for attempt in asked.attempts] == [
        (plain.server_port, True),
        (secure.server_port, True),
    ]


TRICKS = {
    "evil.test:443": "evil.test is not listed",
    "evil-example.org:443": "evil-example.org is not listed",
    "evilexample.org:443": "evilexample.org is not listed",
    "example.org.evil.test:443": "example.org.evil.test is not listed",
    "www.example.org:443": "www.example.org is not listed",
    "example.or:443": "example.or is not listed",
    "xn--exmple-cua.org:443": "xn--exmple-cua.org is not listed",
    "example.org:22": "example.org is listed for port 80, 443, not for 22",
    "example.org.:443": "ends with a dot",
    "example.org\\x00.evil.test:443": "is not a name",
    "evil.test\\x00.example.org:443": "is not a name",
    "example.org%00:443": "is not a name",
    "ex\\xc3\\xa4mple.org:443": "not ASCII",
    "example\\xef\\xbc\\x8eorg:443": "not ASCII",
    "example\\xe3\\x80\\x82org:443": "not ASCII",
    "evil.test#example.org:443": "is not a name",
    "evil.test/example.org:443": "is not a name",
    "evil.test@example.org:443": "is not a name",
    "example.org@evil.test:443": "is not a name",
    "[::1]:443": "::1 is not listed",
    "[0:0:0:0:0:0:0:1]:443": "plain form",
    "[::ffff:127.0.0.1]:443": "IPv4 address written as",
    "[::ffff:7f00:1]:443": "IPv4 address written as",
    "[fe80::1%25lo]:443": "network card",
    "[::1]example.org:443": "is not an address in brackets",
    "[example.org]:443": "is not an IPv6 address",
    "[::1:443": "is not an address in brackets",
    "127.0.0.1:443": "127.0.0.1 is not listed",
    "0x7f000001:443": "plain form",
    "0x7f.1:443": "plain form",
    "0177.0.0.1:443": "plain form",
    "127.1:443": "plain form",
    "2130706433:443": "plain form",
    "127.0.0.1.:443": "ends with a dot",
    "169.254.169.254:80": "169.254.169.254 is not listed",
    "localhost:443": "localhost is not listed",
    "example.org:0443": "is not a port",
    "example.org:443:443": "is not a name",
}


# Asks for every line of a file, as a program could that speaks to the proxy itself, and prints what it is answered.
ASKING = f"""
while IFS= read -r trick; do
    exec 3<>/dev/tcp/127.0.0.1/{PORT}
    printf 'CONNECT %b HTTP/1.1\\r\\n\\r\\n' "$trick" >&3
    read -r version status rest <&3; echo $status; exec 3<&-
done < tricks
"""


@needs_bubblewrap
def test_every_other_spelling_and_every_other_host_is_refused_as_one_attempt(world: World, run: Run) -> None:
    world.write("home/projects/mine/tricks", "".join(f"{trick}\n" for trick in TRICKS))

    def resolve(host: str, _port: int) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    done, asked = run(ASKING, "example.org", resolve=resolve)
    assert done.out.split() == ["403"] * len(TRICKS)
    assert len(asked.attempts) == len(TRICKS)
    for attempt, (trick, reason) in zip(asked.attempts, TRICKS.items(), strict=True):
        assert not attempt.allowed, trick
        assert reason in attempt.reason, trick
        assert attempt.host.isprintable()


@needs_bubblewrap
def test_each_of_them_is_an_event_of_the_call(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "tricks").write_text("".join(f"{trick}\n" for trick in TRICKS))
    (workspace / "ask.sh").write_text(ASKING)
    one = rail(mode="full", settings=Settings(network=NetworkSettings(allow=("example.org",))))
    result = one.call("exec", {"command": "bash ask.sh"}, tool_call_id="tricks")
    assert result.data is not None
    assert result.data.output.split() == ["403"] * len(TRICKS), result.content
    events = [event for event in one.events() if isinstance(event, NetworkEvent)]
    assert [event.tool_call_id for event in events] == ["tricks"] * len(TRICKS)
    for event, (trick, reason) in zip(events, TRICKS.items(), strict=True):
        assert (event.allowed, reason in event.reason) == (False, True), trick


@needs_bubblewrap
@needs("curl")
def test_a_redirect_to_another_host_is_an_attempt_of_its_own_and_refused(run: Run, tmp_path: Path) -> None:
    with web(tmp_path, Elsewhere) as server:
        done, asked = run(f"curl -sSL http://127.0.0.1:{server.server_port}/", f"127.0.0.1:{server.server_port}")
    assert done.out == "handrail: elsewhere.test is not listed\n"
    assert [(attempt.host, attempt.allowed) for attempt in asked.attempts] == [
        ("127.0.0.1", True),
        ("elsewhere.test", False),
    ]


@needs_bubblewrap
@needs("curl")
def test_a_name_that_comes_to_lead_to_a_private_address_is_refused_from_then_on(run: Run, tmp_path: Path) -> None:
    """It is looked up for every request anew, and never between the judging and the connecting."""
    (tmp_path / "page").write_text("first")
    with web(tmp_path) as server:
        port = server.server_port
        url = f"http://rebound.example:{port}/page"
        done, asked = run(
            f"curl -sS {url}; echo; curl -sS {url}",
            *(f"rebound.example:{port}", f"127.0.0.1:{port}"),
            resolve=leading_to("127.0.0.1", "127.0.0.2", "127.0.0.1"),
        )
    assert done.out.startswith("first\nhandrail: rebound.example is listed, but it leads to 127.0.0.2, an address of")
    assert [attempt.allowed for attempt in asked.attempts] == [True, False]


def test_no_bytes_whatever_reach_a_server_that_is_not_listed(tmp_path: Path, count: Callable[[int], int]) -> None:
    reached: list[bytes] = []

    def hear(connection: socket.socket) -> None:
        reached.append(connection.recv(100))

    with serving(hear) as server:
        near = f"127.0.0.1:{server.port}".encode()
        asked = Proxied(tmp_path, f"listed.example:{server.port}", resolve=lambda *_: ["127.0.0.1"])
        words = (b"GET ", b"CONNECT ", b"http://", near, b"listed.example", b":%d" % server.port, b" HTTP/1.1", b"\r\n")
        more = (b"Host: ", b"\n", b"\r", b" ", b"@", b"\0", b"/", b"#", b".", b"[", b"]", b"Transfer-Encoding: chunked")
        pieces = st.sampled_from((*words, *more)) | st.binary(max_size=4)

        @settings(max_examples=count(3000), deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(pieces, min_size=1, max_size=16).map(b"".join), st.booleans())
        def send(data: bytes, whole: bool) -> None:
            asked.attempts.clear()
            sent = data + b"\r\n\r\n" * whole
            said = asked.said(sent, end=True)
            assert said[:13] in {b"HTTP/1.1 400 ", b"HTTP/1.1 403 "} or not sent
            assert [attempt.allowed for attempt in asked.attempts] == [False] * bool(sent)

        try:
            send()
        finally:
            asked.proxy.close()
    assert server.visits == 0
    assert reached == []
