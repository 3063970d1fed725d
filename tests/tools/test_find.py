"""find: files by their names, in one order, and honest about what is missing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Paths, Search, Tools

Rail = Callable[..., Handrail]


def make(workspace: Path, *paths: str, text: str = "x\n") -> None:
    for path in paths:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)


def found(rail: Handrail, pattern: str, *arguments: str, **options: object) -> list[str]:
    result = rail.find(pattern, *arguments, **options)
    assert result.ok, result.error
    return list(result.data.files)


def test_a_name_is_found_at_any_depth_and_a_path_from_the_folder_on(one: Handrail, workspace: Path) -> None:
    make(workspace, "a.py", "src/a.py", "src/deep/b.py", "src/c.ts", "docs/a.md")
    assert found(one, "*.py") == ["a.py", "src/a.py", "src/deep/b.py"]
    assert found(one, "src/*.py") == ["src/a.py"]
    assert found(one, "src/**/*.py") == ["src/a.py", "src/deep/b.py"]
    assert found(one, "/a.*") == ["a.py"]
    assert found(one, "*.{md,ts}") == ["docs/a.md", "src/c.ts"]
    assert found(one, "[ab].??") == ["a.py", "docs/a.md", "src/a.py", "src/deep/b.py"]
    assert found(one, "a.py", "src") == ["src/a.py"]
    assert found(one, "deep/*", "src") == ["src/deep/b.py"]


def test_the_order_is_that_of_the_names_folder_by_folder(one: Handrail, workspace: Path) -> None:
    make(workspace, "b", "a/z", "a.b/c", "a/b/c", "B", "a-b", "ä")
    assert found(one, "*") == ["B", "a/b/c", "a/z", "a-b", "a.b/c", "b", "ä"]


def test_the_answer_says_how_many_and_what_searched(one: Handrail, workspace: Path) -> None:
    make(workspace, *(f"f{number}.txt" for number in range(5)))
    result = one.find("*.txt", max_results=3)
    meta = result.meta
    assert (meta.returned, meta.truncated, meta.engine, meta.files) == (3, True, "ripgrep", 3)
    assert result.content.startswith("f0.txt\nf1.txt\nf2.txt\n")
    assert "narrow" in result.warnings[0]
    whole = one.find("*.txt")
    assert (whole.summary, whole.meta.total, whole.meta.truncated) == ("5 files", 5, False)
    assert whole.meta.total_is_lower_bound is False
    assert not whole.warnings


def test_nothing_found_says_where_it_looked_and_what_is_ignored(one: Handrail, workspace: Path) -> None:
    (workspace / "src").mkdir()
    result = one.find("*.rs", "src", exclude=["old"])
    assert (result.ok, result.meta.total, result.summary) == (True, 0, "No files in src")
    for word in ("src", "*.rs", "old", "node_modules", ".gitignore"):
        assert word in result.content


def test_dotfiles_are_found_and_built_in_folders_are_not(one: Handrail, workspace: Path) -> None:
    make(workspace, ".config/a", "a/node_modules/a", "dist/a", "x/build/a", ".git/a", ".next/a", "build.d/a")
    assert found(one, "a") == [".config/a", "build.d/a"]
    assert found(one, "a", "dist") == ["dist/a"]
    assert found(one, "a", "x/build") == ["x/build/a"]


def test_a_file_called_like_a_built_in_folder_is_found(one: Handrail, workspace: Path) -> None:
    make(workspace, "scripts/build")
    assert found(one, "build") == ["scripts/build"]


def test_our_own_unfinished_files_are_not_found(one: Handrail, workspace: Path) -> None:
    make(workspace, ".handrail-12-34", ".handrail-5/a", "sub/.handrail-67", "sub/a.handrail-8", "a")
    assert found(one, "*") == ["a", "sub/a.handrail-8"]


def test_exclude_leaves_out_files_and_whole_folders(one: Handrail, workspace: Path) -> None:
    make(workspace, "a.py", "test_a.py", "old/b.py", "src/old/c.py", "src/gen/d.py", "src/gen.py", "{x}/e.py")
    assert found(one, "*.py", exclude=["test_*", "old", "src/gen/"]) == ["a.py", "src/gen.py", "{x}/e.py"]
    assert found(one, "*.py", exclude=["/old/**", "{test_a,src}*", "[{]x*"]) == ["a.py"]


@pytest.mark.parametrize("glob", ["[a", "{a,b", "src/{a", "[]"])
def test_a_broken_glob_is_refused(one: Handrail, workspace: Path, glob: str) -> None:
    make(workspace, "a")
    for result in (one.find(glob), one.find("*", exclude=[glob]), one.grep("x", file_pattern=glob)):
        assert result.error is not None
        assert (result.error.code, glob in result.error.message) == ("INVALID_ARGUMENT", True)


def test_only_regular_files_are_found_and_no_link_is_followed(one: Handrail, workspace: Path, tmp_path: Path) -> None:
    make(workspace, "real/a")
    (workspace / "link").symlink_to("real/a")
    (workspace / "folder").symlink_to("real")
    (workspace / "away").symlink_to(tmp_path)
    os.mkfifo(workspace / "pipe")
    assert found(one, "*") == ["real/a"]
    assert found(one, "*", "folder") == ["real/a"]


def test_a_path_that_is_no_folder_inside_is_refused(one: Handrail, workspace: Path) -> None:
    make(workspace, "a.txt", ".ssh/known_hosts")
    codes = [one.find("*", path).error.code for path in ("a.txt", "nowhere", "..", "/etc", ".ssh")]
    assert codes == ["NOT_A_DIRECTORY", "NOT_FOUND", "OUTSIDE_WORKSPACE", "OUTSIDE_WORKSPACE", "POLICY_DENIED"]


def test_credentials_are_never_named_and_counted(one: Handrail, workspace: Path) -> None:
    make(workspace, ".env", "a/.ENV.local", ".ssh/id", ".ssh/config", "k/server.pem", ".env.example", "id_rsa. ")
    one.exec("true")
    result = one.find("*")
    assert list(result.data.files) == [".env.example"]
    assert result.meta.protected == 5
    assert (one.find(".env").meta.protected, one.find("*.md").meta.protected) == (1, 0)
    (workspace / ".gitignore").write_text(".env\n")
    assert one.find("*").meta.protected == 4, "what is ignored is not withheld"


ODD = [
    "new\nline",
    "a:b:c",
    "-rf",
    "--files",
    "tab\tname",
    "\x1b[31m",
    "é",
    "\u202eright-to-left",
    "back\\slash",
    "'\"",
]


def test_odd_names_are_found_and_made_visible(one: Handrail, workspace: Path) -> None:
    make(workspace, *ODD)
    (workspace / os.fsdecode(b"caf\xe9")).write_text("x")
    names = found(one, "*")
    assert len(names) == len(ODD) + 1
    assert "caf\\udce9" in names
    assert "new\\nline" in names
    assert all(name.isprintable() for name in names)
    assert found(one, "caf*") == ["caf\\udce9"]
    assert found(one, "a:b:c") == ["a:b:c"]
    assert found(one, "-rf") == ["-rf"]


@pytest.mark.parametrize(
    ("most", "summary"),
    [(50, "50 of at least 51 files"), (1_000, "1,000 of at least 1,001 files"), (2_000, "2,000 of 3,000 files")],
)
def test_many_files_give_the_same_answer_every_time(one: Handrail, workspace: Path, most: int, summary: str) -> None:
    make(workspace, *(f"d{number % 40:02}/f{number:04}.txt" for number in range(3_000)))
    results = [one.find("*.txt", max_results=most) for _ in range(8)]
    assert {result.summary for result in results} == {summary}
    (files,) = {result.data.files for result in results}
    assert (
        list(files)
        == [f"d{folder:02}/f{number:04}.txt" for folder in range(40) for number in range(folder, 3_000, 40)][:most]
    )


def test_a_whole_list_that_is_not_shown_is_kept_for_read(
    rail: Rail, workspace: Path, joined: Callable[..., str]
) -> None:
    make(workspace, *(f"d{number % 10}/f{number:04}.txt" for number in range(3_000)))
    one = rail(settings=Settings(tools=Tools(disable=("write",))))
    result = one.find("*.txt", max_results=2_900)
    assert not result.meta.total_is_lower_bound
    lines = joined(one, result.meta.output).splitlines()
    assert (len(lines), result.meta.total, lines[:2_900]) == (3_000, 3_000, list(result.data.files))
    assert f"read {result.meta.output} for all of it" in result.content


def test_an_extra_root_is_searched_and_named_by_its_own_path(rail: Rail, tmp_path: Path) -> None:
    make(tmp_path / "other", "x/a.py")
    one = rail(settings=Settings(paths=Paths(read_only=(str(tmp_path / "other"),))))
    assert found(one, "*.py", str(tmp_path / "other")) == [str(tmp_path / "other/x/a.py")]
    assert found(one, "*.py", str(tmp_path / "other/x")) == [str(tmp_path / "other/x/a.py")]


def test_patterns_of_the_settings_are_ignored_everywhere(rail: Rail, workspace: Path) -> None:
    make(workspace, "a.lock", "src/b.lock", "src/gen/c.py", "src/c.py", "other/gen/d.py")
    make(workspace, ".gitignore", text="!*.lock\n")
    one = rail(settings=Settings(search=Search(ignore=("*.lock", "src/gen"))))
    assert found(one, "*[!e]") == ["other/gen/d.py", "src/c.py"]
    assert found(one, "*", "src") == ["src/c.py"]
    assert found(one, "*", "src/gen") == ["src/gen/c.py"]


def test_the_engine_can_be_chosen(rail: Rail, workspace: Path) -> None:
    make(workspace, "a.py")
    assert rail(settings=Settings(search=Search(engine="ripgrep"))).find("*").meta.engine == "ripgrep"
