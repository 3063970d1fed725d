"""git in exec, through the whole pipeline: what only looks starts no program that a repository configures, and says of
files that handrail wrote what plain git says."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail

Make = Callable[..., Handrail]

WHO = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
SETUP = "echo one >a; git add a; git commit -qm 1; echo two >a; git commit -qam 2"
TRAP = '#!/bin/sh\necho "program started" >&2\ntest -f "$1" && cat "$1" || cat\n'
CONVERTED = 'echo "* diff=d" >.gitattributes; git config diff.d.textconv "$TRAP"; echo three >a'
EXTERNAL = 'echo "* diff=d" >.gitattributes; git config diff.d.command "$TRAP"; echo three >a'
CLEANED = """echo "* filter=f" >.gitattributes; git config filter.f.clean "$TRAP"; git config filter.f.required true
touch -d 2001-01-01 a"""
SUBMODULE = """git init -q sub; echo 1 >sub/a; git -C sub add a; git -C sub commit -qm 1; git -C sub config user.name a
git add -f sub 2>&-; cd sub"""
MERGED = """git checkout -qb b HEAD~1; echo b >a; git commit -qam b; git checkout -q main; git merge -q b; echo m >a
git commit -qam m; echo "* merge=m" >.gitattributes; git config merge.m.driver "$TRAP %A"
git config log.diffMerges remerge"""
INCLUDED = 'mkdir "p\tq"; mv .git/config "p\tq/more"; git init -q; git config include.path "../p\tq/more"'


def sh(folder: Path, script: str, home: Path | None = None) -> str:
    """What a script prints that plain bash and plain git run."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home or folder.parent), "TRAP": str(folder / ".git/trap"), **WHO}
    environ |= {"GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def set_up(workspace: Path, script: str) -> None:
    sh(workspace, "git init -q -b main")
    (workspace / ".git/trap").write_text(TRAP)
    (workspace / ".git/trap").chmod(0o755)
    assert "fatal" not in sh(workspace, f"{SETUP}\n{script}")


def exec_(rail: Handrail, command: str, **more: Any) -> Any:
    result = rail.call("exec", {"command": command, **more})
    assert result.ok, result.error
    return result.data


WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a text converter": (
        f"{CONVERTED}; git add a; echo four >a",
        ("git diff", "git diff HEAD~1 | cat", "git log -p", "git log -S two", "git show", "git blame a",
         "git reflog -p", "git status -v", "git --no-pager diff", "/usr/bin/git diff"),
    ),
    "a text converter in info/attributes": (f"{CONVERTED}; mv .gitattributes .git/info/attributes", ("git diff",)),
    "a text converter of a nested repository": (f"{SUBMODULE}; {CONVERTED}", ("cd sub && git diff",)),
    "a text converter of a submodule": (
        f"git config diff.submodule diff; {SUBMODULE}; {CONVERTED}", ("git diff",)
    ),
    "an external diff": ('git config diff.external "$TRAP"; echo three >a', ("git diff",)),
    "an external diff of a driver": (EXTERNAL, ("git diff",)),
    "a file monitor": ('git config core.fsmonitor "$TRAP"', ("git status", "git diff", "git ls-files -m")),
    "a file monitor of a submodule": (f'{SUBMODULE}; git config core.fsmonitor "$TRAP"', ("git status", "git diff")),
    "a clean filter": (
        CLEANED,
        ("git status", "git diff", "git diff-files -p", "git diff-index -p HEAD", "git ls-files -m", "git blame a"),
    ),
    "a clean filter in info/attributes": (f"{CLEANED}; mv .gitattributes .git/info/attributes", ("git diff",)),
    "a clean filter of a submodule": (f"{SUBMODULE}; {CLEANED}", ("git status", "git diff")),
    "a clean filter of a strange name": (
        """printf '[core] [FILTER.x "A=\\\\"b]'\\''!"] clean = %s' "$TRAP" >>.git/config; echo three >a
        printf '* filter=x.A=\\"b]'\\''!' >.git/info/attributes""",
        ("git diff",),
    ),
    "a clean filter in an included file": (f"{CLEANED}; {INCLUDED}", ("git diff",)),
    "a clean filter of a worktree": (
        f"""git worktree add -q tree; git config extensions.worktreeConfig true; cd tree
        git() {{ [ "$1" = config ] && set -- config --worktree "${{@:2}}"; command git "$@"; }}; {CLEANED}""",
        ("cd tree && git diff",),
    ),
    "a filter process": (
        'echo "* filter=f" >.gitattributes; git config filter.f.process "$TRAP"; echo 3 >a', ("git diff",)
    ),
    "a merge driver": (MERGED, ("git log -p -m",)),
    "a hook": ('cp "$TRAP" .git/hooks/post-index-change; touch -d 2001-01-01 a', ("git status",)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_git_that_only_looks_starts_no_program_that_a_repository_configures(
    rail: Make, workspace: Path, way: str
) -> None:
    script, commands = WAYS[way]
    set_up(workspace, script)
    data = exec_(rail(mode="plan"), " && ".join(commands))
    assert "program started" not in data.output
    assert data.exit_code == 0, data.output
    for command in commands:
        printed = sh(workspace, f"touch -c a sub/a; {command}")  # else the index is up to date since the command before
        assert "program started" in printed, f"plain git starts it: {command}"


@pytest.mark.parametrize("scope", ["--global", "--local"])
def test_git_with_large_file_storage_runs_unasked(rail: Make, workspace: Path, scope: str) -> None:
    set_up(workspace, 'echo pointer >b.bin; echo "*.bin filter=lfs" >.gitattributes; git add .; git commit -qm 3')
    sh(workspace, f"git config {scope} filter.lfs.clean git-lfs; git config {scope} filter.lfs.required true")
    data = exec_(rail(mode="plan"), "git status --porcelain && git diff && git diff --quiet && git ls-files -m")
    assert (data.exit_code, data.output) == (0, "")


# What git says of files that handrail wrote


def keep(rail: Handrail, command: str) -> None:
    """Approves the preview of a command."""
    result = rail.call("exec", {"command": command})
    assert result.error is not None, result.content
    [request] = rail.waiting()
    outcome = rail.answer(request.id, "once")
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok, outcome.results[0].error


CLEAN = "git diff --quiet && git diff && git status --porcelain --untracked-files=no && git diff --cached --quiet"


@pytest.mark.parametrize(
    "commands",
    [
        ("echo y > a", "git checkout -- a"),
        ("echo y > a; echo z > b", "git stash"),
        ("echo y > a", "git commit -am y"),
        ("git checkout side; git checkout main", "git checkout side"),
    ],
)
def test_a_kept_preview_leaves_no_file_that_git_takes_for_changed(
    rail: Make, workspace: Path, commands: tuple[str, ...]
) -> None:
    set_up(workspace, "echo b >b; git add .; git commit -qm 3; git branch side HEAD~2; git config user.name a")
    sh(workspace, "git config user.email a@b")
    handrail = rail(mode="ask")
    for command in commands:
        keep(handrail, command)
    data = exec_(handrail, CLEAN)
    assert (data.exit_code, data.output) == (0, "")
    assert sh(workspace, f"({CLEAN}) && echo clean") == "clean\n"


def test_undo_of_a_kept_checkout_brings_the_index_back_and_git_sees_no_other_change(
    rail: Make, workspace: Path
) -> None:
    set_up(workspace, "git branch side HEAD~1")
    index = (workspace / ".git/index").read_bytes()
    handrail = rail(mode="ask")
    keep(handrail, "git checkout side")
    assert (workspace / "a").read_text() == "one\n"
    handrail.undo()
    assert (workspace / "a").read_text() == "two\n"
    assert (workspace / ".git/index").read_bytes() == index
    data = exec_(handrail, CLEAN)
    assert (data.exit_code, data.output) == (0, "")


def test_git_that_only_looks_leaves_an_outdated_index_as_it_is(rail: Make, workspace: Path) -> None:
    set_up(workspace, "touch -d 2001-01-01 a")
    index = (workspace / ".git/index").read_bytes()
    assert exec_(rail(mode="plan"), "git diff --quiet").exit_code == 0
    assert (workspace / ".git/index").read_bytes() == index
    assert not (workspace / ".git/index.lock").exists()
