"""No expression takes forever: what Python cannot search in bounded time is left to ripgrep."""

import os
import time
from itertools import count
from pathlib import Path

import pytest

from handrail.kernel.files import has_openat2
from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import MAX_LINE_BYTES, Pattern, SearchScope
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.regex import Expression

from .conftest import Both


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("(a+)+b", "b" + "a" * 5_000),
        ("(a|aa)+b", "b" + "a" * 5_000),
        (r"(\w+\s*)+:", ":" + "word " * 1_000),
        (".*foo.*bar.*x", "x" + "foo bar " * 2_000),
        ("(?:a?){20}a{20}b", "b" + "a" * 60),
        ("[a-z]+X", "X" + "a" * 20_000),
        ("(.*)(.*)(.*)(.*)(.*)z", "zz" + "a" * 300),
        ("a*" + r"\B" * 1_000 + "b", "b" + "a" * 5_000),
        ("(?:|)" * 30 + "b", "c" + "a" * 100),
        ("(?:a|b|ab)*[cd]", "ab" * 10_000),
        ("(x{1,30}){1,30}y", "y" + "x" * 100),
        ("a?" * 3_000 + "b", "b" + "a" * 100),
        ("(?:(?:a?b?c?d?){2}){2}x", "x" + "abcd" * 30),
        ("(?" + "i" * 20_000 + ")a", "a"),
        ("(?" + "q" * 20_000 + ")a", "a"),
        ("[" * 20_000, "a"),
        ("é|" * 5_000 + "b", "b"),
    ],
)
def test_no_expression_takes_forever(both: Both, tmp_path: Path, pattern: str, line: str) -> None:
    (tmp_path / "file").write_text(f"{line}\n")
    start = time.process_time()
    python, ripgrep = both.hits(tmp_path, Pattern(pattern))
    assert python in (ripgrep, "UNAVAILABLE")
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("pattern", "line", "is_answered"),
    [
        (r"\w+\(", "word " * 200_000 + "foo(", True),
        (r"^\s*foo.*bar", " foo " + "x " * 200_000 + "bar", True),
        ("foo.*bar", "x" * 1_000_000 + "foo bar", True),
        (r"\w+\s*=\s*\w+\.\w+", "word " * 100_000 + "a = b.c", True),
        (r"\w+\(", "w" * 100_000 + "foo(", False),
        (".*foo.*bar", "foo " * 5_000 + "bar", False),
    ],
)
def test_a_long_line_is_searched_if_that_takes_few_steps(pattern: str, line: str, is_answered: bool) -> None:
    expression = Expression(pattern)
    if is_answered:
        assert len(list(expression.lines(f"{line}\n"))) == 1
        return
    with pytest.raises(ToolError, match="a line that is too long for this pattern; that needs ripgrep") as caught:
        list(expression.lines(f"{line}\n"))
    assert caught.value.code == "UNAVAILABLE"


def test_a_long_line_that_cannot_match_is_passed_over() -> None:
    assert list(Expression(".*foo.*barn").lines("foo " * 5_000 + "\n")) == []


def test_a_search_ends_between_lines_when_it_is_told_to() -> None:
    asked = count()
    found = list(Expression("a*b").lines("aab\n" * 100, lambda: next(asked) >= 5))
    assert len(found) == 5


def test_a_match_in_a_line_too_long_to_be_shown_is_counted(workspace: Path) -> None:
    (workspace / "file").write_bytes(b"x" * MAX_LINE_BYTES + b"hit\n")
    engine, pattern = PythonEngine(), Pattern("hit")
    folder = os.open(workspace, os.O_RDONLY)
    where = SearchScope(folder, folder, ".", has_openat2())
    assert list(engine.hits(where, pattern, never)) == []
    assert where.stats.oversized == 1
    descriptor = os.open(workspace / "file", os.O_RDONLY)
    found = engine.stream(descriptor, pattern, never)
    assert found is not None
    assert (found.lines, found.oversized) == ((), 1)
    os.close(descriptor)
    os.close(folder)
