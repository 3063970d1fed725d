"""Grants cover classes of commands, and never a program that runs code."""

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.deciding import decided

from handrail.policy.config import Grant
from handrail.policy.programs.classes import GROUPS
from handrail.protocol.decisions import Decision

RUNNING = sorted(
    program
    for group in GROUPS
    for program in group.programs
    if group.rule in {"exec.interpreter", "exec.wrapper", "exec.pager"} or group.effect == "network"
)
NAMED = frozenset(program for group in GROUPS if group.grantable for program in group.programs)
"""Forms that the tables name one by one: `python -m pytest` is no `python`."""
WORDS = st.sampled_from(
    [
        *("-c", "-m", "-e", "-x", "--", "-I{}", "--eval=x", "run", "test", "exec", "install", "pytest", "build", "x"),
        *("a.py", "./a.sh", "'*'", "'git commit'", "'a b'", "http://a.b"),
    ]
)
COMMANDS = st.builds(
    lambda program, words: " ".join((program, *words)), st.sampled_from(RUNNING), st.lists(WORDS, max_size=4)
)


def classes(decision: Decision) -> set[str]:
    return {*decision.grants, *(part.grant for part in decision.parts)} - {""}


@given(COMMANDS)
def test_no_interpreter_wrapper_or_client_is_of_a_class(command: str) -> None:
    decision = decided(command)
    assert classes(decision) <= NAMED
    assert classes(decided(f"ls && {command}")) <= NAMED


@given(COMMANDS, st.integers(1, 5))
def test_no_grant_of_any_name_lets_one_run(command: str, length: int) -> None:
    """As if somebody had written such a grant by hand."""
    wide = " ".join(command.split()[:length])
    if wide in NAMED:
        return
    grants = tuple(Grant(id="g", command=name) for name in (wide, "*", f"{command.split(maxsplit=1)[0]} *", ""))
    assert decided(command, grants=grants) == decided(command)


@given(
    st.sampled_from(["git commit -m x", "cp a b", "make test", "ruff format", "mkdir x"]),
    COMMANDS,
    st.sampled_from(["&&", "||", ";", "|"]),
)
def test_a_grant_for_one_part_says_nothing_of_the_others(granted: str, other: str, between: str) -> None:
    [command] = decided(granted).grants
    alone, together = decided(other), decided(f"{granted} {between} {other}", grants=(Grant(id="g", command=command),))
    assert (together.decision == "allow") == (alone.decision == "allow")


def test_what_is_offered_is_what_would_end_the_asking() -> None:
    for command in ("cp a b", "mkdir x && cp a b && ls", "git commit -m x; make", "ruff format > /dev/null", "touch a"):
        classes = decided(command).grants
        assert classes
        grants = tuple(Grant(id=f"g{number}", command=name) for number, name in enumerate(classes))
        assert decided(command, grants=grants).decision == "allow"
        assert decided(command, grants=grants[1:]).decision == "confirm"


def test_nothing_is_offered_where_a_grant_would_not_end_the_asking() -> None:
    for command in (
        "cp a b > c",
        "cp a .git/config",
        "cp a b && ./x",
        "cp a $b",
        "make & wait",
        "rm " + "x " * 3 + " ".join("abcdefghijklmnopqrstuvwxyz"),
    ):
        assert decided(command).decision == "confirm", command
        assert decided(command).grants == (), command
    assert decided("cp a b", background=True).grants == ()
    assert decided("cp a b", tier=0).grants == ()
    assert decided("cp a b", "plan").grants == decided("cp a b", "full").grants == ()
    assert decided("cp a b", unattended=True).grants == ()


def test_a_class_of_the_projects_own_programs_does_not_cover_what_one_of_them_is_told_to_run() -> None:
    for granted, told in (
        ("git rebase main", "git rebase -x 'sh x' main"),
        ("git rebase main", "git rebase -ix id main"),
        ("git rebase main", "git rebase --exe=id main"),
        ("git bisect good", "git bisect run sh x"),
        ("go test ./...", "go test -exec 'sh -c' ./..."),
        ("go build ./...", "go build -toolexec=x ./..."),
        ("make test", "make test SHELL=./x"),
        ("make test", "make test --eval='x:;id'"),
        ("make test", "make test -fx.mk"),
        ("just build", "just build --command sh"),
        ("prove t", "prove --exec sh t"),
        ("pylint src", "pylint src --init-hook=x"),
        ("gcc a.c", "gcc a.c -wrapper sh,x"),
        ("stack build", "stack exec sh"),
        ("yarn run build", "yarn run node"),
    ):
        [name] = decided(granted).grants
        decision = decided(told, grants=(Grant(id="g", command=name),))
        assert (decision.decision, decision.grants) == ("confirm", ()), told


def test_no_grant_lets_the_settings_of_git_be_changed() -> None:
    for command in ("git config user.name x", "git init --template=x", "git remote add x y", "git difftool -x sh"):
        assert decided(command).grants == (), command
        grants = (Grant(id="g", command=" ".join(command.split()[:2])),)
        assert decided(command, grants=grants).decision == "confirm", command


def test_a_program_that_is_not_known_is_of_no_class() -> None:
    for command in ("linux64 ls", "fakeroot ls", "runhaskell x", "frobnicate build", "git frobnicate"):
        assert decided(command).grants == (), command
        assert decided(command, grants=(Grant(id="g", command=command),)).decision == "confirm", command


def test_what_deletes_is_of_no_class() -> None:
    for command in (
        *("rm a", "/bin/rm -rf a", "rm --recurs a", "rm", "unlink a", "rmdir a", "shred -u a", "srm a", "trash a"),
        *("mv a b", "mv --exchange a b", "find . -name a -delete", "find . -exec rm {} +", "truncate -s 0 a"),
        *("rsync -a --delete a/ b/", "git rm a", "git rm --cached a", "git clean -fd", "git --no-pager clean -fd"),
        *("git branch -d x", "git branch -D x", "git branch --delete x", "git branch -fd x", "git tag -d x"),
        *("git tag --delete x", "git stash drop", "git stash clear", "git worktree remove x", "git update-ref -d x"),
        *("git reflog expire --all", "git reflog delete x", "git prune", "git notes remove x", "git replace -d x"),
    ):
        program = command.replace("--no-pager ", "").removeprefix("/bin/").split()
        grants = tuple(Grant(id="g", command=name) for name in (program[0], " ".join(program[:2])))
        for text in (command, f"{command} && touch b"):
            assert decided(text).decision == "confirm", text
            assert decided(text).grants == (), text
            assert decided(text, grants=grants).decision == "confirm", text


def test_what_only_writes_keeps_its_class() -> None:
    for command in ("git branch x", "git tag v1", "git stash", "git worktree add x", "git commit -m x", "cp a b"):
        assert decided(command).grants == (" ".join(command.split()[: 2 if "git" in command else 1]),), command
