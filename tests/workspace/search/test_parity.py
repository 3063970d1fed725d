"""Without ripgrep: the same files and the same lines, byte for byte, on real trees and on an odd one."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search.engine import Pattern

from .conftest import Both

Trees = Callable[[bool], list[Path]]

PATTERNS = [
    r"import", r"^import \w+", r"\bdef\b", r"def \w+\(self", r"class [A-Z]\w*\(", r"\d{4}-\d{2}-\d{2}",
    r"[^\x00-\x7f]", r"é|ü|ß", r"TODO|FIXME|XXX", r"return$", r"^\s*$", r"^$", r".{120,}", r"foo.*bar", r'"[^"]*"$',
    r"\s+$", r"https?://[\w./-]+", r"(?i)error", r"\w+\s*=\s*\w+\.\w+", r"0x[0-9a-fA-F]+", r"(?:\w+\.)+\w+\(",
    r"except (\w+)( as \w+)?:", r"\$\{?\w+", r"lambda [^:]*:", r"\bassert\b.*\bis not None", r"[[:upper:]]{5,}",
    r"\\n", r"\.join\(", r"[a-z&&[^aeiou]]{8,}", r"a*?b", r"^#!", r"\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+", r"\W{6,}",
    r"(a|b|ab)(c|bcd)(d*)", r"x{3,5}", r'(?U)".*"', r"\btest_\w+", r"\S+@\S+\.\w+", r"^.{80}$",
    r"if .* (and|or) .*:", r"%[sdr]", r"\bK\b", r"ſ|K|k", r"[α-ωά-ώ]+", r"\D\d{3}\D", r"^\t+", r"print\(.*\)\s*$",
    r"[]\[]", r"yield from|async def", r"self\.\w+ = None", r"foo", r"foo$", r"^foo", r"\bfoo\b", r"\Bo", r"o\b",
    r"\<f", r"o\>", r"[^f]oo", r"fo{2}", r"(?i:FOO) ", r"x+ foo y+", r"word.*foo\(", r"(?:word )+foo", r"\x66oo",
    r"[[:^ascii:]]+", r"[\w--[a-z]]{3}", r"\s\S+\s", r"(foo|fo)o?", r"end|last", r"\b\w{15,}\b", r"[\t ]+\S",
]  # fmt: skip
LEFT_TO_RIPGREP = {
    r"[a-z&&[^aeiou]]{8,}", r"\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+", r'(?U)".*"', r"[\w--[a-z]]{3}",
}  # fmt: skip
"""The patterns that Python refuses in every tree."""
LEFT_IN_ANY_CASE = {r"é|ü|ß", r"ſ|K|k", r"[α-ωά-ώ]+", r"[[:^ascii:]]+"}
LEFT_IN_THE_ODD_TREE = {
    r"\W{6,}", r"\D\d{3}\D", r"\bfoo\b", r"\Bo", r"o\b", r"\<f", r"o\>", r"\b\w{15,}\b",
}  # fmt: skip
"""Those that meet there bytes and characters that Python may read differently."""
GLOBS = [None, "*.py", "*.{py,txt}", "src/**", "**/deep*/**/*.py", "[!a-m]*", "text/?????*", "*.p[xyz]", "src/*.py"]
EXCLUDES: list[tuple[str, ...]] = [(), ("*.txt",), ("src/",), ("deep", "**/x.py"), ("/text",), ("sub/**",)]
FOLDERS = [".", "src", "sub", "docs", "docs/x", "node_modules", "sub/only-here", ".git", "sub/build"]


def is_answered(pattern: Pattern) -> bool:
    """Whether Python searches for a pattern in ordinary files."""
    return pattern.text not in LEFT_TO_RIPGREP and (pattern.case_sensitive or pattern.text not in LEFT_IN_ANY_CASE)


def test_there_are_enough_patterns() -> None:
    assert len(set(PATTERNS)) >= 60


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_the_lines_of_real_trees_are_the_same(both: Both, real_trees: Trees, deep: bool, number: int) -> None:
    pattern = Pattern(PATTERNS[number], case_sensitive=number % 2 == 0, context=number % 3)
    trees = real_trees(deep)
    for tree in trees if deep else trees[number // 2 % 2 :][:1]:
        python, ripgrep = both.hits(tree, pattern, exclude=("site-packages/", "test/"))
        assert python == (ripgrep if is_answered(pattern) else "UNAVAILABLE")


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_the_lines_of_an_odd_tree_are_the_same(both: Both, odd_tree: Path, deep: bool, number: int) -> None:
    ways = ((True, 0), (False, 1), (False, 0), (True, 1), (True, 20))
    for case_sensitive, context in ways if deep else ways[number % 2 : number % 2 + 1]:
        pattern = Pattern(PATTERNS[number], case_sensitive, context)
        python, ripgrep = both.hits(odd_tree, pattern)
        doubtful = pattern.text in LEFT_IN_THE_ODD_TREE or not is_answered(pattern)
        assert python == ("UNAVAILABLE" if doubtful else ripgrep)


@pytest.mark.parametrize("pattern", [r"foo", r"\bfoo\(", r"foo\(\w+\)", r"\w\(\w+", "foo.*"])
def test_a_line_of_a_megabyte_is_the_same(both: Both, tmp_path: Path, deep: bool, pattern: str) -> None:
    (tmp_path / "one").write_bytes(b"word " * (200_000 if deep else 20_000) + b"foo(bar)\nword\n")
    (tmp_path / "two").write_bytes(b"w" * (1_000_000 if deep else 100_000) + b" foo(bar)\nword\n")
    python, ripgrep = both.hits(tmp_path, Pattern(pattern))
    assert python == ripgrep
    assert python


@pytest.mark.parametrize("pattern", [r"\w+\(\w+\)", r"[^ ]+$", r"(?:word )+foo"])
def test_a_line_of_a_megabyte_that_takes_many_steps_is_left_to_ripgrep(
    both: Both, tmp_path: Path, pattern: str
) -> None:
    (tmp_path / "one").write_bytes(b"word " * 200_000 + b"w" * 1_000_000 + b"foo(bar)\nword\n")
    assert both.hits_in_python(tmp_path, Pattern(pattern)) == "UNAVAILABLE"


def test_most_patterns_are_answered_and_find_something(both: Both, odd_tree: Path) -> None:
    found = {pattern: both.hits_in_python(odd_tree, Pattern(pattern), "src") for pattern in PATTERNS}
    refused = {pattern for pattern, hits in found.items() if isinstance(hits, str)}
    assert LEFT_TO_RIPGREP <= refused <= LEFT_TO_RIPGREP | LEFT_IN_THE_ODD_TREE
    assert sum(bool(hits) for hits in found.values()) > len(PATTERNS) // 3


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("glob", GLOBS)
def test_the_files_of_an_odd_tree_are_the_same(
    both: Both, odd_tree: Path, deep: bool, folder: str, glob: str | None
) -> None:
    for exclude in EXCLUDES if deep else EXCLUDES[(len(folder) + len(glob or "")) % 3 :: 3]:
        python, ripgrep = both.files(odd_tree, folder, include=glob, exclude=exclude)
        assert python == ripgrep


@pytest.mark.parametrize("glob", GLOBS[:4])
def test_the_files_of_real_trees_are_the_same(both: Both, real_trees: Trees, deep: bool, glob: str | None) -> None:
    for tree in real_trees(deep):
        python, ripgrep = both.files(tree, include=glob, exclude=("test*", "*.pyc"))
        assert python == ripgrep


@pytest.mark.parametrize("ignore", [("*.py",), ("src/", "!src/"), ("/sub/a.log", "deep"), ("!keep", "*.txt", "!b.txt")])
def test_patterns_of_the_settings_pass_over_the_same(both: Both, odd_tree: Path, ignore: tuple[str, ...]) -> None:
    for folder in (".", "src", "sub"):
        python, ripgrep = both.files(odd_tree, folder, ignore=ignore)
        assert python == ripgrep


def answers(odd_tree: Path, state: Path, engine: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What the tools say with one engine, but for its name and for what differs between any two calls."""
    said: list[Any] = []
    settings = Settings(search=Search(engine=engine))
    with Handrail(odd_tree, mode="auto", state_dir=state, settings=settings) as rail:
        for name, arguments in calls:
            result = rail.call(name, arguments)
            if result.error is not None:
                said.append(result.error.code)
                continue
            assert result.meta.engine == engine
            meta = {key: getattr(result.meta, key) for key in ("returned", "total", "files", "truncated", "protected")}
            content = re.sub(r"call-\S+", "call", result.content)
            said.append((content, result.data, meta, result.summary, result.warnings))
    return said


def test_the_tools_say_the_same_with_either_engine(odd_tree: Path, tmp_path: Path, deep: bool) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []
    for number, pattern in enumerate(PATTERNS if deep else PATTERNS[::5]):
        options = {"contextLines": number % 3, "caseSensitive": number % 2 == 0, "maxResults": 10_000}
        calls.append(("grep", {"pattern": pattern, "path": FOLDERS[number % 4], **options}))
        calls.append(("grep", {"pattern": pattern, "filePattern": "*.{py,txt}", **options}))
    calls += [("grep", {"pattern": "foo", "path": f"text/{name}.txt"}) for name in ("many", "broken", "utf-16-le")]
    calls += [("grep", {"pattern": "foo|x", "path": path}) for path in ("binary/late.bin", "binary/early.bin", ".env")]
    finds = [("find", {"pattern": glob or "*", "path": folder}) for glob in GLOBS for folder in FOLDERS]
    calls += finds if deep else finds[::4]
    calls += [("grep", {"pattern": broken}) for broken in ("(", "a{2", "[z-a]", r"(a)\1", "(?=a)", r"a\nb", "[", "*")]
    calls += [("find", {"pattern": broken}) for broken in ("[", "{a", "a\\", "{a,{b,c}}")]
    python, ripgrep = (answers(odd_tree, tmp_path / name, name, calls) for name in ("python", "ripgrep"))
    for call, ours, theirs in zip(calls, python, ripgrep, strict=True):
        assert ours in (theirs, "UNAVAILABLE"), call
    assert python.count("UNAVAILABLE") <= len(calls) // 10
