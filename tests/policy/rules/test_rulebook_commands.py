"""The rule that decides about a command."""

import pytest

from handrail.policy.config import Rule, RuleLayer
from handrail.policy.rules.command_match import PatternError, is_inside_by_spelling
from handrail.policy.rules.rulebook import build_rulebook
from handrail.protocol.decisions import Verdict


def rule(verdict: Verdict, pattern: str, *, name: str = "r", layer: RuleLayer = "user", any_args: bool = False) -> Rule:
    return Rule(id=name, verdict=verdict, pattern=pattern, layer=layer, any_args=any_args)


def is_about(made: Rule, command: str) -> bool:
    return build_rulebook((made,)).find_command_rule(tuple(command.split(" ")), is_inside_by_spelling) == made


STRICT = [
    ("git push", "git push"),
    ("git push", "git push origin main"),
    ("git push", "/usr/bin/git push"),
    ("git push", "../bin/git push"),
    ("git push", "GIT push"),
    ("git push", "git -C sub push"),
    ("git push", "git --no-pager -c user.name=x push"),
    ("git push", "git --git-dir=x push"),
    ("git push", "git -C push push"),
    ("git push now", "git -C push push now"),
    ("git push", "git pus? origin"),
    ("git push", "git p*"),
    ("git push --force", "git push origin main --force"),
    ("git push --force", "git push --force=x"),
    ("git push --force", "git push --forc"),
    ("git push -f", "git push -uf"),
    ("rm -rf", "rm -fr x"),
    ("rm -rf", "rm x -r -f"),
    ("rm -rf", "rm -v -rf x"),
    ("find -delete", "find . -delete"),
    ("python -m pytest", "python -m pytest -q"),
    ("npm run deploy", "npm --prefix web run --silent deploy"),
    ("./deploy.sh", "scripts/deploy.sh now"),
    ("deploy.sh", "./deploy.sh"),
    ("npm run deploy", "npm run --silent deploy"),
    ("npm run deploy", "npm run --prefix web deploy"),
    ("npm --global", "npm --global x"),
    ("git push", "git p[u]sh"),
    ("git push --force", "git push --f"),
    ("git checkout --", "git checkout -- a"),
    ("tar -xzf", "tar -x -z a -f"),
    ("git push", "git `x` push"),
    ("git push origin --force", "git push origin -f"),
    ("/bin/rm -r", "rm -R x"),
    ("rm -rfv", "rm -R --force -v x"),
    ("foo -f", "foo -ff"),
    ("cat -", "cat -"),
    ("rm", "rm"),
    ("rm -rf", "rm --force --recursive x"),
    ("rm -rf", "rm -Rf x"),
    ("rm -r", "rm --recurs x"),
    ("rm --recursive", "rm -fr x"),
    ("git push --force", "git push -uf"),
    ("git commit --no-verify", "git commit -nm x"),
    ("chmod -R", "chmod --recursive u+x a"),
    ("git push", "git $x push"),
]
NOT_STRICT = [
    ("git push", "git"),
    ("git push", "git status"),
    ("git push", "git status push"),
    ("git push", "git --git-dir=x status push"),
    ("git push", "git pushy"),
    ("git push", "git pus"),
    ("npm run deploy", "npm run x deploy"),
    ("npm run deploy", "npm x run deploy"),
    ("foo -abcd", "foo -a -b -c -d"),
    ("rm -rf", "rm rf -x"),
    ("foo --a", "foo -- -a"),
    ("rm -rf", "rm -r"),
    ("git push", "git x*"),
    ("git push", "gitk push"),
    ("git push", "/usr/bin/gitk push"),
    ("git push", "git/push push"),
    ("git push now", "git push"),
    ("git push --force", "git push"),
    ("git push --force", "git push --follow-tags"),
    ("git push --force", "git push --forced"),
    ("git push --force", "git push --"),
    ("git push --force", "git push force"),
    ("rm -rf", "rm -r x"),
    ("rm -rf", "rm --rf x"),
    ("find -delete", "find . -type d -e -l -et"),
    ("cat -", "cat -n"),
    ("rm -rf", "rm --recursive x"),
    ("git push --force", "git push --no-verify"),
    ("git push", "git $x"),
]


@pytest.mark.parametrize(("pattern", "command"), STRICT)
@pytest.mark.parametrize("verdict", ["deny", "confirm"])
def test_a_stricter_rule_is_about(verdict: Verdict, pattern: str, command: str) -> None:
    assert is_about(rule(verdict, pattern), command)


@pytest.mark.parametrize(("pattern", "command"), NOT_STRICT)
@pytest.mark.parametrize("verdict", ["deny", "confirm"])
def test_a_stricter_rule_is_not_about(verdict: Verdict, pattern: str, command: str) -> None:
    assert not is_about(rule(verdict, pattern), command)


ALLOWED = [
    ("pytest", "pytest"),
    ("pytest", "pytest -q"),
    ("pytest", "pytest tests/cart"),
    ("pytest", "pytest -xvs --tb=short --maxfail=1 --cov=src/cart -n4"),
    ("pytest", "pytest tests/a.py::test_b[x-1] -k total"),
    ("pytest", "pytest --junit-xml=out/report.xml -- -odd-name"),
    ("pytest", "pytest --timeout=1.5 -"),
    ("git log --oneline", "git log --oneline HEAD~1 src"),
    ("./gen.sh", "./gen.sh src"),
    ("/usr/bin/make", "/usr/bin/make all"),
]
NOT_ALLOWED = [
    ("pytest", "pytest --basetemp=/"),
    ("pytest", "pytest --basetemp /"),
    ("pytest", "pytest --rootdir=.."),
    ("pytest", "pytest --rootdir=src/../.."),
    ("pytest", "pytest --basetemp=~/x"),
    ("pytest", "pytest ../other"),
    ("pytest", "pytest /etc"),
    ("pytest", "pytest ~/x"),
    ("pytest", "pytest -o/etc/x"),
    ("pytest", "pytest --x=a$b"),
    ("pytest", "pytest --=x"),
    ("pytest", "pytest "),
    ("pytest", "pytest a;b"),
    ("pytest", "pytest a\nb"),
    ("pytest", "pytest of=/dev/sda"),
    ("pytest", "pytest src:/etc"),
    ("pytest", "pytest @/etc/passwd"),
    ("pytest", "pytest --mount=type=bind,src=/"),
    ("pytest", "pytest https://example.org"),
    ("pytest", "pytest a=~root"),
    ("pytest", "/usr/bin/pytest"),
    ("pytest", "./pytest"),
    ("pytest", "PYTEST"),
    ("pytest", "python -m pytest"),
    ("pytest", "pytest-3"),
    ("./gen.sh", "gen.sh"),
    ("./gen.sh", "scripts/../gen.sh"),
    ("git log --oneline", "git log"),
    ("git log --oneline", "git log -p --oneline"),
    ("git log", "git -C . log"),
    ("git log", "git lo*"),
]


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("rm", "-r -R --recursive"), ("rm", "-f --force"), ("cp", "-r -R --recursive"), ("cp", "-f --force"),
        ("chmod", "-R --recursive"), ("chown", "-R --recursive"), ("chgrp", "-R --recursive"),
        ("git push", "-f --force"), ("git push", "-d --delete"), ("git clean", "-f --force"),
        ("git commit", "-n --no-verify"), ("git commit", "-a --all"), ("git branch", "-d --delete"),
        ("git branch", "-f --force"),
    ],
)  # fmt: skip
def test_options_that_say_the_same_are_the_same_to_a_stricter_rule(program: str, options: str) -> None:
    for wanted in options.split():
        for written in options.split():
            assert is_about(rule("deny", f"{program} {wanted}"), f"{program} {written} x")


@pytest.mark.parametrize(("pattern", "command"), ALLOWED)
def test_an_allow_rule_is_about(pattern: str, command: str) -> None:
    assert is_about(rule("allow", pattern), command)


@pytest.mark.parametrize(("pattern", "command"), NOT_ALLOWED)
def test_an_allow_rule_is_not_about(pattern: str, command: str) -> None:
    assert not is_about(rule("allow", pattern), command)


def test_any_args_lifts_what_may_follow_and_nothing_else() -> None:
    made = rule("allow", "pytest", any_args=True)
    assert is_about(made, "pytest --basetemp=/ ../x $y")
    assert not is_about(made, "/usr/bin/pytest")
    assert is_about(rule("allow", "git log", any_args=True), "git log ../x")
    assert not is_about(rule("allow", "git log", any_args=True), "git push ../x")


@pytest.mark.parametrize("any_args", [False, True])
@pytest.mark.parametrize(
    "program",
    ["python", "python3.11", "/usr/bin/python3", "BASH", "env", "sudo", "xargs", "find", "uv run python", "npx -y"],
)
def test_of_what_runs_other_code_just_the_command_itself_is_allowed(program: str, *, any_args: bool) -> None:
    made = rule("allow", f"{program} run.py", any_args=any_args)
    assert is_about(made, f"{program} run.py")
    assert not is_about(made, f"{program} run.py -q")
    assert not is_about(made, f"{program} run.py tests")
    assert not is_about(made, program)


@pytest.mark.parametrize("starter", ["uv run", "npx", "bundle exec", "docker run", "poetry run"])
def test_what_starts_another_program_may_be_allowed_with_that_program(starter: str) -> None:
    assert not is_about(rule("allow", starter), f"{starter} evil")
    made = rule("allow", f"{starter} pytest")
    assert is_about(made, f"{starter} pytest -q tests")
    assert not is_about(made, f"{starter} evil")


@pytest.mark.parametrize("any_args", [False, True])
@pytest.mark.parametrize(
    ("pattern", "command", "about"),
    [
        ("uv", "uv pip list", True),
        ("uv", "uv run evil", False),
        ("uv", "uv --quiet run evil", False),
        ("/usr/bin/uv", "/usr/bin/uv run evil", False),
        ("uv --quiet", "uv --quiet run evil", False),
        ("uv --quiet run", "uv --quiet run evil", False),
        ("git bisect", "git bisect start", True),
        ("git bisect", "git bisect run evil", False),
        ("git", "git log", True),
        ("git", "git -C x bisect run evil", False),
    ],
)
def test_a_rule_about_a_program_is_not_about_what_that_starts(
    pattern: str, command: str, *, about: bool, any_args: bool
) -> None:
    assert is_about(rule("allow", pattern, any_args=any_args), command) == about


def test_whether_an_operand_is_inside_is_for_the_caller_to_say() -> None:
    made = rule("allow", "pytest")
    assert (
        build_rulebook((made,)).find_command_rule(("pytest", "/data/x"), lambda word: word.startswith("/data")) == made
    )
    assert build_rulebook((made,)).find_command_rule(("pytest", "link"), lambda word: word != "link") is None


def test_a_script_is_allowed_only_where_the_rule_means_it() -> None:
    relative, absolute, bare = (rule("allow", pattern) for pattern in ("./gen.sh", "/opt/gen.sh", "gen.sh"))
    book = build_rulebook((relative, absolute, bare))
    assert book.find_command_rule(("./gen.sh",), is_inside_by_spelling, at_root=True) == relative
    assert book.find_command_rule(("./gen.sh",), is_inside_by_spelling, at_root=False) is None
    for operand in ("x", "/x", "./x"):
        assert book.find_command_rule(("./gen.sh", operand), lambda _: True, at_root=True) == relative
        assert book.find_command_rule(("./gen.sh", operand), lambda _: True, at_root=False) is None
    assert book.find_command_rule(("/opt/gen.sh",), is_inside_by_spelling, at_root=False) == absolute
    assert book.find_command_rule(("gen.sh",), is_inside_by_spelling, at_root=False) == bare


def test_the_strictest_decides_whatever_the_order_and_the_layer() -> None:
    allow = rule("allow", "git push origin", name="a", layer="managed")
    ask = rule("confirm", "git push", name="b", layer="session")
    deny = rule("deny", "git push origin", name="c", layer="project")
    for rules in ((allow, ask, deny), (deny, ask, allow), (ask, deny, allow)):
        book = build_rulebook(rules)
        assert book.find_command_rule(("git", "push", "origin"), is_inside_by_spelling) == deny
        assert book.find_command_rule(("git", "push"), is_inside_by_spelling) == ask
    assert build_rulebook((allow, ask)).find_command_rule(("git", "push", "origin"), is_inside_by_spelling) == ask


def test_among_equals_the_highest_layer_is_named_then_the_first() -> None:
    mine = rule("deny", "git push", name="mine", layer="user")
    theirs = rule("deny", "git", name="theirs", layer="managed")
    again = rule("deny", "git push", name="again", layer="user")
    assert build_rulebook((mine, theirs)).find_command_rule(("git", "push"), is_inside_by_spelling) == theirs
    assert build_rulebook((mine, again)).find_command_rule(("git", "push"), is_inside_by_spelling) == mine


def test_commands_seen_elsewhere_are_asked_about_with_the_stricter_rules_only() -> None:
    ask, allow = rule("confirm", "git push", name="a"), rule("allow", "pytest", name="b")
    assert build_rulebook((ask, allow)).find_stricter(("git", "push")) == ask
    assert build_rulebook((ask, allow)).find_stricter(("pytest",)) is None


def test_no_words_and_no_rules_decide_nothing() -> None:
    made = rule("allow", "pytest")
    assert build_rulebook((made,)).find_command_rule((), is_inside_by_spelling) is None
    assert build_rulebook(()).find_command_rule(("pytest",), is_inside_by_spelling) is None


def test_a_book_is_made_once() -> None:
    rules = (rule("deny", "git push"),)
    assert build_rulebook(rules) is build_rulebook((rule("deny", "git push"),))


def test_a_star_in_a_pattern_is_no_wildcard_but_an_error() -> None:
    with pytest.raises(PatternError):
        build_rulebook((rule("allow", "git *"),))
