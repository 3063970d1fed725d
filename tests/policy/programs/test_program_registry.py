"""A command is classified by the table of its program, or is unproven with a reason."""

import pytest
from tests.policy.programs.support import read

from handrail.policy.programs.spec import PathUse


@pytest.mark.parametrize("text", ["ls -la", "/bin/ls -la", "/usr/bin/ls -la", "'ls' -la", "l\\s -la"])
def test_a_known_program_is_found_by_its_name_and_in_the_folders_of_the_system(text: str) -> None:
    reading = read(text)
    assert (reading.effect, reading.rule, reading.reason) == ("proven", "exec.read-only", "ls only reads")


@pytest.mark.parametrize(
    "text",
    [
        "./ls",
        "bin/ls",
        "/tmp/ls",
        "/usr/local/bin/ls",
        "/usr/bin/../../tmp/ls",
        "../ls",
        "/usr/bin/no-such-program-here",
    ],
)
def test_a_program_given_by_any_other_path_is_unproven(text: str) -> None:
    reading = read(text)
    assert (reading.effect, reading.rule, reading.grant) == ("unproven", "exec.script", "")
    assert reading.reason == f"{text} is a program given by its path"


@pytest.mark.parametrize("text", ["frobnicate", "frobnicate build", "frobnicate -x build", "frobnicate a.txt"])
def test_an_unknown_program_is_unproven_and_of_no_class_since_it_may_be_a_wrapper(text: str) -> None:
    reading = read(text)
    assert (reading.effect, reading.rule, reading.grant) == ("unproven", "exec.unknown", "")
    assert reading.reason == "handrail does not know what frobnicate does"


def test_every_word_of_an_unproven_command_that_may_be_a_path_is_a_use() -> None:
    assert read("frobnicate -x a --into=b/c --all '' src/*.py").uses == (
        PathUse("a", "read", is_certainly_path=False),
        PathUse("b/c", "read", is_certainly_path=False),
        PathUse("src/*.py", "read", is_glob=True, is_certainly_path=False),
    )


def test_git_may_be_told_to_page_nothing_before_its_sub_command() -> None:
    assert read("git --no-pager log -5").effect == "proven"
    assert read("git -c core.pager=x log").effect == "unproven"


def test_an_option_that_a_table_does_not_list_is_unproven_and_told() -> None:
    reading = read("cat --frob a.txt")
    assert (reading.effect, reading.rule) == ("unproven", "exec.option")
    assert reading.reason == "cat's option --frob is not among the read-only options"
    assert reading.uses == (PathUse("a.txt", "read", is_certainly_path=False),)
    assert reading.grant == "cat"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("md5sum a", "md5sum only reads"),
        ("/usr/bin/sha1sum a", "sha1sum only reads"),
        ("egrep x a", "egrep only reads"),
        ("node -v", "node -v only reads"),
        ("git annotate a", "git annotate only reads"),
        ("md5sum -c a", "md5sum's option -c is not among the read-only options"),
        ("fgrep --frob x a", "fgrep's option --frob is not among the read-only options"),
        ("whoami a", "whoami only reads without operands such as a"),
    ],
)
def test_the_reason_names_the_program_that_was_typed(text: str, reason: str) -> None:
    assert read(text).reason == reason


def test_what_is_allowed_for_good_is_the_program_that_was_typed() -> None:
    assert read("md5sum -c a").grant == "md5sum"


@pytest.mark.parametrize("text", ["sort --compress-program=sh a", "rg --pre sh x", "tree -R", "find . -exec rm {} ';'"])
def test_a_program_that_can_run_others_is_never_allowed_for_good(text: str) -> None:
    reading = read(text)
    assert (reading.effect, reading.grant) == ("unproven", "")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("env ls", "exec.wrapper"),
        ("env A=b ls", "exec.wrapper"),
        ("find . -delete", "exec.wrapper"),
        ("python3 --version -c x", "exec.interpreter"),
        ("python3 x.py", "exec.interpreter"),
        ("sed -i s/a/b/ x", "exec.interpreter"),
    ],
)
def test_what_a_table_does_not_accept_is_of_the_class_of_its_program(text: str, rule: str) -> None:
    reading = read(text)
    assert (reading.effect, reading.rule, reading.grant) == ("unproven", rule, "")


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("cat a b", ["a", "b"]),
        ("grep -rn foo src", ["src"]),
        ("grep -e foo src", ["src"]),
        ("grep -f patterns a", ["patterns", "a"]),
        ("rg --ignore-file=x foo src", ["x", "src"]),
        ("find -L src tests -newer a -name b", ["src", "tests", "a"]),
        ("find . -newermt 2024-01-01 -newermm b", [".", "b"]),
        ("diff --from-file=a b -X c", ["a", "c", "b"]),
        ("jq --slurpfile a b.json . c.json", ["b.json", "c.json"]),
        ("jq --arg a b . c.json", ["c.json"]),
        ("yq . a.yaml", [".", "a.yaml"]),
        ("sed -n 5p a", ["a"]),
        ("sed -n -e 5p a", ["a"]),
        ("xxd -l 5 a", ["a"]),
        ("tree --gitfile x -L 2 src", ["x", "src"]),
        ("test -f a -a b -nt c", ["a", "b", "c", "b"]),
        ("[ -e a ]", ["a"]),
        ("echo a b", []),
        ("echo a*", ["a*"]),
        ("printf %s a*", ["a*"]),
        ("date -r a +%s", ["a"]),
        ("realpath --relative-to=a b", ["a", "b"]),
        ("tr a b", []),
        ("basename a/b", []),
        ("fd foo src --search-path x", ["x", "src"]),
    ],
)
def test_the_paths_of_a_proven_command_are_its_uses(text: str, uses: list[str]) -> None:
    reading = read(text)
    assert reading.effect == "proven", reading
    assert [use.path for use in reading.uses] == uses
    assert all(use.access == "read" and use.is_certainly_path for use in reading.uses)
