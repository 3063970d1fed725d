"""A journal, a change log or the audit is damaged: every command says so or works, and nothing else is lost."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.cli.main import run as run_words

SOUND, VICTIM = "sound", "victim"
NAMES = {"journal": f"workspaces/*/{VICTIM}/journal.db", "change log": "workspaces/*/.changes/changes.db"}
KINDS = ("journal", "change log", "audit")
WRITES = 12
DEFECTS = ("Traceback", "handrail: an internal error occurred (", "sqlite3.", "Error:")


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


def scatter(path: Path, dice: random.Random, places: int, size: int) -> None:
    """Overwrites so many pieces, at random places, until SQLite or a seal shows the damage."""
    data = bytearray(path.read_bytes())
    for _ in range(200):
        for _ in range(places):
            start = dice.randrange(len(data) - size)
            data[start : start + size] = bytes(byte ^ dice.randrange(1, 256) for byte in data[start : start + size])
        path.write_bytes(data)
        if path.suffix == ".jsonl" or not is_sound(path):
            return
    raise AssertionError("nothing is damaged")


def is_sound(path: Path) -> bool:
    """Whether SQLite itself finds nothing."""
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
            return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except (sqlite3.Error, UnicodeDecodeError):  # an error may quote what is no UTF-8
        return False


def overwrite(path: Path, start: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def move_middle(path: Path) -> None:
    """A piece of the middle is gone, and what follows is in the wrong place."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3] + data[len(data) // 3 + 777 :])


def replace(path: Path, make: Callable[[], object]) -> None:
    path.unlink()
    make()


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "a few bytes flipped": lambda path, dice: scatter(path, dice, 1, 1),
    "many bytes flipped": lambda path, dice: scatter(path, dice, 200, 1),
    "empty": lambda path, _: os.truncate(path, 0),
    "100 bytes left": lambda path, _: os.truncate(path, 100),
    "half left": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "one byte short": lambda path, _: os.truncate(path, path.stat().st_size - 1),
    "first page zeroed": lambda path, _: overwrite(path, 0, bytes(4096)),
    "a page of noise": lambda path, dice: scatter(path, dice, 1, 4096),
    "middle gone": lambda path, _: move_middle(path),
    "text": lambda path, _: path.write_text("This is not what was here before.\n" * 50),
    "a folder": lambda path, _: replace(path, path.mkdir),
    "unreadable": lambda path, _: replace(path, lambda: path.symlink_to(path.name)),  # root may read all but this
}
CASES = [(kind, damage) for kind in KINDS for damage in DAMAGES]
TODAY = {(kind, random.Random(f"today {kind}").choice(list(DAMAGES))) for kind in KINDS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `handrail …` as a process would, in the workspace that is damaged or in another."""
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(folder / "state")}

    def run(*words: str, where: str = "one") -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", environment)
            patch.chdir(folder / where)
            code = run_words(list(words))
        return Done(code, *capfd.readouterr())

    return run


@pytest.fixture
def state(folder: Path, run: Run) -> Path:
    """Two workspaces as they were before: two sessions with changes and a request that waits in the first."""
    kept = folder.with_name(f"{folder.name}-kept")
    if not kept.exists():
        (folder / "one").mkdir()
        (folder / "other").mkdir()
        for number in range(WRITES):
            for session in (SOUND, VICTIM):
                text = f"{session} {number}\n" * 50
                assert write(run, f"{session}.txt", text, "--session", session).code == 0
        for session in (SOUND, VICTIM):
            assert write(run, "asked.txt", "x", "--session", session, mode="ask").code == 3
        assert write(run, "other.txt", "other\n", where="other").code == 0
        shutil.copytree(folder, kept)
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    return folder / "state"


def write(run: Run, path: str, content: str, *more: str, mode: str = "auto", where: str = "one") -> Done:
    arguments = json.dumps({"path": path, "content": content})
    return run("call", "write", arguments, "--mode", mode, *more, where=where)


def read(run: Run, path: str, *more: str, where: str = "one") -> Done:
    return run("call", "read", json.dumps({"path": path}), *more, where=where)


def place_of(state: Path) -> Path:
    return state.parent / "one"


def path_of(kind: str, state: Path) -> Path:
    """The file of that kind that is damaged: of the first workspace, which has the session."""
    home = next(state.glob(NAMES["journal"])).parents[1]
    return state / "audit.jsonl" if kind == "audit" else home / Path(NAMES[kind]).relative_to("workspaces/*")


def is_shut(kind: str, damage: str) -> bool:
    """Whether no call can be put on the record, so that none may run."""
    return kind == "audit" and damage in {"a folder", "unreadable"}


def contents(state: Path, damaged: Path) -> dict[str, bytes]:
    """All that the state folder holds but the damaged file, and SQLite's own files beside a database."""
    files = (path for path in state.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {str(path): path.read_bytes() for path in files if path != damaged}


def events_of(run: Run, session: str) -> list[Any]:
    return json.loads(run("log", "--events", "--session", session, "--after", "0", "--limit", "1000", "--json").out)[
        "events"
    ]


def faults(done: Done) -> list[dict[str, str]]:
    """What doctor calls an error in the state folder."""
    return [row for row in json.loads(done.out)["rows"] if (row["group"], row["status"]) == ("state", "error")]


def checked(done: Done, kind: str, *codes: int) -> Done:
    """The same, where it ended with one of the codes; 4 names what is damaged and the next command."""
    assert done.code in codes, done
    assert not any(word in done.err for word in DEFECTS), done
    if done.code == 4:
        assert f"the {kind} " in done.err, done
        assert "next: handrail doctor" in done.err.lower(), done
    return done


def called(done: Done, kind: str, shut: bool) -> Done:
    """Of a call: it worked, or it is refused and says what is damaged. Where calls are shut out, none works."""
    assert done.code in ((1, 4) if shut else (0, 1, 4)), done
    assert not any(word in done.err for word in DEFECTS), done
    assert done.code == 0 or (kind in done.err and "handrail doctor" in done.err), done
    return done


@pytest.mark.parametrize(("kind", "damage"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_damaged_file_is_named_and_nothing_else_is_lost(
    state: Path, run: Run, kind: str, damage: str, deep: bool
) -> None:
    if not deep and (kind, damage) not in TODAY:
        pytest.skip("in a deep run")
    events, path, shut = events_of(run, SOUND), path_of(kind, state), is_shut(kind, damage)
    DAMAGES[damage](path, random.Random(f"{kind} {damage}"))
    kept = contents(state, path)

    [fault] = faults(checked(run("doctor", "--json"), kind, 1))
    assert fault["text"].startswith(kind)
    assert "\n" not in fault["text"]

    # Commands that look: they show what there is, or say what is damaged.
    checked(run("log"), kind, *((0, 4) if kind == "journal" else (0,)))  # it shows the session that was used last
    checked(run("log", "--session", VICTIM), kind, 0, 4)
    checked(run("log", "--sessions"), kind, 0)
    checked(run("log", "--changes"), kind, *((0,) if kind == "journal" else (0, 4)))
    assert f" {SOUND} " in checked(run("approvals"), kind, 0).out
    checked(run("audit"), kind, 4 if shut else 0)
    checked(run("audit", "verify"), kind, *((4,) if shut else (1,) if kind == "audit" else (0, 4)))
    assert {name: data for name, data in contents(state, path).items() if name in kept} == kept

    # Calls: in this session, in another, in another workspace.
    victim = place_of(state) / "victim.txt"
    old = victim.read_text()
    called(read(run, "victim.txt", "--session", VICTIM), kind, shut)
    done = called(write(run, "victim.txt", "new\n", "--session", VICTIM), kind, shut)
    assert victim.read_text() == (old if done.code else "new\n")
    undone = run("undo", "--session", VICTIM)
    if "it cannot be undone" not in undone.err:  # only that change cannot be read
        called(undone, kind, shut)
    others = [
        read(run, "sound.txt", "--session", SOUND),
        read(run, "other.txt", where="other"),
        write(run, "other.txt", "new\n", where="other"),
    ]
    assert all(called(one, kind, shut).code == 0 or shut for one in others), others
    done = called(write(run, "sound.txt", "new\n", "--session", SOUND), kind, shut)
    assert done.code == 0 or shut or kind == "change log"
    assert events_of(run, SOUND)[: len(events)] == events

    # What doctor says to do helps.
    fixes = [row["fix"] for row in faults(run("doctor", "--json")) if row["fix"].startswith("mv ")]
    for fix in fixes:
        subprocess.run(["sh", "-c", fix], env={"HANDRAIL_STATE_DIR": str(state)}, check=True)
    if kind != "audit" and fixes:
        assert faults(run("doctor", "--json")) == []
    assert write(run, "new.txt", "new\n", "--session", VICTIM).code == 0
    assert run("undo", "--session", VICTIM).code == 0
    if kind != "audit" and fixes:
        assert run("audit", "verify").code == 0
    assert not (state / "crashes").exists()
