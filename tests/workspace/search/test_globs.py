"""Globs and ignore files mean what they mean to ripgrep, and no glob takes long."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.errors import ToolError
from handrail.workspace.glob import anchor_glob, build_expression, build_matcher, compile_glob, parse_glob
from handrail.workspace.ignore import read_ignore_rules

from .conftest import SOME, Both

NAMES = [
    "a", "b", "ab", "ba", "a.b", "b.a", "a.", ".a", "..a", "a b", "a ", "é", "-", "a,b", "[a]", "!a", "#a", "{a}",
    "a\\", "*", "?", "a\nb", "^", "]", "c.b.a",
]  # fmt: skip
PIECES = [
    "a", "b", "/", "/", "*", "**", "**/", "/**", "?", "[a]", "[!a]", "[^a]", "[a-c]", "[]a]", "[", "{a,b}", "{", "}",
    ",", "{a,", ".", ".", "\\", "\\*", "!", "#", " ", "é", "-", "{**/a,b}", "{a/**,b}", "[.]", "{,a}", "[!", "{}",
]  # fmt: skip


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "py", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["a.py", "x/src/a.py", "src/x/a.py"]),
        ("/a", ["a"], ["x/a"]),
        ("**/a", ["a", "x/a", "x/y/a"], ["xa", "a/x"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "xa/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("a?c", ["abc", "x/axc"], ["ac", "a/c", "aéc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("*.{py,js}", ["a.py", "b.js"], ["a.ts", "a."]),
        ("{a,b}/{c,d}", ["a/c", "b/d"], ["a/b", "x/a/c"]),
        (r"\*a", ["*a"], ["ba"]),
        ("a{,b}", ["ab"], ["a"]),
    ],
)
def test_a_glob_matches_names_at_any_depth_and_paths_with_a_slash_from_the_folder_on(
    glob: str, matching: list[str], other: list[str]
) -> None:
    matches = build_matcher(glob)
    assert [path for path in matching + other if matches(path.encode())] == matching


@pytest.mark.parametrize("glob", ["[", "[a", "{a", "{a,{b}}", "a\\", "[z-a]", "\ud800"])
def test_a_broken_glob_is_refused_with_the_reason(glob: str) -> None:
    with pytest.raises(ToolError) as caught:
        build_matcher(glob)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert "broken" in caught.value.message


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("**/" + "*a*/**/" * 8 + "b", "a/" * 500 + "c"),
        ("{a,b}" * 10 + "*c", "ab" * 120),
        ("[!x]" * 8 + "*" * 50 + "y", "a" * 250),
    ],
)
def test_no_glob_takes_long(glob: str, path: str) -> None:
    assert not build_matcher(glob)(path.encode())


@pytest.mark.parametrize(
    "glob",
    [
        "{a,b,c}" * 20,
        "{a,b}" * 10 + "?" * 50,
        "[!a]" * 11,
        "{" + ",".join(["[!a]" * 10] * 100) + "}",
        "?" * 100_000,
    ],
)
def test_what_is_too_much_to_be_spelled_out_is_refused(glob: str) -> None:
    with pytest.raises(ToolError) as caught:
        build_matcher(glob)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("glob", "most"),
    [("?" * 1_000, 100), ("[!a]" * 8, 20_000), ("[b-y]" * 1_000, 100), ("{a,b}" * 10 + "?" * 30, 150_000)],
)
def test_a_glob_is_spelled_out_in_few_bytes(glob: str, most: int) -> None:
    assert len(build_expression(parse_glob(anchor_glob(glob)))) < most


def test_a_character_in_a_glob_is_a_byte_whether_it_is_text_or_not() -> None:
    assert [build_matcher("?" * count)("é".encode()) for count in (1, 2, 3)] == [False, True, False]
    assert [build_matcher("[!a]?")(name) for name in (b"\xff\x80", b"ab", b"b\n", b"b/")] == [True, False, True, False]
    assert [build_matcher("a?")(name) for name in (b"a\x00", b"a\xff", b"a\n", b"a.", b"a/")] == [True] * 4 + [False]


def test_the_same_glob_is_made_ready_once() -> None:
    assert compile_glob("{a,b}*?.once") is compile_glob("{a,b}*?.once")


def lines(random: Random) -> bytes:
    made: list[str] = []
    for _ in range(random.choice([1, 1, 2, 4])):
        line = "".join(random.choices(PIECES, k=random.randint(1, 6)))
        before, after = random.choice(["", "", "", "!", "/", "!/", "\\"]), random.choice(["", "", "", "/", " ", "\r"])
        made.append(f"{before}{line}{after}")
    data = "\n".join(made).encode()
    return random.choice([b"", b"", b"", b"", b"\xff\n", b"\xef\xbb\xbf", b"#x\n"]) + data


def fill(folder: Path, random: Random) -> None:
    """A few files, some of them in folders, and an ignore file or two."""
    for _ in range(12):
        path = folder.joinpath(*random.choices(NAMES, k=random.choice([1, 1, 2, 2, 3])))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError:
            continue
    kinds = [".gitignore", ".ignore", ".rgignore"]
    (folder / random.choice(kinds)).write_bytes(lines(random))
    below = [entry for entry in sorted(folder.iterdir()) if entry.is_dir()]
    for inner in below[: random.randint(0, 2)]:
        (inner / random.choice(kinds)).write_bytes(lines(random))


@SOME
@given(random=st.randoms(use_true_random=False))
def test_ignore_files_pass_over_what_ripgrep_passes_over(
    both: Both, tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    root = tmp_path_factory.mktemp("ignore")
    for number in range(5):
        (root / f"k{number}").mkdir()
        fill(root / f"k{number}", random)
    python, ripgrep = both.files(root)
    assert python == ripgrep
    below = f"k{random.randrange(5)}"
    python, ripgrep = both.files(root, below)
    assert python == ripgrep


@pytest.fixture
def ignored(workspace: Path) -> Callable[..., bool]:
    """Whether a path is passed over, or a folder on the way to it."""

    def ask(path: str, below: str = ".", patterns: tuple[str, ...] = ()) -> bool:
        *outer, name = path.split("/")
        with ExitStack() as stack:

            def opened(name: str, folder: int | None = None) -> int:
                descriptor = os.open(name, os.O_RDONLY, dir_fd=folder)
                stack.callback(os.close, descriptor)
                return descriptor

            root = opened(str(workspace))
            rules, folder = read_ignore_rules(root, below, patterns), opened(below, root)
            for step in outer:
                if rules.matches(step, folder=True):
                    return True
                folder = opened(step, folder)
                rules = rules.enter(folder, step)
            return rules.matches(name, folder=False)

    return ask


def test_built_in_folders_are_passed_over_at_any_depth_and_files_of_that_name_are_not(
    workspace: Path, ignored: Callable[..., bool]
) -> None:
    (workspace / "a" / "build").mkdir(parents=True)
    assert ignored("a/build/x")
    assert not ignored("a/build")


def test_the_nearer_file_wins_and_among_kinds_the_stronger(workspace: Path, ignored: Callable[..., bool]) -> None:
    (workspace / "a").mkdir()
    (workspace / ".gitignore").write_text("x\ny\n")
    (workspace / "a" / ".gitignore").write_text("!x\n")
    assert [ignored(path) for path in ("x", "a/x", "a/y")] == [True, False, True]
    (workspace / ".ignore").write_text("x\n")
    assert ignored("a/x")
    (workspace / ".rgignore").write_text("!x\n")
    assert not ignored("x")


def test_what_git_excludes_and_what_the_person_ignores_everywhere_counts(
    workspace: Path, at_home: Path, ignored: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".git" / "info").mkdir(parents=True)
    (workspace / ".git" / "info" / "exclude").write_text("x\n!z\n")
    own = workspace.parent / "config"
    (own / "git").mkdir(parents=True)
    (own / "git" / "ignore").write_text("y\nz\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own))
    assert [ignored(path) for path in ("x", "y", "z")] == [True, True, False]
    (own / "mine").write_text("w\n")
    (own / "git" / "config").write_text(f'[core]\n\texcludesFile = "{own}/mine"\n')
    assert [ignored(path) for path in ("w", "y")] == [True, False]


def test_ignore_files_above_the_root_do_not_count(workspace: Path, ignored: Callable[..., bool]) -> None:
    (workspace.parent / ".gitignore").write_text("x\n")
    assert not ignored("x")


def test_rules_between_the_root_and_the_folder_count_unless_they_pass_the_folder_over(
    workspace: Path, ignored: Callable[..., bool]
) -> None:
    (workspace / "a" / "b").mkdir(parents=True)
    (workspace / "out").mkdir()
    (workspace / ".gitignore").write_text("x\n/out/\n")
    assert ignored("x", "a/b")
    assert not ignored("x", "out")


def test_patterns_of_the_settings_are_not_taken_back_by_files(workspace: Path, ignored: Callable[..., bool]) -> None:
    (workspace / ".gitignore").write_text("!x\n")
    assert ignored("x", patterns=("x",))
    assert not ignored("y", patterns=("y", "!y"))


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", ".git"])
def test_a_link_in_place_of_an_ignore_file_is_not_followed(
    workspace: Path, ignored: Callable[..., bool], name: str
) -> None:
    outside = workspace.parent / "outside"
    (outside / "info").mkdir(parents=True)
    (outside / "info" / "exclude").write_text("x\n")
    (workspace / name).symlink_to(outside if name == ".git" else outside / "info" / "exclude")
    assert not ignored("x")


def test_large_ignore_files_count_to_the_last_line(workspace: Path, ignored: Callable[..., bool]) -> None:
    (workspace / ".gitignore").write_text("".join(f"name-{n}\n*.e{n}\n" for n in range(10_000)) + "*a*b*c*d*e\n")
    assert [ignored(path) for path in ("name-9999", "x.e9999", "abcde", "abcd")] == [True, True, True, False]


def test_what_is_ignored_beyond_all_measure_is_left_to_ripgrep(both: Both, workspace: Path) -> None:
    (workspace / "x").touch()
    (workspace / ".gitignore").write_text("{a,b,c}" * 20)
    assert both.files_in_python(workspace) == "UNAVAILABLE"
    (workspace / ".gitignore").write_text("name\n" * 200_000)
    assert both.files_in_python(workspace) == [b".gitignore", b"x"]
    (workspace / ".gitignore").write_text("name\n" * 220_000)
    assert both.files_in_python(workspace) == "UNAVAILABLE"
    (workspace / ".gitignore").write_text("?" * 100_000)
    assert both.files_in_python(workspace) == "UNAVAILABLE"


def test_rules_that_are_short_but_cost_much_are_left_to_ripgrep(both: Both, workspace: Path) -> None:
    (workspace / "x").touch()
    costly = "".join(f"{'{a,b}' * 10}?{number}\n" for number in range(20))
    (workspace / ".gitignore").write_text(costly)
    assert both.files_in_python(workspace) == "UNAVAILABLE"
    (workspace / ".gitignore").unlink()
    for number in range(60):
        (workspace / f"d{number}").mkdir()
        (workspace / f"d{number}" / ".gitignore").write_text("{a,b}" * 10 + f"?{number}\n")
    assert both.files_in_python(workspace) == "UNAVAILABLE"
    assert both.files(workspace, "d5") == ([b".gitignore"], [b".gitignore"])
