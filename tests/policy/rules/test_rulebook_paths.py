"""The rule that decides about a path."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.config import Rule
from handrail.policy.rules.rulebook import build_rulebook, split_pattern
from handrail.protocol.decisions import Verdict


def rule(verdict: Verdict, pattern: str, tool: str = "write", name: str = "r") -> Rule:
    return Rule(id=name, verdict=verdict, pattern=pattern, tool=tool)


def is_about(made: Rule, *paths: str) -> bool:
    return build_rulebook((made,)).find_path_rule("write", paths) == made


BOTH = [
    ("docs/**", "docs/a"),
    ("docs/**", "docs/a/b.md"),
    ("docs/", "docs/a/b.md"),
    ("./docs/*.md", "docs/a.md"),
    ("docs//*.md", "docs/a.md"),
    ("*.md", "a.md"),
    ("*.md", "docs/deep/a.md"),
    ("Makefile", "sub/Makefile"),
    ("./Makefile", "Makefile"),
    ("src/**/test_*.py", "src/test_a.py"),
    ("src/**/test_*.py", "src/a/b/test_.py"),
    ("**/b/**/d", "a/b/c/b/x/d"),
    ("a/**/b/**", "a/x/b/c"),
    ("a*b*c", "aXbXbXc"),
    ("a?c", "abc"),
    ("a+(b).[c]", "x/a+(b).[c]"),
    ("**", "any/thing"),
    ("**", ""),
    ("**", "."),
    ("/data/**", "/data/x/y"),
    ("*.csv", "/data/x.csv"),
    ("./.", "."),
    ("a\nb", "a\nb"),
    ("docs/**", "docs/a\nb"),
]
NEITHER = [
    ("docs/**", "docs2/a"),
    ("docs/**", "x/docs/a"),
    ("docs/*.md", "docs/a/b.md"),
    ("./Makefile", "sub/Makefile"),
    ("*.md", "a.mdx"),
    ("a?c", "a/c"),
    ("a?c", "ac"),
    ("a*c", "a/c"),
    ("src/**/test_*.py", "src/a/tested.py"),
    ("a/**/b", "a"),
    ("/data/**", "data/x"),
    ("a.c", "abc"),
    ("./.", "a"),
    ("[ab]", "a"),
]
ONLY_STRICT = [
    ("docs/**", "docs"),
    ("docs/**", "DOCS/a"),
    ("docs", "docs/a/b"),
    ("docs", "x/Docs/a"),
    ("*.md", "a.md/b.py"),
    ("src/secret", "src/secret/x"),
    ("./.", "./x"),
    ("stra\u00dfe", "STRASSE"),
    ("caf\u00e9", unicodedata.normalize("NFD", "CAF\u00c9")),
]


@pytest.mark.parametrize("verdict", ["allow", "confirm", "deny"])
@pytest.mark.parametrize(("pattern", "path"), BOTH)
def test_a_pattern_is_about(verdict: Verdict, pattern: str, path: str) -> None:
    assert is_about(rule(verdict, pattern), path)


@pytest.mark.parametrize("verdict", ["allow", "confirm", "deny"])
@pytest.mark.parametrize(("pattern", "path"), NEITHER)
def test_a_pattern_is_not_about(verdict: Verdict, pattern: str, path: str) -> None:
    assert not is_about(rule(verdict, pattern), path)


@pytest.mark.parametrize(("pattern", "path"), ONLY_STRICT)
def test_stricter_rules_are_also_about_other_spellings_and_what_is_below(pattern: str, path: str) -> None:
    assert is_about(rule("deny", pattern), path)
    assert is_about(rule("confirm", pattern), path)
    assert not is_about(rule("allow", pattern), path)


@pytest.mark.parametrize(
    "path", [".github/workflows/ci.yml", "docs/.claude/settings.json", "Jenkinsfile", ".git/config"]
)
def test_no_wildcard_allows_what_steers_tools(path: str) -> None:
    assert not is_about(rule("allow", "**"), path)
    assert not is_about(rule("allow", "*"), path)
    assert is_about(rule("deny", "**"), path)


def test_an_allow_rule_that_names_a_protected_folder_is_about_it() -> None:
    made = rule("allow", ".github/workflows/*.yml")
    assert is_about(made, ".github/workflows/ci.yml")
    assert not is_about(made, ".github/workflows/deep/ci.yml")


def test_of_two_names_a_stricter_rule_needs_one_and_an_allow_rule_both() -> None:
    assert is_about(rule("deny", "docs/**"), "src/a", "docs/a")
    assert not is_about(rule("allow", "docs/**"), "src/a", "docs/a")
    assert is_about(rule("allow", "docs/**"), "docs/b", "docs/a")
    assert not is_about(rule("allow", "**"))


def test_the_strictest_decides_over_all_names_and_layers() -> None:
    ask, deny = rule("confirm", "a", name="a"), rule("deny", "b", name="d")
    allow = rule("allow", "**", name="e")
    assert build_rulebook((allow, ask, deny)).find_path_rule("write", ("a", "b")) == deny
    assert build_rulebook((allow, ask, deny)).find_path_rule("write", ("a", "c")) == ask
    assert build_rulebook((allow, ask, deny)).find_path_rule("write", ("c",)) == allow


def test_a_rule_is_about_its_tool_only() -> None:
    made = rule("deny", "**", tool="edit")
    assert build_rulebook((made,)).find_path_rule("write", ("a",)) is None
    assert build_rulebook((made,)).find_path_rule("edit", ("a",)) == made


def test_a_rule_for_every_tool_is_also_for_those_without_rules_and_for_commands() -> None:
    every, mine = rule("deny", "docs/**", tool="*", name="every"), rule("confirm", "**", name="mine")
    book = build_rulebook((every, mine))
    for tool in ("write", "read", "exec", "mcp__x__y"):
        assert book.find_path_rule(tool, ("docs/a",)) == every
    assert book.find_path_rule("write", ("src",)) == mine
    assert book.find_path_rule("read", ("src",)) is None


def test_a_command_rule_says_nothing_about_paths() -> None:
    assert build_rulebook((rule("deny", "git push", tool="exec"),)).find_path_rule("exec", ("git push",)) is None


NAMES = st.text("ab*?", max_size=4).filter(lambda name: name not in {"", "**"})
PATTERNS = st.lists(NAMES | st.just("**"), min_size=2, max_size=5).map("/".join)
PATHS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


@given(PATTERNS, PATHS)
def test_patterns_mean_what_trying_every_way_means(pattern: str, path: str) -> None:
    parts, names = split_pattern(pattern), path.split("/")
    whole = _every_way(parts, names)
    assert is_about(rule("allow", pattern), path) == whole
    folder = tuple(parts[:-1]) if parts[-1] == "**" else parts
    while folder and folder[-1] == "**":
        folder = folder[:-1]
    below = any(_every_way(folder, names[:end]) for end in range(len(names) + 1))
    assert is_about(rule("deny", pattern), path) == (below or not folder)


def _every_way(parts: tuple[str, ...], names: list[str]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        least = 1 if len(parts) == 1 else 0
        return any(_every_way(parts[1:], names[taken:]) for taken in range(least, len(names) + 1))
    return bool(names) and _name(parts[0], names[0]) and _every_way(parts[1:], names[1:])


def _name(part: str, name: str) -> bool:
    if not part or not name:
        return set(part) <= {"*"} and not name
    if part[0] == "*":
        return _name(part[1:], name) or _name(part, name[1:])
    return part[0] in {"?", name[0]} and _name(part[1:], name[1:])


def test_no_pattern_takes_long() -> None:
    patterns = ["*a" * 40 + "b", "**/a*/" * 20 + "b", "a/" + "**/*a*a*a*a*/" * 10 + "c"]
    paths = ["a" * 4000, "a/" * 2000 + "a", "aaaa/" * 800 + "x"]
    for pattern in patterns:
        for path in paths:
            assert not is_about(rule("deny", pattern), path)
