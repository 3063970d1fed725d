"""process, through the whole pipeline: real commands, real terminals, in the sandbox that this machine has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from background import asked, ended, polled_until, record_when, started

from handrail import Handrail
from handrail.protocol.events import Process
from handrail.settings import Settings
from handrail.settings.model import Results

Make = Callable[..., Handrail]


@pytest.fixture
def full(rail: Make) -> Handrail:
    return rail(mode="full")


@pytest.fixture
def named(rail: Make) -> Iterator[Make]:
    """Opens named sessions, over and over; nothing of them is left at the end."""
    names: set[str] = set()

    def make(*, session: str = "s", **options: Any) -> Handrail:
        names.add(session)
        return rail(session=session, **options)

    yield make
    for name in names:
        rail(session=name).end_session()


# What it is asked


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"action": "poll"}, ["sessionId is required for poll; list has the ids"]),
        ({"action": "list", "sessionId": "p-a"}, ["sessionId is not allowed for list"]),
        ({"action": "list", "offset": 1, "limit": 1}, ["offset is for log only", "limit is for log only"]),
        (
            {"action": "kill", "sessionId": "p-a", "data": "x", "eof": True},
            ["data is for write only", "eof is for write only"],
        ),
        ({"action": "write"}, ["sessionId is required for write; list has the ids", "write needs data, or eof"]),
        ({"action": "write", "sessionId": "p-a", "data": ""}, ["write needs data, or eof"]),
        (
            {"action": "log", "sessionId": "p-a", "offset": 0},
            ["offset is 0; lines count from 1, and from -1 backwards"],
        ),
        (
            {"action": "poll", "limit": 5, "data": ""},
            ["sessionId is required for poll; list has the ids", "limit is for log only", "data is for write only"],
        ),
    ],
)
def test_what_does_not_go_together_is_refused_all_at_once(
    full: Handrail, args: dict[str, Any], said: list[str]
) -> None:
    result = full.call("process", args)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert [problem["problem"] for problem in result.error.details] == said


@pytest.mark.parametrize(
    "args", [{}, {"action": "start"}, {"action": "list", "session_id": "x"}, {"action": "log", "limit": 0}]
)
def test_wrong_arguments_are_refused(full: Handrail, args: dict[str, Any]) -> None:
    error = full.call("process", args).error
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"


def test_an_id_that_is_not_there_is_told(full: Handrail) -> None:
    for action in ("poll", "log", "kill", "clear", "remove"):
        error = full.call("process", {"action": action, "sessionId": "p-nothere"}).error
        assert error is not None
        assert error.code == "PROCESS_NOT_FOUND"


def test_what_is_written_at_once_is_limited(full: Handrail) -> None:
    error = full.process("write", started(full, "cat"), data="x" * 100_001).error
    assert error is not None
    assert error.code == "LIMIT_EXCEEDED"


def test_nothing_runs_in_a_session_that_has_started_nothing(full: Handrail) -> None:
    assert asked(full, "list").content == "There are no process sessions.\n"
    assert full.processes() == ()


# What it does


def test_a_program_that_copies_is_written_to_polled_and_told_the_end(full: Handrail) -> None:
    cat = started(full, "cat")
    assert asked(full, "write", cat, data="grüß dich\n").content.startswith("12 bytes were written to ")
    assert polled_until(full, cat, "dich\n") == "grüß dich\n"
    asked(full, "write", cat, data="without a newline", eof=True)
    polled_until(full, cat, "newline")
    assert ended(full, cat).exit_code == 0
    error = full.process("write", cat, data="x\n").error
    assert error is not None
    assert error.code == "PROCESS_ENDED"


def test_an_interactive_interpreter_answers_line_by_line(full: Handrail) -> None:
    python = started(full, "python3 -q -i")
    polled_until(full, python, ">>> ")
    asked(full, "write", python, data="6 * 7\n")
    assert "42\n" in polled_until(full, python, ">>> ")
    asked(full, "write", python, data="import sys; sys.exit(5)\n")
    assert ended(full, python).exit_code == 5
    assert asked(full, "poll", python).content.endswith("[exit code 5]\n")


def test_a_program_that_asks_for_a_password_gets_it_and_shows_it_nowhere(full: Handrail, tmp_path: Path) -> None:
    asking = started(full, "python3 -c 'import getpass; print(len(getpass.getpass()))'")
    polled_until(full, asking, "Password:")
    asked(full, "write", asking, data="open sesame\n")
    assert "11\n" in polled_until(full, asking, "11\n")
    assert "sesame" not in asked(full, "log", asking).content
    audit = (tmp_path / "state" / "audit.jsonl").read_text()
    assert "sesame" not in audit
    assert '"data":"<12 characters>"' in audit


def test_a_list_says_what_runs_since_when_and_what_it_said_last(full: Handrail) -> None:
    one, other = started(full, "echo ready; cat"), started(full, "exit 3")
    record_when(full, one, lambda record: record.last_line == "ready")
    ended(full, other)
    listed = asked(full, "list")
    assert [(record.id, record.state) for record in listed.data.processes] == [(one, "running"), (other, "ended")]
    first, second = listed.content.splitlines()
    assert first.startswith(f"{one}  running  00:")
    assert first.endswith("echo ready; cat  | ready")
    assert second.startswith(f"{other}  exit 3  ")
    assert listed.summary == "1 running, 1 ended"


def test_any_beginning_of_an_id_that_no_other_has_will_do(full: Handrail) -> None:
    one, other = started(full, "cat"), started(full, "cat")
    unique = next(one[:n] for n in range(3, 23) if not other.startswith(one[:n]))
    assert asked(full, "poll", unique).data.process.id == one
    error = full.process("poll", "p-").error
    assert error is not None
    assert error.code == "PROCESS_NOT_FOUND"
    assert one in error.message
    assert other in error.message


def test_killed_is_gone_and_its_log_stays_until_it_is_removed(full: Handrail) -> None:
    one = started(full, "echo before; sleep 1000")
    polled_until(full, one, "before")
    assert asked(full, "kill", one).data.process.reason == "stopped"
    assert "had ended before" in asked(full, "kill", one).content
    assert asked(full, "log", one).content == "before\n"
    asked(full, "remove", one)
    assert full.processes() == ()


def test_removing_ends_what_runs(full: Handrail) -> None:
    one = started(full, "sleep 1000")
    assert "stopped with all its child processes" in asked(full, "remove", one).content
    events = [event for event in full.events() if isinstance(event, Process)]
    assert [(event.process, event.state, event.reason) for event in events] == [
        (one, "started", None),
        (one, "ended", "stopped"),
        (one, "removed", "stopped"),
    ]


def test_a_cleared_log_is_empty_and_counted_and_goes_on(full: Handrail) -> None:
    cat = started(full, "cat")
    asked(full, "write", cat, data="old\n")
    record_when(full, cat, lambda record: record.size == 4)
    assert asked(full, "clear", cat).data.process.dropped == 4
    assert asked(full, "log", cat).content == ""
    asked(full, "write", cat, data="new\n")
    news = record_when(full, cat, lambda record: record.size == 8)
    assert (news.dropped, asked(full, "log", cat).content) == (4, "new\n")
    polled = asked(full, "poll", cat)
    assert (polled.data.output, polled.data.skipped) == ("new\n", 4)


def test_polls_give_every_byte_once_a_results_worth_at_a_time(rail: Make, workspace: Path) -> None:
    one = rail(mode="full", settings=Settings(results=Results(characters=1_000)))
    text = "".join(f"line {n} äöü\n" for n in range(500))
    (workspace / "text").write_text(text)
    process = started(one, "cat text; cat")
    parts = [""]
    while "line 499" not in parts[-1]:
        polled = asked(one, "poll", process)
        assert len(polled.content) <= 1_000
        parts.append(polled.data.output)
    assert "".join(parts) == text
    assert asked(one, "log", process, limit=10).meta.total == 500


def test_a_poll_that_finds_nothing_says_that_it_runs(full: Handrail) -> None:
    polled = asked(full, "poll", started(full, "sleep 1000"))
    assert polled.data.output == ""
    assert polled.content.startswith("[running for 00:0")


def test_pages_of_a_log_go_from_either_end(full: Handrail) -> None:
    one = started(full, "seq 1 5000")
    ended(full, one)
    first = asked(full, "log", one)
    assert (first.meta.returned, first.meta.total, first.meta.next_offset) == (2_000, 5_000, 2_001)
    assert asked(full, "log", one, offset=-2).content == "4999\n5000\n"
    assert asked(full, "log", one, offset=7, limit=2).content == "7\n8\n"
    error = full.process("log", one, offset=5_001).error
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"


def test_a_port_that_a_server_listens_on_is_told(full: Handrail) -> None:
    server = started(full, "python3 -m http.server 8123 --bind 127.0.0.1")
    assert record_when(full, server, lambda record: bool(record.ports)).ports == (8123,)


# Who may


def test_writing_asks_with_the_program_and_what_it_is_sent(named: Make) -> None:
    one = named(mode="full")
    python = started(one, "python3 -q -i")
    asking = named(mode="ask")
    result = asking.process("write", python, data="print(1)\n", eof=True)
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    [request] = asking.waiting()
    assert (request.rule, request.process, request.answers) == ("process.write", python, ("once", "deny"))
    assert "python3 -q -i" in request.description
    assert request.preview is not None
    assert request.preview.text.startswith("print(1)\n")
    assert "closed the input" in request.preview.text
    polled_until(asking, python, ">>> ")
    done = asking.answer(request.id, "once")
    assert not isinstance(done, tuple)
    assert "1\n" in polled_until(asking, python, "1\n")


def test_nobody_is_asked_about_writing_to_what_has_ended(named: Make) -> None:
    python = started(named(mode="full"), "python3 -q -i")
    assert named(mode="full").process("kill", python).ok
    result = named(mode="ask").process("write", python, data="x\n")
    assert result.error is not None
    assert result.error.code == "PROCESS_ENDED"
    assert named(mode="ask").waiting() == ()


def test_writing_to_what_only_looks_asks_nobody_and_all_else_is_denied_in_plan(named: Make) -> None:
    one = named(mode="full")
    cat, python = started(one, "cat"), started(one, "python3 -q -i")
    plan = named(mode="plan")
    assert plan.process("write", cat, data="x\n").ok
    refused = plan.process("write", python, data="x\n").error
    assert refused is not None
    assert (refused.code, refused.details["rule"]) == ("POLICY_DENIED", "process.write")
    assert plan.process("poll", python).ok
    assert plan.process("remove", python).ok


def test_a_yes_to_one_process_session_is_none_to_another(named: Make) -> None:
    one = named(mode="full")
    first = started(one, "python3 -q -i")
    asking = named(mode="ask")
    spelled = "p-"  # the only one there is, and whichever it is when the answer comes
    assert asking.process("write", spelled, data="1\n").error is not None
    [request] = asking.waiting()
    asked(one, "remove", first)
    second = started(one, "python3 -q -i")
    done: Any = asking.answer(request.id, "once")
    assert done.results[0].error.code == "CONFLICT"
    assert "1\n" not in asked(one, "log", second).content


def test_one_sessions_processes_are_not_anothers(named: Make) -> None:
    one, other = named(mode="full", session="one"), named(mode="full", session="other")
    process = started(one, "cat")
    assert other.processes() == ()
    error = other.process("poll", process).error
    assert error is not None
    assert error.code == "PROCESS_NOT_FOUND"


def test_it_is_not_offered_without_the_permission_to_run(rail: Make) -> None:
    assert "process" not in [spec.name for spec in rail(deny=("proc.exec",)).specs()]
