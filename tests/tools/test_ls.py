"""ls: what is in a folder, in order, with sizes, and honest about what is left out."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search

Rail = Callable[..., Handrail]


def fill(folder: Path, *names: str) -> None:
    """Makes files (a name), folders (a name that ends in a slash)."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text("x" * 10)


def shown(one: Handrail, path: str = ".", depth: int = 1) -> list[str]:
    result = one.ls(path, depth=depth)
    assert result.ok, result.error
    return result.content.splitlines()


def test_directories_come_first_and_names_are_sorted(one: Handrail, workspace: Path) -> None:
    fill(workspace, "b.txt", "a.txt", "zoo/x", "bar/x", "Upper.txt", ".hidden")
    assert shown(one) == ["bar/", "zoo/", ".hidden  10 B", "Upper.txt  10 B", "a.txt  10 B", "b.txt  10 B"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 KB"), (1_234, "1.2 KB"), (123_456, "123 KB"), (5_000_000, "5.0 MB")],
)
def test_sizes_are_for_people_in_the_text_and_exact_in_the_data(
    one: Handrail, workspace: Path, size: int, text: str
) -> None:
    (workspace / "a").write_bytes(bytes(size))
    result = one.ls(".")
    assert result.content == f"a  {text}\n"
    assert result.data.entries[0].size == size


def test_one_level_is_the_default_and_depth_shows_more_under_each_folder(one: Handrail, workspace: Path) -> None:
    fill(workspace, "a/b/c/d.txt", "a/x.txt", "e.txt")
    assert one.call("ls", {"path": "."}).content == "a/\ne.txt  10 B\n"
    assert shown(one, depth=2) == ["a/", "a/b/", "a/x.txt  10 B", "e.txt  10 B"]
    assert shown(one, depth=20) == ["a/", "a/b/", "a/b/c/", "a/b/c/d.txt  10 B", "a/x.txt  10 B", "e.txt  10 B"]
    assert shown(one, "a/b", depth=2) == ["c/", "c/d.txt  10 B"]
    result = one.ls("a", depth=2)
    assert (result.data.path, result.meta.returned, result.meta.total) == ("a", 3, 3)


@pytest.mark.parametrize("depth", [0, 21, -1, "1"])
def test_a_depth_out_of_range_is_refused(one: Handrail, depth: object) -> None:
    assert one.call("ls", {"path": ".", "depth": depth}).error.code == "INVALID_ARGUMENT"


def test_an_empty_folder_says_so(one: Handrail) -> None:
    result = one.ls(".")
    assert (result.ok, result.content) == (True, "(empty)\n")
    assert (result.meta.returned, result.meta.total, result.meta.truncated) == (0, 0, False)


def test_what_is_no_folder_is_refused(one: Handrail, workspace: Path) -> None:
    fill(workspace, "file.txt")
    os.mkfifo(workspace / "fifo")
    for path in ("file.txt", "file.txt/x", "fifo"):
        assert one.ls(path).error.code == "NOT_A_DIRECTORY"
    assert one.ls("none").error.code == "NOT_FOUND"
    assert one.ls("fil.txt").error.details["near"] == ["file.txt"]
    assert one.ls("..").error.code == "OUTSIDE_WORKSPACE"


def test_built_in_ignored_folders_are_named_and_not_entered(one: Handrail, workspace: Path) -> None:
    fill(workspace, *(f"{name}/inner.txt" for name in (".git", "node_modules", "dist", "build", ".next", "src")))
    assert shown(one, depth=3) == [
        ".git/  (ignored)", ".next/  (ignored)", "build/  (ignored)", "dist/  (ignored)", "node_modules/  (ignored)",
        "src/", "src/inner.txt  10 B",
    ]  # fmt: skip


def test_an_ignored_folder_is_listed_when_it_is_asked_for(one: Handrail, workspace: Path) -> None:
    fill(workspace, "node_modules/left-pad/lib/index.js", "node_modules/left-pad/node_modules/x/y.js")
    (workspace / ".gitignore").write_text("node_modules/\n")
    assert shown(one, "node_modules", depth=3) == [
        "left-pad/", "left-pad/lib/", "left-pad/lib/index.js  10 B", "left-pad/node_modules/  (ignored)",
    ]  # fmt: skip


def test_settings_add_patterns_to_ignore(rail: Rail, workspace: Path) -> None:
    fill(workspace, "target/x", "src/target/x", "a.cache/x", "vendor/x", "src/vendor/x")
    one = rail(settings=Settings(search=Search(ignore=("target", "*.cache", "/vendor/"))))
    assert shown(one, depth=3) == [
        "a.cache/  (ignored)",
        "src/",
        "src/target/  (ignored)",
        "src/vendor/",
        "src/vendor/x  10 B",
        "target/  (ignored)",
        "vendor/  (ignored)",
    ]


def test_gitignore_rules_hold_below_their_folder_and_can_be_taken_back(one: Handrail, workspace: Path) -> None:
    fill(
        workspace, "logs/a", "src/logs/a", "src/keep/a", "src/gen/a", "src/gen/deep/a", "docs/gen/a", "cache-1/a",
        "cache-2/a", "anchored/a", "src/anchored/a",
    )  # fmt: skip
    (workspace / ".gitignore").write_text("# a comment\nlogs/\ncache-*\n!cache-2/\n/anchored\n")
    (workspace / "src" / ".gitignore").write_text("gen/\n!logs/\n")
    assert shown(one, depth=2) == [
        "anchored/  (ignored)",
        "cache-1/  (ignored)",
        "cache-2/", "cache-2/a  10 B",
        "docs/", "docs/gen/",
        "logs/  (ignored)",
        "src/", "src/anchored/", "src/gen/  (ignored)", "src/keep/", "src/logs/", "src/.gitignore  12 B",
        ".gitignore  46 B",
    ]  # fmt: skip


def test_the_rules_of_parents_hold_wherever_a_listing_starts(one: Handrail, workspace: Path) -> None:
    fill(workspace, "a/b/out/x", "a/b/src/x", "a/b/c/out/x")
    (workspace / ".gitignore").write_text("out/\n")
    (workspace / "a" / ".gitignore").write_text("/b/src/\n")
    assert shown(one, "a/b", depth=2) == ["c/", "c/out/  (ignored)", "out/  (ignored)", "src/  (ignored)"]


def test_our_ignore_rules_are_those_of_git(one: Handrail, workspace: Path) -> None:
    """Every folder that git would not look into is noted, and no other."""
    patterns = [
        "*.tmp/",
        "b*",
        "!bb",
        "/c/d",
        "**/e",
        "f/**",
        "g/*/h",
        "[ij]",
        "k?",
        "\\!l",
        "#m",
        "n\\ ",
        "o/",
        "!o/",
        " p",
    ]
    folders = [
        "x.tmp", "b", "ba", "bb", "c", "c/d", "q/c/d", "q/e", "e", "f", "f/x", "g/x/h", "g/h", "i", "j", "k", "kk",
        "!l", "#m", "n ", "o", "p", " p", "q/b",
    ]  # fmt: skip
    (workspace / ".gitignore").write_text("\n".join(patterns) + "\n")
    for folder in folders:
        (workspace / folder).mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "."], cwd=workspace, check=True)
    asked = "".join(f"{folder}\0" for folder in folders)
    told = subprocess.run(
        ["git", "check-ignore", "--stdin", "-z"],
        cwd=workspace,
        input=asked,
        text=True,
        capture_output=True,
        check=False,
    )
    ignored = {name.rstrip("/") for name in told.stdout.split("\0") if name}
    noted = {entry.path for entry in one.ls(".", depth=4).data.entries if entry.note == "ignored"} - {".git"}
    below = {name for name in ignored if any(name.startswith(f"{other}/") for other in ignored)}
    assert noted == ignored - below


def test_a_hostile_ignore_file_does_not_hold_up_a_listing(one: Handrail, workspace: Path) -> None:
    (workspace / ("a" * 250)).mkdir()
    (workspace / ".gitignore").write_text("*a" * 12 + "*b\n" + "[\n" + "**" * 5_000 + "\nignored/\n" + "x" * 70_000)
    fill(workspace, "ignored/x")
    assert shown(one, depth=2)[1] == "ignored/  (ignored)"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_an_ignore_file_that_is_none_is_passed_over(
    one: Handrail, workspace: Path, make: Callable[[Path], None]
) -> None:
    make(workspace / ".gitignore")
    fill(workspace, "a/b")
    assert "a/b  10 B" in shown(one, depth=2)


def test_links_are_named_and_not_followed(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    fill(tmp_path, "outside/secret-name")
    fill(workspace, "real/x")
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "in").symlink_to("real")
    (workspace / "loop").symlink_to(".")
    (workspace / "dangling").symlink_to("none")
    assert shown(one, depth=20) == ["real/", "real/x  10 B", "dangling  link", "in  link", "loop  link", "out  link"]
    assert shown(one, "in") == ["x  10 B"]
    assert str(tmp_path) not in one.ls(".").content


def test_odd_names_are_made_visible(one: Handrail, workspace: Path) -> None:
    raw = os.fsencode(workspace)
    for name in (b"new\nline", b"esc\x1b[2J", b"caf\xe9", "grün".encode(), b"tab\t"):
        (Path(os.fsdecode(raw + b"/" + name))).write_text("")
    result = one.ls(".")
    assert result.content.splitlines() == [
        "caf\\udce9  0 B", "esc\\x1b[2J  0 B", "grün  0 B", "new\\nline  0 B", "tab\\t  0 B",
    ]  # fmt: skip
    assert [entry.path for entry in result.data.entries] == [line[:-5] for line in result.content.splitlines()]


def test_special_files_are_named_as_such(one: Handrail, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    (entry,) = one.ls(".").data.entries
    assert (entry.path, entry.kind, entry.size) == ("fifo", "other", None)


def test_a_folder_that_cannot_be_read_is_noted_and_the_rest_is_listed(
    common_folder: Path, as_ordinary_user: Callable[..., list[tuple[bool, str | None, str]]]
) -> None:
    workspace = common_folder / "workspace"
    fill(workspace, "locked/secret-name", "open/x")
    (workspace / "locked").chmod(0)
    try:
        ((ok, _, content),) = as_ordinary_user([("ls", {"path": ".", "depth": 3})])
    finally:
        (workspace / "locked").chmod(0o755)
    assert ok
    assert content == "locked/  (unreadable)\nopen/\nopen/x  10 B\n"


def test_a_folder_of_twenty_thousand_names_is_cut_and_counted(one: Handrail, workspace: Path) -> None:
    names = [f"{number:05}" for number in range(20_000)]
    for name in names:
        os.close(os.open(workspace / name, os.O_CREAT | os.O_WRONLY))
    (workspace / "zz-folder").mkdir()
    result = one.ls(".")
    assert [entry.path for entry in result.data.entries] == ["zz-folder", *names[:999]]
    assert (result.meta.returned, result.meta.total, result.meta.total_is_lower_bound) == (1_000, 20_001, False)
    assert result.meta.truncated
    assert "1000 of 20001 entries" in result.summary
    assert result.warnings
    deeper = one.ls(".", depth=2)
    assert deeper.meta.total_is_lower_bound, "the folder's own content was not counted"


def test_a_huge_folder_deep_down_does_not_hide_what_is_beside_it(one: Handrail, workspace: Path) -> None:
    fill(workspace, *(f"a/{number:04}" for number in range(1_500)), "b/x", "c.txt")
    result = one.ls(".", depth=2)
    paths = [entry.path for entry in result.data.entries]
    assert {"a", "b", "c.txt"} <= set(paths)
    assert len(paths) == 1_000
    assert result.meta.total_is_lower_bound
    assert result.meta.total >= 1_503


def test_long_listings_are_kept_whole_and_can_be_read(one: Handrail, workspace: Path) -> None:
    fill(workspace, *(f"{number:04}-{'n' * 60}" for number in range(900)))
    result = one.ls(".")
    assert len(result.content) <= 30_500
    assert one.read(result.meta.output, offset=-1).content == f"0899-{'n' * 60}  10 B\n"
    assert len(result.data.entries) == 900


WATCH = """
import os, sys
from handrail.workspace.ignore import IgnoreStack
from handrail.workspace.directory import list_tree
def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
folder = os.open(sys.argv[1], os.O_RDONLY)
list_tree(folder, 1, 10, IgnoreStack())
before = peak()
found = list_tree(folder, 20, 1_000, IgnoreStack())
assert (len(found.entries), found.total) == (1_000, int(sys.argv[2]))
print(peak() - before)
"""


def test_memory_is_bounded_by_what_is_shown(tmp_path: Path, deep: bool) -> None:
    total = 100_000 if deep else 20_000
    for number in range(total):
        os.close(os.open(tmp_path / f"{number:06}-{'n' * 100}", os.O_CREAT | os.O_WRONLY))
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    command = [sys.executable, "-c", WATCH, str(tmp_path), str(total)]
    done = subprocess.run(command, env={"PYTHONPATH": source}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 16
