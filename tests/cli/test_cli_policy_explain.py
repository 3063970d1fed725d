"""policy explain: what policy decides, and why, with nothing run and nothing written."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail.protocol.permissions import OpenedFolder, StandingGrant
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.store.state_dir import StateFolder

EXPLAIN = ("policy", "explain")


def lines(*questions: object) -> bytes:
    return b"".join(json.dumps(question).encode() + b"\n" for question in questions)


# One command


COMMANDS = [
    ("ls", "plan", "allow"),
    ("ls && cat README.md | head -3", "plan", "allow"),
    ("./build.sh", "plan", "deny"),
    ("./build.sh", "ask", "confirm"),
    ("./build.sh", "full", "allow"),
    ("rm -rf /", "full", "deny"),
    ("cat ../secret", "full", "deny"),
    ("cat .env", "full", "deny"),
    ("echo hi > notes.txt", "ask", "confirm"),
    ("echo $(whoami)", "ask", "confirm"),
]


@pytest.mark.parametrize(("command", "mode", "decision"), COMMANDS)
def test_a_command_is_judged_in_the_mode_that_was_asked_for(here, command: str, mode: str, decision: str) -> None:
    done = here(*EXPLAIN, "--json", "--mode", mode, "--", command)
    assert (done.code, done.json["decision"], done.json["mode"]) == (0, decision, mode)


def test_what_was_granted_to_the_workspace_is_taken_into_account(here, workspace: Path, tmp_path: Path) -> None:
    granted = StandingGrant(id="g-1", command="mkdir", scope="workspace", session_id="s", time=datetime.now(UTC))
    GrantFiles(StateFolder(str(tmp_path / "state")).grants(os.path.realpath(workspace))).add(granted)
    found = here(*EXPLAIN, "--json", "--mode", "ask", "--", "mkdir a").json
    assert (found["decision"], found["rule"]) == ("allow", "grant.g-1")
    assert here(*EXPLAIN, "--json", "--mode", "plan", "--", "mkdir a").json["decision"] == "deny"


def test_the_hosts_that_a_command_needs_are_named(here) -> None:
    command = "curl http://10.0.0.7:8080/ git@example.org"
    found = here(*EXPLAIN, "--json", "--", "git clone git@example.org:a && curl http://10.0.0.7:8080/").json
    assert found["hosts"] == ["10.0.0.7:8080"]
    assert found["unopened"] == ["example.org:22 by ssh, which the proxy does not support"]
    asked = here(*EXPLAIN, "--", command).out
    assert "\n  approval opens, for this call: 10.0.0.7:8080 (a private address), example.org:80\n" in asked
    unasked = here(*EXPLAIN, "--mode", "full", "--", "curl ftp://a.org https://b.org").out
    assert "\n  it names b.org:443; without approval only hosts in network.allow are open\n" in unasked
    assert "\n  not opened: a.org:21 by ftp, which the proxy does not support\n" in unasked
    weaker = here(*EXPLAIN, "--tier", "1", "--", "curl https://b.org").out
    assert "\n  network access needs sandbox tier 2, so it cannot reach b.org:443\n" in weaker
    assert "any host" not in here(*EXPLAIN, "--tier", "0", "--", "curl https://b.org").out


def test_a_registry_that_is_not_known_is_said(here) -> None:
    unknown = here(*EXPLAIN, "--json", "--", "yarn add x").json
    assert "hosts" not in unknown
    assert unknown["unopened"] == ["the registry of yarn is not known; list its host in network.allow"]


def test_a_denied_permission_is_named_and_no_host_is_promised(here, config) -> None:
    config('tools.deny = ["net.connect"]\nnetwork.allow = ["b.org:443"]\n')
    for mode in ("ask", "full"):
        told = here(*EXPLAIN, "--mode", mode, "--", "curl https://b.org").out
        assert "net.connect is denied here (call.denied)" in told
        assert "network.allow" not in told
    assert here(*EXPLAIN, "--json", "--mode", "full", "--", "make").json["decision"] == "allow"


def test_the_answer_has_the_rule_the_reason_and_every_part(here, workspace: Path) -> None:
    (workspace / "api").mkdir()
    found = here(*EXPLAIN, "--json", "--", "cd api && rm -rf build | tee log").json
    assert found.keys() == {"schema", "decision", "rule", "reason", "parts", "mode", "tier"}
    assert (found["schema"], found["decision"]) == ("handrail.policy/1", "confirm")
    assert found["tier"] in {2, 3}
    assert [(part["subject"], part["decision"]) for part in found["parts"]] == [
        ("cd api", "allow"),
        ("rm -rf build", "confirm"),
        ("tee log", "confirm"),
    ]
    assert all(part["rule"] and part["reason"] for part in found["parts"])
    assert found["rule"] == found["parts"][1]["rule"]


def test_a_refusal_also_has_its_code(here) -> None:
    assert here(*EXPLAIN, "--json", "--", "cat ../x").json["code"] == "OUTSIDE_WORKSPACE"


def test_one_word_is_a_command_as_it_is_and_several_are_quoted_and_joined(here) -> None:
    for words, subject in ((["ls -l"], "ls -l"), (["ls", "-l"], "ls -l"), (["cat", "a b; rm x"], "cat 'a b; rm x'")):
        [part] = here(*EXPLAIN, "--json", "--", *words).json["parts"]
        assert part["subject"] == subject


def test_options_behind_the_dashes_are_the_commands(here) -> None:
    [part] = here(*EXPLAIN, "--json", "--", "ls", "--json", "--", "-q").json["parts"]
    assert part["subject"] == "ls --json -- -q"


def test_the_folder_of_the_command_counts(here, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert here(*EXPLAIN, "--json", "--", "cat ../a.txt").json["decision"] == "deny"
    assert here(*EXPLAIN, "--json", "--cwd", "sub", "--", "cat ../a.txt").json["decision"] == "allow"


@pytest.mark.parametrize(
    ("cwd", "code"), [("..", "OUTSIDE_WORKSPACE"), ("none", "NOT_FOUND"), ("a.txt", "NOT_A_DIRECTORY")]
)
def test_a_command_starts_in_a_folder_of_the_workspace(here, workspace: Path, cwd: str, code: str) -> None:
    (workspace / "a.txt").write_text("")
    done = here(*EXPLAIN, "--json", "--cwd", cwd, "--", "ls")
    assert (done.code, done.json["error"]["code"]) == (2, code)


def test_the_sandbox_is_the_one_of_the_machine_unless_it_is_said(here) -> None:
    found = here(*EXPLAIN, "--json", "--", "ls").json
    assert (found["tier"] in {2, 3}, found["decision"]) == (True, "allow")
    said = here(*EXPLAIN, "--json", "--tier", "0", "--", "ls").json
    assert (said["tier"], said["decision"]) == (0, "confirm")


def test_no_sandbox_is_tried_for_a_call_that_runs_no_command(here) -> None:
    assert "tier" not in here(*EXPLAIN, "--json", "--tool", "ls", "--args", '{"path": "."}').json


EXIT_CODES = [("ls", 0), ("./build.sh", 3), ("rm -rf /", 1)]


@pytest.mark.parametrize(("command", "code"), EXIT_CODES)
def test_the_exit_code_is_the_decision_where_that_is_wanted(here, command: str, code: int) -> None:
    assert here(*EXPLAIN, "--exit-code", "--", command).code == code
    assert here(*EXPLAIN, "--", command).code == 0


# What a person reads


def test_a_person_reads_a_tree(here, workspace: Path) -> None:
    (workspace / "api").mkdir()
    done = here(*EXPLAIN, "--", "cd api && rm -rf build | tee log")
    head, *parts, total, sandbox = done.out.splitlines()
    assert head == "$ cd api && rm -rf build | tee log"
    assert [part.split("  ")[0] for part in parts] == ["├ cd api", "├ rm -rf build", "└ tee log"]
    assert [part.split()[-1] for part in (total.partition(":")[0],)] == ["ask"]
    assert total.startswith("= needs approval in mode ask: ")
    assert sandbox.rstrip("23") == "  in the sandbox of this machine: tier "


TOTALS = [
    ("ls; pwd", "ask", "= allow in mode ask: every part is allowed"),
    ("node -v", "ask", "= allow in mode ask: node -v only reads (exec.read-only)"),
    ("make; ls", "ask", "= needs approval in mode ask: make can run any command of the build (exec.build)"),
    (
        "make; pytest; make",
        "ask",
        "= needs approval in mode ask: make can run any command of the build (exec.build), and 2 more",
    ),
    (
        "make",
        "auto",
        "= allow in mode auto: make can run any command of the build; auto mode allows what undo covers (exec.build)",
    ),
    ("make", "full", "= allow in mode full: make can run any command of the build; full mode allows it (exec.build)"),
    ("make; rm -rf /", "ask", "= deny in mode ask: deletes the root of the file system (/) (deny.delete-root)"),
]


@pytest.mark.parametrize(("command", "mode", "total"), TOTALS)
def test_the_last_line_says_why(here, command: str, mode: str, total: str) -> None:
    done = here(*EXPLAIN, "--mode", mode, "--tier", "3", "--", command)
    assert done.out.splitlines()[-1] == total


def test_auto_says_that_undo_covers_it_also_where_there_is_no_layer(here) -> None:
    done = here(*EXPLAIN, "--mode", "auto", "--tier", "2", "--", "make")
    why = "make can run any command of the build; auto mode allows what undo covers"
    assert done.out.splitlines()[-1] == f"= allow in mode auto: {why} (exec.build)"


def test_where_a_tier_is_said_nothing_is_said_of_the_machines_own(here) -> None:
    assert "in the sandbox" not in here(*EXPLAIN, "--tier", "3", "--", "ls").out


def test_the_tree_is_ascii_where_the_encoding_is(run) -> None:
    done = run(*EXPLAIN, "--", "ls; ls -l", PYTHONIOENCODING="ascii")
    assert [line[:3] for line in done.out.splitlines()] == ["$ l", "|- ", "`- ", "= a", "  i"]


def test_nothing_is_hidden_in_what_a_person_reads(here) -> None:
    done = here(*EXPLAIN, "--", "echo \x1b[2J\u202e\u200b x \nls\t")
    assert done.out.splitlines()[:2] == ["$ echo \\u001b[2J\\u202e\\u200b x\\u0020", "  ls\\u0009"]
    assert not {"\x1b", "\u202e", "\u200b", "\t"} & set(done.out)


def test_on_a_terminal_the_whole_command_is_shown_wrapped(environment: dict[str, str], workspace: Path) -> None:
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 50, 0, 0))
    command = [sys.executable, "-m", "handrail", *EXPLAIN, "-q", "--", f"echo {'x' * 200}"]
    sized = (
        f"import fcntl, termios, struct; fcntl.ioctl({terminal}, termios.TIOCSWINSZ, struct.pack('4H', 24, 50, 0, 0))"
    )
    subprocess.run([sys.executable, "-c", sized], pass_fds=(terminal,), check=True)
    subprocess.run(command, stdout=terminal, cwd=workspace, env=environment, check=True, timeout=60)
    os.close(terminal)
    text = b""
    while chunk := _read(master):
        text += chunk
    os.close(master)
    rows = text.decode().splitlines()
    command_rows = rows[: next(n for n, row in enumerate(rows) if row.startswith("└"))]
    assert "".join(row.removeprefix("  ") for row in command_rows) == f"$ echo {'x' * 200}"
    assert max(map(len, command_rows)) == 50


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal ends
        return b""


# A tool call


def test_a_tool_call_is_judged_with_the_facts_of_its_paths(here, workspace: Path) -> None:
    (workspace / "a.txt").write_text("")
    write = ("--tool", "write", "--args", '{"path": "a.txt", "content": ""}')
    assert here(*EXPLAIN, "--json", *write).json["decision"] == "confirm"
    assert here(*EXPLAIN, "--json", "--mode", "auto", *write).json["decision"] == "allow"
    secret = here(*EXPLAIN, "--json", "--tool", "read", "--args", '{"path": ".env"}').json
    assert (secret["decision"], secret["rule"]) == ("deny", "fs.secret")
    assert [part["subject"] for part in secret["parts"]] == [".env"]


def test_a_person_reads_the_call_and_its_paths(here) -> None:
    done = here(*EXPLAIN, "--tool", "read", "--args", '{"path": "a.txt"}')
    assert done.out.splitlines()[0] == 'read {"path":"a.txt"}'
    assert done.out.splitlines()[1].startswith("└ a.txt  allow  fs.read  ")
    assert "sandbox" not in done.out


def test_exec_as_a_tool_is_the_command(here) -> None:
    for background, decision in (("false", "allow"), ("true", "confirm")):
        args = f'{{"command": "ls", "background": {background}}}'
        assert here(*EXPLAIN, "--json", "--tool", "exec", "--args", args).json["decision"] == decision


def test_the_arguments_can_come_from_stdin(run) -> None:
    done = run(*EXPLAIN, "--json", "--tool", "read", "--args", "-", stdin=b'{"path": "a.txt"}')
    assert done.json["decision"] == "allow"


WRONG_CALLS = [
    (("--tool", "read", "--args", '{"pth": "a"}'), "INVALID_ARGUMENT", "read: pth is not an argument"),
    (("--tool", "read", "--args", '{"path": "a\\u0000b"}'), "INVALID_ARGUMENT", "path holds a NUL character"),
    (("--tool", "exec", "--args", '{"command": ""}'), "INVALID_ARGUMENT", "exec: command must be at least 1"),
    (("--tool", "exec", "--args", '{"command": "ls", "timeoutMs": 99}'), "INVALID_ARGUMENT", "exec: timeoutMs must be"),
    (("--tool", "exec", "--args", '{"command": "ls", "timeoutMs": 600001}'), "INVALID_ARGUMENT", "exec: timeoutMs"),
    (("--tool", "exec", "--args", '{"command": "ls", "yieldMs": -1}'), "INVALID_ARGUMENT", "exec: yieldMs must be"),
    (("--tool", "exec", "--args", '{"cmd": "ls"}'), "INVALID_ARGUMENT", "exec: cmd is not an argument; use command"),
    (("--tool", "nix", "--args", "{}"), "UNKNOWN_TOOL", "Unknown Agent tool: nix"),
    (("--tool", "apply_patch", "--args", "{}"), "UNKNOWN_TOOL", "Unknown Agent tool: apply_patch (apply_patch is off"),
    (("--", ""), "INVALID_ARGUMENT", "exec: command must be at least 1 characters long"),
    (("--", os.fsdecode(b"cat \xff")), "INVALID_ARGUMENT", "exec: "),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG_CALLS)
def test_a_call_that_is_wrong_before_policy_is_asked_is_exit_2(here, words, code: str, message: str) -> None:
    done = here(*EXPLAIN, "--json", *words)
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert done.json["error"]["message"].startswith(message)
    said = here(*EXPLAIN, "-q", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error: {message}")


# Wrong usage


MISTAKES = [
    ((), "the command to explain is missing"),
    (("--tool", "read", "--args", "{}", "--", "ls"), "the command to explain is missing"),
    (("--stdin", "--", "ls"), "the command to explain is missing"),
    (
        ("ls", "-la"),
        "put -- before the command. Otherwise handrail reads the command's options as its own. Nothing was run.\n"
        "next: handrail policy explain -- ls -la",
    ),
    (("--josn", "--", "ls"), "unrecognized arguments: --josn. Did you mean --json?"),
    (
        ("git", "status"),
        "put -- before the command. Otherwise handrail reads the command's options as its own. Nothing was run.\n"
        "next: handrail policy explain -- git",
    ),
    (("--tool", "read"), "--tool and --args belong together"),
    (("--args", "{}", "--", "ls"), "--tool and --args belong together"),
    (("--tool", "read", "--args", "{}", "--cwd", "."), "--cwd works only for commands"),
    (("--tool", "read", "--args", "{"), "the arguments are not JSON"),
    (("--tool", "read", "--args", '{"path": "\\ud800"}'), "the arguments are not JSON"),
    (("--tier", "4", "--", "ls"), "argument --tier: invalid choice: 4"),
    (("--tier", "-1", "--", "ls"), "argument --tier: must be a whole number"),
    (("--mode", "yolo", "--", "ls"), "argument --mode: invalid choice"),
    (("--workspace", "", "--", "ls"), "--workspace is empty"),
    (("--workspace", "nowhere", "--", "ls"), "the folder 'nowhere' cannot be opened"),
    (("--",), "the command after -- is missing."),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_wrong_usage_is_exit_2_with_the_way_out(here, words, sentence: str) -> None:
    done = here(*EXPLAIN, *words)
    assert (done.code, done.out) == (2, "")
    assert f"error: {sentence}" in done.err


def test_broken_settings_are_exit_2(here, config) -> None:
    config("mode = 'yolo'")
    assert here(*EXPLAIN, "--", "ls").code == 2


# Lines


NO_QUESTIONS = [
    (b"", 'the line is empty; expected {"command": …}'),
    (b"ls", "the line is not a question: JSON is malformed"),
    (
        b'{"comand": "ls"}',
        'the line is not a question: Object contains unknown field `comand`; expected {"command": …}',
    ),
    (b'{"command": "ls", "tool": "ls"}', 'the line is not a question; expected {"command": …}'),
]


@pytest.mark.parametrize(("line", "message"), NO_QUESTIONS)
def test_a_line_that_is_no_question_is_told_what_one_looks_like(run, line: bytes, message: str) -> None:
    done = run(*EXPLAIN, "--stdin", stdin=line + b"\n")
    assert done.code == 2
    assert done.json["error"]["message"].startswith(message)
    assert '{"tool": …, "args": …}' in done.json["error"]["message"]


def test_every_line_gets_one_answer_in_order(run) -> None:
    asked = lines(
        {"command": "ls"},
        {"tool": "write", "args": {"path": "a", "content": ""}},
        {"command": "./x", "mode": "plan"},
        {"command": "./x", "mode": "full"},
        {"command": "rm -rf /"},
    )
    done = run(*EXPLAIN, "--stdin", stdin=asked.rstrip(b"\n"))
    assert [json.loads(line)["decision"] for line in done.raw.splitlines()] == [
        "allow", "confirm", "deny", "allow", "deny",
    ]  # fmt: skip
    assert done.code == 0


BAD_LINES = [
    b"",
    b"   ",
    b"{",
    b"[]",
    b'"ls"',
    b"{}",
    b'{"command": 1}',
    b'{"command": null}',
    b'{"command": "ls", "tool": "read"}',
    b'{"command": "ls", "args": {}}',
    b'{"command": "ls", "shell": "sh"}',
    b'{"command": "ls", "mode": "yolo"}',
    b'{"command": ""}',
    b'{"command": "ls \\ud800"}',
    b'{"command": "ls \xff"}',
    b'{"tool": "read"}',
    b'{"tool": "read", "args": []}',
    b'{"tool": "read", "args": {"path": "a"}, "cwd": "."}',
    b"[" * 100_000,
    b'{"tool": "read", "args": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b"\xff\xfe",
    b"\x00",
]


def test_a_bad_line_is_answered_in_its_place_and_the_rest_goes_on(run) -> None:
    asked = b"".join(bad + b'\n{"command": "ls"}\n' for bad in BAD_LINES)
    done = run(*EXPLAIN, "--stdin", stdin=asked)
    answers = [json.loads(line) for line in done.raw.splitlines()]
    assert len(answers) == 2 * len(BAD_LINES)
    assert [answer.get("error", {}).get("code") for answer in answers[0::2]] == ["INVALID_ARGUMENT"] * len(BAD_LINES)
    assert {answer["decision"] for answer in answers[1::2]} == {"allow"}
    assert done.code == 2


def test_odd_commands_are_judged_and_never_allowed(run) -> None:
    odd = ["ls \x00", "x" * 1_000_000, "ls\n" * 100_000, "(" * 10_000, "\u202els", "ls \x1b[2J", "$" * 5_000]
    done = run(*EXPLAIN, "--stdin", stdin=lines(*({"command": text} for text in odd)))
    decisions = [json.loads(line)["decision"] for line in done.raw.splitlines()]
    assert len(decisions) == len(odd)
    assert "allow" not in decisions


def test_the_folder_can_be_said_for_all_lines_and_for_one(run, workspace: Path) -> None:
    (workspace / "sub" / "deep").mkdir(parents=True)
    asked = lines({"command": "cat ../a"}, {"command": "cat ../../a"}, {"command": "cat ../../a", "cwd": "sub/deep"})
    done = run(*EXPLAIN, "--stdin", "--cwd", "sub", stdin=asked)
    assert [json.loads(line)["decision"] for line in done.raw.splitlines()] == ["allow", "deny", "allow"]


STRICTEST = [
    (["ls"], 0),
    (["ls", "./x"], 3),
    (["ls", "rm -rf /", "./x"], 1),
    (["rm -rf /", ""], 2),
]


@pytest.mark.parametrize(("commands", "code"), STRICTEST)
def test_of_several_lines_the_exit_code_is_the_strictest(run, commands: list[str], code: int) -> None:
    asked = lines(*({"command": command} for command in commands))
    assert run(*EXPLAIN, "--stdin", "--exit-code", stdin=asked).code == code


def test_an_answer_comes_before_the_next_question(environment: dict[str, str], workspace: Path) -> None:
    command = [sys.executable, "-m", "handrail", *EXPLAIN, "--stdin"]
    with subprocess.Popen(
        command, cwd=workspace, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text, decision in (("ls", "allow"), ("./x", "confirm")):
            process.stdin.write(lines({"command": text}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["decision"] == decision
        process.stdin.close()
        assert process.wait(60) == 0


def test_it_ends_when_nobody_reads_the_answers(environment: dict[str, str], workspace: Path) -> None:
    command = [sys.executable, "-m", "handrail", *EXPLAIN, "--stdin"]
    with subprocess.Popen(
        command, cwd=workspace, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(lines({"command": "ls"}))
        process.stdin.flush()  # it stays open: only the closed pipe can end it
        assert process.wait(60) == 0


def test_without_any_stdin_it_says_so(environment: dict[str, str], workspace: Path) -> None:
    words = [sys.executable, "-m", "handrail", *EXPLAIN, "--stdin"]
    closed = f"exec {' '.join(words)} <&-"
    done = subprocess.run(
        ["/bin/sh", "-c", closed], cwd=workspace, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is closed" in done.stderr


# What it leaves alone


def test_nothing_is_made_and_nothing_is_run(run, workspace: Path, state: Path) -> None:
    (workspace / "build.sh").write_text("#!/bin/sh\ntouch ran\n")
    (workspace / "build.sh").chmod(0o755)
    asked = lines({"command": "./build.sh"}, {"tool": "write", "args": {"path": "new", "content": ""}})
    run(*EXPLAIN, "--stdin", "--mode", "full", stdin=asked)
    run(*EXPLAIN, "--mode", "full", "--", "./build.sh && touch new > out")
    assert sorted(path.name for path in workspace.iterdir()) == ["build.sh"]
    assert not state.exists()


def test_it_needs_no_state_folder_that_can_be_written(here, state: Path) -> None:
    state.write_text("in the way")
    assert here(*EXPLAIN, "--json", "--", "ls").json["decision"] == "allow"


def test_a_rule_of_the_user_decides_and_is_named(here, config) -> None:
    config('[[rule]]\nid = "no-make"\ndeny = "make"\nbecause = "make is slow here"\n')
    found = here(*EXPLAIN, "--json", "--mode", "full", "--", "make all").json
    assert (found["decision"], found["rule"], found["reason"]) == ("deny", "no-make", "make is slow here")


def test_an_extra_root_of_the_settings_is_known(here, config, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    config(f'[paths]\nread_only = ["{extra}"]\n')
    assert here(*EXPLAIN, "--json", "--", f"cat {extra}/a").json["decision"] == "allow"
    written = here(*EXPLAIN, "--json", "--mode", "full", "--", f"touch {extra}/a").json
    assert (written["decision"], written["rule"]) == ("deny", "fs.read-only")


def test_a_folder_outside_is_asked_about_where_the_settings_say_so(here, config) -> None:
    question = (*EXPLAIN, "--json", "--tool", "read", "--args", '{"path": "/usr/share/dict/words"}')
    assert here(*question).json["decision"] == "deny"
    config('[paths]\noutside = "ask"\n')
    found = here(*question).json
    assert (found["decision"], found["rule"]) == ("confirm", "fs.outside")


def test_a_folder_that_was_opened_to_the_workspace_is_inside(here, config, workspace: Path, state: Path) -> None:
    config('[paths]\noutside = "ask"\n')
    folder = OpenedFolder(
        path="/usr/share", access="read", scope="workspace", session_id="cli", time=datetime.now(UTC), named=None
    )
    GrantedFolders(StateFolder(str(state)).opened_folders(str(workspace))).add(folder)
    question = (*EXPLAIN, "--json", "--tool", "read", "--args", '{"path": "/usr/share/dict/words"}')
    assert here(*question).json["decision"] == "allow"


def test_a_command_is_explained_without_what_a_session_needs(environment: dict[str, str], workspace: Path) -> None:
    code = "import sys; from handrail.cli.main import run; run(sys.argv[1:]); sys.stderr.write('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", code, *EXPLAIN, "-q", "--json", "--", "git status"]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["decision"] == "allow"
    assert "handrail.policy.commands" in done.stderr.split()
    assert not {"sqlite3", "handrail.store.journal", "tomllib", "asyncio", "json"} & set(done.stderr.split())
