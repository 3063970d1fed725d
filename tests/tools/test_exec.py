"""exec, through the whole pipeline, in the sandbox that this machine has."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Handrail
from handrail.protocol import events
from handrail.protocol.decisions import Mode
from handrail.protocol.events import ToolCallUpdate
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Limits, Restricted, Results, Sandbox, Tools
from handrail.workspace.search.ripgrep import find_ripgrep
from in_time import cut_short

Make = Callable[..., Handrail]
SMALL = Settings(results=Results(characters=1_000))


def run(rail: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    return rail.call("exec", {"command": command, **more})


def ran(rail: Handrail, command: str, **more: Any) -> Any:
    result = run(rail, command, **more)
    assert result.ok, result.error
    return result.data


def code(result: ToolResult[Any]) -> str:
    assert result.error is not None
    return result.error.code


# What it answers


def test_a_proven_command_runs_unasked_in_every_mode(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    for mode in ("plan", "ask", "auto", "full"):
        result = run(rail(mode=mode), "wc -l a.txt")
        assert result.ok
        assert result.content == "2 a.txt\n"
        assert result.data.exit_code == 0
        assert result.artifacts.commands_run == ("wc -l a.txt",)


@pytest.mark.skipif(find_ripgrep(()) is None, reason="ripgrep is missing; the slower Python search is used")
@pytest.mark.parametrize("tier", [1, 2, 3])
def test_the_ripgrep_that_handrail_brings_is_there_for_commands(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch, tier: int
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    (workspace / "a.txt").write_text("one\ntwo\n")
    one = rail(mode="full", settings=Settings(sandbox=Sandbox(tier=tier)))
    for command in ("rg --no-filename two", "rg --no-filename two > found; cat found"):
        assert ran(one, command).output == "two\n", command
    found = ran(one, 'cd "$(dirname "$(command -v rg)")"; pwd; ls').output.split("\n")
    assert tier == 1 or found[0] in {"/usr/bin", "/bin"} or found[1:] == ["rg", ""]  # nothing else of what lies there


def test_every_result_says_how_the_command_was_confined(rail: Make) -> None:
    read_only = run(rail(mode="plan"), "ls").meta.sandbox
    writing = run(rail(mode="full"), "touch a").meta.sandbox
    without = run(rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2))), "touch b").meta.sandbox
    assert (read_only.tier, read_only.net, read_only.undo) == (2, "none", "read-only")
    assert (writing.tier, writing.net, writing.undo) == (3, "none", "layer")
    assert (without.tier, without.net) == (2, "none")
    assert (read_only.no_layer, writing.no_layer) == ("", "")
    assert without.no_layer == "settings ask for none: sandbox.tier is 2"
    for sandbox in (read_only, writing, without):
        assert sandbox.gaps == ()
        assert "memory" in " ".join(sandbox.tree)
        assert "file size" in " ".join(sandbox.per_process)


def test_a_command_that_fails_is_a_result_with_its_code_and_what_it_means(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    result = run(rail(), "grep two a.txt")
    assert result.ok
    assert result.data.exit_code == 1
    assert result.data.meaning
    assert result.content == f"[exit code 1: {result.data.meaning}]\n"
    assert run(rail(mode="full"), "nosuchprogram_here").data.exit_code == 127


def test_a_code_that_the_program_explains_is_no_signal(rail: Make) -> None:
    one = rail(mode="auto")
    wrong, killed = ran(one, "git init --nosuch"), ran(one, "kill -HUP $$")
    assert (wrong.exit_code, wrong.meaning, wrong.signal) == (129, "git was called wrongly.", None)
    assert (killed.exit_code, killed.meaning, killed.signal) == (129, "It was killed by the signal SIGHUP.", "SIGHUP")


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_a_command_that_begins_with_a_dash_is_no_option_of_bash(rail: Make, tier: int) -> None:
    result = run(rail(mode="full", settings=Settings(sandbox=Sandbox(tier=tier))), "--help")
    assert "--help: command not found" in result.content
    assert result.data.exit_code == 127


def test_both_streams_come_in_their_true_order(rail: Make) -> None:
    command = "for n in 1 2 3; do echo out $n; echo err $n >&2; done"
    assert ran(rail(mode="full"), command).output == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


def test_a_command_that_prints_nothing_says_so_to_the_model_only(rail: Make) -> None:
    result = run(rail(), "true")
    assert (result.content, result.data.output) == ("(no output)\n", "")


def test_a_signal_has_its_name(rail: Make) -> None:
    data = ran(rail(mode="full"), "sh -c 'kill -SEGV $$'")
    assert (data.exit_code, data.signal) == (139, "SIGSEGV")


def test_it_runs_in_the_folder_it_is_told(rail: Make, workspace: Path) -> None:
    (workspace / "sub" / "deep").mkdir(parents=True)
    (workspace / "link").symlink_to("sub/deep")
    one = rail()
    assert ran(one, "pwd").output == f"{workspace.resolve()}\n"
    assert ran(one, "pwd", cwd="sub").output == f"{workspace.resolve()}/sub\n"
    assert ran(one, "pwd", cwd="link").output == f"{workspace.resolve()}/sub/deep\n"


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [("..", "OUTSIDE_WORKSPACE"), ("/etc", "OUTSIDE_WORKSPACE"), ("gone", "NOT_FOUND"), ("file", "NOT_A_DIRECTORY")],
)
def test_a_folder_that_it_cannot_run_in_is_refused(rail: Make, workspace: Path, cwd: str, expected: str) -> None:
    (workspace / "file").write_text("x")
    result = run(rail(mode="full"), "touch made", cwd=cwd)
    assert code(result) == expected
    assert not list(workspace.rglob("made"))


def test_colours_and_progress_are_cleaned_for_the_model_and_kept_for_people(rail: Make) -> None:
    one = rail(mode="full")
    result = run(one, r"printf '\033[31mred\033[0m\n10%%\r50%%\rdone\n'")
    assert result.data.output == "red\ndone\n"
    assert result.meta.raw is not None
    assert one.raw_output(result.tool_call_id) == b"\x1b[31mred\x1b[0m\n10%\r50%\rdone\n"


def test_long_output_shows_both_ends_and_can_be_read_whole(rail: Make) -> None:
    one = rail(settings=SMALL)
    result = run(one, "seq 1 5000")
    assert len(result.content) <= 1_000
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("4999\n5000\n")
    assert result.meta.truncated
    assert result.meta.output == f"@output/{result.tool_call_id}"
    pages, offset = [], 1
    while offset is not None:
        page = one.read(result.meta.output, offset=offset)
        pages.append(page.content)
        offset = page.meta.next_offset
    assert "".join(pages) == "".join(f"{n}\n" for n in range(1, 5_001))


def test_output_that_memory_does_not_hold_is_kept_on_disk(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    result = run(one, "seq 1 1000000; printf '\\033[1mthe end\\033[0m\\n'")
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("1000000\nthe end\n")
    last = one.read(result.meta.output, offset=-2)
    assert last.content == "1000000\nthe end\n"
    assert last.meta.total == 1_000_001
    assert one.raw_output(result.tool_call_id).endswith(b"1000000\n\x1b[1mthe end\x1b[0m\n")


def test_who_cannot_read_it_back_gets_no_reference(rail: Make) -> None:
    one = rail(settings=msgspec.structs.replace(SMALL, tools=Tools(disable=("read",))))
    result = run(one, "seq 1 5000")
    assert result.meta.output is None
    assert "@output" not in result.content
    assert result.meta.truncated


def test_a_running_command_tells_what_it_prints(rail: Make, workspace: Path) -> None:
    one, heard = rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2))), list[str]()
    told = threading.Event()

    def listen(event: Any) -> None:
        if isinstance(event, ToolCallUpdate):
            heard.append(event.output or "")
            (workspace / "go").touch()
            told.set()

    one.subscribe(listen)
    result = run(one, "while [ ! -e go ]; do echo waiting; read -t 0.05 <> <(:); done; echo done")
    assert told.is_set()
    assert "waiting" in heard[0]
    assert result.data.output.endswith("done\n")


def test_a_command_in_a_layer_tells_what_it_prints_too(rail: Make) -> None:
    one, heard = rail(mode="full"), list[str]()

    def listen(event: Any) -> None:
        if isinstance(event, ToolCallUpdate):
            heard.append(event.output or "")
            one.cancel()

    one.subscribe(listen)
    result = run(one, "touch made; while :; do echo waiting; read -t 0.05 <> <(:); done")
    assert code(result) == "CANCELLED"
    assert "waiting" in heard[0]


# What it refuses


@pytest.mark.parametrize(
    ("command", "expected"), [("echo a\0b", "INVALID_ARGUMENT"), ("# " + "x" * 1_000_000, "LIMIT_EXCEEDED")]
)
def test_a_command_that_cannot_be_one_is_refused(rail: Make, command: str, expected: str) -> None:
    assert code(run(rail(mode="full"), command)) == expected


def test_what_is_never_done_is_refused_with_a_warning_event(rail: Make) -> None:
    one = rail(mode="full")
    result = run(one, "rm -rf /")
    assert code(result) == "POLICY_DENIED"
    assert [said.code for said in one.events() if isinstance(said, events.Warning)] == ["POLICY_DENIED"]


def test_what_may_write_runs_in_auto_where_it_can_be_taken_back(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    result = run(one, "touch made")
    assert (result.ok, result.artifacts.files_changed) == (True, ("made",))
    assert (workspace / "made").exists()
    assert one.undo().ok
    assert not (workspace / "made").exists()


def test_what_may_write_asks_in_auto_where_nothing_can_take_it_back(rail: Make, workspace: Path) -> None:
    result = run(rail(mode="auto"), "touch made", background=True)
    assert code(result) == "PERMISSION_REQUIRED"
    assert not (workspace / "made").exists()


def test_a_question_shows_the_whole_command_and_a_yes_runs_it(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    request = run(one, "for n in 1 2; do touch made$n; done").error.details
    assert request["command"] == "for n in 1 2; do touch made$n; done"
    assert request["permissionType"] == "command"
    outcome = one.answer(request["id"], "once")
    assert outcome.results[0].ok
    assert sorted(path.name for path in workspace.iterdir()) == ["made1", "made2"]


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("touch made", ("fs.write",)),
        ("rm there", ("fs.delete",)),
        ("git commit --allow-empty -m x", ("git.write",)),
        ("curl https://example.org", ("net.connect",)),
        ("make", ()),
    ],
)
def test_a_request_names_the_permissions_that_policy_reads_in_the_command(
    rail: Make, workspace: Path, command: str, needed: tuple[str, ...]
) -> None:
    (workspace / "there").touch()
    settings = msgspec.convert({"ask": {"empty_preview": "ask"}}, Settings)
    request = run(rail(mode="ask", settings=settings), command).error.details
    assert (request["permissions"], request["permissionType"]) == (("proc.exec", *needed), "command")


def test_a_call_that_leaves_out_a_permission_does_without(rail: Make, workspace: Path) -> None:
    (workspace / "there").touch()
    one = rail(mode="full")
    for command in ("touch made", "rm there", "git init -q", 'python3 -c \'open("made", "w")\'', "make"):
        result = one.call("exec", {"command": command}, requested_permissions=("proc.exec", "fs.read"))
        assert (code(result), result.error.details["rule"]) == ("POLICY_DENIED", "call.narrowed")
    assert [path.name for path in workspace.iterdir()] == ["there"]
    assert one.call("exec", {"command": "ls"}, requested_permissions=("proc.exec", "fs.read")).content == "there\n"
    assert one.call("exec", {"command": "touch made"}, requested_permissions=("proc.exec", "fs.write")).ok
    assert (workspace / "made").exists()


def test_without_a_sandbox_everything_asks(rail: Make) -> None:
    for mode in ("ask", "auto", "full"):
        result = run(rail(mode=mode, settings=Settings(sandbox=Sandbox(tier=0))), "ls")
        assert code(result) == "PERMISSION_REQUIRED"
        assert result.error.details["rule"] == "exec.no-sandbox"
    yes = rail(settings=Settings(sandbox=Sandbox(tier=0)), on_permission=lambda _: "once")
    sandbox = run(yes, "ls").meta.sandbox
    assert (sandbox.tier, sandbox.net, sandbox.undo) == (0, "open", "none")
    assert sandbox.gaps


def test_a_sandbox_that_is_not_good_enough_runs_nothing(rail: Make, workspace: Path) -> None:
    one = rail(settings=Settings(sandbox=Sandbox(tier=1, least=2)), on_permission=lambda _: "once")
    result = run(one, "touch made")
    assert code(result) == "SANDBOX_UNAVAILABLE"
    assert not (workspace / "made").exists()


# What it lets be


def test_a_proven_command_cannot_write_whatever_it_runs(rail: Make, workspace: Path) -> None:
    """git runs what the repository tells it to: the sandbox holds, not the table."""
    one = rail(mode="full")
    ran(one, "git init -q . && echo x > a && git add a")
    hook = workspace / "hook.sh"
    hook.write_text(f"#!/bin/sh\necho ran > {workspace}/effect\necho ran > /tmp/effect\ncat\n")
    hook.chmod(0o755)
    (workspace / ".gitattributes").write_text("a filter=evil\n")
    with (workspace / ".git/config").open("a") as config:
        config.write(f'[filter "evil"]\n\tclean = {hook}\n')
    (workspace / "a").write_text("y\n")
    assert run(rail(mode="plan"), "git status --short").ok
    assert not (workspace / "effect").exists()


def test_credentials_are_empty_to_what_nobody_approved_and_there_for_what_somebody_did(
    rail: Make, workspace: Path
) -> None:
    (workspace / ".env").write_text("TOKEN=canary\n")
    (workspace / "keys").mkdir()
    (workspace / "keys" / "server.pem").write_text("canary\n")
    (workspace / "plain").write_text("a plain canary\n")
    grep = "grep -r canary ."
    assert ran(rail(mode="plan"), grep).output == "./plain:a plain canary\n"
    loop = "for f in .e* k*/* p*; do cat $f; done"
    result = run(rail(mode="full"), loop)
    assert result.data.output == "a plain canary\n"
    assert result.meta.sandbox.hidden == 2
    tried = rail(mode="ask", on_permission=lambda _: "once")
    assert ran(tried, loop).output == "a plain canary\n"
    approved = rail(mode="ask", on_permission=lambda _: "once", settings=Settings(preview="never"))
    assert ran(approved, loop).output == "TOKEN=canary\ncanary\na plain canary\n"
    assert (workspace / ".env").read_text() == "TOKEN=canary\n"


def test_what_decides_about_commands_cannot_be_changed_by_one(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "handrail.toml").write_text('mode = "ask"\n')
    (workspace / ".handrail").mkdir()
    one = rail(mode="full")
    command = f"echo x >> handrail.toml; echo x > .handrail/x; rm -f handrail.toml; ls {tmp_path}/state; true"
    assert ran(one, command).exit_code == 0
    assert (workspace / "handrail.toml").read_text() == 'mode = "ask"\n'
    assert not list((workspace / ".handrail").iterdir())
    assert "journal" not in ran(one, f"find {tmp_path} -name '*.db'").output


def test_the_environment_is_clean(rail: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "canary")
    monkeypatch.setenv("BASH_ENV", "/nonexistent")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo canary; }")
    data = ran(rail(mode="full"), "for file in /proc/1/environ; do env; cat $file; ls; done")
    assert "canary" not in data.output
    assert "HOME=" in data.output


def test_nothing_of_ours_is_left_open_in_it(rail: Make, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary")
    descriptor = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        data = ran(rail(mode="full"), "for folder in /proc/self/fd; do ls -1 $folder | wc -l; readlink $folder/0; done")
    finally:
        os.close(descriptor)
    assert data.output == "4\n/dev/null\n"  # its own three, and the folder that ls looks into


# How it ends


def test_time_is_limited_and_what_there_was_is_told(rail: Make, workspace: Path) -> None:
    one, command = rail(mode="full"), "echo begun; sleep 60 & sleep 60; echo never"
    result, time = cut_short(lambda time: run(one, command, timeoutMs=time), 300, lambda result: result.data.output)
    assert code(result) == "TIMEOUT"
    assert result.data.output == "begun\n"
    assert result.data.exit_code is None
    assert result.meta.limits == ("time",)
    assert f"{time / 1000:g} s" in result.error.message
    assert result.content.startswith(f"begun\n[Stopped after {time / 1000:g} s")


def test_a_child_that_keeps_the_pipe_open_does_not_hold_the_call(rail: Make) -> None:
    data = ran(rail(mode="full"), "sleep 60 & echo done", timeoutMs=30_000)
    assert data.output == "done\n"


def test_cancelling_ends_what_is_running(rail: Make) -> None:
    one = rail(mode="full")
    one.subscribe(lambda event: one.cancel() if isinstance(event, ToolCallUpdate) else None)
    result = run(one, "while true; do echo on; sleep 0.05; done")
    assert code(result) == "CANCELLED"
    assert result.data.output.startswith("on\n")


def test_a_file_that_grows_too_large_is_cut_and_the_limit_named(rail: Make, workspace: Path) -> None:
    one = rail(mode="full", settings=Settings(limits=Limits(file_size="1 MB")))
    data = ran(one, "head -c 3000000 /dev/zero > big")
    assert data.exit_code != 0
    assert (workspace / "big").stat().st_size <= 1 << 20


# What is written down


def test_the_audit_has_the_programs_and_none_of_the_words(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="full")
    ran(one, "echo canary | grep -c canary; for x in canary; do :; done")
    ran(one, "git --version && echo canary")
    lines = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    assert "canary" not in "".join(lines)
    records = [json.loads(line) for line in lines]
    assert records[-2]["commands_run"] == ["bash"]
    assert records[-1]["commands_run"][-1] == "echo"


def test_the_restricted_profile_runs_what_it_lists_with_little_time_and_room(rail: Make, workspace: Path) -> None:
    (workspace / ".minds").mkdir()
    (workspace / ".minds" / "a.yaml").write_text("a: 1\n")
    one = rail(settings=Settings(profile="restricted"))
    result = run(one, "cat .minds/a.yaml")
    assert (result.data.stdout, result.data.stderr, result.data.output) == ("a: 1\n", "", "a: 1\n")
    (workspace / ".minds" / "big").write_text("x" * 100_000 + "\n" + "y" * 300_000)
    big = run(one, "cat .minds/big")
    assert big.meta.limits == ("output",)
    assert len(big.data.stdout) <= 256 * 1024


def test_the_restricted_profile_has_three_seconds_and_no_way_out(rail: Make, workspace: Path) -> None:
    (workspace / ".minds").mkdir()
    listed = Settings(profile="restricted", restricted=Restricted(commands=("sleep 60", "ls")))
    result = run(rail(settings=listed), "sleep 60", timeoutMs=60_000)
    assert code(result) == "TIMEOUT"
    assert "after 3 s" in result.error.message
    assert result.error.message.endswith("No command may take longer here.")
    assert result.meta.sandbox.net == "none"
    short = run(rail(settings=listed), "sleep 60", timeoutMs=100)
    assert short.error.message.endswith("Raise timeoutMs (max 3000) if it needs longer.")


def test_what_bash_gets_is_what_was_read(rail: Make, workspace: Path) -> None:
    """A file called like an option stays a file: the text that runs is not the text that was given."""
    (workspace / "-n").write_text("b\n")
    (workspace / "a").write_text("a\n")
    assert ran(rail(mode="plan"), "cat *").output == "b\na\n"


# git and what is hidden


@pytest.fixture
def repository(rail: Make, workspace: Path) -> Handrail:
    """A repository with a credential in it, and one beside it."""
    one = rail(mode="ask", on_permission=lambda _: "once", settings=Settings(preview="never"))
    (workspace / "deploy.key").write_text("canary\n")
    (workspace / "a.txt").write_text("a\n")
    ran(one, "git init -q . && git add -A && git -c user.name=A -c user.email=a@b commit -qm first")
    (workspace / ".env").write_text("TOKEN=canary\n")
    return one


def test_to_git_a_credential_that_it_tracks_is_as_it_was(repository: Handrail, rail: Make, workspace: Path) -> None:
    plan = rail(mode="plan")
    assert ran(plan, "git status --short | head -5").output == "?? .env\n"
    assert ran(plan, "git diff").output == ""
    assert "canary" not in ran(plan, "grep -r canary . --exclude-dir=.git").output
    assert "canary" not in ran(plan, "git diff && grep -r canary . --exclude-dir=.git").output.replace("-canary", "")


def test_a_commit_that_nobody_was_asked_about_commits_no_emptied_file(
    repository: Handrail, rail: Make, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("b\n")
    full = rail(mode="full")
    ran(full, "git -c user.name=A -c user.email=a@b commit -qam second")
    assert ran(full, "git show --stat --format= HEAD").output.split()[0] == "a.txt"
    assert ran(full, "for f in .e* d*; do cat $f; done").output == ""  # no git in it, so it is hidden


# What the model is told


@pytest.mark.parametrize("mode", ["ask", "full"])
def test_a_command_names_the_missing_network_only_if_it_tried_a_connection(
    rail: Make, workspace: Path, mode: Mode
) -> None:
    one = rail(mode=mode, on_permission=lambda _: "once")
    (workspace / "says.sh").write_text("echo getaddrinfo EAI_AGAIN; exit 1\n")
    assert run(one, "bash says.sh").content.endswith("[exit code 1]\n"), "words in the output prove nothing"
    (workspace / "tries.sh").write_text("echo >/dev/tcp/192.0.2.1/80 || exit 1\n")
    assert "[exit code 1; commands have no network here, so trying again" in run(one, "bash tries.sh").content


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_host_that_nobody_opened_is_named_and_an_address_of_this_machine_is_the_sessions(rail: Make) -> None:
    one = rail(mode="full")
    why = "exit code 6: The host's name could not be resolved; commands have no network here, "
    result = run(one, "curl -sS http://example.org/")
    assert f"[{why}so trying again does not help until network.allow in the settings lists " in result.content
    result = run(one, "curl -sS http://127.0.0.1:9/")
    assert result.content.endswith("reached; localhost is the network of this session, not of this machine]\n")


@pytest.mark.parametrize("command", [" ", "\n\t "])
def test_nothing_but_blanks_is_no_command(rail: Make, command: str) -> None:
    assert code(run(rail(mode="full"), command)) == "INVALID_ARGUMENT"
