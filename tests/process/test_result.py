"""An exit code is explained, under whatever name the program was started."""

import pytest

from handrail.process.result import describe_exit_code, find_exit_signal


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("grep", 1, "No line matched."),
        ("rg", 2, "An error: a bad pattern, or a file that could not be read."),
        ("diff", 1, "The inputs differ."),
        ("[", 1, "The condition is false."),
        ("pytest", 5, "No tests were collected."),
        ("timeout", 124, "It took too long and was ended."),
        ("curl", 6, "The host's name could not be resolved."),
        ("anything", 126, "The command was found and could not be run: not executable, or not allowed."),
        (None, 127, "The command was not found."),
        ("grep", 127, "The command was not found."),
        (None, 137, "It was killed by the signal SIGKILL."),
        ("git", 128, "git could not do it."),
        ("grep", 0, None),
        ("python3", 1, None),
        (None, 1, None),
        (None, 128, None),
    ],
)
def test_a_code_is_explained_where_it_says_something(program: str | None, code: int, said: str | None) -> None:
    assert describe_exit_code(program, code) == said


@pytest.mark.parametrize(
    ("code", "name"),
    [(130, "SIGINT"), (137, "SIGKILL"), (139, "SIGSEGV"), (143, "SIGTERM"), (153, "SIGXFSZ")]
    + [(code, None) for code in (0, 1, 127, 128, 255, -9)],
)
def test_a_signal_has_its_name(code: int, name: str | None) -> None:
    assert find_exit_signal(code) == name


@pytest.mark.parametrize(
    ("program", "code", "meaning"),
    [
        ("grep", 1, "No line matched."),
        ("git grep", 1, "No line matched."),
        ("git diff", 1, "There are differences, or the check found problems."),
        ("git log", 128, "git could not do it."),
        ("cargo test", 101, "It failed: the build, a test, or a panic."),
        ("go test", 1, "It failed: the build or a test."),
        ("python -m pytest", 5, "No tests were collected."),
        ("python3 -m mypy", 1, "Problems were found, or Python has no module mypy."),
        ("nosuch", 127, "The command was not found."),
        ("nosuch", 137, "It was killed by the signal SIGKILL."),
        ("git merge-base", 1, None),
        ("python -m nosuch", 1, None),
        ("nosuch", 1, None),
        (None, 1, None),
    ],
)
def test_the_meaning_is_found(program: str | None, code: int, meaning: str | None) -> None:
    assert describe_exit_code(program, code) == meaning


def test_what_is_no_signal_has_no_name() -> None:
    assert [find_exit_signal(code) for code in (0, 1, 128, 139, 255)] == [None, None, None, "SIGSEGV", None]
