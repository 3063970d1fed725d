"""edit and write refuse a placeholder where real lines belong: what it stands for would be lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail

TOTAL = "def total(prices):\n    net = sum(prices)\n    tax = net * RATE\n    return round(net + tax, 2)\n"
LEFT_OUT = "def total(prices, rate):\n    # ... rest of the function unchanged ...\n"


@pytest.fixture
def total(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text(TOTAL)
    return path


def test_an_edit_with_a_placeholder_is_refused_and_says_why(one: Handrail, total: Path) -> None:
    result = one.edit("a.py", TOTAL, LEFT_OUT)
    assert result.error.code == "OMITTED_TEXT"
    assert "Line 2 of newText is a placeholder ('# ... rest of the function unchanged ...')" in result.content
    assert "Nothing was changed. Send the real lines" in result.content
    assert total.read_text() == TOTAL


def test_windows_line_endings_hide_nothing(one: Handrail, total: Path) -> None:
    total.write_bytes(TOTAL.replace("\n", "\r\n").encode())
    result = one.edit("a.py", TOTAL.replace("\n", "\r\n"), LEFT_OUT.replace("\n", "\r\n"))
    assert result.error.code == "OMITTED_TEXT"


def test_nobody_is_asked_about_an_edit_that_is_refused(rail: Callable[..., Handrail], total: Path) -> None:
    asked: list[object] = []
    asking = rail(mode="ask", on_permission=lambda request: asked.append(request) or "once")
    assert asking.edit("a.py", TOTAL, LEFT_OUT).error.code == "OMITTED_TEXT"
    assert asked == []


def test_a_write_that_says_in_words_what_it_leaves_out_is_refused(one: Handrail, total: Path) -> None:
    result = one.write("a.py", LEFT_OUT)
    assert result.error.code == "OMITTED_TEXT"
    assert "Line 2 of content is a placeholder" in result.content
    assert "change a part of the file with edit" in result.content
    assert total.read_text() == TOTAL


def test_a_write_may_have_dots(one: Handrail, total: Path) -> None:
    assert one.write("a.py", "def total(prices):\n    # ...\n    pass\n").ok
    assert one.write("a.py", "def total(prices): ...\n").ok


def test_a_new_file_may_have_any_line(one: Handrail, workspace: Path) -> None:
    assert one.write("new.py", LEFT_OUT).ok
    assert (workspace / "new.py").read_text() == LEFT_OUT


def test_who_means_the_line_adds_it_first(one: Handrail, total: Path) -> None:
    assert one.edit("a.py", "    net =", "    # ... rest of the function unchanged ...\n    net =").ok
    now = total.read_text()
    assert one.edit("a.py", now, LEFT_OUT).ok
    assert total.read_text() == LEFT_OUT
