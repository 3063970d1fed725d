"""What is gathered about a command before it is judged."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.changes.snapshot.git_store import find_git
from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.protocol.decisions import PathFact
from handrail.protocol.errors import ToolError
from handrail.runtime.facts import collect_command_facts
from handrail.tools.exec.spec import EXEC
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace


@pytest.fixture
def place(workspace: Path, tmp_path: Path) -> Iterator[Workspace]:
    """The workspace with a read-only root beside it."""
    (tmp_path / "extra").mkdir()
    with Workspace(str(workspace), Root(str(tmp_path / "extra"), writable=False)) as opened:
        yield opened


def paths(place: Workspace, text: str, cwd: str = ".") -> list[PathFact]:
    return list(collect_command_facts(place, text, cwd, tier=2).paths)


def test_every_path_that_a_command_names_is_looked_at(place: Workspace, workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello")
    (workspace / "dir").mkdir()
    found = paths(place, "cat a.txt; rm -r dir; touch new")
    assert [(fact.path, fact.access, fact.kind, fact.real) for fact in found] == [
        ("a.txt", "read", "file", "a.txt"),
        ("dir", "delete", "directory", "dir"),
        ("new", "write", "missing", "new"),
    ]


def test_paths_are_those_of_the_folder_that_the_command_is_in(place: Workspace, workspace: Path) -> None:
    (workspace / "api").mkdir()
    (workspace / "api" / "a.txt").write_text("")
    [fact] = paths(place, "cat a.txt", "api")
    assert (fact.kind, fact.real) == ("file", "api/a.txt")
    assert ("file", "api/a.txt") in [(fact.kind, fact.real) for fact in paths(place, "cd api && cat a.txt")]


def test_a_path_that_leads_outside_is_a_fact(place: Workspace, workspace: Path) -> None:
    (workspace / "link").symlink_to("/etc/hostname")
    for path in ("../x", "/etc/hostname", "link"):
        [fact] = paths(place, f"cat {path}")
        assert (fact.path, fact.real) == (path, None)


def test_a_path_in_another_root_is_what_it_is(place: Workspace, tmp_path: Path) -> None:
    [fact] = paths(place, f"cat {tmp_path}/extra/a")
    assert (fact.kind, fact.real, fact.writable) == ("missing", f"{tmp_path}/extra/a", False)


@pytest.mark.parametrize("command", ["rm link/*", "rm -rf link/a*", "mv link/* .", "chmod 600 link/*"])
def test_a_pattern_changes_what_is_in_the_folder_that_a_link_leads_to(
    place: Workspace, workspace: Path, command: str
) -> None:
    (workspace / "link").symlink_to("/etc")
    assert paths(place, command)[0].real is None
    (workspace / "link").unlink()
    (workspace / "link").symlink_to(".git/hooks")
    (workspace / ".git" / "hooks").mkdir(parents=True)
    assert paths(place, command)[0].real == ".git/hooks"


def test_a_pattern_in_a_root_is_about_that_root_however_it_is_spelled(place: Workspace, workspace: Path) -> None:
    for spelled in ("", "./", f"{workspace}/"):
        [fact] = paths(place, f"rm {spelled}*.pyc")
        assert (fact.kind, fact.real) == ("directory", ".")


IMPOSSIBLE = ["x" * 300, "/".join(["x" * 200] * 30), "circle"]


@pytest.mark.parametrize("path", IMPOSSIBLE, ids=["long name", "long path", "circle"])
def test_where_nobody_can_tell_where_a_path_leads_it_counts_as_outside(
    place: Workspace, workspace: Path, path: str
) -> None:
    (workspace / "circle").symlink_to("circle")
    assert paths(place, f"cat {path}") == [PathFact(path=path, access="read", kind="other", real=None)]


@pytest.mark.parametrize("command", ["cat {}", "echo x > {}", "rm {}"])
def test_a_path_below_a_file_is_missing_and_inside(place: Workspace, workspace: Path, command: str) -> None:
    (workspace / "a.txt").write_text("")
    (workspace / "link").symlink_to("a.txt")
    (workspace / "out").symlink_to("/etc/passwd")
    for path, real in (("a.txt/b", "a.txt/b"), ("a.txt/b/c", "a.txt/b/c"), ("link/b", "a.txt/b"), ("out/b", None)):
        [fact] = paths(place, command.format(path))
        assert (fact.real, fact.kind) == (real, "missing" if real else "other")


def test_of_very_many_paths_the_last_count_as_outside(place: Workspace) -> None:
    found = paths(place, f"cd a; cd b; cat {' '.join(f'f{n}' for n in range(380))}")  # in any of four folders
    assert len(found) > 1_000
    assert [fact.real is None for fact in found] == [n >= 1_000 for n in range(len(found))]


def test_looking_opens_nothing_for_reading(place: Workspace, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    [fact] = paths(place, "cat pipe")
    assert (fact.kind, fact.real) == ("other", "pipe")
    with pytest.raises(OSError, match="No such device or address"):  # nobody has it open for reading
        os.open(workspace / "pipe", os.O_WRONLY | os.O_NONBLOCK)


@pytest.mark.parametrize(
    ("cwd", "code"),
    [
        ("..", "OUTSIDE_WORKSPACE"),
        ("/", "OUTSIDE_WORKSPACE"),
        ("none", "NOT_FOUND"),
        ("a.txt", "NOT_A_DIRECTORY"),
        ("a.txt/b", "NOT_A_DIRECTORY"),
        ("", "INVALID_ARGUMENT"),
        ("a\0b", "INVALID_ARGUMENT"),
    ],
)
def test_a_command_starts_in_a_folder_beneath_the_roots(place: Workspace, workspace: Path, cwd: str, code: str) -> None:
    (workspace / "a.txt").write_text("")
    with pytest.raises(ToolError) as caught:
        collect_command_facts(place, "ls", cwd, tier=2)
    assert caught.value.code == code


def test_what_can_be_done_with_the_command_is_kept_with_it(place: Workspace) -> None:
    command = collect_command_facts(place, "ls", background=True, tier=3).command
    assert command is not None
    assert (command.text, command.cwd, command.background, command.tier) == ("ls", ".", True, 3)


def test_the_display_parser_looks_only_where_ours_cannot(place: Workspace) -> None:
    plain, complex_one = (collect_command_facts(place, text, tier=2).command for text in ("ls", 'rm "$HOME/x"; ls'))
    assert plain is not None
    assert complex_one is not None
    assert plain.seen is None
    assert complex_one.seen is not None
    assert [seen.words[0] for seen in complex_one.seen] == ["rm", "ls"]


def test_absolute_paths_in_what_the_display_parser_saw_are_looked_at_too(place: Workspace) -> None:
    found = paths(place, "echo $X; rm /etc/passwd")
    assert [(fact.path, fact.access, fact.real) for fact in found] == [("/etc/passwd", "delete", None)]


def test_folders_that_cd_leads_to_are_told_if_they_can_be_entered(place: Workspace, workspace: Path) -> None:
    (workspace / "src").mkdir(exist_ok=True)
    (workspace / "file").write_text("")
    (workspace / "out").symlink_to("/etc")
    for text, there in (
        ("cd src; cd ..; ls", {"src", ".", "src/.."}),
        ("cd file; cd out", set()),
        ("cd none && cd src", set()),
        ("cd src && cd none", {"src"}),
    ):
        found = collect_command_facts(place, text, tier=2).command
        assert found is not None
        assert set(found.there) == there
    assert collect_command_facts(place, "echo $X; cd src", tier=2).command.there == ()


def test_going_there_and_back_is_no_way_out(place: Workspace, workspace: Path) -> None:
    (workspace / "src").mkdir(exist_ok=True)
    for text, decision in (("cd src; ls; cd ..; ls", "allow"), ("cd none; ls; cd ..; ls", "deny")):
        assert decide(EXEC, None, collect_command_facts(place, text, tier=2), PolicyConfig("plan")).decision == decision


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf {}", "rm -rf {}/", "rm -rf {}/.", "rm -rf {}/a/..", "chmod -R 777 {}", "chown -R x {}/", "rm -rf /tmp",
        "rm -rf /tmp/*", "mv /tmp /x", "rm -rf {}/..",
    ],
)  # fmt: skip
def test_no_root_is_deleted_or_given_away_as_a_whole(workspace: Path, tmp_path: Path, command: str) -> None:
    extra = tmp_path / "extra"
    (extra / "a").mkdir(parents=True)
    with Workspace(str(workspace), Root(str(extra))) as place:
        for root in (str(extra), str(workspace)):
            (Path(root) / "a").mkdir(exist_ok=True)
            facts = collect_command_facts(place, command.format(root), tier=3)
            assert decide(EXEC, None, facts, PolicyConfig("full")).decision == "deny"


def test_what_lies_beside_a_root_in_the_private_tmp_may_be_deleted(place: Workspace) -> None:
    for command in ("rm -rf /tmp/x", "rm -rf /tmp/x/*"):
        assert (
            decide(EXEC, None, collect_command_facts(place, command, tier=3), PolicyConfig("auto")).decision == "allow"
        )


def test_what_is_no_regular_file_is_not_proven_to_be_read(place: Workspace, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    found = decide(EXEC, None, collect_command_facts(place, "cat fifo", tier=2), PolicyConfig("ask"))
    assert (found.decision, found.rule) == ("confirm", "fs.special")


@pytest.mark.parametrize(
    ("command", "more", "snapshot"),
    [
        ("make", {"tier": 2}, True),
        ("git status && make", {"tier": 2}, True),
        ("git commit -m x", {"tier": 2}, False),
        ("(git commit -m x)", {"tier": 2}, False),
        ("make", {"tier": 1}, False),
        ("make", {"tier": 3}, False),
        ("make", {"tier": 2, "background": True}, False),
        ("make", {"tier": 2, "yields": True}, False),
    ],
)
def test_undo_covers_a_command_by_a_snapshot_only_where_what_that_lacks_can_be_read_only(
    place: Workspace, command: str, more: dict[str, Any], snapshot: bool
) -> None:
    if find_git() is None:
        pytest.skip("git is not installed")
    fact = collect_command_facts(place, command, **more).command
    assert fact is not None
    assert fact.snapshot is snapshot
