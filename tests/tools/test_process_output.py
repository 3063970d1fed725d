"""What a process session printed, in pages and in polls: nothing is lost, nothing comes twice."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given
from hypothesis import strategies as st

from handrail.process.keeper.state import LogWriter
from handrail.process.output import clean_output
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import ProcessLog
from handrail.tools.process_output import poll, read_log_page
from handrail.workspace.pages import MAX_LINE_CHARACTERS

PIECES = st.sampled_from(
    [
        b"a line\n", b"no newline", b"\n", b"\r", b"10%\r20%\r", b"\r\n", b"\x1b[31mred\x1b[0m", b"\x1b[",
        b"\x1b]0;title\x07",
        b"\xff\xfe", "grüße ".encode(), "\N{SMILING FACE WITH OPEN MOUTH}".encode()[:2], b"\x00\x07", b"x\b\by",
        b"long " * 700, b"y" * 2_000 + b"\n", b"z" * 1_999, b"\t",
    ]
)  # fmt: skip
LOGS = st.lists(PIECES, max_size=40)
PLAIN = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=80), max_size=30)


@contextmanager
def written(pieces: list[bytes], *, head: int = 1 << 16, kept: int = 1 << 26, segment: int = 1 << 23) -> Iterator[str]:
    """The folder of a log."""
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder) as descriptor:
            writer = LogWriter(descriptor, head=head, kept=kept, segment=segment)
            for piece in pieces:
                writer.add(piece)
            writer.close()
        yield folder


@contextmanager
def opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def pages(log: ProcessLog, limits: list[int], budget: int) -> list[str]:
    """All pages, each asked for where the one before says."""
    found: list[str] = []
    at: int | None = 1
    while at is not None:
        page = read_log_page(log, at, limits[len(found) % len(limits)], budget)
        assert page.first == at
        assert page.returned or not found
        found.append(page.content)
        at = page.next_offset
    return found


@given(LOGS, st.lists(st.integers(1, 50), min_size=1, max_size=5), st.sampled_from([1, 500, 30_000]))
def test_pages_joined_give_the_log_back(pieces: list[bytes], limits: list[int], budget: int) -> None:
    with written(pieces, head=700, segment=900) as folder:
        found = pages(ProcessLog(folder), limits, budget)
    assert "".join(found) == clean_output(b"".join(pieces))


@given(LOGS, st.integers(1, 60))
def test_the_last_rows_are_the_end_of_the_log(pieces: list[bytes], count: int) -> None:
    with written(pieces) as folder:
        log = ProcessLog(folder)
        rows = pages(log, [1], 30_000)
        page = read_log_page(log, -count, 10_000, 10_000_000)
    assert page.content == "".join(rows[-count:])
    assert all(len(row.removesuffix("\n")) <= MAX_LINE_CHARACTERS for row in rows)


@given(st.lists(st.integers(1, 100), min_size=10, max_size=60))
def test_what_is_not_kept_has_a_line_in_its_place(sizes: list[int]) -> None:
    pieces = [b"%d\n" % n * size for n, size in enumerate(sizes)]
    with written(pieces, head=100, kept=300, segment=70) as folder:
        log = ProcessLog(folder)
        text, dropped = "".join(pages(log, [7], 30_000)), log.dropped
    whole = b"".join(pieces).decode()
    if not dropped:
        assert text == whole
        return
    head, _, tail = text.partition(f"\n… {dropped:,} bytes are not kept …\n")
    assert (head, tail) == (whole[:100], whole[100 + dropped :])


@given(PLAIN, st.lists(st.integers(1, 200), min_size=1, max_size=10), st.integers(16, 200))
def test_polls_joined_give_every_character_once(texts: list[str], cuts: list[int], room: int) -> None:
    """Whatever was printed between two polls, wherever it was cut."""
    data, told, at = "".join(texts).encode(), list[str](), 0
    with tempfile.TemporaryDirectory() as folder, opened(folder) as descriptor, opened(folder) as keeper:
        fcntl.flock(keeper, fcntl.LOCK_EX)
        writer, process, turn = LogWriter(descriptor, head=100, kept=1 << 20, segment=70), ProcessSession(folder), 0
        while at < len(data):
            writer.add(data[at : at + cuts[turn % len(cuts)]])
            at, turn = at + cuts[turn % len(cuts)], turn + 1
            told.append(poll(process, room, seconds=0).text)
        writer.close()
        fcntl.flock(keeper, fcntl.LOCK_UN)  # it has ended
        while news := poll(process, room, lambda: False).text:
            told.append(news)
    assert "".join(told) == data.decode()


@given(LOGS, st.integers(16, 3_000))
def test_polls_go_on_where_the_last_one_ended_whatever_is_printed(pieces: list[bytes], room: int) -> None:
    end = 0
    with tempfile.TemporaryDirectory() as folder, opened(folder) as descriptor, opened(folder) as keeper:
        fcntl.flock(keeper, fcntl.LOCK_EX)
        writer, process = LogWriter(descriptor, head=1_000, kept=1 << 20, segment=500), ProcessSession(folder)
        for piece in [*pieces, b""]:
            writer.add(piece)
            news = poll(process, room, seconds=0)
            assert (news.start, news.skipped) == (end, 0)
            assert news.end + news.waiting == process.log.size
            end = news.end
        writer.close()
        fcntl.flock(keeper, fcntl.LOCK_UN)
        while (news := poll(process, room, lambda: False)).end > news.start:
            assert (news.start, news.skipped) == (end, 0)
            end = news.end
        assert end == process.log.size == sum(map(len, pieces))


def test_a_poll_that_comes_too_late_says_how_much_it_missed() -> None:
    with written([b"%06d\n" % n for n in range(1_000)], head=70, kept=700, segment=140) as folder:
        process = ProcessSession(folder)
        first = poll(process, 70, lambda: False)
        later = poll(process, 10_000, lambda: False)
    assert (first.text, first.skipped) == ("".join(f"{n:06}\n" for n in range(10)), 0)
    assert later.skipped == later.start - 70 > 0
    assert later.text.endswith("000999\n")
    assert later.waiting == 0


def test_a_line_without_end_is_rows_too() -> None:
    endless, after = b"e" * 3_000_001, b"\nnext\n"
    with written([b"first\n", endless, after]) as folder:
        log = ProcessLog(folder)
        assert "".join(pages(log, [10_000], 10_000_000)) == (b"first\n" + endless + after).decode()
        assert read_log_page(log, 1, 1, 30_000).total == 1 + 1_501 + 1


def test_a_page_of_a_large_log_counts_all_of_it() -> None:
    line = b"x" * 99 + b"\n"
    with written([line * 10_000] * 20) as folder:
        page = read_log_page(ProcessLog(folder), -3, 10, 30_000)
    assert (page.first, page.total, page.returned) == (199_998, 200_000, 3)
