"""exec: what cannot be run, and weather in which little can: a clear code, one result, nothing lost, nothing left."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallStart
from handrail.settings import Settings
from handrail.settings.model import Sandbox
from handrail.state import StoredState
from leftovers import MARK, marked

COMMANDER = Path(__file__).parent.parent / "commander.py"
TIER_2 = Settings(sandbox=Sandbox(tier=2, least=2, environment=(MARK,)))
DID_IT = "touch done"
can_mount = (
    os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
)
mounts = pytest.mark.skipif(not can_mount, reason="mounting takes root")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(MARK, str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def one(rail: Callable[..., Handrail], tmp_path: Path, mark: str) -> Iterator[Handrail]:
    """A Handrail that is looked at afterwards: one result and one record of each call, and no process."""
    made = rail(mode="full", settings=TIER_2)
    yield made
    events = list(made.events())
    begun = sorted(event.tool_call_id for event in events if isinstance(event, ToolCallStart))
    ended = sorted(event.result.tool_call_id for event in events if isinstance(event, ToolCallEnd | ToolCallError))
    found = StoredState(str(tmp_path / "state")).verify()
    assert begun == ended
    assert (found.problems, found.records) == ((), len(ended))
    assert marked(mark) == []


def refused(one: Handrail, code: str, words: str, **arguments: Any) -> None:
    """The call fails with a code and in words that say what to do, and has done nothing."""
    result = one.call("exec", {"command": DID_IT, **arguments})
    assert result.error is not None
    assert result.error.code == code, result.error.message
    assert words in result.error.message
    assert not list(Path(one.workspace).rglob("done"))


# What is asked


def test_a_folder_outside_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    for cwd in ("/etc", "..", "out", "../workspace-2", "/proc/self/root/etc", "~"):
        code = "NOT_FOUND" if cwd == "~" else "OUTSIDE_WORKSPACE"
        refused(one, code, "", cwd=cwd)


def test_a_folder_that_is_not_there_is_not_found(one: Handrail, workspace: Path) -> None:
    (workspace / "was").mkdir()
    assert one.exec("true", cwd="was").ok
    (workspace / "was").rmdir()
    refused(one, "NOT_FOUND", "was", cwd="was")
    (workspace / "dangling").symlink_to("was")
    refused(one, "NOT_FOUND", "dangling", cwd="dangling")


def test_a_file_is_no_folder(one: Handrail, workspace: Path) -> None:
    (workspace / "file").write_text("")
    os.mkfifo(workspace / "fifo")
    for cwd in ("file", "fifo"):
        refused(one, "NOT_A_DIRECTORY", f"{cwd} is not a folder", cwd=cwd)


def test_a_link_that_stays_inside_is_followed(one: Handrail, workspace: Path) -> None:
    (workspace / "real" / "inner").mkdir(parents=True)
    (workspace / "link").symlink_to("real")
    result = one.exec("pwd -P; touch made", cwd="link/inner")
    assert result.data.output == f"{workspace}/real/inner\n"
    assert (workspace / "real/inner/made").exists()


@pytest.mark.parametrize("name", ["with space", "$(touch done)", "-n", "new\nline", "quo'te\"", "grüß", ".", "%s"])
def test_a_folder_may_have_any_name(one: Handrail, workspace: Path, name: str) -> None:
    (workspace / name).mkdir(exist_ok=True)
    result = one.exec('printf %s "$PWD"', cwd=name)
    assert result.ok, result.error
    assert result.data.output == str(workspace / name)


def test_a_command_that_no_shell_can_be_given_is_refused(one: Handrail) -> None:
    refused(one, "LIMIT_EXCEEDED", "Write it to a file", command=f"{DID_IT} #" + "x" * (1 << 20))
    refused(one, "INVALID_ARGUMENT", "NUL", command=f"{DID_IT}\0")
    refused(one, "INVALID_ARGUMENT", "command", command="")
    refused(one, "INVALID_ARGUMENT", "", command=f"{DID_IT}; echo \ud800")
    refused(one, "INVALID_ARGUMENT", "", cwd="a\0b")
    refused(one, "INVALID_ARGUMENT", "command", command=7)
    refused(one, "INVALID_ARGUMENT", "timeoutMs", timeoutMs=99)
    refused(one, "INVALID_ARGUMENT", "timeoutMs", timeoutMs=600_001)


def test_the_longest_command_runs(one: Handrail) -> None:
    command = "echo begin; : " + "x" * (100_000 - 25) + "; echo end"
    assert one.exec(command[:100_000]).data.output == "begin\nend\n"


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("if then", 2, "syntax error"),
        ("echo 'open", 2, "unexpected EOF"),
        ("no-such-program-anywhere", 127, "command not found"),
        ("./done", 127, "No such file"),
        ("exit 300", 44, ""),
        ("kill -9 $$", 137, ""),
        ("kill -TERM 0", 143, ""),
        ("}", 2, "syntax error"),
        (") ; echo out", 2, "syntax error"),
        ("cat <<END\ntext", 0, "text"),
        ("# nothing", 0, ""),
        ("exec nothing-to-exec", 127, "not found"),
        ("set -e; false; echo no", 1, ""),
        ("ulimit -n 3; cat /dev/null; exit 9", 9, ""),
    ],
)
def test_what_bash_says_is_a_result(one: Handrail, command: str, code: int, says: str) -> None:
    result = one.exec(command)
    assert result.ok, result.error
    assert result.data.exit_code == code
    assert says in result.data.output


# Where it runs


@mounts
def test_a_full_disk_is_the_commands_to_handle(one: Handrail, small_disk: Path) -> None:
    (small_disk / "old").write_text("old")
    result = one.exec("head -c 1000000 /dev/zero > big || echo failed; rm -f big; cat old", cwd="disk")
    assert result.ok, result.error
    assert "No space left" in result.content
    assert result.content.endswith("failed\nold\n")


@mounts
def test_a_read_only_disk_is_the_commands_to_handle(one: Handrail, small_disk: Path) -> None:
    (small_disk / "old").write_text("old")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = one.exec("touch new || cat old", cwd="disk")
    assert result.ok, result.error
    assert "Read-only file system" in result.content


@mounts
@pytest.mark.parametrize("options", ["size=256k", "ro"])
def test_a_workspace_on_a_disk_that_takes_nothing_runs_commands(
    tmp_path: Path, rail: Callable[..., Handrail], options: str
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        with rail(workspace=folder, mode="full", settings=TIER_2) as one:
            result = one.exec("head -c 1000000 /dev/zero > big; echo code $?; pwd")
            assert result.ok, result.error
            assert "code 1" in result.content
            assert "No space left" in result.content or "Read-only" in result.content
            assert one.exec("pwd").data.output == f"{folder}\n"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@mounts
def test_output_that_finds_no_room_to_be_kept_is_said(tmp_path: Path, rail: Callable[..., Handrail]) -> None:
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", state], check=True)
    try:
        with rail(mode="full", settings=TIER_2, state_dir=state) as one:
            result = one.exec("seq 10000000 12000000; echo end; touch done")
            assert (Path(one.workspace) / "done").exists()
            assert result.ok, result.error
            assert result.data.output.endswith("12000000\nend\n")
            assert result.warnings or result.meta.limits
            assert one.exec("echo next").data.output == "next\n"
        assert StoredState(str(state)).verify().problems == ()
        assert not list((state / "printed").iterdir())
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


@mounts
def test_a_state_folder_without_room_runs_nothing(tmp_path: Path, rail: Callable[..., Handrail]) -> None:
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", state], check=True)
    try:
        with rail(mode="full", settings=TIER_2, state_dir=state) as one:
            assert one.exec("true").ok
            subprocess.run(["sh", "-c", 'cat /dev/zero > "$0"', state / "filler"], capture_output=True, check=False)
            failed = write_until_it_fails(one)
            assert failed.code == "NO_SPACE"
            assert "The disk is full" in failed.message
            (state / "filler").unlink()
            assert one.exec("echo next").data.output == "next\n"
        with rail(settings=Settings(), state_dir=state):
            pass  # what was owed to the audit is written when a session opens
        assert StoredState(str(state)).verify().problems == ()
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


def write_until_it_fails(one: Handrail) -> ErrorInfo:
    """The journal has some room that is its own, for a few calls."""
    results = (one.exec(f"echo {number} > last; # {'x' * 9_000}") for number in range(200))
    return next(result.error for result in results if result.error is not None)


def test_a_workspace_that_is_gone_is_said(one: Handrail, workspace: Path) -> None:
    assert one.exec("true").ok
    shutil.rmtree(workspace)
    result = one.exec("echo ran")
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    workspace.mkdir()


def test_too_few_descriptors_are_said_and_none_is_lost(one: Handrail) -> None:
    assert one.exec("true").ok
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = fill_the_gaps()
    before = descriptors()
    codes: list[str] = []
    for room in range(24):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 1 + room, limits[1]))
        try:
            result = one.exec("echo ran")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        codes.append(result.error.code if result.error else "ok")
    kept = descriptors()
    for filler in fillers:
        os.close(filler)
    assert (codes[0], codes[-1]) == ("IO_ERROR", "ok")
    assert set(codes) <= {"ok", "IO_ERROR", "LIMIT_EXCEEDED", "UNAVAILABLE", "SANDBOX_UNAVAILABLE"}, codes
    assert kept == before


def fill_the_gaps() -> list[int]:
    """Descriptors in all free places below the highest: what is opened next needs room above it."""
    fillers, highest = [os.dup(0)], max(map(int, descriptors()))
    while fillers[-1] < highest:
        fillers.append(os.dup(0))
    return fillers


def descriptors() -> set[str]:
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


# What it is run with


def without(program: str, tmp_path: Path, settings: dict[str, Any], commands: list[str]) -> list[dict[str, Any]]:
    """Runs commands where a program of the system cannot be started, in a space of mounts of its own."""
    (tmp_path / "workspace").mkdir(exist_ok=True)
    task = {
        "workspace": str(tmp_path / "workspace"), "state": str(tmp_path / "state"), "settings": {"sandbox": settings},
        "calls": [{"command": command} for command in commands],
    }  # fmt: skip
    script = 'mount --bind /dev/null "$0" && exec "$@"'
    place = os.path.realpath(shutil.which(program) or "")
    runtime = [sys.executable, str(COMMANDER), json.dumps(task)]
    done = subprocess.run(
        ["unshare", "-m", "dash", "-c", script, place, *runtime], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@mounts
def test_without_bubblewrap_the_next_tier_is_used_and_said(tmp_path: Path) -> None:
    [result] = without("bwrap", tmp_path, {}, ["ls"])
    assert result["ok"], result["error"]
    assert result["meta"]["sandbox"]["tier"] < 2
    assert result["meta"]["sandbox"]["gaps"]


@mounts
def test_without_bubblewrap_nothing_runs_where_it_is_demanded(tmp_path: Path) -> None:
    [result] = without("bwrap", tmp_path, {"least": 2}, [DID_IT])
    assert result["error"]["code"] == "SANDBOX_UNAVAILABLE"
    assert not (tmp_path / "workspace" / "done").exists()


@mounts
def test_without_a_shell_nothing_runs_and_that_is_said(tmp_path: Path) -> None:
    if shutil.which("dash") is None:
        pytest.skip("a shell is needed to take the other one away")
    [result] = without("bash", tmp_path, {}, [DID_IT])
    assert result["error"]["code"] in {"UNAVAILABLE", "SANDBOX_UNAVAILABLE"}
    assert not (tmp_path / "workspace" / "done").exists()


@pytest.mark.parametrize(
    "home", ["/", "/nonexistent/home", "", "relative", "{workspace}", "{workspace}/home", "/tmp", "/usr"]
)
def test_a_strange_home_breaks_nothing(
    rail: Callable[..., Handrail], workspace: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    (workspace / "kept").write_text("kept")
    (workspace / "home").mkdir()
    monkeypatch.setenv("HOME", home.format(workspace=workspace))
    result = rail(mode="full", settings=TIER_2).exec("cat kept && type cp > /dev/null && touch new")
    assert result.ok, result.error
    assert result.data.output.startswith("kept")
    assert (workspace / "new").exists()


@pytest.mark.parametrize(
    "name", ["with space", "new\nline", "-leading", "quo'te", "grüß", "a:b,c", "back\\slash", "%s"]
)
def test_a_workspace_may_have_any_name(rail: Callable[..., Handrail], tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    result = rail(workspace=folder, mode="full", settings=TIER_2).exec('printf %s "$PWD"; touch new')
    assert result.ok, result.error
    assert result.data.output == str(folder)
    assert (folder / "new").exists()
