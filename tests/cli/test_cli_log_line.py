"""log --line: why a line of a file is there, up to whose yes and whose words led to it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail import Handrail, ToolCall
from handrail.settings import Settings

COMMAND = '{"command": "sed -i s/two/zwei/ a.txt"}'


@pytest.fixture
def run(here):
    return here


def rows(out: str) -> dict[str, str]:
    """What stands behind each word of the chain."""
    found = (line.split("  ", 1) for line in out.splitlines()[2:] if "  " in line)
    return {name: told.strip() for name, told in found}


def test_a_line_that_a_tool_made_says_which_call_and_which_rule(run, workspace: Path) -> None:
    run("call", "write", '{"path": "a.txt", "content": "one\\ntwo\\n"}', "--mode", "auto")
    done = run("log", "--line", "a.txt:2", "-q")
    assert (done.code, done.out.splitlines()[0]) == (0, "a.txt:2  two")
    chain = rows(done.out)
    assert chain["made by"].startswith("change 1, 20")
    assert chain["call"].startswith("write write a.txt (call-")
    assert chain["decision"].startswith("allowed: ")
    assert chain["decision"].endswith("(rule fs.write, mode auto)")
    assert (chain["answer"], chain["session"]) == ("no approval needed", "cli")
    assert chain["prompt"] == "none (called from the command line)"
    assert run("log", "--line", "a.txt:2").err.splitlines()[-1] == (
        "to see the change: handrail diff 1; to undo: handrail undo 1"
    )


def test_a_line_that_a_command_made_says_who_kept_it(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    run("call", "exec", COMMAND)
    [waiting] = run("approvals", "--json").json["waiting"]
    assert run("approvals", "allow", waiting["short"]).code == 0
    chain = rows(run("log", "--line", "a.txt:2", "-q").out)
    assert chain["call"].startswith("exec sed -i s/two/zwei/ a.txt (call-")
    assert chain["decision"].startswith("asked: ")
    assert chain["answer"].startswith("kept by a person, this once, 20")
    told = run("log", "--line", "a.txt:2", "--json").json
    assert (told["schema"], told["origin"], told["answer"]["kind"]) == ("handrail.log-line/1", "made", "once")
    assert (told["change"]["number"], told["change"]["tool"], told["text"]) == (1, "exec", "zwei")
    assert told["call"]["args"] == {"command": "sed -i s/two/zwei/ a.txt"}


def test_a_line_of_a_command_that_nobody_was_asked_about_says_why(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    run("call", "exec", COMMAND)
    [waiting] = run("approvals", "--json").json["waiting"]
    assert run("approvals", "allow", waiting["short"], "--scope", "edits").code == 0
    chain = rows(run("log", "--line", "a.txt:2", "-q").out)
    assert chain["answer"].startswith("kept by a person, with plain edits in the session, 20")
    assert run("call", "exec", '{"command": "sed -i s/zwei/drei/ a.txt"}').code == 0
    chain = rows(run("log", "--line", "a.txt:2", "-q").out)
    assert chain["decision"].startswith("needed approval: ")
    assert chain["answer"].startswith("not asked: plain edits are allowed in this session, 20")
    assert run("log", "--line", "a.txt:2", "--json").json["answer"]["by"] == "grant"


def test_what_led_there_is_named_as_far_as_the_call_did(run, state: Path, workspace: Path) -> None:
    with Handrail(workspace, session="agent", state_dir=state, settings=Settings(mode="auto")) as rail:
        args = {"path": "a.txt", "content": "one\n"}
        named = {"trace_id": "t-7", "message_id": "m-3"}
        rail.batch([ToolCall(tool_call_id="c-1", name="write", args=args, timestamp=datetime.now(UTC), **named)])
    chain = rows(run("log", "--line", "a.txt:1", "-q").out)
    assert (chain["prompt"], chain["session"]) == ("message m-3, trace t-7", "agent")
    told = run("log", "--line", "a.txt:1", "--json").json
    assert (told["call"]["messageId"], told["call"]["traceId"], told["change"]["sessionId"]) == ("m-3", "t-7", "agent")


def test_what_others_changed_is_said(run, workspace: Path) -> None:
    run("call", "write", '{"path": "a.txt", "content": "one\\ntwo\\n"}', "--mode", "auto")
    (workspace / "a.txt").write_text("one\nZWEI\n")
    changed = run("log", "--line", "a.txt:2", "-q")
    assert (changed.code, "line 2 was changed outside handrail, after change 1 (write a.txt" in changed.out) == (
        0,
        True,
    )
    kept = run("log", "--line", "a.txt:1", "-q").out
    assert kept.endswith("changed outside handrail after change 1, but not this line\n")
    assert run("log", "--line", "a.txt:2", "--json").json["origin"] == "outside"


def test_a_line_that_handrail_never_touched(run, workspace: Path) -> None:
    (workspace / "b.txt").write_text("one\n")
    done = run("log", "--line", "b.txt:1", "-q")
    assert (done.code, done.out) == (0, "b.txt:1  one\n\nno change that handrail made touched this line\n")


MISTAKES = [
    ("a.txt", 2, "--line takes FILE:N"),
    ("a.txt:0", 2, "--line takes FILE:N"),
    ("a.txt:x", 2, "--line takes FILE:N"),
    (":3", 2, "--line takes FILE:N"),
    ("a.txt:3", 1, "error: a.txt has 2 lines, so there is no line 3."),
    ("missing.txt:1", 1, "error: no file missing.txt."),
    ("a.bin:1", 1, "error: a.bin is not text, so it has no lines."),
    ("/etc/passwd:1", 1, "error: "),
]


@pytest.mark.parametrize(("place", "code", "told"), MISTAKES)
def test_a_place_that_is_none_is_said_to_be(run, workspace: Path, place: str, code: int, told: str) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    (workspace / "a.bin").write_bytes(b"\0\1\2")
    done = run("log", "--line", place, "-q")
    assert (done.code, told in done.err, done.out) == (code, True, "")


def test_a_mistake_is_json_where_that_is_asked_for(run) -> None:
    told = run("log", "--line", "missing.txt:1", "--json").json
    assert (told["schema"], told["error"]["code"]) == ("handrail.log-line/1", "NOT_FOUND")
