"""What the sandbox gets from a parsed command agrees with the decision about it."""

import random
from collections.abc import Callable

import pytest
from tests.policy.corpus.records import attacks, everyday
from tests.policy.deciding import decided, facts_of

from handrail.policy.parse import ParsedCommand, parse_command
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Unparsed, to_bash

GUARDS = " '--no-ext-diff' '--no-textconv'"
JOINS = ("&&", "||", ";", "|")


def of(text: str, cwd: str = ".") -> ParsedCommand:
    return parse_command(text, cwd)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("ls -la", "'ls' '-la'"),
        ("cat a.txt | wc -l", "'cat' 'a.txt' | 'wc' '-l'"),
        ("echo $HOME", "echo $HOME"),
        ("for f in *; do rm $f; done", "for f in *; do rm $f; done"),
        ("make >build.log 2>&1", "'make' >'build.log' 2>&1"),
        ("echo 'a", "echo 'a"),
        ("git diff -- a | head", f"'git' 'diff'{GUARDS} '--' 'a' | 'head'"),
        ("git --no-pager log -p >/dev/null", f"'git' 'log'{GUARDS} '-p' >'/dev/null'"),
        ("/usr/bin/git blame a", f"'/usr/bin/git' 'blame'{GUARDS} 'a'"),
        ("git stash show -p; git status; cd src", "'git' 'stash' 'show' '-p' ; 'git' 'status' ; 'cd' 'src'"),
        ("git diff; make", "'git' 'diff' ; 'make'"),
    ],
)
def test_bash_is_given_what_was_read_or_else_the_text_itself(text: str, given: str) -> None:
    assert of(text).bash_text == given


PROVEN = ["ls", "git status", "cat a b | sort | uniq -c", "cd src && git diff", "grep x a >/dev/null 2>&1", "wc <a.txt"]
NOT = [
    "make", "ls >a.txt", "ls >>/tmp/x", "rm a", "touch a", "git commit -m x", "curl x", "ls; make", "ls $X", "ls &",
    "cat a | tee b", "bash -c ls", "ls 2>errors", "cd a && rm b", "./ls", "find . -delete", "sort -o a a", "ls &>a",
]  # fmt: skip


@pytest.mark.parametrize("text", PROVEN)
def test_what_only_looks_is_proven(text: str) -> None:
    assert of(text).is_read_only


@pytest.mark.parametrize("text", NOT)
def test_what_may_do_more_is_not_proven(text: str) -> None:
    assert not of(text).is_read_only


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("git status --short", ("git status",)),
        ("/usr/bin/git log -3 | head", ("git log", "head")),
        ("npm install left-pad", ("npm install",)),
        ("ls; ls -a; ls", ("ls",)),
        ("./deploy.sh --password hunter2", ("deploy.sh",)),
        ("timeout 5 make all", ("make",)),
        ("bash -c 'rm -rf build'", ("bash", "rm")),
        ("python3.11 -c 'print(1)'", ("python3.11",)),
        ("x=1 make", ("bash",)),
        ("'sk live key' a", ("…",)),
        (f"{'a' * 41} b", ("…",)),
        ("git -c a=hunter2 status", ("git", "git status")),
    ],
)
def test_programs_are_named_without_their_arguments(text: str, programs: tuple[str, ...]) -> None:
    assert of(text).programs == programs


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("grep x a", "grep"),
        ("cat a | grep x", "grep"),
        ("make; git diff a", "git diff"),
        ("make && grep x a", None),
        ("grep x a || true", None),
        ("a && b; grep x a | wc -l", "wc"),
        ("a; b && c | d", None),
        ("a && b | c", None),
        ("grep $X a", None),
        ("cd " + "; cd ".join(f"../{n}" for n in range(20)), None),
    ],
)
def test_the_last_program_is_named_only_where_its_exit_code_is_that_of_the_whole(text: str, last: str | None) -> None:
    assert of(text).last_program == last


def test_folders_that_nobody_can_follow_are_not_proven() -> None:
    text = "cd " + "; cd ".join(f"../{n}" for n in range(20)) + "; ls"
    assert (of(text).is_read_only, of(text).programs) == (False, ("bash",))
    assert of(text).bash_text.startswith("'cd' '../0' ; ")


def corpus() -> list[str]:
    return [record.text for record in (*everyday("seen"), *attacks("seen"))]


def assert_agrees(text: str) -> bool:
    """Policy and confinement say the same of a command; True where it is proven."""
    found = of(text)
    fact = facts_of(text).command
    assert fact is not None
    allowed = decided(text, "plan").decision == "allow"
    assert found.is_read_only or not allowed, f"plan mode would run it, so it must be proven: {text!r}"
    if found.unparsed is not None:
        assert not found.is_read_only
    elif found.is_read_only:
        rules = {step.classification.effect for step in found.steps}
        assert rules == {"proven"}, text
        assert not any(use.access != "read" for step in found.steps for use in (*step.uses, *step.redirections)), text
    script = lex(text)
    written = text if isinstance(script, Unparsed) else to_bash(script)
    assert found.bash_text.replace(GUARDS, "") == written.replace(" '--no-pager'", "").replace(GUARDS, "")
    return found.is_read_only


def test_policy_and_confinement_agree_about_every_command_of_the_corpora() -> None:
    proven = [text for text in corpus() if assert_agrees(text)]
    assert len(proven) > 350


def test_they_agree_about_commands_put_together(count: Callable[[int], int], deep: bool) -> None:
    source = random.Random(None if deep else 7)
    texts = corpus()
    results = set[bool]()
    for _ in range(count(3_000)):
        one, other = source.sample(texts, 2)
        end = source.choice(["", "", " >/dev/null", " >made", " 2>&1", " <a"])
        results.add(assert_agrees(f"{one} {source.choice(JOINS)} {other}{end}"))
    assert results == {True, False}


def test_no_attack_is_named_with_an_argument() -> None:
    words = {word for text in corpus() for word in " ".join(of(text).programs).split() if word.startswith("/")}
    assert words == set()


@pytest.mark.parametrize(
    ("text", "git"),
    [
        ("make", "none"),
        ("python3 -c 'git'", "none"),
        ("for x in 1; do make; done", "none"),
        ("git add -A && git commit -m x | tail -1", "alone"),
        ("cd src && git mv a b", "alone"),
        ("cd src >a && git mv a b", "among others"),
        ("git", "among others"),
        ("git -c alias.x=!ls x", "among others"),
        ("git rebase -x ls", "among others"),
        ("./git add a", "among others"),
        ("git add a; make", "among others"),
        ("git add a | tail -1 b", "among others"),
        ("timeout 5 git commit -m x", "among others"),
        ("for x in 1; do git add $x; done", "among others"),
        ("git add 'a", "among others"),
    ],
)
def test_whether_git_alone_reads_files_shows_in_the_words(text: str, git: str) -> None:
    assert of(text).git_use == git


@pytest.mark.parametrize(
    ("text", "compares"),
    [
        ("git status", True),
        ("cd src && git diff --stat | tail -1", True),
        ("git status | grep x a", False),
        ("git log", False),
        ("echo $(git status)", False),
    ],
)
def test_whether_a_command_only_compares_files_with_git_shows_in_the_words(text: str, compares: bool) -> None:
    assert of(text).compares_with_git is compares
