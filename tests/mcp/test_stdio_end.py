"""However a connection ends, nothing stays: no process, no lock, and a journal that is whole."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from stdio_process import PATIENCE, Server, environment

from handrail import Handrail
from handrail.state import StoredState


class Command:
    """A command that goes on for long and has a child, both with a word that nobody else has."""

    def __init__(self) -> None:
        self._mark = f"600.{os.getpid()}{time.monotonic_ns()}"
        self.text = f"echo begun; sleep {self._mark} & sleep {self._mark}"

    def processes(self) -> list[int]:
        """Those that are there now."""
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and self._is_of(entry)]

    def is_gone(self) -> bool:
        """Whether none is left after a while; at once, mostly."""
        until = time.monotonic() + PATIENCE
        while (found := self.processes()) and time.monotonic() < until:
            time.sleep(0.01)
        return not found

    def _is_of(self, entry: str) -> bool:
        try:
            return self._mark.encode() in Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            return False


def running(folder: Path) -> tuple[Server, Command]:
    """A server in the middle of a command."""
    server, command = Server(folder), Command()
    server.initialize()
    server.call("exec", {"command": command.text}, _meta={"progressToken": 1})
    server.sees(lambda message: message.get("method") == "notifications/progress")
    assert command.processes()
    return server, command


def check_journal(folder: Path, *codes: str) -> None:
    """The calls of the session ended so, and what is written down is whole."""
    rail = Handrail(folder / "workspace", session="mcp-test-client", state_dir=folder / "state")
    found = [event for event in rail.events() if type(event).__name__ == "ToolCallError"]
    rail.close()
    assert [event.result.error.code for event in found] == list(codes)  # type: ignore[union-attr]
    assert StoredState(str(folder / "state")).verify().problems == ()
    assert not list((folder / "state").rglob("*.runner")), "the session was closed"


def test_the_end_of_the_input_ends_a_running_command(tmp_path: Path) -> None:
    server, command = running(tmp_path)
    assert server.close() == 0
    assert command.is_gone()
    check_journal(tmp_path, "CANCELLED")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_running_command(tmp_path: Path, number: int) -> None:
    server, command = running(tmp_path)
    assert server.signal(number) == 130
    assert command.is_gone()
    check_journal(tmp_path, "CANCELLED")


def test_a_client_that_reads_no_more_ends_it(tmp_path: Path) -> None:
    """Its input stays open; the first thing that cannot be sent tells it."""
    (tmp_path / "workspace").mkdir(exist_ok=True)
    words = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(tmp_path / "workspace"), "--mode", "full"]
    process = subprocess.Popen(words, env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    with process.stdin as sink:
        sink.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        sink.flush()
        assert process.wait(PATIENCE) == 0


def test_a_server_whose_parent_is_gone_ends_though_its_input_is_open(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    source, sink = os.pipe()
    answers, answering = os.pipe()
    words = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(tmp_path / "workspace")]
    # The parent starts the server, waits until it has answered, and is gone.
    program = f"import os, subprocess; subprocess.Popen({words!r}, stdin={source}, stdout={answering}, close_fds=True)"
    program += "; input()"
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        pass_fds=(source, answering),
    )
    os.close(source)
    os.close(answering)
    os.write(sink, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert b'"id":1' in os.read(answers, 1000)
    parent.communicate(b"\n", timeout=PATIENCE)
    assert os.read(answers, 1000) == b"", "its end of the pipe is closed"
    os.close(sink)
    os.close(answers)


def test_what_was_asked_before_the_input_ended_is_still_answered(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.initialize()
    (server.workspace / "a.txt").write_text("here\n")
    numbers = [server.call("grep", {"pattern": "here"}) for _ in range(5)]
    assert server.close() == 0
    assert all(server.result(number)["isError"] is False for number in numbers)


def test_a_request_without_a_line_end_is_the_last_one(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.write(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
    assert server.close() == 0
    assert server.result("last") == {}


def test_a_server_that_nobody_greets_leaves_no_trace(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.close() == 0
    assert (server.came, server.errors) == ([], b"")
    assert not (tmp_path / "state").exists()


def test_a_server_that_is_killed_leaves_no_command_and_is_settled_by_the_next(tmp_path: Path) -> None:
    server, command = running(tmp_path)
    server.process.kill()
    server.wait()
    assert command.is_gone()
    with Server(tmp_path) as again:
        again.initialize()
        assert again.result(again.call("exec", {"command": "echo on"}))["isError"] is False
    check_journal(tmp_path, "INTERRUPTED")


def test_without_an_input_or_an_output_there_is_nothing_to_serve(tmp_path: Path) -> None:
    for closed in ("<&-", ">&-"):
        words = ["sh", "-c", f'exec "$0" -m handrail mcp --workspace . {closed}', sys.executable]
        with subprocess.Popen(words, env=environment(tmp_path), cwd=tmp_path, stderr=PIPE) as process:
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert b"stdin or stdout is closed" in said


def test_a_person_who_starts_it_by_hand_is_told_what_it_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(tmp_path)]
    with subprocess.Popen(words, env=environment(tmp_path), stdin=theirs, stdout=PIPE, stderr=PIPE) as process:
        os.close(theirs)
        try:
            assert process.stderr is not None
            assert b"A client such as Claude Code starts handrail mcp" in process.stderr.readline()
            os.write(ours, b"\x04")
            assert process.communicate(timeout=PATIENCE) == (b"", b"")
        finally:
            os.close(ours)
            process.kill()
    assert process.returncode == 0


def test_a_tool_that_does_not_end_keeps_nobody(tmp_path: Path, deep: bool) -> None:
    if not deep:
        pytest.skip("it takes as long as one is waited for")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "own.py").write_text(
        "import time\nfrom handrail import tool\n\n@tool(read_only=True, auto_execute=True)\n"
        'def stuck() -> str:\n    "Never ends."\n    time.sleep(3600)\n    return ""\n'
    )
    settings = tmp_path / "home" / ".config" / "handrail"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(f'[tools]\nfolders = ["{tools}"]\n')
    server = Server(tmp_path)
    server.initialize()
    server.call("stuck")
    assert server.asks("ping")["result"] == {}
    assert server.close() == 0
    with Server(tmp_path) as again:
        again.initialize()
        assert again.asks("tools/list")["result"]["tools"]
    check_journal(tmp_path, "INTERRUPTED")
