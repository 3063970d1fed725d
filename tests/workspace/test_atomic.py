"""replace: nobody's bytes are lost, whoever changes the file between the look and the rename."""

import contextlib
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.kernel import files
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.workspace.atomic import _undo_swap, remove_unfinished, replace
from handrail.workspace.file_state import Content, FileSnapshot, read_file_snapshot
from handrail.workspace.resolve import NewFolders

KEEP = 1 << 20


@pytest.fixture
def folder(workspace: Path) -> Iterator[int]:
    descriptor = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def put(folder: int, before: FileSnapshot | None, data: bytes = b"mine") -> None:
    replace(folder, "a.txt", Content.from_bytes(data), before, temporary=".handrail-test", path="a.txt")


def refused(folder: int, before: FileSnapshot | None) -> str:
    with pytest.raises(ToolError) as caught:
        put(folder, before)
    return caught.value.code


CHANGES: dict[str, Callable[[Path], None]] = {
    "written in place": lambda path: path.write_text("theirs"),
    "replaced": lambda path: (path.with_name("b").write_text("theirs"), path.with_name("b").rename(path)),
    "replaced by the same bytes": lambda path: (
        path.with_name("b").write_text("old"),
        path.with_name("b").rename(path),
    ),
    "appended to": lambda path: path.write_text("old theirs"),
    "became a link": lambda path: (path.unlink(), path.symlink_to("theirs.txt")),
    "became a folder": lambda path: (path.unlink(), path.mkdir()),
    "became a fifo": lambda path: (path.unlink(), os.mkfifo(path)),
    "removed": lambda path: path.unlink(),
}


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Every name with its inode and bytes."""
    found: dict[str, tuple[int, str]] = {}
    for path in folder.iterdir():
        text = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[path.name] = (path.lstat().st_ino, text)
    return found


@pytest.fixture(params=["swap", "no swap"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that can swap two names in one step, and one that cannot."""
    if request.param == "no swap":
        monkeypatch.setattr(files, "_renameat2", None)


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("names", [1, 2], ids=["one name", "two names"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_somebody_did_since_the_look_stays(workspace: Path, folder: int, change: str, names: int) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    if names == 2:
        os.link(path, workspace / "other name")
    before = read_file_snapshot(folder, "a.txt", KEEP)
    CHANGES[change](path)
    there = tree(workspace)
    if names == 2 and change in {"became a link", "became a folder", "became a fifo", "removed"}:
        with pytest.raises((ToolError, OSError)):
            put(folder, before)
    else:
        assert refused(folder, before) == "CONFLICT"
    assert tree(workspace) == there


@pytest.mark.usefixtures("system")
def test_a_file_is_created_and_replaced_on_either_system(workspace: Path, folder: int) -> None:
    put(folder, None, b"first")
    assert tree(workspace)["a.txt"][1] == "first"
    put(folder, read_file_snapshot(folder, "a.txt", KEEP), b"second")
    assert tree(workspace)["a.txt"][1] == "second"
    assert len(tree(workspace)) == 1


@pytest.mark.usefixtures("system")
def test_a_file_somebody_created_since_the_look_stays(workspace: Path, folder: int) -> None:
    (workspace / "a.txt").write_text("theirs")
    assert refused(folder, None) == "CONFLICT"
    assert tree(workspace)["a.txt"][1] == "theirs"
    assert len(tree(workspace)) == 1


def test_a_touch_is_no_change(workspace: Path, folder: int) -> None:
    (workspace / "a.txt").write_text("old")
    before = read_file_snapshot(folder, "a.txt", KEEP)
    os.utime(workspace / "a.txt", (1, 1))
    put(folder, before)
    assert tree(workspace)["a.txt"][1] == "mine"


def test_a_temporary_name_that_is_taken_is_left_alone(workspace: Path, folder: int) -> None:
    (workspace / ".handrail-test").write_text("theirs")
    with pytest.raises(FileExistsError):
        put(folder, None)
    assert tree(workspace).keys() == {".handrail-test"}
    assert (workspace / ".handrail-test").read_text() == "theirs"


@pytest.mark.parametrize(
    ("meanwhile", "stays"),
    [
        (lambda path: path.with_name("b").rename(path), "newest"),
        (lambda path: path.write_text("newest"), "newest"),
        (lambda path: path.unlink(), None),
        (lambda _: None, "theirs"),
    ],
    ids=["replaced", "written to", "removed", "left alone"],
)
def test_a_write_that_is_undo_swap_leaves_what_is_newest(
    workspace: Path, folder: int, meanwhile: Callable[[Path], object], stays: str | None
) -> None:
    """Between the swap and the swap back: `a.txt` is our file for a moment, what it replaced unseen is set aside."""
    (workspace / "a.txt").write_text("mine")
    own = read_file_snapshot(folder, "a.txt", KEEP)
    assert own is not None
    (workspace / ".handrail-test").write_text("theirs")
    (workspace / "b").write_text("newest")
    meanwhile(workspace / "a.txt")
    error = _undo_swap(folder, ".handrail-test", "a.txt", own, "a.txt")
    assert error.code == "CONFLICT"
    found = {name: text for name, (_, text) in tree(workspace).items() if name != "b"}
    if stays == "theirs":
        assert found == {"a.txt": "theirs", ".handrail-test": "mine"}
    else:
        assert found == {".handrail-test": "theirs"} | ({"a.txt": stays} if stays else {})
        assert "The content in between was saved as .handrail-test." in error.message


# Saves as an editor does, by rename, as fast as it can; prints what was there before each save.
SAVES = """
import os, sys, threading
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
os.chdir(sys.argv[1])
print("ready", flush=True)
saved, seen = 0, []
while not over.is_set():
    saved += 1
    with open("b.txt", "w") as file:
        file.write(f"theirs {saved}")
    with open("a.txt") as file:
        seen.append(file.read())
    os.rename("b.txt", "a.txt")
    sum(range(saved * 7919 % 3_000))
print("\\n".join(seen))
"""


@pytest.fixture
def quick_folder() -> Iterator[tuple[Path, int]]:
    """A folder in memory, where nobody waits for a disk: the more collisions."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as path:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        yield Path(path), descriptor
        os.close(descriptor)


def test_no_save_of_another_program_is_lost_to_a_write_that_did_not_see_it(
    quick_folder: tuple[Path, int], deep: bool, note: Callable[[str], None]
) -> None:
    path, folder = quick_folder
    (path / "a.txt").write_text("theirs 0")
    took: dict[str, str] = {}
    turns = 0
    with subprocess.Popen(
        [sys.executable, "-c", SAVES, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        start = time.monotonic()
        while (lasted := time.monotonic() - start) < (5 if deep else 0.5) or (
            lasted < 20 and not 10 < len(took) < turns  # a slow machine needs longer
        ):
            turns += 1
            before = read_file_snapshot(folder, "a.txt", KEEP)
            assert before is not None
            assert before.data is not None
            with contextlib.suppress(ToolError):
                mine = f"mine {turns}".encode()
                replace(folder, "a.txt", Content.from_bytes(mine), before, temporary=f".handrail-{turns}", path="a.txt")
                took[f"mine {turns}"] = before.data.decode()
        seen = other.communicate(timeout=60)[0].splitlines()
    note(f"{turns} writes, {turns - len(took)} refused, {len(seen)} saves of another program")
    assert 10 < len(took) < turns, "there was no race"

    def origin(text: str) -> str:
        while text in took:
            text = took[text]
        return text

    # A write that is refused may be seen for a moment, or a save from before; one that is not refused never hides one.
    for number, text in enumerate(seen):
        assert text not in took or origin(text) == f"theirs {number}"
    assert origin((path / "a.txt").read_text()) == f"theirs {len(seen)}"


def test_of_many_sessions_that_read_the_same_exactly_one_writes(
    rail: Callable[..., Handrail], workspace: Path, count: Callable[[int], int]
) -> None:
    sessions = [rail() for _ in range(4)]
    for turn in range(count(100)):
        (workspace / "a.txt").write_text(f"old {turn}")
        results: dict[int, ToolResult] = {}

        def write(number: int, turn: int = turn, results: dict[int, ToolResult] = results) -> None:
            results[number] = sessions[number].write("a.txt", f"turn {turn}, writer {number}")

        for one in sessions:
            assert one.read("a.txt").ok
        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = [number for number, result in results.items() if result.ok]
        assert {result.error.code for result in results.values() if not result.ok} == {"STALE_FILE"}
        assert (workspace / "a.txt").read_text() == f"turn {turn}, writer {winner}"
    assert os.listdir(workspace) == ["a.txt"]


def test_new_folders_are_undo_swap_unless_kept(workspace: Path, folder: int) -> None:
    (workspace / "there").mkdir()
    made = NewFolders(folder, ("there", "a", "b"))
    assert (workspace / "there/a/b").is_dir()
    made.close()
    assert (workspace / "there").is_dir()
    assert not (workspace / "there/a").exists()
    kept = NewFolders(folder, ("there", "a"))
    kept.keep()
    kept.close()
    assert (workspace / "there/a").is_dir()


def test_a_new_folder_that_cannot_be_entered_is_undo_swap(workspace: Path, folder: int) -> None:
    """As when no more files may be open: the folder is made, and then there is no descriptor for it."""
    free = os.dup(folder)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            NewFolders(folder, ("a", "b"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(workspace.iterdir()) == []


def test_new_folders_that_somebody_uses_meanwhile_stay(workspace: Path, folder: int) -> None:
    made = NewFolders(folder, ("a", "b"))
    (workspace / "a/theirs.txt").write_text("x")
    made.close()
    assert [path.name for path in (workspace / "a").iterdir()] == ["theirs.txt"]


def test_new_folders_never_follow_a_link(workspace: Path, folder: int, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        NewFolders(folder, ("a", "b"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_what_a_cut_off_write_left_is_removed_only_if_it_is_known(tmp_path: Path) -> None:
    """Killed between the swap and the look at what it took out: what is there may be somebody's only copy."""
    folder = os.open(tmp_path, os.O_RDONLY)
    new, old = hashlib.sha256(b"new").hexdigest()[:16], hashlib.sha256(b"old").hexdigest()[:16]
    left = {".handrail-x": b"ne", f".handrail-x-{new}-{old}": b"somebody else's", f".handrail-xy-{new}-{old}": b"new"}
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    remove_unfinished(folder, ".handrail-x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(left)[1:]
    for known in (b"new", b"old"):
        (tmp_path / f".handrail-x-{new}-{old}").write_bytes(known)
        remove_unfinished(folder, ".handrail-x")
        assert [path.name for path in tmp_path.iterdir()] == [f".handrail-xy-{new}-{old}"]
    os.close(folder)
