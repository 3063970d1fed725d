"""Faults in rules, reported when they are loaded."""

import pytest

from handrail.policy.config import Rule
from handrail.policy.rules.lint import review
from handrail.protocol.decisions import Verdict


def rule(name: str, verdict: Verdict, pattern: str, **more: object) -> Rule:
    return Rule(id=name, verdict=verdict, pattern=pattern, **more)  # type: ignore[arg-type]


def errors(*rules: Rule) -> list[str]:
    return [fault.problem for fault in review(rules) if fault.is_error]


def reports(*rules: Rule) -> list[str]:
    found = review(rules)
    assert not [fault for fault in found if fault.is_error]
    return [fault.problem for fault in found]


GOOD = rule(
    "tests",
    "allow",
    "pytest",
    match=("pytest -q", "pytest tests/cart"),
    no_match=("pytest --basetemp=/", "python -m pytest", "pytest $X", "pytest && rm x"),
    source="user:12",
)


def test_sound_rules_have_no_faults() -> None:
    ask = rule("push", "confirm", "git push", match=("git -C x push", "cd x && git push"), no_match=("git pull; ls",))
    paths = rule("docs", "deny", "docs/**", tool="*", match=("docs/a", "DOCS"), no_match=("src/docs/a",))
    assert review((GOOD, ask, paths)) == ()


def test_a_fault_names_its_rule() -> None:
    (fault,) = review((rule("x", "allow", ""),))
    assert (fault.rule, fault.is_error) == ("x", True)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            rule("t", "allow", "pytest", match=("pytest --basetemp=/",), source="user:12"),
            "rule t (user:12) should match its example 'pytest --basetemp=/'",
        ),
        (
            rule("t", "allow", "pytest", no_match=("pytest -q",), layer="project"),
            "rule t (project) should not match its example 'pytest -q'",
        ),
        (
            rule("t", "allow", "pytest", match=("pytest && rm x",)),
            "rule t (user) should match its example 'pytest && rm x'",
        ),
        (rule("t", "allow", "pytest", match=("pytest $X",)), "rule t (user) should match its example 'pytest $X'"),
        (rule("t", "deny", "docs/", tool="write", match=("src",)), "rule t (user) should match its example 'src'"),
        (
            rule("t", "allow", "", tool="exec"),
            "rule t (user) is not a rule: the pattern is empty; write the first words of a command",
        ),
        (
            rule("t", "allow", " ", tool="write"),
            "rule t (user) has an empty pattern; write a glob of paths, or ** for all",
        ),
        (
            rule("t", "allow", "pytest && ls"),
            "rule t (user) is not a rule: the pattern 'pytest && ls' is more than one simple command; write a rule for"
            " each",
        ),
        (
            rule("t", "allow", "pytest > out"),
            "rule t (user) is not a rule: the pattern 'pytest > out' is more than one simple command; write a rule for"
            " each",
        ),
        (
            rule("t", "allow", "git a*"),
            "rule t (user) is not a rule: the pattern 'git a*' has a wildcard; a rule is about the first words, just as"
            " they are",
        ),
        (
            rule("t", "allow", "python run.py", any_args=True),
            "rule t (user) has any_args, but python run.py runs what it is given; allow one complete command instead",
        ),
        (
            rule("t", "deny", "git push", any_args=True),
            "rule t (user) has any_args, which is for allow rules; what denies a command is about any arguments",
        ),
        (
            rule("t", "allow", "docs/**", tool="write", any_args=True),
            "rule t (user) has any_args, which is for commands",
        ),
        (rule("t", "allow", "**", tool="*"), "rule t (user) allows every tool at once; name the tool"),
    ],
)
def test_a_rule_that_cannot_be_used_is_an_error(made: Rule, problem: str) -> None:
    assert errors(made) == [problem]


def test_a_pattern_outside_the_subset_is_told_with_the_reason() -> None:
    (problem,) = errors(rule("t", "deny", "rm $HOME"))
    assert problem.startswith("rule t (user) is not a rule: the pattern 'rm $HOME' cannot be read: it ")


def test_an_example_of_a_stricter_rule_that_cannot_be_read_is_told() -> None:
    (problem,) = errors(rule("t", "deny", "rm", no_match=("rm $X",)))
    assert problem.startswith("rule t (user) cannot check its example 'rm $X': it ")


def test_two_rules_of_one_layer_may_not_have_one_id() -> None:
    first, second = rule("a", "deny", "x", source="user:1"), rule("a", "deny", "y", source="user:5")
    assert errors(first, second) == ["rule a (user:5) has the id of rule a (user:1); give it one of its own"]
    assert errors(first, rule("a", "deny", "y", layer="project")) == []


def test_two_rules_of_one_layer_may_not_say_different_things_of_the_same() -> None:
    allow, deny = rule("a", "allow", "git push", source="user:1"), rule("b", "deny", "git  push", source="user:5")
    assert errors(allow, deny) == [
        "rule b (user:5) denies git  push, which rule a (user:1) allows; keep one",
    ]
    assert errors(rule("a", "allow", "docs/", tool="write"), rule("b", "confirm", "docs/**", tool="write")) == [
        "rule b (user) asks about docs/**, which rule a (user) allows; keep one"
    ]
    assert errors(rule("a", "allow", "docs/", tool="write"), rule("b", "deny", "docs/", tool="edit")) == []


MANAGED = rule("no-tests", "deny", "pytest", layer="managed", source="managed:3")


def test_a_rule_under_a_stricter_one_of_any_layer_is_reported() -> None:
    told = "rule tests (user:12) can never decide: rule no-tests (managed:3) denies pytest"
    assert reports(GOOD, MANAGED) == [told]
    assert reports(MANAGED, GOOD) == [told]


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (rule("n", "allow", "git push origin"), rule("w", "confirm", "git push", layer="session")),
        (rule("n", "confirm", "git push"), rule("w", "deny", "git")),
        (rule("n", "deny", "git push"), rule("w", "deny", "git")),
        (rule("n", "deny", "git push"), rule("w", "deny", "git push", layer="managed")),
        (rule("n", "allow", "git log --oneline"), rule("w", "allow", "git log")),
        (rule("n", "allow", "git log --output=/x"), rule("w", "allow", "git log", any_args=True)),
        (rule("n", "allow", "python a.py"), rule("w", "allow", "python a.py", layer="managed")),
        (rule("n", "allow", "/usr/bin/git push"), rule("w", "deny", "git push")),
        (rule("n", "allow", "docs/a.md", tool="write"), rule("w", "deny", "docs/**", tool="*")),
        (rule("n", "allow", "docs/*.md", tool="write"), rule("w", "allow", "docs/**", tool="write")),
        (rule("n", "allow", "*.md", tool="write"), rule("w", "confirm", "*.md", tool="write", layer="managed")),
        (rule("n", "deny", "docs/**", tool="write"), rule("w", "deny", "docs", tool="write")),
        (rule("n", "deny", "docs/a/**", tool="write"), rule("w", "deny", "**", tool="write")),
        (rule("n", "allow", "src/**/test_*.py", tool="write"), rule("w", "allow", "test_*.py", tool="write")),
        (rule("n", "allow", "docs/?.md", tool="write"), rule("w", "allow", "docs/*.md", tool="write")),
    ],
)
def test_a_covered_rule_is_reported_and_the_covering_one_is_not(narrow: Rule, wide: Rule) -> None:
    for pair in ((narrow, wide), (wide, narrow)):
        (problem,) = reports(*pair)
        assert problem.startswith("rule n (user) can never decide: rule w (")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rule("a", "allow", "git push"), rule("b", "deny", "git push --force")),
        (rule("a", "deny", "git push"), rule("b", "allow", "git")),
        (rule("a", "allow", "git log"), rule("b", "allow", "git log --oneline", any_args=True)),
        (rule("a", "allow", "git log"), rule("b", "allow", "git log --output=/x")),
        (rule("a", "allow", "python a.py"), rule("b", "allow", "python a.py b.py")),
        (rule("a", "deny", "gitk"), rule("b", "allow", "git")),
        (rule("a", "deny", "git"), rule("b", "allow", "git", tool="write")),
        (rule("a", "deny", "docs/**", tool="write"), rule("b", "allow", "docs/**", tool="edit")),
        (rule("a", "deny", "docs/*.md", tool="write"), rule("b", "allow", "docs/**", tool="write")),
        (rule("a", "deny", "docs/?.md", tool="write"), rule("b", "allow", "docs/*.md", tool="write")),
        (rule("a", "deny", "docs/x*", tool="write"), rule("b", "confirm", "docs/**", tool="write")),
        (rule("a", "allow", "**", tool="write"), rule("b", "allow", ".github/**", tool="write")),
        (rule("a", "deny", "a/**", tool="write"), rule("b", "allow", "*.md", tool="write")),
        (rule("a", "allow", "a/*", tool="write"), rule("b", "allow", "a/**", tool="write")),
    ],
)
def test_a_rule_that_still_decides_something_is_not_reported(one: Rule, other: Rule) -> None:
    assert not [problem for problem in reports(one, other) if problem.startswith("rule b ")]
    assert not [problem for problem in reports(other, one) if problem.startswith("rule b ")]


def test_of_two_that_say_the_same_the_later_is_reported() -> None:
    first, second = rule("a", "deny", "git push", source="user:1"), rule("b", "deny", "git push", source="user:9")
    assert reports(first, second) == ["rule b (user:9) can never decide: rule a (user:1) denies git push"]


@pytest.mark.parametrize("pattern", ["../x/**", "docs/../../x", "~/x", "~"])
def test_a_pattern_that_leaves_the_root_is_reported(pattern: str) -> None:
    assert reports(rule("t", "deny", pattern, tool="write")) == [
        "rule t (user) can never match: paths are named from the root they are in, without .. and ~"
    ]


@pytest.mark.parametrize("pattern", ["rm -rf /", "shutdown", "/sbin/mkfs.ext4"])
@pytest.mark.parametrize("verdict", ["allow", "confirm", "deny"])
def test_a_rule_about_what_is_never_done_is_reported(verdict: Verdict, pattern: str) -> None:
    (problem,) = reports(rule("t", verdict, pattern))
    assert problem.startswith("rule t (user) can never decide: it is always denied (deny.")


@pytest.mark.parametrize("pattern", [".env", ".ssh/**", "**/id_rsa"])
def test_a_rule_about_credentials_is_reported(pattern: str) -> None:
    assert reports(rule("t", "allow", pattern, tool="read")) == [
        "rule t (user) can never decide: credentials are always denied (fs.secret)"
    ]


@pytest.mark.parametrize("pattern", [".env.*", "*.pem", "*.key", ".env.example", "env"])
def test_a_rule_that_is_not_only_about_credentials_is_not_reported(pattern: str) -> None:
    assert reports(rule("t", "allow", pattern, tool="read")) == []


@pytest.mark.parametrize("program", ["Rscript", "R", "nix run", "rustup run", "docker compose exec", "python3.12"])
def test_nothing_that_runs_other_code_is_allowed_with_any_arguments(program: str) -> None:
    assert [fault.is_error for fault in review((rule("t", "allow", program, any_args=True),))] == [True]
