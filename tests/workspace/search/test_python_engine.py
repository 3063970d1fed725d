"""The Python engine: in order, lazy, bounded, and never outside."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.kernel.files import has_openat2
from handrail.settings import Settings
from handrail.settings.model import Paths, Search
from handrail.workspace.search import python_engine
from handrail.workspace.search.engine import MAX_LINE_BYTES, Pattern, SearchScope, to_sort_key
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.ripgrep import find_ripgrep

Rail = Callable[..., Handrail]
ENGINE = PythonEngine()


def never() -> bool:
    return False


Open = Callable[[], SearchScope]


@pytest.fixture
def opened(workspace: Path) -> Iterator[Open]:
    """Opens the workspace for a search of its own, again and again."""
    folder = os.open(workspace, os.O_RDONLY)
    yield lambda: SearchScope(folder, folder, ".", has_openat2())
    os.close(folder)


def names(where: SearchScope) -> list[bytes]:
    return list(chain.from_iterable(ENGINE.files(where, never)))


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("foo\n")


def test_files_come_in_the_order_of_a_walk(workspace: Path, opened: Open) -> None:
    fill(workspace, "a.b", "a/c", "a/b/x", "a-b", "b", "A", "a/b.x", "é", "a b/c")
    found = names(opened())
    assert found == sorted(found, key=to_sort_key)
    assert len(found) == 9


def test_folders_with_more_names_than_a_page_are_whole_and_in_order(
    workspace: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_engine, "_MAX_PAGE_NAMES", 7)
    fill(workspace, *(f"{number:03}" for number in range(50)), "021x/a", "021x/b")
    found = names(opened())
    assert found == sorted(found)
    assert len(found) == 52


def test_a_search_that_has_enough_looks_no_further(workspace: Path, opened: Open) -> None:
    fill(workspace, "a/1", "b/2", "c/3")
    hits = ENGINE.hits(opened(), Pattern("foo"), never)
    assert next(hits).path == b"a/1"
    (workspace / "b" / "2").write_text("bar\n")
    assert [found.path for found in hits] == [b"c/3"]


def test_a_search_ends_when_it_is_told_to(workspace: Path, opened: Open) -> None:
    fill(workspace, "a", "b", "c")
    seen: list[bytes] = []
    for paths in ENGINE.files(opened(), lambda: len(seen) == 2):
        seen.extend(paths)
    assert seen == [b"a", b"b"]


def test_links_are_not_followed_and_special_files_not_opened(workspace: Path, opened: Open, tmp_path: Path) -> None:
    fill(tmp_path, "outside/secret")
    fill(workspace, "real/x")
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "out.txt").symlink_to(tmp_path / "outside" / "secret")
    (workspace / "loop").symlink_to(".")
    os.mkfifo(workspace / "fifo")
    assert [found.path for found in ENGINE.hits(opened(), Pattern("foo"), never)] == [b"real/x"]
    assert names(opened()) == [b"real/x"]


def test_a_file_that_became_a_link_before_it_was_opened_is_passed_over(
    workspace: Path, opened: Open, tmp_path: Path
) -> None:
    fill(tmp_path, "outside/secret")
    fill(workspace, "a", "b", "sub/c", "sub/d")
    where = opened()
    hits = ENGINE.hits(where, Pattern("foo"), never)
    assert next(hits).path == b"a"
    (workspace / "b").unlink()
    (workspace / "b").symlink_to(tmp_path / "outside" / "secret")
    assert next(hits).path == b"sub/c"
    (workspace / "sub").rename(workspace / "moved")
    (workspace / "sub").symlink_to(tmp_path / "outside")
    assert [found.path for found in hits] == [b"sub/d"], "it is still in the folder that was entered"
    assert where.stats.unreadable == 1


def test_any_depth_can_be_walked(workspace: Path, opened: Open) -> None:
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    where, before = opened(), len(os.listdir("/proc/self/fd"))
    assert names(where) == [b"d/" * 300 + b"file"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_descriptors_are_given_back_also_when_a_search_is_given_up(workspace: Path, opened: Open) -> None:
    fill(workspace, "a/b/c/1", "a/b/c/2", "d")
    where = opened()
    before = len(os.listdir("/proc/self/fd"))
    found = ENGINE.hits(where, Pattern("foo"), never)
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


OPENED = """
import os, sys
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.python_engine import PythonEngine
opened = []
sys.addaudithook(lambda name, details: opened.append(os.fsdecode(details[0])) if name == "open" else None)
folder = os.open(sys.argv[1], os.O_RDONLY)
where = SearchScope(folder, folder, ".", False)
found = [hits.path for hits in PythonEngine().hits(where, Pattern("foo"), lambda: False)]
print(found, [name for name in (".env", ".ssh", "config", "server.pem", "b") if name in opened])
"""


def test_secrets_are_counted_and_never_opened(
    workspace: Path, opened: Open, protected: Callable[..., set[bytes]]
) -> None:
    fill(workspace, ".env", ".ssh/config", "a/server.pem", "b")
    where = opened()
    assert [found.path for found in ENGINE.hits(where, Pattern("foo"), never)] == [b"b"]
    assert protected() == {b".env", b".ssh", b"a/server.pem"}
    assert said(OPENED, workspace) == "[b'b'] ['b']"


def said(script: str, *arguments: object) -> str:
    """What a script prints in a process of its own."""
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env={"PYTHONPATH": source}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_line_too_long_to_be_held_is_passed_over_and_the_rest_is_right(workspace: Path, opened: Open) -> None:
    with (workspace / "file").open("wb") as file:
        file.write(b"foo 1\n")
        file.write(b"foo " * (MAX_LINE_BYTES // 2) + b"\n")
        file.write(b"foo 3\n")
    where = opened()
    (found,) = ENGINE.hits(where, Pattern("foo"), never)
    assert [(line.number, line.offset, line.data) for line in found.lines] == [
        (1, 0, b"foo 1"),
        (3, 6 + 2 * MAX_LINE_BYTES + 1, b"foo 3"),
    ]
    assert where.stats.oversized == 1


UNREADABLE = """
import os, sys
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.python_engine import PythonEngine
import handrail.workspace.search.ripgrep
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
folder = os.open(sys.argv[1], os.O_RDONLY)
where = SearchScope(folder, folder, ".", True)
found = [hits.path for hits in PythonEngine().hits(where, Pattern("foo"), lambda: False)]
print(found, where.stats.unreadable)
"""


def test_what_cannot_be_read_is_counted_and_the_rest_is_found() -> None:
    with tempfile.TemporaryDirectory(prefix="handrail-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        fill(folder, "locked/a", "open/b", "no.txt")
        (folder / "locked").chmod(0)
        (folder / "no.txt").chmod(0)
        try:
            assert said(UNREADABLE, folder) == "[b'open/b'] 2"
        finally:
            (folder / "locked").chmod(0o755)


WATCH = """
import os, sys
from handrail.workspace.search.engine import Pattern, SearchScope
from handrail.workspace.search.python_engine import PythonEngine
def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
folder = os.open(sys.argv[1], os.O_RDONLY)
before = peak()
where = SearchScope(folder, folder, ".", True)
found = list(PythonEngine().hits(where, Pattern("needle"), lambda: False))
print(sum(len(hits.lines) for hits in found), peak() - before)
"""


def test_memory_is_bounded_whatever_a_file_holds(tmp_path: Path, deep: bool) -> None:
    size = (2_000 if deep else 120) << 20
    for name, offset in (("one-line", 0), ("holes", size // 2)):
        with (tmp_path / name).open("wb") as file:
            file.seek(offset)
            file.write(b"needle\n")
            file.truncate(size)
    with (tmp_path / "lines").open("wb") as file:
        for _ in range(size >> 22):
            file.write(b"some text of a line\n" * ((1 << 22) // 20))
        file.write(b"needle")
    lines, grown = map(int, said(WATCH, tmp_path).split())
    assert lines == 1
    assert grown <= 100


def test_the_answer_says_that_python_searched(rail: Rail, workspace: Path) -> None:
    fill(workspace, "a.txt")
    one = rail(settings=Settings(search=Search(engine="python")))
    assert one.grep("foo").meta.engine == "python"
    assert one.find("*.txt").meta.engine == "python"


@pytest.fixture
def no_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with which none is found: whatever program there is lies in a root, and such a one is never run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    roots: list[str] = []
    while program := find_ripgrep(roots):
        roots.append(os.path.dirname(os.path.realpath(program)))
    return Settings(paths=Paths(read_only=tuple(roots)))


def test_without_ripgrep_both_fall_back_to_python(rail: Rail, workspace: Path, no_ripgrep: Settings) -> None:
    fill(workspace, "a.txt")
    one = rail(settings=no_ripgrep)
    found, searched = one.find("*.txt"), one.grep("foo")
    assert (found.content, found.meta.engine) == ("a.txt\n", "python")
    assert (searched.content, searched.meta.engine) == ("a.txt\n  1: foo\n", "python")


def test_a_pattern_that_only_ripgrep_knows_is_unavailable_and_says_why_there_is_none(
    rail: Rail, workspace: Path, no_ripgrep: Settings
) -> None:
    fill(workspace, "a.txt")
    switched_off = Settings(search=Search(engine="python"))
    reasons = (
        (no_ripgrep, "is not installed here. Install the package ripgrep (apt, dnf, brew or pip)"),
        (switched_off, "the setting search.engine disables. Set it to auto"),
    )
    for settings, reason in reasons:
        for path in (".", "a.txt"):
            error = rail(settings=settings).grep(r"\Afoo", path).error
            assert error is not None
            assert error.code == "UNAVAILABLE"
            assert error.message.endswith(f"that needs ripgrep (rg), which {reason}.")


def test_ignore_rules_beyond_all_measure_are_unavailable_and_say_why(rail: Rail, workspace: Path) -> None:
    fill(workspace, "a.txt")
    (workspace / ".gitignore").write_text("{a,b,c}" * 20)
    error = rail(settings=Settings(search=Search(engine="python"))).find("*").error
    assert error is not None
    assert (error.code, "disables" in error.message) == ("UNAVAILABLE", True)
