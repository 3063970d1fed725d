"""What a snapshot holds, what it says that it does not hold, and what changed since it was taken."""

import os
import shutil
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail.changes.history import History
from handrail.changes.snapshot import git_store, scan
from handrail.changes.snapshot import snapshot as snapshots
from handrail.changes.snapshot.compare import SnapshotChanges, compare_manifests, compare_snapshot, read_manifest
from handrail.changes.snapshot.scan import RootScanner, SnapshotError
from handrail.changes.snapshot.snapshot import Snapshot, load_last_snapshot, open_scanner, take_snapshot
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

GIT = git_store.find_git() or pytest.skip("git is not installed", allow_module_level=True)


def told(outcome: SnapshotChanges) -> dict[str, str]:
    return {change.path: change.action for change in outcome.examined.changes}


def uncovered(snapshot: Snapshot) -> dict[str, str]:
    return {one.shown: one.why for one in snapshot.uncovered()}


def repository(folder: Path) -> None:
    subprocess.run([GIT, "init", "-q", str(folder)], check=True)


def kept(history: History, digest: str) -> bytes:
    return b"".join(history.blobs.chunks(digest))


def test_every_kind_of_change_is_told_with_what_was_there_before(
    workspace: Path, house: Workspace, history: History
) -> None:
    for name in ("stays", "changes", "goes", "mode", "becomes-link", "becomes-folder"):
        (workspace / name).write_text(f"{name}\n")
    (workspace / "link").symlink_to("stays")
    (workspace / "folder" / "inner").mkdir(parents=True)
    snapshot = take_snapshot(house, history)

    (workspace / "changes").write_text("other\n")
    (workspace / "goes").unlink()
    (workspace / "mode").chmod(0o711)
    (workspace / "becomes-link").unlink()
    (workspace / "becomes-link").symlink_to("stays")
    (workspace / "becomes-folder").unlink()
    (workspace / "becomes-folder").mkdir()
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("changes")
    (workspace / "folder" / "inner").rmdir()
    (workspace / "new").write_bytes(b"\0\1")
    os.utime(workspace / "stays")

    outcome = compare_snapshot(snapshot, history)
    assert told(outcome) == {
        "changes": "modified",
        "goes": "deleted",
        "mode": "mode",
        "becomes-link": "link",
        "becomes-folder": "modified",
        "link": "link",
        "folder/inner": "deleted",
        "new": "created",
    }
    before = {step.path: step.before for step in outcome.examined.steps}
    contents = {path: kept(history, state.hash) for path, state in before.items() if state is not None and state.hash}
    assert contents[b"changes"] == b"changes\n"
    assert contents[b"goes"] == b"goes\n"
    assert contents[b"link"] == b"stays"
    mode = before[b"mode"]
    assert mode is not None
    assert mode.mode == stat.S_IMODE((workspace / "stays").stat().st_mode)
    diffs = dict(zip((change.path for change in outcome.examined.changes), outcome.examined.diffs, strict=True))
    assert "-changes\n+other\n" in diffs["changes"]
    assert diffs["new"] == ""


def test_names_of_any_bytes_are_told_as_they_are(workspace: Path, house: Workspace, history: History) -> None:
    names = [b"new\nline", b"\xff\xfe", b'quo"te', b" blank ", b"-n", b"tab\there", "ü".encode(), b"*?["]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(workspace), name))).write_text("one\n")
    snapshot = take_snapshot(house, history)
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(workspace), name))).write_text("two\n")
    steps = compare_snapshot(snapshot, history).examined.steps
    assert sorted(step.path for step in steps) == sorted(names)
    assert all(step.before is not None and kept(history, step.before.hash) == b"one\n" for step in steps)


def test_bytes_are_kept_as_they_are_whatever_attributes_say(
    workspace: Path, house: Workspace, history: History
) -> None:
    repository(workspace)
    (workspace / ".gitattributes").write_text(
        "* text=auto eol=lf ident filter=evil working-tree-encoding=UTF-16 merge=evil diff=evil\n"
    )
    data = b"$Id: 1234 $\r\nline\r\n"
    (workspace / "a").write_bytes(data)
    snapshot = take_snapshot(house, history)
    (workspace / "a").write_bytes(b"other")
    (step,) = compare_snapshot(snapshot, history).examined.steps
    assert step.before is not None
    assert kept(history, step.before.hash) == data


def test_nothing_that_a_repository_configures_is_run(
    tmp_path: Path, workspace: Path, house: Workspace, history: History
) -> None:
    repository(workspace)
    sign = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {sign}\ncat\n")
    evil.chmod(0o755)
    (workspace / ".git" / "config").write_text(
        f"""[core]
	repositoryformatversion = 1
	fsmonitor = {evil}
	hooksPath = {tmp_path}
	sshCommand = {evil}
	pager = {evil}
	askPass = {evil}
	editor = {evil}
[extensions]
	partialClone = origin
	worktreeConfig = true
[remote "origin"]
	url = ext::{evil}
	promisor = true
[filter "evil"]
	clean = {evil}
	smudge = {evil}
	process = {evil}
	required = true
[diff "evil"]
	textconv = {evil}
	command = {evil}
[include]
	path = {evil}
"""
    )
    for name in ("post-index-change", "pre-auto-gc", "reference-transaction"):
        hook = workspace / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(evil.read_text())
        hook.chmod(0o755)
    (workspace / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (workspace / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = x\n\turl = ext::{evil}\n\tupdate = !{evil}\n')
    (workspace / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    (workspace / "a").write_text("two\n")
    assert told(compare_snapshot(snapshot, history)) == {"a": "modified"}
    assert not sign.exists()


@pytest.mark.parametrize(
    "index", [b"", b"no index at all", b"DIRC\0\0\0\2\0\0\0\7" + b"\xff" * 200, b"DIRC" + b"\0" * 100]
)
def test_a_damaged_index_does_not_stand_in_the_way(
    workspace: Path, house: Workspace, history: History, index: bytes
) -> None:
    repository(workspace)
    (workspace / ".git" / "index").write_bytes(index)
    (workspace / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    (workspace / "a").unlink()
    assert told(compare_snapshot(snapshot, history)) == {"a": "deleted"}


@pytest.mark.parametrize("pointer", ["gitdir: /etc/passwd", "gitdir: /dev/zero\n", "gitdir: \0", "nonsense"])
def test_a_repository_that_says_it_is_elsewhere_is_believed_in_nothing(
    workspace: Path, house: Workspace, history: History, pointer: str
) -> None:
    (workspace / ".git").write_text(pointer)
    (workspace / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    (workspace / "a").unlink()
    assert told(compare_snapshot(snapshot, history)) == {"a": "deleted"}


def test_the_repository_and_those_within_are_not_covered_and_that_is_said(
    workspace: Path, house: Workspace, history: History
) -> None:
    repository(workspace)
    repository(workspace / "vendor" / "inner")
    (workspace / "vendor" / "inner" / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    assert uncovered(snapshot) == {".git": "the repository itself", "vendor/inner": "a repository of its own"}
    (workspace / "vendor" / "inner" / "a").write_text("two\n")
    assert told(compare_snapshot(snapshot, history)) == {}


def test_of_what_git_ignores_a_little_is_covered_and_much_is_told(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_IGNORED_PATHS", 10)
    repository(workspace)
    (workspace / ".gitignore").write_text("much/\nlittle/\n*.log\n")
    for folder, files in (("much", 30), ("little", 3)):
        (workspace / folder).mkdir()
        for number in range(files):
            (workspace / folder / str(number)).write_text("one\n")
    (workspace / "a.log").write_text("one\n")
    snapshot = take_snapshot(house, history)
    assert uncovered(snapshot) == {".git": "the repository itself", "much": "ignored by git"}
    shutil.rmtree(workspace / "much")
    shutil.rmtree(workspace / "little")
    (workspace / "a.log").unlink()
    outcome = compare_snapshot(snapshot, history)
    assert set(told(outcome)) == {"a.log", "little", "little/0", "little/1", "little/2"}
    assert outcome.lost == ("much",)


def test_what_git_tracks_is_covered_although_it_would_be_ignored(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_IGNORED_PATHS", 0)
    repository(workspace)
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "tracked.log").write_text("one\n")
    (workspace / "other.log").write_text("one\n")
    subprocess.run([GIT, "-C", str(workspace), "add", "-f", "tracked.log"], check=True)
    snapshot = take_snapshot(house, history)
    for name in ("tracked.log", "other.log"):
        (workspace / name).write_text("two\n")
    assert told(compare_snapshot(snapshot, history)) == {"tracked.log": "modified"}


def test_what_was_there_is_never_told_as_new_whatever_becomes_of_ignore_rules(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_IGNORED_PATHS", 0)
    (workspace / ".gitignore").write_text("data/\n*.log\n")
    (workspace / "data").mkdir()
    (workspace / "data" / "precious").write_text("one\n")
    (workspace / "a.log").write_text("one\n")
    (workspace / "b.txt").write_text("one\n")
    snapshot = take_snapshot(house, history)
    (workspace / ".gitignore").write_text("*.txt\n")
    assert told(compare_snapshot(snapshot, history)) == {".gitignore": "modified"}


def test_a_folder_that_becomes_a_repository_is_told_with_all_that_came(
    workspace: Path, house: Workspace, history: History
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    repository(workspace / "sub")
    changes = told(compare_snapshot(snapshot, history))
    assert changes["sub/.git"] == "created"
    assert changes["sub/.git/config"] == "created"
    assert "sub/a" not in changes


def test_credentials_are_not_kept_and_a_new_one_is_told(
    tmp_path: Path, workspace: Path, house: Workspace, history: History
) -> None:
    (workspace / ".env").write_text("SECRET=beforehand\n")
    snapshot = take_snapshot(house, history)
    assert uncovered(snapshot) == {".env": "a credential"}
    (workspace / ".env").write_text("SECRET=afterwards\n")
    (workspace / "id_rsa").write_text("key\n")
    assert told(compare_snapshot(snapshot, history)) == {"id_rsa": "created"}


def test_special_files_large_ones_and_closed_folders_are_not_covered(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(workspace / "pipe")
    with open(workspace / "large", "wb") as file:
        file.truncate(scan.MAX_FILE_BYTES + 1)
    (workspace / "small").write_text("one\n")
    snapshot = take_snapshot(house, history)
    assert uncovered(snapshot) == {"pipe": "neither file, link nor folder", "large": "larger than 32 MB"}
    with open(workspace / "small", "wb") as file:
        file.truncate(scan.MAX_FILE_BYTES + 1)
    os.truncate(workspace / "large", 1)
    outcome = compare_snapshot(snapshot, history)
    assert told(outcome) == {"small": "modified"}
    assert outcome.missed == {}


def test_a_pipe_in_the_place_of_a_folder_hides_nothing_that_is_gone(
    workspace: Path, house: Workspace, history: History
) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    shutil.rmtree(workspace / "folder")
    os.mkfifo(workspace / "folder")
    assert told(compare_snapshot(snapshot, history)) == {"folder": "deleted", "folder/a": "deleted"}


def test_links_that_lead_outside_are_told_as_such(workspace: Path, house: Workspace, history: History) -> None:
    snapshot = take_snapshot(house, history)
    (workspace / "in").symlink_to("a")
    (workspace / "out").symlink_to("/etc/shadow")
    found = {
        change.path: (change.target, change.outside) for change in compare_snapshot(snapshot, history).examined.changes
    }
    assert found == {"in": ("a", False), "out": ("/etc/shadow", True)}


def test_a_change_within_the_same_tick_of_the_clock_is_seen(
    workspace: Path, house: Workspace, history: History
) -> None:
    file = workspace / "a"
    file.write_text("one\n")
    snapshot = take_snapshot(house, history)
    status = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert told(compare_snapshot(snapshot, history)) == {"a": "modified"}


def test_the_next_snapshot_reads_only_what_changed(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (workspace / str(number)).write_text(f"{number}\n")
        os.utime(workspace / str(number))
    monkeypatch.setattr("handrail.changes.snapshot.scan.SETTLED_NANOSECONDS", 0)
    take_snapshot(house, history)
    (workspace / "3").write_text("other\n")
    read: list[str] = []
    real = RootScanner.read_content

    def noted(scanner: RootScanner, path: str, mark: scan.PathStat) -> tuple[scan.PathStat, bytes]:
        read.append(path)
        return real(scanner, path, mark)

    monkeypatch.setattr(RootScanner, "read_content", noted)
    snapshot = take_snapshot(house, history)
    assert read == ["3"]
    (workspace / "3").write_text("again\n")
    (step,) = compare_snapshot(snapshot, history).examined.steps
    assert step.before is not None
    assert kept(history, step.before.hash) == b"other\n"


def test_what_was_kept_and_is_lost_makes_no_undo_that_would_bring_back_something_else(
    tmp_path: Path, workspace: Path, house: Workspace, history: History
) -> None:
    (workspace / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    for pack in Path(history.folder).rglob("pack-*"):
        pack.unlink()
    (workspace / "a").write_text("two\n")
    with pytest.raises(SnapshotError):
        compare_snapshot(snapshot, history)


def test_too_much_is_not_kept_and_what_was_kept_by_then_is_not_lost(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(600):
        (workspace / str(number)).write_text(f"{number}\n")
        os.utime(workspace / str(number))
    monkeypatch.setattr("handrail.changes.snapshot.scan.SETTLED_NANOSECONDS", 0)
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOT_BYTES", 1_000)
    with pytest.raises(SnapshotError, match="too large"):
        take_snapshot(house, history)
    with pytest.raises(SnapshotError, match="too large"):
        take_snapshot(house, history)
    take_snapshot(house, history)


def test_a_snapshot_that_was_not_finished_is_never_used_to_settle_a_command(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = datetime.now(UTC)
    for name in ("a", "b", "c"):
        (workspace / name).write_text(name * 100)
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOT_BYTES", 150)
    with pytest.raises(SnapshotError, match="too large"):
        take_snapshot(house, history)
    with pytest.raises(SnapshotError, match="no longer stored"):
        load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))


def test_an_earlier_snapshot_does_not_stand_for_one_that_failed(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = datetime.now(UTC)
    take_snapshot(house, history)
    (workspace / "later").write_text("the command did not make this")
    monkeypatch.setattr(scan.SnapshotDeadline, "check", lambda _: (_ for _ in ()).throw(scan.SnapshotLimitError))
    with pytest.raises(SnapshotError, match="too large"):
        take_snapshot(house, history)
    with pytest.raises(SnapshotError, match="no longer stored"):
        load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))


def test_one_root_without_a_snapshot_leaves_none_of_the_others(
    tmp_path: Path, workspace: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = datetime.now(UTC)
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "large").write_text("x" * 200)
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOT_BYTES", 150)
    with Workspace(str(workspace), Root(str(beside))) as house:
        with pytest.raises(SnapshotError, match="too large"):
            take_snapshot(house, history)
        with pytest.raises(SnapshotError, match="no longer stored"):
            load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))


def test_a_snapshot_of_an_older_version_is_only_used_to_save_work(
    workspace: Path, house: Workspace, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = datetime.now(UTC)
    (workspace / "a").write_text("one\n")
    monkeypatch.setattr("handrail.changes.snapshot.scan.SETTLED_NANOSECONDS", 0)
    take_snapshot(house, history)
    (written,) = Path(history.folder).glob("snapshots/*/whole")
    written.rename(written.with_name("table"))  # what older versions called whole and partial ones alike
    with pytest.raises(SnapshotError, match="no longer stored"):
        load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOT_BYTES", 0)  # nothing may be read again
    assert told(compare_snapshot(take_snapshot(house, history), history)) == {}


def test_roots_within_roots_are_told_once(tmp_path: Path, workspace: Path, history: History) -> None:
    inner, beside = workspace / "inner", tmp_path / "beside"
    inner.mkdir()
    beside.mkdir()
    with Workspace(str(workspace), Root(str(inner), writable=False), Root(str(beside))) as house:
        snapshot = take_snapshot(house, history)
        (inner / "a").write_text("one\n")
        (beside / "b").write_text("one\n")
        (workspace / "c").write_text("one\n")
        assert told(compare_snapshot(snapshot, history)) == {"c": "created", str(beside / "b"): "created"}


def test_the_last_snapshot_can_be_had_again(workspace: Path, house: Workspace, history: History) -> None:
    begun = datetime.now(UTC)
    with pytest.raises(SnapshotError):
        load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))
    (workspace / "a").write_text("one\n")
    take_snapshot(house, history)
    (workspace / "a").write_text("two\n")
    found = load_last_snapshot(house, history, since=begun, until=datetime.now(UTC))
    assert told(compare_snapshot(found, history)) == {"a": "modified"}
    with pytest.raises(SnapshotError):
        load_last_snapshot(house, history, since=datetime.now(UTC), until=datetime.now(UTC))


def test_a_link_in_the_place_of_a_folder_leads_nowhere(
    tmp_path: Path, workspace: Path, house: Workspace, history: History
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a").write_text("one\n")
    snapshot = take_snapshot(house, history)
    shutil.rmtree(workspace / "folder")
    (workspace / "folder").symlink_to(outside)
    outcome = compare_snapshot(snapshot, history)
    assert told(outcome) == {"folder": "link", "folder/a": "deleted"}
    assert "secret" not in "".join(outcome.examined.diffs)


def test_a_manifest_tells_what_changed_and_brings_nothing_back(workspace: Path, house: Workspace) -> None:
    for name in ("stays", "changes", "goes", "mode"):
        (workspace / name).write_text("one\n")
    before = read_manifest(open_scanner(house.main, house))
    (workspace / "changes").write_text("two\n")
    (workspace / "goes").unlink()
    (workspace / "mode").chmod(0o700)
    (workspace / "new").mkdir()
    after = read_manifest(open_scanner(house.main, house))
    found = {change.path: (change.action, change.kind) for change in compare_manifests(before, after)}
    assert found == {
        "changes": ("modified", "file"),
        "goes": ("deleted", "file"),
        "mode": ("mode", "file"),
        "new": ("created", "folder"),
    }


@pytest.mark.parametrize(
    ("raised", "told"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (scan.SnapshotLimitError(), git_store.GitError)],
    ids=["an interrupt", "too long"],
)
def test_an_interrupt_while_contents_are_kept_stays_one_also_where_git_fails_of_it(
    tmp_path: Path, raised: BaseException, told: type[BaseException]
) -> None:
    """A person's Ctrl-C ends git too: that must not look like a machine that can keep nothing."""
    store = git_store.PrivateGit(GIT, str(tmp_path))
    store.make()

    def broken_off() -> None:
        with store.storing(scan.SnapshotDeadline(60)) as stdin:
            stdin.write(b"nothing that git knows\n")
            raise raised

    with pytest.raises(told):
        broken_off()
