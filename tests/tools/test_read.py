"""read: pages of text files, sentence by sentence."""

import codecs
import hashlib
import itertools
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Results
from handrail.workspace.text import encode_text

Rail = Callable[..., Handrail]
Joined = Callable[..., str]


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


@pytest.fixture
def ten(workspace: Path) -> str:
    (workspace / "ten.txt").write_text(lines(1, 10))
    return "ten.txt"


@pytest.mark.parametrize(
    ("offset", "limit", "content", "first", "following"),
    [
        (1, 2_000, lines(1, 10), 1, None),
        (1, 3, lines(1, 3), 1, 4),
        (4, 3, lines(4, 6), 4, 7),
        (8, 3, lines(8, 10), 8, None),
        (10, 1, lines(10, 10), 10, None),
        (-1, 2_000, lines(10, 10), 10, None),
        (-3, 2_000, lines(8, 10), 8, None),
        (-3, 2, lines(8, 9), 8, 10),
        (-10, 2_000, lines(1, 10), 1, None),
        (-200, 2_000, lines(1, 10), 1, None),
    ],
)
def test_an_offset_is_a_line_from_1_or_counts_from_the_end(
    one: Handrail, ten: str, offset: int, limit: int, content: str, first: int, following: int | None
) -> None:
    result = one.read(ten, offset=offset, limit=limit)
    assert result.content == content
    assert result.data.first_line == first
    assert result.meta.returned == content.count("\n")
    assert (result.meta.total, result.meta.total_is_lower_bound) == (10, False)
    assert result.meta.next_offset == following
    assert result.meta.truncated is (following is not None)


@pytest.mark.parametrize("offset", [0, 11, 5_000, 10**12])
def test_an_offset_that_is_no_line_of_the_file_is_refused_with_its_length(one: Handrail, ten: str, offset: int) -> None:
    error = one.read(ten, offset=offset).error
    assert error.code == "INVALID_ARGUMENT"
    assert str(offset) in error.message
    assert offset == 0 or "10 lines" in error.message


@pytest.mark.parametrize("limit", [0, -1, 10_001, 1.5, "3", None])
def test_a_limit_out_of_range_is_refused(one: Handrail, ten: str, limit: object) -> None:
    error = one.call("read", {"path": ten, "limit": limit}).error
    assert error.code == "INVALID_ARGUMENT"
    assert error.details


def test_a_limit_of_ten_thousand_is_allowed_and_two_thousand_is_the_default(one: Handrail, workspace: Path) -> None:
    (workspace / "many.txt").write_text("x\n" * 12_000)
    assert one.call("read", {"path": "many.txt"}).meta.returned == 2_000
    assert one.read("many.txt", limit=10_000).meta.returned == 10_000


def test_the_budget_holds_whole_lines_and_says_where_to_go_on(rail: Rail, workspace: Path, joined: Joined) -> None:
    text = "".join(f"{number:04} {'x' * (number % 97)}\n" for number in range(500))
    (workspace / "long.txt").write_text(text)
    one = rail(settings=Settings(results=Results(characters=1_000)))
    page = one.read("long.txt")
    assert 900 < len(page.content) <= 1_000
    assert text.startswith(page.content)
    assert page.content.endswith("\n")
    assert page.meta.next_offset == page.meta.returned + 1
    assert page.meta.total == 500
    assert page.meta.output is None, "read itself never offloads"
    assert joined(one, "long.txt") == text


def test_the_budget_counts_characters_and_not_bytes(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("漢字漢字漢字漢字漢\n" * 500)
    page = rail(settings=Settings(results=Results(characters=1_000))).read("a.txt")
    assert (len(page.content), page.meta.returned) == (1_000, 100)


def test_one_line_over_the_budget_is_returned_all_the_same(rail: Rail, workspace: Path) -> None:
    (workspace / "wide.txt").write_text(f"{'x' * 1_900}\nshort\n")
    page = rail(settings=Settings(results=Results(characters=1_000))).read("wide.txt")
    assert page.content == f"{'x' * 1_900}\n"
    assert page.meta.next_offset == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize(("length", "more"), [(1_999, 0), (2_000, 0), (2_001, 1), (2_002, 2), (100_000, 98_000)])
def test_a_line_over_two_thousand_characters_is_cut_and_marked(
    one: Handrail, workspace: Path, length: int, more: int, end: str
) -> None:
    (workspace / "wide.txt").write_bytes(f"first\n{'é' * length}{end}".encode())
    result = one.read("wide.txt")
    newline = "\n" if end else ""
    mark = f"… [{more} more characters]" if more else ""
    assert result.content == f"first\n{'é' * min(length, 2_000)}{mark}{newline}"
    assert result.meta.truncated is bool(more)
    assert result.warnings == (("1 lines over 2,000 characters were cut.",) if more else ())
    assert result.meta.returned == 2


def test_data_says_what_the_file_is(one: Handrail, workspace: Path) -> None:
    data = "grün\r\nblau\r\n".encode()
    (workspace / "a.txt").write_bytes(data)
    found = one.read("./a.txt").data
    assert found.path == "a.txt"
    assert found.size == len(data)
    assert found.mtime == datetime.fromtimestamp((workspace / "a.txt").stat().st_mtime, UTC)
    assert (found.encoding, found.line_ending) == ("utf-8", "crlf")
    assert found.hash == hashlib.sha256(data).hexdigest()
    assert found.first_line == 1


def test_an_empty_file_has_no_lines(one: Handrail, workspace: Path) -> None:
    (workspace / "empty").write_text("")
    for offset in (1, -1, -200):
        result = one.read("empty", offset=offset)
        assert (result.ok, result.content) == (True, "")
        assert (result.meta.returned, result.meta.total, result.meta.next_offset) == (0, 0, None)
    assert one.read("empty", offset=2).error.code == "INVALID_ARGUMENT"
    assert one.read("empty").data.line_ending == "none"


@pytest.mark.parametrize(
    ("data", "encoding", "ending", "content"),
    [
        (b"plain\n", "utf-8", "lf", "plain\n"),
        (codecs.BOM_UTF8 + b"marked\n", "utf-8-sig", "lf", "marked\n"),
        (codecs.BOM_UTF16_LE + "grün\r\n".encode("utf-16-le"), "utf-16-le", "crlf", "grün\n"),
        (codecs.BOM_UTF16_BE + "grün\n".encode("utf-16-be"), "utf-16-be", "lf", "grün\n"),
        ("café".encode("latin-1"), "latin-1", "none", "café"),
        (b"one\r\ntwo\nthree\r\n", "utf-8", "mixed", "one\ntwo\nthree\n"),
        (b"one\rtwo\r", "utf-8", "none", "one\rtwo\r"),
        (b"no end", "utf-8", "none", "no end"),
    ],
)
def test_text_is_read_in_its_encoding_and_the_data_says_which(
    one: Handrail, workspace: Path, data: bytes, encoding: str, ending: str, content: str
) -> None:
    (workspace / "a").write_bytes(data)
    result = one.read("a")
    assert result.content == content
    assert (result.data.encoding, result.data.line_ending) == (encoding, ending)
    assert result.warnings == ()


def test_invalid_bytes_are_shown_and_counted(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes("grün ".encode() + b"\xff\xfe\n")
    result = one.read("a")
    assert result.content == "grün \ufffd\ufffd\n"
    assert result.warnings == ("2 bytes are not valid in the file's encoding and are shown as \ufffd.",)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=300)
# Long enough that pages matter: several pieces, some of them repeated.
long_texts = st.lists(texts | st.sampled_from(["\n", "\r\n", "line\n", "\r", "x" * 80 + "\n"]), max_size=30).map(
    "".join
)
sizes = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@given(long_texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"]), st.booleans(), sizes)
def test_pages_of_any_size_joined_are_the_text(
    rail: Rail, workspace: Path, joined: Joined, text: str, encoding: str, crlf: bool, sizes: list[int]
) -> None:
    data = encode_text(text, encoding, "crlf" if crlf else "lf")
    (workspace / "any").write_bytes(data)
    if any(len(line) > 2_000 for line in text.split("\n")):
        return  # cut, so that the pages cannot be the text
    one = rail(settings=Settings(results=Results(characters=1_000)))
    assert joined(one, "any", itertools.cycle(sizes)) == text.replace("\r\n", "\n")
    one.close()


@given(long_texts, sizes)
def test_the_last_lines_are_the_end_of_the_text(rail: Rail, workspace: Path, text: str, sizes: list[int]) -> None:
    (workspace / "any").write_text(text, newline="")
    meant = text.replace("\r\n", "\n")
    one = rail()
    for size in sizes:
        content = one.read("any", offset=-size).content
        assert meant.endswith(content)
        count = meant.count("\n") + (not meant.endswith("\n") and meant != "")
        assert one.read("any", offset=-size).meta.returned == min(size, count)
    one.close()


def test_a_file_read_twice_gives_the_same_answer(one: Handrail, ten: str) -> None:
    first, second = one.read(ten), one.read(ten)
    assert (first.content, first.data, first.meta) == (second.content, second.data, second.meta)


def test_read_changes_nothing(one: Handrail, ten: str, workspace: Path) -> None:
    before = (workspace / ten).stat()
    one.read(ten)
    after = (workspace / ten).stat()
    assert (before.st_mtime_ns, before.st_ctime_ns, before.st_ino) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_ino,
    )
    assert list(workspace.iterdir()) == [workspace / ten]


def test_a_file_of_nothing_but_newlines_does_not_fill_the_memory(one: Handrail, workspace: Path) -> None:
    (workspace / "empty-lines.txt").write_bytes(b"\n" * 8_000_000)
    tracemalloc.start()
    try:
        for offset in (1, 2, 4_000_000, 7_999_999, -1, -4_000_000):
            result = one.read("empty-lines.txt", offset=offset, limit=10)
            assert result.content == "\n" * min(10, 8_000_000 - offset + 1 if offset > 0 else -offset)
            assert result.meta.total == (None if result.meta.total_is_lower_bound else 8_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000
