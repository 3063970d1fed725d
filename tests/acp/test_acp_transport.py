"""handrail acp: whatever comes in, what can be answered is, and stdout carries nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from editor import handrail
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.acp.transport import parse_fields
from handrail.protocol.jsonrpc import MalformedMessage

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Talk:
    """A client that writes what it likes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, number: int, method: str, params: Any = None) -> Any:
        """The answer to a request; what is told meanwhile is passed over."""
        self.send(id=number, method=method, params=params)
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message


@pytest.fixture
def talk(workspace: Path, environment: dict[str, str], script) -> Iterator[Talk]:
    with talking(workspace, environment, "--model", script({"text": "Done."})) as talk:
        yield talk


@contextmanager
def talking(workspace: Path, environment: dict[str, str], *words: str) -> Iterator[Talk]:
    command = [sys.executable, "-m", "handrail", "acp", *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=workspace, env=environment, **pipes) as process:
        try:
            yield Talk(process)
        finally:
            process.kill()


BROKEN = [
    pytest.param(b"{", -32700, None, id="no JSON"),
    pytest.param(b"\xff\xfe", -32700, None, id="no text"),
    pytest.param(b"[" * 100_000, -32700, None, id="too deep"),
    pytest.param(b"[]", -32600, None, id="a batch"),
    pytest.param(b"7", -32600, None, id="a number"),
    pytest.param(b'{"id": [1], "result": {}}', -32600, None, id="an id that is a list"),
    pytest.param(b'{"id": 3}', -32600, 3, id="neither a request nor an answer"),
    pytest.param(b'{"id": 3, "method": 5}', -32600, 3, id="a method that is a number"),
    pytest.param(b'{"id": 3, "method": "initialize", "params": [1]}', -32600, 3, id="params that are a list"),
    pytest.param(b'{"id": 3, "method": "no/such"}', -32601, 3, id="an unknown method"),
    pytest.param(b'{"id": 3, "method": "_mine"}', -32601, 3, id="an unknown extension"),
    pytest.param(b'{"id": 3, "method": "session/new", "params": {}}', -32602, 3, id="missing params"),
    pytest.param(
        b'{"id": 3, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}', -32002, 3, id="no session"
    ),
    pytest.param(
        b'{"id": 3, "method": "session/set_config_option", "params": {"sessionId": "x", "configId": "y", "value": ""}}',
        -32002,
        3,
        id="an option of no session",
    ),
]


def test_what_is_broken_is_answered_and_the_talk_goes_on(talk: Talk) -> None:
    for case in BROKEN:
        line, code, number = case.values
        talk.write(line)
        answer = talk.read()
        assert (answer["id"], answer["error"]["code"]) == (number, code), case.id
        assert "Traceback" not in str(answer)
    for harmless in (
        b"",
        b"  ",
        b'{"id": 99, "result": {}}',
        b'{"id": 99, "error": "no"}',
        b'{"method": "session/cancel"}',
    ):
        talk.write(harmless)
    assert talk.ask(4, "initialize", HELLO["params"])["result"]["agentInfo"]["name"] == "handrail"


def test_many_requests_at_once_are_all_answered(talk: Talk) -> None:
    for number in range(200):
        talk.send(id=number, method="initialize", params=HELLO["params"])
    assert sorted(talk.read()["id"] for _ in range(200)) == list(range(200))


def test_the_end_of_the_input_is_the_end_of_the_process(talk: Talk, workspace: Path) -> None:
    talk.ask(1, "session/new", {"cwd": str(workspace), "mcpServers": []})
    out, err = talk.process.communicate(timeout=60)
    assert (talk.process.returncode, err) == (0, b"")
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())


def test_what_was_asked_before_the_end_of_the_input_is_answered(talk: Talk, workspace: Path) -> None:
    hello = json.dumps(HELLO).encode()
    asked = {"cwd": str(workspace)}
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": asked}).encode()
    out, _ = talk.process.communicate(b"%b\n%b\n" % (hello, listed), timeout=60)
    assert sorted((one["id"], "result" in one) for one in map(json.loads, out.splitlines())) == [(0, True), (1, True)]


def test_a_client_that_reads_no_more_does_not_keep_the_process(talk: Talk, workspace: Path) -> None:
    session = talk.ask(1, "session/new", {"cwd": str(workspace), "mcpServers": []})["result"]["sessionId"]
    assert talk.process.stdout is not None
    talk.process.stdout.close()
    talk.send(id=2, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
    assert talk.process.wait(60) == 0


def test_a_client_that_neither_reads_nor_writes_does_not_keep_it_either(
    workspace: Path, environment: dict[str, str], script
) -> None:
    much = [{"text": f"{'much ' * 5_000}\n", "calls": [["ls", {"path": "."}]]}] * 20
    with talking(workspace, environment, "--model", script(*much)) as talk:
        session = talk.ask(1, "session/new", {"cwd": str(workspace), "mcpServers": []})["result"]["sessionId"]
        prompt = [{"type": "text", "text": "go"}]
        talk.send(id=2, method="session/prompt", params={"sessionId": session, "prompt": prompt})
        talk.read()  # it is on its way
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        assert talk.process.wait(60) == 0


def test_what_waits_for_a_yes_outlives_a_client_that_never_read_of_it(
    workspace: Path, environment: dict[str, str], script
) -> None:
    edit = ["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]
    much = {"text": "much " * 50_000, "calls": [edit]}

    def waiting() -> list[str]:
        return [one["id"] for one in json.loads(handrail(environment, workspace, "approvals", "--json"))["waiting"]]

    with talking(workspace, environment, "--model", script(much), "--mode", "ask") as talk:
        session = talk.ask(1, "session/new", {"cwd": str(workspace), "mcpServers": []})["result"]["sessionId"]
        prompt = [{"type": "text", "text": "go"}]
        talk.send(id=2, method="session/prompt", params={"sessionId": session, "prompt": prompt})
        while not (asked := waiting()):
            assert talk.process.poll() is None
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        assert talk.process.wait(60) == 0
    assert waiting() == asked


def test_what_a_library_prints_is_no_part_of_the_protocol(
    workspace: Path, environment: dict[str, str], script, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\natexit.register(lambda: os.write(1, b'printed\\n'))\n"
    )
    path = f"{tmp_path}:{environment['PYTHONPATH']}"
    with talking(workspace, {**environment, "PYTHONPATH": path}, "--model", script({"text": "Done."})) as talk:
        talk.ask(1, "initialize", HELLO["params"])
        out, err = talk.process.communicate(timeout=60)
        assert (out, err) == (b"", b"printed\n")


def test_without_the_extra_it_says_what_to_install(
    workspace: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "hidden" / "acp").mkdir(parents=True)
    (tmp_path / "hidden" / "acp" / "__init__.py").write_text("raise ModuleNotFoundError('no acp', name='acp')\n")
    path = f"{tmp_path / 'hidden'}:{environment['PYTHONPATH']}"
    with talking(workspace, {**environment, "PYTHONPATH": path}) as talk:
        out, err = talk.process.communicate(timeout=60)
    assert (talk.process.returncode, out) == (2, b"")
    assert f"next: {sys.executable} -m pip install 'handrail[acp]'\n".encode() in err


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "other"])


@example(line=b'{"params":[],"result":null}')
@given(line=st.binary(max_size=40) | st.dictionaries(_KEYS, _JSON).map(lambda given: json.dumps(given).encode()))
def test_whatever_a_line_is_it_is_a_message_that_can_be_taken_or_is_refused(line: bytes) -> None:
    read: dict[str, Any] | None = None
    code = None
    try:
        read = parse_fields(line)
    except MalformedMessage as refused:
        code = refused.code
    if read is None:
        assert code in {-32700, -32600}
        return
    hash(read.get("id"))
    assert isinstance(read.get("method", ""), str | None)
    assert read.get("method") is None or isinstance(read.get("params", {}), dict | None)
    assert isinstance(read.get("error", {}), dict | None)
    assert any(name in read for name in ("method", "result", "error"))


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        (rb"a \ud83d b", "a \ufffd b"),
        (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\ude00", "😀"),
        (rb"\\ud83d", r"\ud83d"),
        ("ü \\ud83d 😀".encode(), "ü \ufffd 😀"),
    ],
)
def test_half_a_character_which_editors_cut_text_into_is_no_reason_not_to_answer(spelled: bytes, read: str) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"text":"%s"}}' % spelled
    assert parse_fields(line) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "session/prompt",
        "params": {"text": read},
    }


@pytest.mark.parametrize("line", [rb'{"a":NaN,"b":"\ud83d"}', rb'{"a":"\ud83d"', b'{"a":"\xff"}', b"[" * 100_000])
def test_what_is_no_json_is_none_by_that_way_either(line: bytes) -> None:
    with pytest.raises(MalformedMessage) as refused:
        parse_fields(line)
    assert refused.value.code == -32700
