"""An exit code is told with what it means, under whatever name the program was started."""

import pytest

from handrail.process.result import describe_exit_code, find_exit_signal


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
        ("python3 -m mypy", 1, "Problems were found."),
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
