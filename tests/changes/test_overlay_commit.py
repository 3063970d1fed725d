"""What a command changed in a layer gets into the workspace whole, as it was there, and comes back by undo."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.changes.support import USERS, Keeper, World, a_keeper, a_world, as_user, tree

from handrail.protocol.errors import ToolError
from handrail.settings import Settings

Work = Callable[[Keeper], Any]


@pytest.fixture(params=USERS)
def kept(request: pytest.FixtureRequest) -> Iterator[Callable[[Work], Any]]:
    """Does something with a session over an empty workspace, as root and as an ordinary user. Not in pytest's own
    folder: another run of it closes that to everybody else."""
    places: list[Path] = []

    def run(work: Work) -> Any:
        place = Path(tempfile.mkdtemp(prefix="handrail-kept-", dir="/tmp"))
        places.append(place)
        place.chmod(0o755)
        return as_user(request.param, place, lambda world: _with_keeper(world, work))

    yield run
    for place in places:
        shutil.rmtree(place, ignore_errors=True)


def _with_keeper(world: World, work: Work) -> Any:
    with a_keeper(world) as keeper:
        return work(keeper)


BOTH = pytest.mark.parametrize("sealed", [False, True], ids=["from the layer", "sealed"])

CASES = {
    "files are changed, made and removed": ("echo a >a; echo b >b", "echo more >>a; rm b; echo c >c"),
    "folders come and go": ("mkdir -p x/y; echo 1 >x/y/z", "rm -r x; mkdir -p n/m/empty; echo 2 >n/m/f"),
    "a file becomes a folder": ("echo 1 >p", "rm p; mkdir p; echo 2 >p/q"),
    "a folder becomes a file": ("mkdir -p p/q; echo 1 >p/q/r", "rm -r p; echo 2 >p"),
    "a folder becomes a link": ("mkdir p; echo 1 >p/q", "mv p r; ln -s r p"),
    "a link becomes a folder": ("mkdir r; ln -s r p", "rm p; mkdir p; echo 2 >p/q"),
    "a link becomes a file": ("ln -s nowhere l", "rm l; echo 1 >l"),
    "a link leads elsewhere": ("ln -s one l", "ln -sfn two l"),
    "modes of files": ("echo 1 >f; chmod 640 f", "chmod 755 f; echo 2 >g; chmod 600 g"),
    "modes of folders": ("mkdir d e; echo 1 >d/f; chmod 700 d", "chmod 755 d; chmod 500 e; mkdir n; chmod 711 n"),
    "a closed folder stays closed": (
        "mkdir d; echo 1 >d/f; echo 2 >d/g; chmod 555 d",
        "chmod 755 d; echo 3 >>d/f; rm d/g; echo 4 >d/h; chmod 555 d",
    ),
    "a folder is closed with what it holds": ("true", "mkdir d; echo 1 >d/f; mkdir d/e; chmod 500 d/e d"),
    "a folder is opened": ("mkdir d; echo 1 >d/f; chmod 500 d", "chmod 755 d; echo 2 >d/g"),
    "a closed folder goes": ("mkdir -p d/e; echo 1 >d/e/f; chmod 555 d/e", "chmod 755 d/e; rm -r d"),
    "files nobody may write": ("echo 1 >f; chmod 444 f", "chmod 644 f; echo 2 >f; chmod 400 f; echo 3 >g; chmod 444 g"),
    "odd names": (
        "echo 1 >$'a\\nb'; echo 2 >$'\\377\\376'",
        "echo 3 >$'a\\nb'; mkdir $'\\377'; mv $'\\377\\376' $'\\377/é'",
    ),
    "an empty file": (">a; echo 1 >b", "echo 1 >a; >b; >c"),
    "much": (
        "mkdir d; for i in $(seq 300); do echo old $i >d/$i; done",
        "for i in d/*; do echo new >>$i; done; rm d/1*; for i in $(seq 50); do echo n >n$i; done",
    ),
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_it_is_kept_taken_back_and_brought_back(kept: Callable[[Work], Any], name: str, sealed: bool) -> None:
    start, script = CASES[name]

    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh(start)
        before = tree(root)
        direct = keeper.world.place / "direct"
        os.system(f"cp -a {root} {direct}")
        os.system(f"cd {direct} && bash -ec {_quoted(script)}")
        after = tree(direct)
        keeper.keep(script, sealed=sealed)
        assert tree(root) == after
        keeper.undo()
        assert tree(root) == before
        keeper.redo()
        assert tree(root) == after
        keeper.undo()
        assert tree(root) == before

    kept(work)


def _quoted(script: str) -> str:
    import shlex

    return shlex.quote(script)


@BOTH
def test_times_and_attributes_are_kept(kept: Callable[[Work], Any], sealed: bool) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("echo 1 >old; echo 1 >closed; chmod 444 closed")
        os.setxattr(root / "old", "user.mark", b"before")
        put = "import os; os.setxattr('new', 'user.mark', b'1'); os.setxattr('old', 'user.mark', b'2')"
        set_it = f'/usr/bin/python3 -I -S -c "{put}"'
        keeper.keep(f"echo 2 >>old; echo 3 >new; {set_it}; touch -d '2001-02-03 04:05:06.789' old new", sealed=sealed)
        assert os.getxattr(root / "new", "user.mark") == b"1"
        assert os.getxattr(root / "old", "user.mark") == b"2"
        assert [name for path in root.iterdir() for name in os.listxattr(path) if "overlay" in name] == []
        assert (root / "new").stat().st_mtime_ns % 1_000_000_000 == 789_000_000
        assert (root / "old").stat().st_mtime_ns == (root / "new").stat().st_mtime_ns
        keeper.undo()
        assert os.getxattr(root / "old", "user.mark") == b"before"

    kept(work)


@BOTH
def test_a_file_with_holes_keeps_them(kept: Callable[[Work], Any], sealed: bool) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("truncate -s 20M old; echo start | dd of=old conv=notrunc status=none")
        keeper.keep(
            "truncate -s 50M new; printf end | dd of=new bs=1 seek=30000000 conv=notrunc status=none; rm old",
            sealed=sealed,
        )
        assert (root / "new").stat().st_size == 50 << 20
        assert (root / "new").stat().st_blocks * 512 < 2 << 20
        keeper.undo()
        assert (root / "old").stat().st_size == 20 << 20
        assert (root / "old").stat().st_blocks * 512 < 2 << 20

    kept(work)


@BOTH
def test_names_of_one_file_stay_names_of_one_file(kept: Callable[[Work], Any], sealed: bool) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("echo shared >one; ln one two; echo gone >three; ln three four; ln three five; echo own >six")
        keeper.keep("echo more >>one; rm three four; echo new >new; ln new also; ln -f new six", sealed=sealed)
        assert (root / "one").samefile(root / "two")
        assert (root / "two").read_text() == "shared\nmore\n"
        assert (root / "new").samefile(root / "also")
        assert (root / "new").samefile(root / "six")
        assert (root / "five").read_text() == "gone\n"
        keeper.undo()
        assert (root / "one").samefile(root / "two")
        assert (root / "two").read_text() == "shared\n"
        assert (root / "three").samefile(root / "five")
        assert (root / "four").samefile(root / "five")
        assert (root / "five").read_text() == "gone\n"
        assert (root / "six").read_text() == "own\n"
        keeper.redo()
        assert (root / "two").read_text() == "shared\nmore\n"
        assert (root / "six").samefile(root / "also")
        assert (root / "five").read_text() == "gone\n"

    kept(work)


@BOTH
def test_attributes_of_a_file_that_is_written_through_come_and_go_with_it(
    kept: Callable[[Work], Any], sealed: bool
) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("echo shared >one; ln one two")
        code = "import os; os.setxattr('one', 'user.note', b'new')"
        keeper.keep(f'/usr/bin/python3 -I -S -c "{code}"; echo more >>one', sealed=sealed)
        assert os.getxattr(root / "two", "user.note") == b"new"
        keeper.undo()
        assert os.listxattr(root / "two") == []
        assert (root / "one").samefile(root / "two")

    kept(work)


@BOTH
@pytest.mark.parametrize("script", ["echo more >>one", "chmod 755 one", "echo more >>one; mv three six; rm four"])
def test_all_names_of_a_file_that_is_written_to_are_told_and_come_back(
    kept: Callable[[Work], Any], sealed: bool, script: str
) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("echo a >one; mkdir d; ln one d/two; ln one three; ln one four; echo other >five")
        before = tree(root)
        keeper.keep(script, sealed=sealed)
        after = tree(root)
        told = {change.path for change in keeper.rail.changes()[0].changes}
        assert told == {path for path in {*before, *after} if before.get(path) != after.get(path)}
        assert (root / "one").samefile(root / "d" / "two")
        keeper.undo()
        assert tree(root) == before
        assert (root / "one").samefile(root / "d" / "two")

    kept(work)


@BOTH
def test_names_of_one_file_of_which_one_is_replaced_and_others_are_written_through(
    kept: Callable[[Work], Any], sealed: bool
) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("echo shared >one; ln one two; ln one three; echo other >four")
        keeper.keep("mv four three; echo more >>one; touch two", sealed=sealed)
        assert (root / "two").read_text() == "shared\nmore\n"
        assert (root / "three").read_text() == "other\n"
        keeper.undo()
        assert (root / "two").read_text() == (root / "three").read_text() == "shared\n"
        assert (root / "one").samefile(root / "three")

    kept(work)


@BOTH
def test_an_ordinary_name_never_becomes_another_name_of_what_steers_tools(
    kept: Callable[[Work], Any], sealed: bool
) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("mkdir .vscode; echo a >.vscode/tasks.json; echo o >ordinary")
        before = tree(root)
        keeper.keep(
            "ln .vscode/tasks.json x; ln x y; ln .vscode/tasks.json .vscode/z; echo b >>x;ln ordinary .vscode/w",
            sealed=sealed,
        )
        assert {(root / name).read_text() for name in ("x", "y", ".vscode/z", ".vscode/tasks.json")} == {"a\nb\n"}
        assert not any((root / name).samefile(root / ".vscode" / "tasks.json") for name in ("x", "y"))
        assert (root / ".vscode" / "z").samefile(root / ".vscode" / "tasks.json")
        assert not (root / ".vscode" / "w").samefile(root / "ordinary")
        keeper.undo()
        assert tree(root) == before

    kept(work)


def test_large_files_are_not_held_in_memory_also_those_with_two_names(kept: Callable[[Work], Any]) -> None:
    def work(keeper: Keeper) -> None:
        root = keeper.world.root
        keeper.world.sh("seq 3000000 >large; ln large also; seq 3000001 >alone")
        before = tree(root)
        keeper.keep("echo end >>large; sed -i s/9/8/g alone")
        assert (root / "also").read_bytes().endswith(b"3000000\nend\n")
        keeper.undo()
        assert tree(root) == before
        assert (root / "large").samefile(root / "also")

    kept(work)


def test_what_was_kept_is_small(kept: Callable[[Work], Any]) -> None:
    def work(keeper: Keeper) -> None:
        import zlib

        keeper.world.sh("mkdir d; for i in $(seq 500); do seq $i $((i + 300)) >d/$i; done")
        alone = sum(len(zlib.compress(path.read_bytes())) for path in (keeper.world.root / "d").iterdir())
        keeper.keep("for i in d/*; do echo end >>$i; done")
        stored = [path for path in (keeper.world.place / "kept").rglob("blobs*/*") if path.is_file()]
        assert sum(path.stat().st_size for path in stored) <= alone * 1.1
        assert {path.name.partition("-")[0] for path in stored} == {"small.db"}

    kept(work)


OUTSIDE = {
    "a file that was changed": ("echo 1 >a; echo 1 >b", "echo 2 >a; echo 2 >b", "echo theirs >b"),
    "a file that was removed": ("echo 1 >a; echo 1 >b", "rm a b", "echo theirs >b"),
    "a file that is new": ("true", "echo 1 >a; echo 2 >b", "echo theirs >b"),
    "a file that others removed": ("echo 1 >a; echo 1 >b", "echo 2 >a; echo 2 >b", "rm b"),
    "a mode": ("echo 1 >a; echo 1 >b", "echo 2 >a; chmod 700 b", "chmod 640 b"),
    "a link": ("ln -s x l; echo 1 >a", "ln -sfn y l; echo 2 >a", "ln -sfn theirs l"),
    "a folder that is to go": ("mkdir d; echo 1 >d/f", "rm -r d; echo 2 >a", "echo theirs >d/g"),
    "a folder in a folder that is to go": ("mkdir d; echo 1 >d/f", "rm -r d", "mkdir d/theirs"),
    "a folder that others removed": ("mkdir d; echo 1 >d/f", "echo 2 >d/g; echo 3 >a", "rm -r d"),
    "a link on the way": ("mkdir d; echo 1 >d/f; mkdir e", "echo 2 >d/f; echo 2 >a", "rm -r d; ln -s e d"),
    "a file where a folder comes": ("true", "mkdir d; echo 1 >d/f", "echo theirs >d"),
    "a pipe": ("echo 1 >a", "echo 2 >a", "rm a; mkfifo a"),
    "a file of the repository": (
        "mkdir -p .git/refs; echo 1 >.git/HEAD; echo 1 >.git/index; echo 1 >.git/refs/main",
        "echo 2 >.git/index",
        "echo theirs >.git/refs/other",
    ),
}


@BOTH
@pytest.mark.parametrize("name", OUTSIDE)
def test_what_others_changed_meanwhile_is_never_overwritten(
    kept: Callable[[Work], Any], name: str, sealed: bool
) -> None:
    start, script, theirs = OUTSIDE[name]

    def work(keeper: Keeper) -> None:
        world = keeper.world
        world.sh(start)
        with pytest.raises(ToolError) as refused:
            keeper.keep(script, sealed=sealed, before=lambda: world.sh(theirs))
        assert refused.value.code == "CONFLICT"
        assert "Nothing was kept" in refused.value.message
        expected = world.place / "expected"
        os.system(f"mkdir {expected}; cd {expected} && bash -ec {_quoted(start)} && bash -ec {_quoted(theirs)}")
        assert _names(world.root) == _names(expected)
        assert keeper.rail.changes() == []

    kept(work)


def _names(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in root.rglob("*")
        if not stat.S_ISFIFO(path.lstat().st_mode)
    }


def test_objects_that_others_added_to_the_repository_do_not_matter(kept: Callable[[Work], Any]) -> None:
    def work(keeper: Keeper) -> None:
        keeper.world.sh("mkdir -p .git/objects/aa; echo 1 >.git/index")
        theirs = lambda: keeper.world.sh("echo 1 >.git/objects/aa/bb")  # noqa: E731
        assert keeper.keep("echo 2 >.git/index", before=theirs).changes.number == 1

    kept(work)


def test_a_mode_that_others_gave_a_file_stays_with_the_new_bytes(kept: Callable[[Work], Any]) -> None:
    def work(keeper: Keeper) -> None:
        keeper.world.sh("echo 1 >a; chmod 644 a")
        keeper.keep("echo 2 >a", before=lambda: keeper.world.sh("chmod 755 a"))
        assert (keeper.world.root / "a").read_text() == "2\n"
        assert stat.S_IMODE((keeper.world.root / "a").stat().st_mode) == 0o755

    kept(work)


@BOTH
def test_a_failure_in_the_middle_puts_the_very_files_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    from handrail.changes import apply

    name = "put_instead" if sealed else "take"
    real, left = getattr(apply, name), [20]

    def full(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **options)

    (tmp_path / "world").mkdir()
    with a_world(tmp_path / "world") as world, a_keeper(world) as keeper:
        world.sh("mkdir d e; for i in $(seq 40); do echo $i >d/$i; done; chmod 700 e; touch -d 2001-01-01 d/*")
        before = tree(world.root)
        files = {path.name: path.stat() for path in (world.root / "d").iterdir()}
        script = "rm d/4*; chmod 755 e; mkdir n; for i in d/*; do echo new >>$i; done; echo new >n/n"
        monkeypatch.setattr(apply, name, full)
        with pytest.raises(ToolError) as refused:
            keeper.keep(script, sealed=sealed)
        assert refused.value.code == "NO_SPACE"
        assert refused.value.message.endswith("Nothing of the command was kept.")
        assert tree(world.root) == before
        for path in (world.root / "d").iterdir():
            assert path.stat().st_ino == files[path.name].st_ino
            assert path.stat().st_mtime_ns == files[path.name].st_mtime_ns
        assert keeper.rail.changes() == []


def test_where_power_may_be_lost_all_is_on_the_disk_before_it_counts_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handrail.changes import apply
    from handrail.store.change_log import ChangeLog

    happened: list[str] = []
    sync, finish, begin = apply.sync_file_system, ChangeLog.finish, ChangeLog.begin
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (happened.append("fsync"), fsync(descriptor))[1])
    monkeypatch.setattr(apply, "sync_file_system", lambda folder: (happened.append("all"), sync(folder))[1])
    monkeypatch.setattr(ChangeLog, "begin", lambda *a, **o: (happened.append("begun"), begin(*a, **o))[1])
    monkeypatch.setattr(ChangeLog, "finish", lambda *a, **o: (happened.append("done"), finish(*a, **o))[1])
    (tmp_path / "world").mkdir()
    with (
        a_world(tmp_path / "world") as world,
        a_keeper(world, Settings.from_values({"journal.durability": "power"})) as keeper,
    ):
        world.sh("for i in $(seq 50); do echo $i >$i; done")
        keeper.keep("for i in *; do echo new >>$i; done")
    assert happened.index("fsync") < happened.index("begun") < happened.index("all") < happened.index("done")
