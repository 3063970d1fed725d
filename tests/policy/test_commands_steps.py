"""Rules, grants and limits on the simple commands of a script."""

import pytest
from tests.policy.deciding import decided

from handrail.policy.config import Grant, RestrictedProfile, Rule
from handrail.protocol.decisions import MODES


def verdicts(command: str, **more: object) -> str:
    """One letter a mode: a allow, c confirm, d deny; plan, ask, auto, full."""
    return "".join(decided(command, mode, **more).decision[0] for mode in MODES)


def rule(verdict: str, pattern: str, **more: object) -> Rule:
    return Rule(id=f"{verdict} {pattern}", verdict=verdict, pattern=pattern, **more)  # type: ignore[arg-type]


def test_a_rule_for_a_script_is_about_the_one_at_the_top() -> None:
    rules = (rule("allow", "./gen.sh"),)
    assert decided("./gen.sh", rules=rules).decision == "allow"
    assert decided("./gen.sh", cwd="sub", rules=rules).decision == "confirm"
    assert decided("cd sub && ./gen.sh", rules=rules).decision == "confirm"
    assert decided("cd sub; ./gen.sh", rules=rules).decision == "confirm"


@pytest.mark.parametrize(
    "command",
    [
        "pytest x=.env",
        "pytest --x=a/.env",
        "pytest --x=out/b",
        "pytest --basetemp=out",
        "cd .. && pytest a",
        "pytest a=/etc",
    ],
)
def test_an_allow_rule_is_about_no_credential_and_nothing_outside_however_it_is_named(command: str) -> None:
    assert decided("pytest x=a --y=a/b", rules=(rule("allow", "pytest"),)).decision == "allow"
    assert decided(command, rules=(rule("allow", "pytest"),)).decision != "allow"


def test_a_rule_says_nothing_of_where_output_goes_nor_of_what_else_is_started() -> None:
    rules = (rule("allow", "pytest"), rule("allow", "env ls"))
    assert decided("pytest > .github/ci.yml", rules=rules).rule == "fs.protected"
    assert decided("pytest > a", rules=rules).rule == "fs.write"
    assert decided("pytest < /etc/passwd", rules=rules).rule == "fs.outside"
    assert decided("env ls", rules=(*rules, rule("deny", "ls"))).rule == "deny ls"


def test_of_a_question_that_is_built_in_and_one_of_a_rule_the_stricter_counts() -> None:
    assert decided("cp a .git/config", rules=(rule("deny", "cp"),)).rule == "deny cp"
    assert decided("cp a .git/config", rules=(rule("confirm", "cp"),)).rule == "fs.protected"
    assert decided("cp a .git/config", rules=(rule("allow", "cp"),)).rule == "fs.protected"
    assert decided("cp a .git/config", "full", rules=(rule("confirm", "cp"),)).rule == "confirm cp"


def test_what_is_built_in_is_named_before_a_rule_that_says_the_same() -> None:
    assert decided("cat .env", rules=(rule("deny", "cat"),)).rule == "fs.secret"


COPY = Grant(id="g", command="cp")


def test_a_grant_says_nothing_of_what_steers_tools_nor_of_where_output_goes() -> None:
    assert decided("cp a b", grants=(COPY,)).rule == "grant.g"
    assert decided("cp a b", grants=(COPY,)).reason == "a person allowed cp for good"
    assert decided("cp a .git/config", grants=(COPY,)).rule == "fs.protected"
    assert decided("cp a b > c", grants=(COPY,)).rule == "fs.write"
    assert decided("cp a /etc/b", grants=(COPY,)).decision == "deny"
    assert decided("cp a b", "plan", grants=(COPY,)).decision == "deny"


def test_a_class_that_may_be_granted_stands_at_each_default_question_and_nowhere_else() -> None:
    def classes(command: str, mode: str = "ask", **more: object) -> list[str]:
        return [part.grant for part in decided(command, mode, **more).parts]

    assert classes("ls && cp a b && git commit -m x") == ["", "cp", "git commit"]
    assert classes("ls && cp a b", "full") == ["", ""]
    assert classes("ls && cp a b", "plan") == ["", ""]
    assert classes("ls && cp a .git/config") == ["", ""]
    assert classes("ls && cp a b", rules=(rule("confirm", "cp"),)) == ["", ""]
    assert classes("ls && python x.py") == ["", ""]


def test_many_paths_are_bulk_only_where_they_are_deleted_by_name() -> None:
    names = [f"f{n}" for n in range(21)]
    assert decided(f"cat {' '.join(names)}", "auto", tier=3).decision == "allow"
    assert decided(f"touch {' '.join(names)}", "auto", tier=3).decision == "allow"
    assert decided(f"rm {' '.join(f'{name}*' for name in names)}", "auto", tier=3).decision == "allow"
    assert decided(f"rm {' '.join(names[:20])}", "auto", tier=3).decision == "allow"
    assert decided(f"rm {' '.join(names[:20])} f0", "auto", tier=3).decision == "allow"
    for command in (f"rm {' '.join(names)}", f"rm {' '.join(names[:11])} && rm {' '.join(names[11:])}"):
        found = decided(command, "auto", tier=3)
        assert (found.decision, found.rule, found.subject) == ("confirm", "fs.bulk", command)
        assert found.reason == "it deletes 21 paths at once"


@pytest.mark.parametrize("mode", MODES)
def test_without_a_sandbox_a_no_stays_one_and_a_yes_becomes_a_question(mode: str) -> None:
    for command in ("rm -rf /", "cat .env", "echo $X; cat .env"):
        assert decided(command, mode, tier=0).decision == "deny"
    asked = decided("ls -la", mode, tier=0)
    assert (asked.decision, asked.rule, asked.subject) == ("confirm", "exec.no-sandbox", "ls -la")
    assert decided("ls -la", mode, tier=1).decision == "allow"


def test_without_a_sandbox_what_asks_anyway_keeps_its_reason() -> None:
    assert decided("rm a", tier=0).rule == "fs.delete"
    assert decided("rm a", "plan", tier=0).decision == "deny"


def test_what_goes_on_after_the_call_says_why_it_asks() -> None:
    found = decided("ls", "auto", tier=3, background=True)
    assert (found.rule, found.subject) == ("exec.background", "background")
    assert found.reason == "background processes need approval, since undo does not cover them"


LISTED = RestrictedProfile(("ls", "make test", "cat .env", "rm -rf /", "cat /etc/passwd"), (".minds",))


@pytest.mark.parametrize(
    ("command", "expected", "rule"),
    [
        ("ls", "aaaa", "restricted.command"),
        ("ls -la .minds", "aaaa", "restricted.command"),
        ("make test", "daaa", "restricted.command"),
        ("make test x", "dddd", "restricted.command"),
        ("make", "dddd", "restricted.command"),
        ("lsx", "dddd", "restricted.command"),
        ("cat .env", "dddd", "fs.secret"),
        ("rm -rf /", "dddd", None),
        ("cat /etc/passwd", "dddd", "fs.outside"),
        ("ls src", "dddd", "restricted.path"),
        ("ls && ls", "dddd", "restricted.command"),
        ("ls 2>&1", "aaaa", "restricted.command"),
        ("ls > .minds/a", "dddd", "restricted.command"),
        ("ls < .minds/a", "dddd", "restricted.command"),
        ("echo $X", "dddd", "restricted.command"),
    ],
)
def test_the_restricted_profile_runs_what_is_proven_or_exactly_listed(
    command: str, expected: str, rule: str | None
) -> None:
    assert verdicts(command, restriction=LISTED) == expected
    assert rule is None or decided(command, restriction=LISTED).rule == rule


def test_the_restricted_profile_runs_nothing_that_a_rule_asks_about() -> None:
    for command in ("ls", "ls -la", "make test"):
        asks = (rule("confirm", command.split(maxsplit=1)[0]),)
        assert verdicts(command, rules=asks, restriction=LISTED) == "dddd"
    assert verdicts("make other", rules=(rule("allow", "make"),), restriction=LISTED) == "dddd"


def test_the_restricted_profile_without_a_sandbox_runs_nothing() -> None:
    assert verdicts("ls", tier=0, restriction=LISTED) == "dddd"


GIT = RestrictedProfile(("git log", "git status", "ls"), ())


@pytest.mark.parametrize(
    ("command", "added", "refused"),
    [
        ("git log", "-5 -n5 --max-count=5 --decorate --no-decorate --graph --reverse --all",
         "-n5x -5x HEAD a.py --stat -p --max-count= --max-count=5x --output=a --follow --decorate=x --all-match -n-5"),
        ("git status", "-s -b -sb --short --branch --porcelain --porcelain=v1 --porcelain=2",
         "a -v -sbv --porcelain=v3 --porcelain= --porcelain=v --ignored --short=x -- -z"),
        ("ls", "-l -la -1 --color=never",
         "-R -lR -SR -1R -Ra -L -lL -H -lH --recursive --dereference --dereference-command-line"),
    ],
)  # fmt: skip
def test_what_may_be_added_to_a_listed_command_shows_the_same_in_another_way(
    command: str, added: str, refused: str
) -> None:
    for word in added.split():
        assert decided(f"{command} {word}", restriction=GIT).decision == "allow", word
    for word in refused.split():
        assert decided(f"{command} {word}", restriction=GIT).decision == "deny", word
        assert decided(f"{command} {added} {word}", restriction=GIT).decision == "deny", word
    assert decided(f"{command} {added}", restriction=GIT).decision == "allow"
