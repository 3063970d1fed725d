"""What cannot be started is refused with its reason, and leaves nothing open."""

import os
import resource

import pytest
from process_launches import MakeLaunch, Run, launched

from handrail.process.result import CommandResult
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch


def with_argv(*argv: str) -> Launch:
    return launched(lambda status, lifeline: argv, own_processes=True)


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("/not/there/bwrap",), "SANDBOX_UNAVAILABLE", "bwrap could not be started (No such file or directory)"),
        (("/etc/passwd",), "SANDBOX_UNAVAILABLE", "passwd could not be started (Permission denied)"),
        (("/bin/echo", "x" * 300_000), "INVALID_ARGUMENT", "too long to be started (300,000 bytes)"),
        (("/bin/echo", "a\0b"), "INVALID_ARGUMENT", "such as NUL"),
        (
            ("/bin/echo", "\ud800"),
            "INVALID_ARGUMENT",
            "The command cannot be started: it has a character that is not allowed (such as NUL).",
        ),
    ],
)
def test_the_reason_is_told(run: Run, argv: tuple[str, ...], code: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        run(with_argv(*argv))
    assert raised.value.code == code
    assert said in raised.value.message
    assert "/not/there" not in raised.value.message


def test_without_descriptors_it_is_refused_or_runs_and_none_is_lost(make: MakeLaunch, run: Run) -> None:
    outcomes: list[str | int | None] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for free in range(20):
        launch = make("echo fine; exit 3")
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + free, hard))
        try:
            outcomes.append(outcome(run, launch))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert outcomes[0] == "LIMIT_EXCEEDED"
    assert outcomes[-1] == 3
    assert set(outcomes) <= {"LIMIT_EXCEEDED", 3}


def outcome(run: Run, launch: Launch) -> str | int | None:
    try:
        ran: CommandResult = run(launch)
    except ToolError as error:
        return error.code
    assert ran.output.head == b"fine\n"
    return ran.exit_code
