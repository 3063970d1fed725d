"""A command runs: what it prints and how it ended are told exactly, whatever it does with its pipe."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from process_launches import MakeLaunch, Run, comes_true, launched, left_of, running, supervised

from handrail.process.output import PIPE_CAPACITY_BYTES, OutputBuffer, Pipes
from handrail.sandbox.profile import ResourceLimits


def test_output_and_exit_code_are_told(make: MakeLaunch, run: Run) -> None:
    ran = run(make("echo out; echo err >&2; exit 3"))
    assert (ran.ending, ran.exit_code, ran.limits, ran.warnings) == ("exit", 3, (), ())
    assert (ran.output.head, ran.output.tail, ran.output.total, ran.errors) == (b"out\nerr\n", b"", 8, None)


def test_two_pipes_keep_the_streams_apart(make: MakeLaunch, run: Run) -> None:
    ran = run(make("echo out; echo err >&2"), two_pipes=True)
    assert ran.errors is not None
    assert (ran.output.head, ran.errors.head) == (b"out\n", b"err\n")


def test_a_signal_is_told_as_a_shell_does(make: MakeLaunch, run: Run) -> None:
    ran = run(make("kill -SEGV $$"))
    assert (ran.ending, ran.exit_code) == ("exit", 128 + signal.SIGSEGV)


def test_a_file_over_its_limit_is_named(in_namespace: MakeLaunch, run: Run, tmp_path: Path) -> None:
    ran = run(in_namespace(f"ulimit -f 1; head -c 5000 /dev/zero >{tmp_path}/large"))
    assert (ran.exit_code, ran.limits) == (128 + signal.SIGXFSZ, ("file size",))


def test_a_pipeline_whose_reader_goes_first_ends(make: MakeLaunch, run: Run) -> None:
    ran = run(make("yes | head -n 3; echo ${PIPESTATUS[*]}"))
    assert ran.output.head == b"y\ny\ny\n141 0\n"


def test_every_byte_is_kept(make: MakeLaunch, run: Run) -> None:
    every = bytes(range(256))
    text = "".join(f"\\x{code:02x}" for code in every)
    assert run(make(f"printf '{text}'")).output.head == every


def test_lines_of_a_megabyte_are_whole(make: MakeLaunch, run: Run) -> None:
    ran = run(make("for i in 1 2 3; do head -c 1048576 /dev/zero | tr '\\0' $i; echo; done"))
    assert [(line[:1], len(line)) for line in ran.output.head.split(b"\n")] == [
        (b"1", 1 << 20),
        (b"2", 1 << 20),
        (b"3", 1 << 20),
        (b"", 0),
    ]


def test_a_command_that_closes_its_output_is_waited_for(make: MakeLaunch, run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    gate = threading.Thread(target=lambda: (tmp_path / "gate").write_bytes(b"go\n"))
    gate.start()
    ran = run(make(f"echo before; exec >&- 2>&-; read -r line <{tmp_path}/gate; exit 7"))
    gate.join()
    assert (ran.output.head, ran.exit_code) == (b"before\n", 7)


def test_a_background_child_that_holds_the_pipe_does_not_hold_the_call(make: MakeLaunch, run: Run, mark: str) -> None:
    ran = run(make(f"sleep {mark} & echo started"))
    assert (ran.ending, ran.exit_code, ran.output.head) == ("exit", 0, b"started\n")
    assert left_of(make, mark) == []


def test_a_background_child_that_prints_for_ever_does_not_hold_the_call(make: MakeLaunch, run: Run) -> None:
    ran = run(make("yes background & echo foreground; exit 5"), limits={"output": 100_000})
    assert (ran.ending, ran.exit_code) == ("exit", 5)
    beginning = Path(ran.output.spilled).read_bytes() if ran.output.spilled else ran.output.head
    assert b"foreground" in beginning


def test_one_that_got_away_and_prints_for_ever_does_not_hold_the_call(run: Run, tmp_path: Path) -> None:
    name, gate = f"away-{os.getpid()}", tmp_path / "gate"
    os.mkfifo(gate)
    away = f"echo out >{gate}; trap : PIPE; while :; do echo {name}; done"
    ran = run(supervised(f"setsid bash -c '{away}' & read -r line <{gate}; exit 6"))
    found = running(name)
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert (ran.ending, ran.exit_code, found != []) == ("exit", 6, True)
    assert comes_true(lambda: running(name) == [])


def test_of_a_pipe_that_never_runs_dry_no_more_is_taken_than_it_holds() -> None:
    with Pipes(1) as pipes:
        writing = pipes.writing[0]
        os.set_blocking(writing, False)

        def print_more(data: bytes) -> None:
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writing, bytes(1 << 16))

        print_more(b"")
        buffer = OutputBuffer(pipes.reading[0], ResourceLimits(spilled=0), "/", print_more)
        buffer.read_rest()
        assert PIPE_CAPACITY_BYTES <= buffer.total <= 2 * PIPE_CAPACITY_BYTES


def test_what_was_printed_just_before_the_end_is_there(make: MakeLaunch, run: Run, count: Callable[[int], int]) -> None:
    for size in range(0, count(100) * 10_000, 10_000):
        assert run(make(f"head -c {size} /dev/zero; echo end")).output.head == bytes(size) + b"end\n"


def test_its_input_is_empty_and_cannot_be_written(make: MakeLaunch, run: Run) -> None:
    ran = run(make("cat; readlink /proc/self/fd/0; { echo x >&0; } 2>/dev/null || echo refused"))
    assert ran.output.head == b"/dev/null\nrefused\n"


def test_it_has_no_other_descriptors_of_ours(make: MakeLaunch, run: Run, tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        ran = run(make("for one in /proc/$$/fd/*; do readlink $one; done"))
    assert {name.split(b":")[0] for name in ran.output.head.splitlines()} == {b"/dev/null", b"pipe"}
    assert ran.output.head.count(b"\n") == 3


def test_it_has_only_the_environment_of_the_launch(make: MakeLaunch, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_CANARY", "sings")
    names = {line.split(b"=")[0] for line in run(make("env")).output.head.splitlines()}
    assert names == {b"PATH", b"LC_ALL", b"PWD", b"SHLVL", b"_"}


def test_output_is_told_as_it_comes(make: MakeLaunch, run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    told: list[bytes] = []
    gate = threading.Thread(target=lambda: (tmp_path / "gate").write_bytes(b"go\n"))

    def tell(data: bytes) -> None:
        told.append(data)
        if b"".join(told) == b"one\n" and data:  # nothing else opens the gate: it was told while the command ran
            gate.start()

    ran = run(make(f"echo one; read -r line <{tmp_path}/gate; echo two"), on_output=tell)
    gate.join()
    assert b"".join(told) == ran.output.head == b"one\ntwo\n"


def test_a_sandbox_that_cannot_be_made_is_told_apart_from_a_command_that_fails(
    run: Run, in_namespace: MakeLaunch
) -> None:
    def argv(status: int, lifeline: int) -> tuple[str, ...]:
        return ("/usr/bin/bwrap", "--ro-bind", "/not-there", "/", "--json-status-fd", str(status), "--", "/bin/true")

    ran = run(launched(argv, own_processes=True))
    assert (ran.ending, ran.exit_code) == ("failed", None)
    assert b"not-there" in ran.output.head
    assert run(in_namespace("exit 1")).ending == "exit"


def test_a_status_that_is_nonsense_is_no_status(run: Run) -> None:
    def argv(status: int, lifeline: int) -> tuple[str, ...]:
        return (
            "/bin/bash",
            "-c",
            f'head -c 300000 /dev/urandom >&{status}; echo \'[1]{{"child-pid": "x"}}\' >&{status}',
        )

    assert run(launched(argv, own_processes=False)).ending == "failed"


def test_many_run_at_once(make: MakeLaunch, run: Run) -> None:
    with ThreadPoolExecutor(64) as threads:
        ran = list(threads.map(lambda number: run(make(f"echo {number}; exit {number}")), range(64)))
    assert [(one.exit_code, one.output.head) for one in ran] == [(number, b"%d\n" % number) for number in range(64)]
