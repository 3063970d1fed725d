"""Commands where no layer can be had: undo covers what a snapshot holds, and results say what it does not hold."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import undoing_user

import commander
from handrail import Handrail
from handrail.changes.snapshot import compare, git_store, snapshot
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import SandboxUsed, ToolResult
from handrail.settings import Settings
from handrail.settings.model import Sandbox

Make = Callable[..., Handrail]
NOBODY = 65534
GIT = git_store.find_git() or pytest.skip("git is not installed", allow_module_level=True)
NAMESPACES, LANDLOCK = Settings(sandbox=Sandbox(tier=2)), Settings(sandbox=Sandbox(tier=1))


def run(rail: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    return rail.call("exec", {"command": command, **more})


def sandbox(result: ToolResult[Any]) -> SandboxUsed:
    assert result.meta.sandbox is not None
    return result.meta.sandbox


def state_of(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        mode = 0 if path.is_symlink() else stat.S_IMODE(status.st_mode)
        found[str(path.relative_to(folder))] = (kind, mode, content)
    return found


def repository(folder: Path) -> None:
    subprocess.run([GIT, "init", "-q", str(folder)], check=True)


def as_nobody(folder: Path, tier: int, mode: str, commands: list[str]) -> list[dict[str, Any]]:
    """What came of commands of an ordinary user, one after the other, in the workspace of a folder."""
    if os.geteuid() == 0:
        subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", folder / "workspace"], check=True)
    source = Path(sys.modules["handrail"].__file__ or "").parent.parent
    more = [str(tier), str(NOBODY), mode, *commands]
    done = subprocess.run(
        [sys.executable, undoing_user.__file__, folder / "workspace", folder / "state", *more],
        env={"PYTHONPATH": os.pathsep.join([str(source), str(Path(commander.__file__).parent)]), "PATH": os.defpath},
        cwd="/",
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def may_start_the_interpreter(folder: Path) -> bool:
    """Whether an ordinary user may run the Python that runs the tests: not where it lies in root's own folder."""
    account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        done = subprocess.run([sys.executable, "-c", ""], cwd=folder, check=False, **account)
    except PermissionError:
        return False
    return done.returncode == 0


def interrupted(rail: Handrail, command: str, place: str) -> ToolResult[Any]:
    """The result of a command whose call is interrupted where a function of ours is called."""

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == ("call", place):
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(rail, command)
    finally:
        sys.setprofile(None)
    return [event.result for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)][-1]


# What the result says


def test_in_auto_mode_a_command_runs_unasked_and_can_be_taken_back(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(settings=NAMESPACES)
    result = run(one, "sed -i s/one/two/ a.txt; echo new > b.txt")
    assert result.ok, result.error
    assert (sandbox(result).tier, sandbox(result).undo) == (2, "snapshot")
    assert "sandbox.tier" in sandbox(result).no_layer
    assert result.artifacts.files_changed == ("a.txt", "b.txt")
    assert result.meta.undo is not None
    assert f"undo {result.meta.undo}" in result.content
    one.undo()
    assert state_of(workspace).keys() == {"a.txt"}
    assert (workspace / "a.txt").read_text() == "one\n"


LATER = "bash go"
"""A script, of which nobody can tell beforehand what it does."""


@pytest.mark.parametrize(
    "hiding", ["truncate -s 33M .vscode/tasks.json", "chmod 0 .vscode/tasks.json", "chmod 0 .vscode",
               "rm -r src; mkfifo src", "mkdir made; mkfifo made/pipe"],
)  # fmt: skip
def test_nothing_that_a_command_does_besides_hides_what_asks_nor_stands_in_the_way_of_taking_it_back(
    common_folder: Path, hiding: str, deep: bool
) -> None:
    if not hiding.startswith("rm") and not deep:
        pytest.skip("in a deep run")
    workspace = common_folder / "workspace"
    for name in (".vscode/tasks.json", "src/a"):
        (workspace / name).parent.mkdir(parents=True)
        (workspace / name).write_text("good\n")
    (workspace / "go").write_text(f"echo evil > .vscode/tasks.json; {hiding}\n")
    [told] = as_nobody(common_folder, 2, "auto", [LATER])
    assert "changes files that control tools, hooks or builds" in told["asked"][0]
    assert told["back"]
    assert (workspace / ".vscode" / "tasks.json").read_text() == "good\n"


def test_a_command_that_grows_a_file_beyond_what_is_kept_can_be_taken_back(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    one = rail(settings=NAMESPACES)
    result = run(one, "truncate -s 33M a")
    assert result.artifacts.files_changed == ("a",)
    one.undo()
    assert (workspace / "a").read_text() == "one\n"


def test_a_link_that_leads_outside_asks_afterwards(rail: Make, workspace: Path) -> None:
    (workspace / "go").write_text("ln -s /etc/shadow l\n")
    asked: list[str] = []
    one = rail(settings=NAMESPACES, on_permission=lambda request: asked.append(request.reason) or "deny")
    assert not run(one, LATER).ok
    assert "lead outside" in asked[0]
    assert not os.path.lexists(workspace / "l")


def test_where_nobody_can_tell_what_an_unasked_command_changed_the_result_says_so(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "go").write_text("echo 1 > a\n")
    monkeypatch.setattr(compare, "AFTER_SECONDS", -1.0)
    result = run(rail(settings=NAMESPACES), LATER)
    assert sandbox(result).undo == "none"
    assert any(": the command was neither judged nor reverted." in warning for warning in result.warnings)


def test_a_command_that_changes_nothing_has_no_number(rail: Make, workspace: Path) -> None:
    one = rail(settings=NAMESPACES)
    result = run(one, "touch -d 2020-01-01 . ; python3 -c 'print(1)'")
    assert result.ok
    assert result.meta.undo is None
    assert result.artifacts.files_changed == ()
    assert one.changes() == []


def test_the_result_names_what_undo_does_not_cover(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_IGNORED_PATHS", 0)
    repository(workspace)
    repository(workspace / "inner")
    (workspace / ".gitignore").write_text("cache/\n")
    (workspace / "cache").mkdir()
    (workspace / "cache" / "a").write_text("one\n")
    (workspace / ".env").write_text("SECRET=1\n")
    said = sandbox(run(rail(settings=NAMESPACES), "python3 -c 'print(1)'")).not_covered
    assert said == (
        "a credential: .env",
        "the repository itself: .git",
        "ignored by git: cache",
        "a repository of its own: inner",
        "extended attributes and times of files",
    )


def test_with_a_persons_yes_what_is_not_covered_may_be_changed_and_what_is_lost_is_said(
    rail: Make, workspace: Path
) -> None:
    repository(workspace)
    (workspace / "a").write_text("one\n")
    one = rail(mode="ask", settings=NAMESPACES, on_permission=lambda _: "once")
    result = run(one, "rm -rf .git a; python3 -c 'print(1)'")
    assert result.ok, result.error
    assert not (workspace / ".git").exists()
    assert any(".git" in warning and "Deleted, and undo cannot restore it:" in warning for warning in result.warnings)
    one.undo()
    assert (workspace / "a").read_text() == "one\n"


def test_below_namespaces_auto_mode_asks_and_a_yes_is_covered(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    asked: list[str] = []
    one = rail(settings=LANDLOCK, on_permission=lambda request: asked.append(request.reason) or "once")
    result = run(one, "sed -i s/one/two/ a; echo new > b")
    assert result.ok, result.error
    assert "undo does not cover it" in asked[0]
    assert (sandbox(result).tier, sandbox(result).undo) == (1, "snapshot")
    one.undo()
    assert (workspace / "a").read_text() == "one\n"
    assert not (workspace / "b").exists()


def test_full_mode_changes_the_repository_too_and_says_that_undo_does_not_cover_it(rail: Make, workspace: Path) -> None:
    repository(workspace)
    (workspace / "a").write_text("one\n")
    one = rail(mode="full", settings=NAMESPACES)
    commit = "git -c user.name=a -c user.email=a@b commit -qm first"
    result = run(one, f"git add a && {commit} && git config a.b c && echo two >> a")
    assert result.data.exit_code == 0, result.content
    assert "the repository itself: .git" in sandbox(result).not_covered
    assert result.artifacts.files_changed == ("a",)


def test_a_command_that_may_go_on_is_not_covered(rail: Make, workspace: Path) -> None:
    result = run(rail(mode="full", settings=NAMESPACES), "echo new > a", yieldMs=60_000)
    assert result.ok, result.error
    assert sandbox(result).undo == "none"


# What nobody was asked about


def test_git_that_changes_the_repository_asks_in_auto_mode(rail: Make, workspace: Path) -> None:
    repository(workspace)
    for command in ("git commit -m x", "(git commit -m x)", "make && git stash"):
        result = run(rail(settings=NAMESPACES), command)
        assert result.error is not None
        assert result.error.code == "PERMISSION_REQUIRED"


def test_unasked_nothing_is_written_that_undo_would_not_cover(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_IGNORED_PATHS", 0)
    repository(workspace)
    repository(workspace / "inner")
    (workspace / ".gitignore").write_text("data/\n*.db\n")
    (workspace / "data").mkdir()
    (workspace / "data" / "precious").write_text("one\n")
    (workspace / "my.db").write_text("one\n")
    (workspace / ".env").write_text("SECRET=1\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    for command in (
        'python3 -c \'open(".git/hooks/pre-commit", "w")\'',
        'python3 -c \'open(".git/config", "a").write("x")\'',
        "python3 -c 'import shutil; shutil.rmtree(\".git\")'",
        'python3 -c \'import os; os.rename(".git", "gone")\'',
        'python3 -c \'import os; os.rename("data", "gone")\'',
        "python3 -c 'import os; os.unlink(\"data/precious\")'",
        "python3 -c 'import os; os.unlink(\"my.db\")'",
        "python3 -c 'import os; os.unlink(\".env\")'",
        'python3 -c \'open("my.db", "w")\'',
        'python3 -c \'open("inner/.git/config", "w")\'',
        'python3 -c \'import os; os.rename("inner", "gone")\'',
    ):
        result = run(one, command)
        assert result.data.exit_code != 0, command
        assert "undo would not cover it without an approval" in result.content, result.content
        assert state_of(workspace) == before, command


def test_what_becomes_of_a_protected_name_is_taken_back_and_asked_about(rail: Make, workspace: Path) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "tasks.json").write_text("{}\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    for command in (
        'python3 -c \'open(".vscode/tasks.json", "w").write("evil")\'',
        'python3 -c \'open(".pre-commit-config.yaml", "w").write("evil")\'',
        'mkdir -p x/.git; python3 -c \'open("x/.git/config", "w").write("[core]\\n\\tfsmonitor = evil\\n")\'',
        "python3 -c 'for n in range(300): open(str(n), \"w\").write(str(n))'",
    ):
        result = run(one, command)
        assert result.error is not None, command
        assert result.error.code == "PERMISSION_REQUIRED"
        assert state_of(workspace) == before, command


@pytest.mark.parametrize("place", ["_check_started", "compare_snapshot", "finish_command", "_explain_read_only_paths"])
def test_what_an_interrupted_command_changed_is_told_and_can_be_taken_back(
    rail: Make, workspace: Path, place: str
) -> None:
    (workspace / "a").write_text("a\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    result = interrupted(one, "echo b >> a; echo c > made", place)
    assert result.error is not None
    assert result.error.code == "CANCELLED"
    assert "Its known changes: a, made (undo 1)" in result.content
    assert result.artifacts.files_changed == ("a", "made")
    assert one.undo().ok
    assert state_of(workspace) == before


@pytest.mark.parametrize("place", ["_check_started", "to_permission_preview"])
def test_what_an_interrupted_command_changed_is_taken_back_where_it_needs_a_yes(
    rail: Make, workspace: Path, place: str
) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "tasks.json").write_text("{}\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    result = interrupted(one, 'python3 -c \'open(".vscode/tasks.json", "w").write("evil")\'', place)
    assert state_of(workspace) == before
    assert "were undone by 2" in result.content
    assert result.artifacts.files_changed == ()


def test_taking_back_that_is_interrupted_leaves_something_that_can_be_undone(rail: Make, workspace: Path) -> None:
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    result = interrupted(one, 'python3 -c \'open(".pre-commit-config.yaml", "w").write("evil")\'', "apply_steps")
    assert result.artifacts.files_changed == (".pre-commit-config.yaml",)
    assert one.undo().ok
    assert state_of(workspace) == before


def test_what_was_taken_back_is_kept_with_a_yes_and_not_run_again(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    asked: list[PermissionRequest] = []
    one = rail(settings=NAMESPACES, on_permission=lambda request: asked.append(request) or "once")
    command = "echo ran >> a; python3 -c 'for n in range(300): open(str(n), \"w\").write(str(n))'"
    before = state_of(workspace)
    result = run(one, command)
    assert result.ok, result.error
    (request,) = asked
    assert request.preview is not None
    assert request.preview.tried is not None
    assert request.preview.tried.files == 301
    assert (workspace / "a").read_text() == "one\nran\n"
    assert len(state_of(workspace)) == 301
    assert (sandbox(result).tier, sandbox(result).undo) == (2, "snapshot")
    undone = one.undo(result.meta.undo)
    assert undone.ok, undone.error
    assert state_of(workspace) == before


def test_what_was_taken_back_stays_so_with_a_no(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES, on_permission=lambda _: "deny")
    result = run(one, "echo ran >> a; python3 -c 'for n in range(300): open(str(n), \"w\").write(str(n))'")
    assert not result.ok
    assert state_of(workspace) == before
    assert [change.in_effect for change in one.changes() if not change.undoes] == [False]


def test_where_the_snapshot_fails_nothing_runs_before_somebody_says_yes(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_SNAPSHOT_BYTES", 100)
    (workspace / "a").write_bytes(b"x" * 1_000)
    seen: list[tuple[str, bool]] = []

    def answer(request: PermissionRequest) -> str:
        seen.append((request.reason, (workspace / "b").exists()))
        return "once"

    result = run(rail(settings=NAMESPACES, on_permission=answer), 'python3 -c \'open("b", "w")\'')
    assert result.ok, result.error
    ((reason, was_there),) = seen
    assert "the workspace is too large for a snapshot" in reason
    assert not was_there
    assert sandbox(result).undo == "none"
    assert result.artifacts.files_changed == ("b",)


def test_a_new_credential_is_taken_back_and_refused(rail: Make, workspace: Path) -> None:
    result = run(rail(settings=NAMESPACES), 'python3 -c \'open("id_rsa", "w").write("key")\'')
    assert result.error is not None
    assert result.error.code == "POLICY_DENIED"
    assert "It was reverted." in result.error.message
    assert state_of(workspace) == {}


def test_deletions_below_the_bulk_limit_go_unasked_and_come_back(rail: Make, workspace: Path) -> None:
    for number in range(10):
        (workspace / str(number)).write_text(f"{number}\n")
    before = state_of(workspace)
    one = rail(settings=NAMESPACES)
    assert run(one, "python3 -c 'import os; [os.unlink(n) for n in os.listdir(\".\")]'").ok
    assert state_of(workspace) == {}
    one.undo()
    assert state_of(workspace) == before


# Without a snapshot


def test_without_git_auto_mode_asks_and_what_a_yes_changed_is_listed_only(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_store, "PROGRAMS", ())
    (workspace / "a").write_text("one\n")
    asked: list[str] = []
    one = rail(settings=NAMESPACES, on_permission=lambda request: asked.append(request.reason) or "once")
    result = run(one, 'echo two > a; python3 -c \'open("b", "w")\'')
    assert result.ok, result.error
    assert asked
    assert sandbox(result).undo == "none"
    assert "git is not installed" in sandbox(result).not_covered[0]
    assert result.artifacts.files_changed == ("a", "b")
    assert "undo does not cover it" in result.content
    (listed,) = one.changes()
    assert {change.path: change.action for change in listed.changes} == {"a": "modified", "b": "created"}
    assert not listed.undoable
    undone = one.undo()
    assert undone.error is not None
    assert "was not stored" in undone.error.message


def test_too_large_a_workspace_is_listed_only(rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_SNAPSHOT_BYTES", 100)
    (workspace / "a").write_bytes(b"x" * 1_000)
    result = run(rail(mode="full", settings=NAMESPACES), "echo two > b")
    assert result.ok, result.error
    assert sandbox(result).undo == "none"
    assert "too large" in sandbox(result).not_covered[0]
    assert result.artifacts.files_changed == ("b",)


def test_where_nobody_can_be_asked_a_failed_snapshot_is_a_no(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_SNAPSHOT_BYTES", 100)
    (workspace / "a").write_bytes(b"x" * 1_000)
    result = run(rail(settings=NAMESPACES, unattended=True), 'python3 -c \'open("b", "w")\'')
    assert result.error is not None
    assert result.error.code == "PERMISSION_DENIED"
    assert "Nothing ran." in result.error.message
    assert not (workspace / "b").exists()


def test_where_too_much_would_have_to_be_read_only_somebody_is_asked(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_IGNORED_PATHS", 0)
    (workspace / ".gitignore").write_text("*.log\n")
    for number in range(1_100):
        (workspace / f"{number}.log").write_text("one\n")
    result = run(rail(settings=NAMESPACES), 'python3 -c \'open("b", "w")\'')
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    assert "1,100 paths could be neither stored nor made read-only" in result.error.message
    assert not (workspace / "b").exists()


# Others


def test_what_another_session_writes_waits_and_is_not_this_commands(rail: Make, workspace: Path) -> None:
    os.mkfifo(workspace / "go")
    first, second = rail(mode="full", settings=NAMESPACES, session="a"), rail(mode="full", session="b")
    results: list[ToolResult[Any]] = []
    command = "echo one > mine; python3 -c 'open(\"go\").read()'; echo two >> mine"
    running = threading.Thread(target=lambda: results.append(run(first, command)))
    running.start()
    with open(workspace / "go", "w", encoding="utf-8") as go:  # the command runs
        writing = threading.Thread(target=lambda: results.append(second.call("write", {"path": "b", "content": "b"})))
        writing.start()
        assert not (workspace / "b").exists()
        go.write("on\n")
    running.join(60)
    writing.join(60)
    assert [result.ok for result in results] == [True, True]
    assert results[0].artifacts.files_changed == ("mine",)


@pytest.mark.parametrize(
    "script",
    [
        "echo more >> a.txt",
        ": > a.txt",
        "rm a.txt",
        "mv a.txt b.txt",
        "mv folder other",
        "rm -rf folder",
        'python3 -c \'import os; os.unlink("a.txt"); os.mkdir("a.txt"); open("a.txt/b", "w").write("in")\'',
        "rm -rf folder; echo file > folder",
        "chmod 755 a.txt",
        "chmod 600 a.txt; echo more >> a.txt",
        "chmod 700 folder/run.sh",
        "ln -s a.txt new-link",
        "ln -sf b link",
        "rm link",
        "rm link; echo no link > link",
        "rm a.txt; ln -s link a.txt",
        "mkdir -p deep/er/still",
        "mkdir empty",
        "rmdir nothing",
        "rmdir nothing; echo x > nothing",
        "head -c 3000000 /dev/zero > large",
        "truncate -s 5M sparse",
        "printf 'a\\0b' > binary",
        "printf 'x' > \"$(printf 'new\\nline')\"",
        "printf 'x' > ' blank '",
        "printf 'x' > $'\\xff\\xfe'",
        "printf 'a\\r\\nb\\r\\n' > crlf.txt",
        "sed -i 's/one/two/' a.txt folder/inner.txt",
        "cp -r folder copy",
        "cp a.txt folder/run.sh",
        "tar cf all.tar folder && rm -rf folder && tar xf all.tar && rm all.tar",
        "for n in $(seq 50); do echo $n > f$n; done",
        'python3 -c \'import os; os.rename("a.txt", "folder/a.txt")\'',
        "mkdir -p node_modules/x && echo 1 > node_modules/x/index.js",
        "mkdir src && cd src && echo 1 > main.py && python3 -m compileall -q .",
        "echo 'a.txt' > .gitignore; echo changed > a.txt",
        "touch -d 2001-01-01 a.txt",
        "rm hard-1",
        "rm hard-1 hard-2",
        "echo through >> hard-1",
        "sed -i s/one/two/ hard-2",
        "ln hard-1 hard-3",
        "exit 3",
        "echo half > a.txt; exit 1",
        "echo killed > a.txt; kill -9 $$",
    ],
)
def test_undo_brings_back_what_a_script_changed(rail: Make, workspace: Path, script: str) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b").write_text("b\n")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "inner.txt").write_text("one\n")
    (workspace / "folder" / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "folder" / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("a.txt")
    (workspace / "nothing").mkdir()
    (workspace / "hard-1").write_text("one\n")
    (workspace / "hard-2").hardlink_to(workspace / "hard-1")
    before = state_of(workspace)
    copy = workspace.parent / "copy"
    subprocess.run(["cp", "-a", workspace, copy], check=True)
    subprocess.run(["bash", "-c", script], cwd=copy, check=False, capture_output=True)
    one = rail(mode="full", settings=NAMESPACES)
    result = run(one, script)
    assert result.data is not None, result.error
    assert without_caches(state_of(workspace)) == without_caches(state_of(copy))
    if result.meta.undo is None:
        assert state_of(workspace) == before
        return
    undone = one.undo()
    assert undone.ok, undone.error
    assert state_of(workspace) == before
    assert (workspace / "hard-1").samefile(workspace / "hard-2")


def without_caches(states: dict[str, tuple[object, ...]]) -> dict[str, object]:
    """What Python compiles has the time in it."""
    return {path: state[:2] if path.endswith(".pyc") else state for path, state in states.items()}


@pytest.mark.parametrize("tier", [2, 1])
def test_an_ordinary_user_has_the_same_undo(common_folder: Path, tier: int) -> None:
    workspace = common_folder / "workspace"
    (workspace / "a.txt").write_text("one\n")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "b").write_text("b\n")
    (workspace / "link").symlink_to("a.txt")
    if os.geteuid() == 0:
        subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", workspace], check=True)
    commands = [
        "echo more >> a.txt; echo new > c; mkdir -p d/e",
        "rm -rf folder a.txt",
        "chmod 700 a.txt; ln -sf folder link",
        'mv folder moved; python3 -c \'open("moved/b", "a").write("x")\'',
        'python3 -c \'import os; os.unlink("a.txt"); os.mkdir("a.txt"); open("a.txt/b", "w")\'',
        "for n in $(seq 40); do echo $n > f$n; done",
        "chmod 700 folder",
        "chmod 000 folder",
    ]
    if tier == 1 and not may_start_the_interpreter(common_folder):
        pytest.skip("this user may not run the interpreter, which starts what Landlock holds")
    told = as_nobody(common_folder, tier, "full", commands)
    expected = {
        "code": 0, "error": "", "undo": "snapshot", "asked": [], "changed": True, "undone": "", "back": True
    }  # fmt: skip
    assert told == [expected] * len(commands)


UNFINISHED = """
import sys
from handrail import Handrail
from handrail.changes.snapshot import snapshot
from handrail.settings import Settings
from handrail.settings.model import Sandbox
snapshot.MAX_SNAPSHOT_BYTES = 150  # so the snapshot stops in the middle
rail = Handrail(sys.argv[1], mode="full", state_dir=sys.argv[2], settings=Settings(sandbox=Sandbox(tier=2)))
rail.exec("echo made > made; echo begun > pipe; sleep 60")
"""


def test_undo_after_a_crash_deletes_no_file_that_an_unfinished_snapshot_lacks(
    tmp_path: Path, workspace: Path, rail: Make
) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text(name * 100)
    os.mkfifo(workspace / "pipe")
    with subprocess.Popen([sys.executable, "-c", UNFINISHED, workspace, tmp_path / "state"]) as victim:
        assert (workspace / "pipe").read_text() == "begun\n"
        victim.kill()
    one = rail(mode="full", settings=NAMESPACES)
    (change,) = one.changes()
    assert ("its changes are unknown" in change.summary, change.undoable) == (True, False)
    undone = one.undo(change.number)
    assert undone.error is not None
    assert {path.name for path in workspace.iterdir()} == {"a", "b", "c", "made", "pipe"}
