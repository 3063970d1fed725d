"""After a crash: what is settled, by whom, what is said of it, and what of others' work is never touched."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.events import ToolCallError
from handrail.settings import Settings
from handrail.settings.model import Paths

Rail = Callable[..., Handrail]
NAMES = ("a", "b", "c")

# Does something and is killed by itself when a function of handrail has been called so many times.
DIES = """
import importlib, os, signal, sys
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Paths

workspace, state, module, name, calls, extra = sys.argv[1:7]
settings = Settings(paths=Paths(writable=(extra,) if extra else ()))
rail = Handrail(workspace, mode="full", session="killed", state_dir=state, settings=settings)
{preparation}
home = importlib.import_module(module)
for part in name.split(".")[:-1]:
    home = getattr(home, part)
real, left = getattr(home, name.split(".")[-1]), [int(calls)]

def dies(*args, **options):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)

setattr(home, name.split(".")[-1], dies)
{work}
"""
WRITES = 'for each in "abc": rail.write(each, f"new {each}")'
BEFORE_FINISH = ("handrail.store.change_log", "ChangeLog.finish", 0)


@pytest.fixture
def dies(workspace: Path, tmp_path: Path) -> Callable[..., None]:
    """Runs a session "killed" that ends at a call of a function."""

    def run(work: str, where: tuple[str, str, int], preparation: str = "", extra: str = "") -> None:
        module, name, calls = where
        program = DIES.format(preparation=preparation, work=work)
        command = [sys.executable, "-c", program, workspace, tmp_path / "state", module, name, str(calls), extra]
        assert subprocess.run(command, check=False).returncode == -9

    return run


def told(rail: Handrail) -> list[str]:
    results = [event.result for event in rail.events() if isinstance(event, ToolCallError)]
    return [result.summary for result in results if result.error is not None and result.error.code == "INTERRUPTED"]


def texts(workspace: Path) -> list[str]:
    return [(workspace / name).read_text() for name in NAMES]


@pytest.fixture
def old(workspace: Path) -> None:
    for name in NAMES:
        (workspace / name).write_text(f"old {name}")


HALF_AN_UNDO = ('rail.undo(session="killed")', ("handrail.changes.apply", "put_instead", 2), WRITES)


@pytest.mark.usefixtures("old")
def test_whoever_opens_the_workspace_next_settles(rail: Rail, workspace: Path, dies) -> None:
    dies(*HALF_AN_UNDO)
    assert len({text.split()[0] for text in texts(workspace)}) == 2
    assert rail(session="another").read("a").content == "new a"
    assert texts(workspace) == ["new a", "new b", "new c"]


@pytest.mark.usefixtures("old")
def test_several_who_settle_at_once_leave_one_tree(workspace: Path, tmp_path: Path, dies) -> None:
    opens = (
        "import sys; from handrail import Handrail; from handrail.settings import Settings\n"
        "Handrail(sys.argv[1], session=sys.argv[3], state_dir=sys.argv[2], settings=Settings()).changes()"
    )
    dies(*HALF_AN_UNDO)
    crowd = [
        subprocess.Popen([sys.executable, "-c", opens, workspace, tmp_path / "state", name])
        for name in ("killed", "killed", "other", "third")
    ]
    assert [process.wait(60) for process in crowd] == [0, 0, 0, 0]
    assert texts(workspace) == ["new a", "new b", "new c"]
    with Handrail(workspace, session="killed", state_dir=tmp_path / "state", settings=Settings()) as rail:
        assert told(rail) == ["The runtime ended while this call ran. Nothing was changed."]
        assert [record.number for record in rail.changes()] == [3, 2, 1]


@pytest.mark.usefixtures("old")
def test_what_a_person_changed_before_it_is_settled_stays_and_the_change_is_kept(
    rail: Rail, workspace: Path, dies
) -> None:
    dies('rail.write("a", "line 1\\n" * 9 + "agent\\n" + "line 2\\n" * 9)', BEFORE_FINISH)
    with (workspace / "a").open("a") as file:
        file.write("person\n")
    one = rail(session="killed")
    assert told(one) == ["The runtime ended while this call ran. Its effects are unknown. Check before you repeat it."]
    [record] = one.changes()
    assert record.summary == "write a (interrupted; it may have been done or not)"
    error = one.undo().error
    assert error is not None
    assert error.code == "CONFLICT"
    assert (workspace / "a").read_text().endswith("line 2\nperson\n")


@pytest.mark.usefixtures("old")
def test_an_undo_that_was_cut_off_is_not_counted_for_a_file_that_others_changed(
    rail: Rail, workspace: Path, dies
) -> None:
    dies(*HALF_AN_UNDO)
    [untouched] = [name for name in NAMES if (workspace / name).read_text().startswith("new")]
    (workspace / untouched).write_text("theirs")
    one = rail(session="killed")
    assert "Its effects are unknown." in told(one)[0]
    expected = [f"new {name}" if name != untouched else "theirs" for name in NAMES]
    assert texts(workspace) == expected
    assert [record.in_effect for record in one.changes() if record.tool == "write"] == [True, True, True]


def test_a_change_in_a_root_that_is_not_here_waits_for_who_has_it(rail: Rail, tmp_path: Path, dies) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "f").write_text("old")
    dies(f'rail.write("{extra}/f", "new")', BEFORE_FINISH, extra=str(extra))
    without = rail(session="killed")
    assert "Its effects are unknown." in told(without)[0]
    assert without.changes() == []
    reading = rail(session="another", settings=Settings(paths=Paths(read_only=(str(extra),))))
    assert reading.changes() == []
    with_it = rail(session="third", settings=Settings(paths=Paths(writable=(str(extra),))))
    assert [record.number for record in with_it.changes()] == [1]
    assert with_it.undo().ok
    assert (extra / "f").read_text() == "old"


def test_a_person_who_set_one_byte_back_in_a_file_with_two_names_is_not_overruled(
    rail: Rail, workspace: Path, dies
) -> None:
    (workspace / "a").write_text("debug=0\nlevel=1\ncolor=0\n")
    os.link(workspace / "a", workspace / "b")
    dies('rail.write("a", "debug=1\\nlevel=2\\ncolor=1\\n")', BEFORE_FINISH)
    (workspace / "a").write_text("debug=0\nlevel=2\ncolor=1\n")
    assert "Its effects are unknown." in told(rail(session="killed"))[0]
    assert (workspace / "b").read_text() == "debug=0\nlevel=2\ncolor=1\n"


@pytest.mark.usefixtures("old")
def test_what_cannot_be_settled_stands_in_nobodys_way(rail: Rail, workspace: Path, tmp_path: Path, dies) -> None:
    dies(*HALF_AN_UNDO)
    for blob in (tmp_path / "state").rglob(".changes/blobs/*"):
        blob.write_bytes(b"damaged")
    one = rail(session="another")
    one.write("d", "new d")
    assert [record.number for record in one.changes()][:1] == [5]
    assert one.undo().ok
    assert not (workspace / "d").exists()


def test_a_defect_in_the_middle_of_an_undo_leaves_everything_as_it_was(
    rail: Rail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handrail.changes import apply

    one = rail(session="s")
    for name in NAMES:
        (workspace / name).write_text(f"old {name}")
        one.write(name, f"new {name}")
    real, left = apply.put_instead, [2]

    def fails(*args, **options):
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(apply, "put_instead", fails)
        error = one.undo(session="s").error
    assert error is not None
    assert error.code == "INTERNAL"
    assert texts(workspace) == ["new a", "new b", "new c"]
    assert one.undo(session="s").ok
    assert texts(workspace) == ["old a", "old b", "old c"]


def test_a_damaged_content_leaves_a_file_with_two_names_as_it_is(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_bytes(b"old line\n" * 1_100_000)
    (workspace / "c").write_bytes(b"small\n")
    with rail(session="s") as one:
        assert one.write("a", "small\n").ok
    [blob] = (tmp_path / "state").rglob(".changes/blobs/*")
    os.link(workspace / "a", workspace / "b")
    blob.write_bytes(blob.read_bytes()[:-200])
    one = rail(session="s")
    error = one.undo().error
    assert error is not None
    assert error.code == "IO_ERROR"
    assert (workspace / "b").read_text() == "small\n"


def test_a_damaged_content_is_not_taken_for_kept(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_text("precious\n" * 20_000)
    one = rail(session="s")
    one.write("a", "1")
    for blob in (tmp_path / "state").rglob(".changes/blobs/*"):
        blob.write_bytes(blob.read_bytes()[:100])
    (workspace / "b").write_text("precious\n" * 20_000)
    one.write("b", "2")
    assert one.undo().ok
    assert (workspace / "b").read_text() == "precious\n" * 20_000


def test_what_a_person_did_to_permissions_survives_undo_and_redo(rail: Rail, workspace: Path) -> None:
    one = rail(session="s")
    one.write("d/secret", "x")
    (workspace / "d" / "secret").chmod(0o600)
    (workspace / "d").chmod(0o700)
    assert one.undo().ok
    assert one.redo().ok
    assert (workspace / "d" / "secret").stat().st_mode & 0o777 == 0o600
    assert (workspace / "d").stat().st_mode & 0o777 == 0o700


def test_a_change_that_cannot_be_read_does_not_hide_the_others(rail: Rail, workspace: Path, tmp_path: Path) -> None:
    one = rail(session="s")
    one.write("a", "1")
    one.write("b", "2")
    [path] = (tmp_path / "state").rglob("changes.db")
    with sqlite3.connect(path) as log:
        log.execute("UPDATE change_set SET data = X'00' WHERE number = 1")
    log.close()
    assert [record.summary for record in one.changes()] == ["write b", "(this change cannot be read)"]
    assert one.undo().ok
    assert not (workspace / "b").exists()


def test_what_a_session_did_in_its_own_folder_does_not_stand_in_the_way(rail: Rail, workspace: Path) -> None:
    one, other = rail(session="one"), rail(session="other")
    one.write("a", "1")
    own = f"{one._session.folder}/files"
    one.write(f"{own}/scratch.txt", "x")
    assert other.undo(session="one").summary == "Undid 1: a"
    assert not (workspace / "a").exists()


def test_more_files_than_a_process_has_descriptors_are_taken_back(workspace: Path, tmp_path: Path) -> None:
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from handrail import Handrail
from handrail.settings import Settings
with Handrail(sys.argv[1], mode="auto", session="s", state_dir=sys.argv[2], settings=Settings()) as rail:
    for number in range(150):
        rail.write(f"{number}.txt", "x")
    result = rail.undo(session="s")
    assert result.ok, result.summary
"""
    subprocess.run([sys.executable, "-c", program, workspace, tmp_path / "state"], check=True)
    assert list(workspace.iterdir()) == []


def test_many_later_changes_are_found_without_asking_again_for_each(rail: Rail, workspace: Path) -> None:
    one = rail(session="s")
    for number in range(60):
        one.write("a", f"{number}")
    asked = []
    log = one._session.recorder.history.log
    from handrail.runtime.undo import select_with_later

    class Counting:
        def entry(self, number):
            return log.entry(number)

        def list_numbers(self, path, after):
            asked.append(after)
            return log.list_numbers(path, after)

    assert select_with_later(Counting(), (1,)) == tuple(range(60, 0, -1))  # type: ignore[arg-type]
    assert asked == [1]


def test_a_folder_of_kept_contents_is_swept_without_losing_one_that_is_asked_for(tmp_path: Path) -> None:
    from handrail.store.blobs import Blobs

    blobs = Blobs(str(tmp_path))
    digest = blobs.put(b"content")
    [(_, path)] = blobs.files()
    blobs.remove_old(path, 3_600)
    assert blobs.has(digest)
    os.utime(path, (0, time.time() - 4_000))
    blobs.put(b"content")  # asked for again: young
    blobs.remove_old(path, 3_600)
    assert blobs.has(digest)
    os.utime(path, (0, time.time() - 4_000))
    blobs.remove_old(path, 3_600)
    assert not blobs.has(digest)
