"""handrail call: what it prints, what it refuses, how it exits."""

import array
import fcntl
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import jsonschema
import pytest

from handrail.protocol.schema import build_wire_schemas
from handrail.terminal.call_lines import describe_unasked

SCHEMAS = build_wire_schemas()
WRITE = '{"path": "new.txt", "content": "one\\n"}'
WAITING_TOOL = """
import sys, threading
from handrail import Context, tool

@tool(permissions=(), auto_execute=True)
def linger(context: Context) -> str:
    "Waits for ever."
    print("begun", file=sys.stderr, flush=True)
    threading.Event().wait()
    return ""
"""


def test_the_content_goes_to_stdout_and_nothing_to_stderr(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    done = run("call", "read", '{"path": "a.txt"}')
    assert (done.code, done.out) == (0, "hello\n")
    assert done.err == ""


@pytest.mark.parametrize("quiet", [("-q",), ("--workspace", ".")])
def test_nothing_is_said_when_quiet_or_when_the_workspace_was_named(run, workspace: Path, quiet) -> None:
    (workspace / "a.txt").write_text("hello\n")
    assert run("call", "read", '{"path": "a.txt"}', *quiet).err == ""


def test_with_v_the_summary_and_the_time_are_said_too(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    assert "Read: Read lines 1–1 of 1 of a.txt · " in run("call", "read", '{"path": "a.txt"}', "-v").err


def test_into_a_pipe_the_content_goes_byte_by_byte(run, workspace: Path) -> None:
    text = "\x1b[31mred\x1b[0m \u202e\u200b tab\tend, no newline"
    (workspace / "a.txt").write_bytes(text.encode())
    assert run("call", "read", '{"path": "a.txt"}').raw == text.encode()


def test_json_prints_the_result_as_it_is(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    done = run("call", "read", '{"path": "a.txt"}', "--json")
    jsonschema.validate(done.json, SCHEMAS["tool_result"])
    assert (done.code, done.err) == (0, "")
    assert (done.json["ok"], done.json["content"]) == (True, "hello\n")
    assert done.raw.count(b"\n") == 1


def test_a_dash_reads_the_arguments_from_stdin(run, workspace: Path) -> None:
    done = run("call", "write", "-", "--mode", "auto", stdin=WRITE.encode())
    assert done.code == 0
    assert (workspace / "new.txt").read_text() == "one\n"


ERRORS = [
    pytest.param("read", '{"path": "no.txt"}', "error: ", id="no such file"),
    pytest.param("read", '{"file_path": "a"}', "error: read: file_path is not an argument; use path", id="alias"),
    pytest.param("read", "[]", "error: ", id="no object"),
    pytest.param("read", "-5", "error: ", id="a number that looks like an option"),
    pytest.param("read", '{"path": "/etc/hosts"}', "error: ", id="outside"),
    pytest.param("nope", "{}", "error: Unknown Agent tool: nope. Nothing was run.", id="unknown tool"),
    pytest.param(
        "Read", '{"path": "a"}', "warning: Did you mean read?\nerror: Unknown Agent tool: Read.", id="no repair of case"
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), ERRORS)
def test_a_tool_error_is_told_on_stderr_with_exit_1(here, tool: str, arguments: str, message: str) -> None:
    done = here("call", tool, arguments, "-q")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(message)


BAD_USAGE = [
    pytest.param(("read", "{"), "the arguments are not JSON: ", id="cut JSON"),
    pytest.param(
        ("read", ""), "the arguments are empty. Nothing was run. For a tool without arguments, pass {}.", id="no JSON"
    ),
    pytest.param(("read", "{'path': 'a'}"), "the arguments are not JSON: ", id="Python is no JSON"),
    pytest.param(("read", "[" * 100_000), "the arguments are not JSON: ", id="nested too deeply"),
    pytest.param(("read", '{"path": "\\ud800"}'), "the arguments are not JSON: ", id="a lone surrogate"),
    pytest.param(("read", '{"path": "\udcff"}'), "the arguments are not JSON: ", id="not UTF-8"),
    pytest.param(("read",), "the JSON with the tool's arguments is missing. Nothing was run.", id="too few words"),
    pytest.param(("read", "{}", "more"), "unrecognized arguments: more", id="too many words"),
    pytest.param(("read", "{}", "--mode", "careless"), "argument --mode: invalid choice: 'careless'", id="mode"),
    pytest.param(("read", "{}", "--unatt"), "unrecognized arguments: --unatt", id="no abbreviations"),
    pytest.param(("read", "{}", "--workspace", ""), "--workspace is empty", id="empty workspace"),
    pytest.param(("read", "{}", "--session", ""), "--session is empty", id="empty session"),
    pytest.param(("read", "{}", "--session", "../up"), "a session id is made of", id="session id"),
    pytest.param(
        ("read", "{}", "--workspace", "missing"), "the folder 'missing' cannot be opened", id="no such folder"
    ),
]


@pytest.mark.parametrize(("words", "message"), BAD_USAGE)
def test_wrong_usage_is_exit_2_and_nothing_runs(here, state: Path, words: tuple[str, ...], message: str) -> None:
    done = here("call", *words, "-q")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}")
    assert not (state / "audit.jsonl").exists()


def test_what_needs_permission_is_exit_3_with_the_request_and_its_diff(run, workspace: Path) -> None:
    (workspace / "new.txt").write_text("zero\n")
    done = run("call", "write", WRITE, "-q")
    assert done.code == 3
    assert done.out.startswith("Permission · write\nWrite new.txt\n")
    assert "rule fs.write" in done.out
    assert "-zero\n+one\n" in done.out
    hint, how = done.err.splitlines()
    assert hint == "Nothing was run. To let it run without being asked, add --mode auto."
    [waiting] = run("approvals", "--json").json["waiting"]
    short = waiting["short"]
    assert how == f"To answer it: handrail approvals allow {short}, or: handrail approvals deny {short} --reason TEXT"
    assert (workspace / "new.txt").read_text() == "zero\n"


def test_a_preview_that_changed_nothing_is_kept_and_one_line_says_so_everywhere(here) -> None:
    done = here("call", "exec", '{"command": "python3 -c \'print(6)\'"}')
    assert (done.code, done.out) == (0, "6\n")
    assert done.err.splitlines() == ["not asked: the preview changed nothing"]
    assert "  exec: not asked: the preview changed nothing: " in here("log", "--events").out
    assert "  confirm (by preview)  " in here("audit").out
    [record] = here("audit", "--json").json["records"]
    assert (record["decision"], record["answered_by"]) == ("confirm", "preview")


def test_a_setting_asks_also_if_the_preview_changed_nothing(here, config) -> None:
    config('[ask]\nempty_preview = "ask"\n')
    done = here("call", "exec", '{"command": "python3 -c \'print(6)\'"}')
    assert (done.code, done.out.splitlines()[-1]) == (3, "Show the model this output?")


@pytest.mark.parametrize(
    ("by", "changed", "line"),
    [
        ("preview", False, "not asked: the preview changed nothing"),
        ("preview", True, "not asked: the preview changed only caches"),
        ("grant", True, "not asked: plain edits are allowed in this session"),
    ],
)
def test_why_nobody_was_asked(by: str, changed: bool, line: str) -> None:
    assert describe_unasked(by, changed=changed) == line


def test_json_gives_the_request_in_the_details_of_the_result(run) -> None:
    done = run("call", "write", WRITE, "--json")
    assert (done.code, done.err) == (3, "")
    jsonschema.validate(done.json, SCHEMAS["tool_result"])
    assert done.json["error"]["code"] == "PERMISSION_REQUIRED"
    jsonschema.validate(done.json["error"]["details"], SCHEMAS["permission_request"])


def test_auto_writes_and_warns_about_what_does_not_parse(run, workspace: Path) -> None:
    done = run("call", "write", '{"path": "a.json", "content": "{"}', "--mode", "auto", "-q")
    assert done.code == 0
    assert done.err.startswith("warning: a.json")
    assert (workspace / "a.json").read_text() == "{"


def test_plan_refuses_to_write(run) -> None:
    done = run("call", "write", WRITE, "--mode", "plan", "-q")
    assert (done.code, done.err.split()[0]) == (1, "error:")


@pytest.mark.parametrize(
    ("words", "ci", "code"), [((), "1", 1), ((), "", 3), (("--unattended",), None, 1)], ids=["CI", "CI empty", "flag"]
)
def test_where_nobody_can_answer_the_call_is_refused_instead_of_parked(run, words, ci, code: int) -> None:
    done = run("call", "write", WRITE, "--json", *words, CI=ci)
    assert done.code == code
    assert done.json["error"]["code"] == ("PERMISSION_DENIED" if code == 1 else "PERMISSION_REQUIRED")


def test_a_state_folder_that_cannot_be_made_is_exit_4(run, state: Path) -> None:
    state.write_text("in the way")
    done = run("call", "ls", '{"path": "."}', "-q")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"error: the state folder {state}")


def test_a_journal_that_is_none_is_exit_4(run, state: Path) -> None:
    run("call", "ls", '{"path": "."}')
    [journal] = state.glob("workspaces/*/cli/journal.db")
    journal.write_bytes(b"no database" * 1000)
    done = run("call", "ls", '{"path": "."}', "-q")
    assert (done.code, done.err.count("\n")) == (4, 2)
    assert done.err.startswith("error: the journal ")


def test_a_limit_that_ends_the_call_is_exit_5(run, workspace: Path) -> None:
    (workspace / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(6 * 1024 * 1024))
    done = run("call", "read", '{"path": "large.png"}', "-q")
    assert (done.code, done.err.splitlines()[-1]) == (5, "next: handrail config limits")


def test_the_home_folder_is_no_workspace_unless_it_is_named(run, environment: dict[str, str]) -> None:
    home = Path(environment["HOME"])
    done = run("call", "ls", '{"path": "."}', cwd=home)
    assert (done.code, done.out) == (2, "")
    assert f"is a whole home folder, so it needs --workspace {home}." in done.err
    assert run("call", "ls", '{"path": "."}', "--workspace", str(home), cwd=home).code == 0


def test_the_root_folder_is_no_workspace_unless_it_is_named(run) -> None:
    done = run("call", "ls", '{"path": "."}', cwd=Path("/"))
    assert (done.code, "needs --workspace /." in done.err) == (2, True)


def test_a_current_folder_that_is_gone_is_wrong_usage(environment: dict[str, str], tmp_path: Path) -> None:
    script = f'mkdir gone && cd gone && rmdir ../gone && exec "{sys.executable}" -m handrail call ls "{{}}"'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"the current folder cannot be used" in done.stderr


def test_the_workspace_must_not_hold_the_state_folder(run, workspace: Path) -> None:
    done = run("call", "ls", '{"path": "."}', HANDRAIL_STATE_DIR=str(workspace / "state"))
    assert done.code == 2
    assert "Set HANDRAIL_STATE_DIR." in done.err


def test_calls_of_one_workspace_share_a_session_unless_another_is_named(run) -> None:
    run("call", "ls", '{"path": "."}')
    run("call", "ls", '{"path": "."}')
    run("call", "ls", '{"path": "."}', "--session", "other")
    events = {one["id"]: one["events"] for one in run("log", "--sessions", "--json").json["sessions"]}
    assert events == {"cli": 4, "other": 2}


def test_settings_that_cannot_be_used_are_exit_2(run, config) -> None:
    config("mode = 'careless'\n")
    done = run("call", "ls", '{"path": "."}', "-q")
    assert (done.code, done.out) == (2, "")
    assert "line 1: mode is 'careless'; allowed: plan, ask, auto or full" in done.err


def test_an_environment_that_would_loosen_the_mode_is_told_and_ignored(run) -> None:
    done = run("call", "write", WRITE, HANDRAIL_MODE="full")
    assert done.code == 3
    assert "HANDRAIL_MODE=full is ignored" in done.err


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Whoever is started while SIGINT is ignored, ignores it too: as under some shells and test runners."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _left_in(pipe: IO[bytes]) -> int:
    """How many bytes of a pipe nobody has read yet."""
    left = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, left)
    return left[0]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_it_waits_for_stdin_is_exit_130(environment: dict[str, str], workspace: Path) -> None:
    words = [sys.executable, "-m", "handrail", "call", "read", "-"]
    with subprocess.Popen(
        words, cwd=workspace, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b" ")
        process.stdin.flush()
        # A signal that comes just before Python begins to read is noticed only when it has read.
        while (
            _left_in(process.stdin)
            or Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S"
        ):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().endswith(b"error: interrupted\nnext: handrail log\n")
        assert process.wait() == 130


def test_a_tool_file_that_wants_to_end_the_process_is_named_and_not_obeyed(run, config, tmp_path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "leave.py").write_text("import sys\nsys.exit(0)\n")
    config(f'[tools]\nfolders = ["{tools}"]\n')
    done = run("call", "ls", '{"path": "."}', "-q")
    assert (done.code, done.out) == (2, "")
    assert "leave.py" in done.err
    assert "SystemExit" in done.err


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_call_has_its_result_and_its_record(
    run, config, environment: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "linger.py").write_text(WAITING_TOOL)
    config(f'[tools]\nfolders = ["{tools}"]\n')
    words = [sys.executable, "-m", "handrail", "call", "linger", "{}", "-q", "--mode", "full"]
    with subprocess.Popen(words, cwd=workspace, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"error: interrupted\nnext: handrail log\n"
        assert process.wait() == 130
    [record] = run("audit", "--json").json["records"]
    assert (record["name"], record["error_code"]) == ("linger", "CANCELLED")
    assert run("audit", "verify").code == 0


def test_a_page_that_is_not_all_says_on_stderr_how_to_go_on(run, workspace: Path) -> None:
    (workspace / "long.txt").write_text("line\n" * 3000)
    done = run("call", "read", '{"path": "long.txt"}', "--workspace", str(workspace))
    assert done.out == "line\n" * 2000
    assert done.err == "Read lines 1–2000 of 3000 of long.txt; continue with offset 2001\n"
