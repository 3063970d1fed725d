"""After a question or a no, a person reads one next step, and it is one that works."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

RULES = """
[paths]
outside = "ask"

[[rule]]
id = "docs"
tool = "write"
ask = "docs/"

[[rule]]
id = "generated"
tool = "write"
deny = "generated/"
"""
ALWAYS_ASKS = "Nothing was run. This call needs approval in every mode."
RULE_ASKS = "Nothing was run. Rule docs asks in every mode; handrail config shows its file."
UNATTENDED = "Nothing was run. Requests are denied, because --unattended is set. To let it run, add --mode auto."


def ask_for(mode: str) -> str:
    return f"Nothing was run. To let it run without being asked, add --mode {mode}."


ASKED = [
    ("ask", "a.txt", ask_for("auto")),
    ("ask", "docs/a.txt", RULE_ASKS),
    ("auto", "docs/a.txt", RULE_ASKS),
    ("full", "docs/a.txt", RULE_ASKS),
    ("ask", "handrail.toml", ask_for("full")),
    ("auto", "handrail.toml", ask_for("full")),
    ("ask", "{outside}/a.txt", ALWAYS_ASKS),
    ("full", "{outside}/a.txt", ALWAYS_ASKS),
]
REFUSED = [
    ("ask", "generated/a.py", "generated"),
    ("full", "generated/a.py", "generated"),
    ("plan", "generated/a.py", "fs.write"),
    ("plan", "a.txt", "fs.write"),
    ("plan", ".env", "fs.secret"),
    ("full", ".env", "fs.secret"),
]


def write(path: str) -> tuple[str, str, str]:
    return "call", "write", json.dumps({"path": path, "content": "x\n"})


@pytest.fixture
def outside(tmp_path: Path) -> str:
    (tmp_path / "elsewhere").mkdir()
    return str(tmp_path / "elsewhere")


@pytest.mark.parametrize(("mode", "path", "step"), ASKED)
def test_a_question_says_which_mode_would_not_ask_if_any(
    here, config: Callable[[str], Path], outside: str, mode: str, path: str, step: str
) -> None:
    config(RULES)
    done = here(*write(path.format(outside=outside)), "--mode", mode)
    assert (done.code, done.err.splitlines()[-2]) == (3, step)


@pytest.mark.parametrize(("mode", "path", "rule"), REFUSED)
def test_a_denial_names_its_rule_and_the_command_that_explains_it(
    here, config: Callable[[str], Path], mode: str, path: str, rule: str
) -> None:
    config(RULES)
    done = here(*write(path), "--mode", mode)
    error, step = done.err.splitlines()
    assert (done.code, error) == (
        1,
        f"error: write {path} is denied by rule {rule}: {error.partition(f' {rule}: ')[2]}",
    )
    assert error.endswith(". Nothing was run. (POLICY_DENIED)")
    assert step.startswith("next: handrail policy explain ")
    explained = here(*shlex.split(step)[2:])
    assert rule in explained.out
    assert explained.code == 0


def test_a_path_outside_names_the_settings_that_open_folders(here) -> None:
    done = here(*write("/proc/1/a.txt"))
    problem = "error: /proc/1/a.txt is outside the workspace. Nothing was run. (OUTSIDE_WORKSPACE)"
    error = f"{problem}\nnext: handrail config paths\n"
    assert (done.code, done.err) == (1, error)
    assert "paths.writable" in here("config", "paths").out
    assert here("call", "exec", '{"command": "rm -rf /etc/x"}').err.startswith(
        "error: exec rm -rf /etc/x needs a path outside the workspace. Nothing was run."
    )


def test_the_mode_that_is_named_works(here) -> None:
    assert here(*write("a.txt")).err.splitlines()[-2] == ask_for("auto")
    assert here(*write("a.txt"), "--mode", "auto").code == 0


def test_what_needs_hosts_is_told_that_a_looser_mode_opens_none(here) -> None:
    step = "list registry.example.com:443 in network.allow, since modes open no host, and add --mode full."
    done = here("call", "exec", '{"command": "npm install left-pad --registry https://registry.example.com"}')
    assert (done.code, done.err.splitlines()[-3]) == (3, f"Nothing was run. To let it run without being asked, {step}")
    refused = here("call", "exec", '{"command": "curl https://example.org/"}', "--unattended").err.splitlines()[-2]
    assert refused.endswith(
        "list its hosts in network.allow, since modes open none, and add --mode full. (PERMISSION_DENIED)"
    )


def test_what_goes_on_is_told_with_the_commands_of_people(here) -> None:
    done = here("call", "exec", '{"command": "cat", "background": true}', "--mode", "full")
    [process] = [one["id"] for one in here("processes", "--json").json["processes"]]
    step = f"to see its output: handrail processes log {process}; to end it: handrail processes stop {process}"
    assert (done.code, done.err.splitlines()[-1]) == (0, step)
    assert here("processes", "remove", process).code == 0


def test_what_is_sent_to_a_program_asks_in_every_mode_but_full(here) -> None:
    kept = here("call", "exec", '{"command": "sh", "background": true}', "--mode", "full", "--json").json
    try:
        send = json.dumps({"action": "write", "sessionId": kept["data"]["sessionId"], "data": "true\n"})
        assert here("call", "process", send).err.splitlines()[-2] == ask_for("full")
        assert here("call", "process", send, "--mode", "full").code == 0
    finally:
        here("processes", "remove", kept["data"]["sessionId"])


def test_where_nobody_is_asked_it_says_why(here) -> None:
    assert here(*write("a.txt"), "--unattended").err.splitlines()[-2].endswith(f"{UNATTENDED} (PERMISSION_DENIED)")
    by_variable = UNATTENDED.replace("--unattended", "the variable CI")
    assert here(*write("a.txt"), CI="1").err.splitlines()[-2].endswith(f"{by_variable} (PERMISSION_DENIED)")


def test_the_restricted_profile_is_named_by_its_rule(here, config: Callable[[str], Path]) -> None:
    config('profile = "restricted"')
    assert "by rule restricted." in here(*write("a.txt")).err.splitlines()[-2]


def test_a_quiet_call_gets_the_error_and_its_command(here) -> None:
    assert [line.split()[0] for line in here(*write(".env"), "-q").err.splitlines()] == ["error:", "next:"]


def test_a_missing_file_is_followed_by_the_command_that_lists(here) -> None:
    done = here("call", "read", '{"path": "missing.txt"}')
    assert done.err == "error: no file missing.txt. Nothing was changed. (NOT_FOUND)\nnext: handrail ls\n"


def test_a_command_of_which_one_part_asks_in_auto_too_is_told_the_mode_that_lets_all_of_it_be(
    here, workspace: Path
) -> None:
    (workspace / "build").mkdir()
    for number in range(30):
        (workspace / "build" / str(number)).write_text("made")
    untouched = "Your files are untouched. To let it run without being asked, add --mode full."
    for mode in ("ask", "auto"):
        done = here("call", "exec", '{"command": "rm -rf build"}', "--mode", mode)
        assert (done.code, done.err.splitlines()[-3]) == (3, untouched)


def test_without_a_layer_auto_lets_be_what_a_snapshot_covers_and_git_asks(
    here, workspace: Path, config: Callable[[str], Path]
) -> None:
    config("[sandbox]\ntier = 2\n")
    assert here("call", "exec", '{"command": "touch a"}').err.splitlines()[-3] == ask_for("auto")
    assert here("call", "exec", '{"command": "touch a"}', "--mode", "auto").code == 0
    assert here("call", "exec", '{"command": "git init ."}').err.splitlines()[-3] == ask_for("full")
    assert here("call", "exec", '{"command": "git init ."}', "--mode", "auto").code == 3


@pytest.mark.parametrize("mode", ["plan", "ask", "full"])
def test_a_denied_permission_says_where_it_is_denied(here, config: Callable[[str], Path], mode: str) -> None:
    config('tools.deny = ["net.connect"]\n')
    done = here("call", "exec", json.dumps({"command": "curl https://example.org"}), "--mode", mode)
    assert done.code == 1
    assert "is denied by rule call.denied: " in done.err.splitlines()[-2]
