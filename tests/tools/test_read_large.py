"""read: files over 8 MiB are paged at both ends and in the middle, without being held in memory."""

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail

MIB = 1 << 20
LINE = 64
PER_MIB = MIB // LINE


def line(number: int) -> str:
    return f"{number:>12} {'abcdefghij' * 5}\n"


def write_lines(path: Path, mib: int) -> int:
    """A file of so many MiB of real lines, each saying its number; the count of lines."""
    with path.open("wb") as file:
        for block in range(mib):
            file.write("".join(map(line, range(block * PER_MIB + 1, (block + 1) * PER_MIB + 1))).encode())
    return mib * PER_MIB


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """A workspace with one large file: 1 GiB in a deep run, 32 MiB every day."""
    folder = tmp_path_factory.mktemp("large")
    mib = 1024 if os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"} else 32
    yield folder, write_lines(folder / "large.txt", mib)
    (folder / "large.txt").unlink()


@pytest.fixture
def opened(rail: Callable[..., Handrail], large: tuple[Path, int]) -> tuple[Handrail, int]:
    return rail(workspace=large[0]), large[1]


def page(first: int, count: int) -> str:
    return "".join(map(line, range(first, first + count)))


def test_a_page_at_the_start_knows_its_numbers_and_not_the_total(opened: tuple[Handrail, int]) -> None:
    one, _ = opened
    result = one.read("large.txt", limit=200)
    assert result.content == page(1, 200)
    assert result.data.first_line == 1
    assert (result.meta.returned, result.meta.next_offset) == (200, 201)
    assert (result.meta.total, result.meta.total_is_lower_bound) == (None, True)
    assert (result.data.encoding, result.data.line_ending) == ("utf-8", "lf")


def test_a_page_at_the_end_is_counted_from_the_end(opened: tuple[Handrail, int]) -> None:
    one, total = opened
    result = one.read("large.txt", offset=-200)
    assert result.content == page(total - 199, 200)
    assert result.data.first_line is None
    assert (result.meta.returned, result.meta.next_offset) == (200, None)
    part = one.read("large.txt", offset=-200, limit=50)
    assert part.content == page(total - 199, 50)
    assert part.meta.next_offset == -150
    assert one.read("large.txt", offset=-150, limit=150).content == page(total - 149, 150)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.93])
def test_a_deep_page_is_found_and_found_again(opened: tuple[Handrail, int], share: float) -> None:
    one, total = opened
    at = int(total * share)
    for offset in (at, at, at + 7, at // 3, 2):
        assert one.read("large.txt", offset=offset, limit=20).content == page(offset, 20)


def test_once_the_end_was_counted_the_total_is_known(opened: tuple[Handrail, int]) -> None:
    one, total = opened
    last = one.read("large.txt", offset=total)
    assert last.content == page(total, 1)
    assert (last.meta.total, last.meta.total_is_lower_bound, last.meta.next_offset) == (total, False, None)
    assert one.read("large.txt", limit=1).meta.total == total
    error = one.read("large.txt", offset=total + 1).error
    assert error.code == "INVALID_ARGUMENT"
    assert str(total) in error.message


def test_the_hash_is_of_the_page_and_of_which_file_it_is(opened: tuple[Handrail, int], large: tuple[Path, int]) -> None:
    one, _ = opened
    status = (large[0] / "large.txt").stat()
    result = one.read("large.txt", offset=3, limit=2)
    of_page = hashlib.sha256(page(3, 2).encode()).hexdigest()
    identity = f"{of_page}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
    assert result.data.hash == hashlib.sha256(identity.encode()).hexdigest()
    assert result.data.size == status.st_size


WATCH = """
import sys
from handrail import Handrail
from handrail.settings import Settings
def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
workspace, state, path, *offsets = sys.argv[1:]
with Handrail(workspace, mode="auto", state_dir=state, settings=Settings()) as rail:
    rail.read("small.txt")
    before = peak()
    for offset in map(int, offsets):
        result = rail.read(path, offset=offset, limit=2000)
        assert result.ok, result.error
    print(peak() - before)
"""


def grown(workspace: Path, state: Path, path: str, *offsets: int) -> int:
    """By how many MB the memory of a process grows that reads these pages."""
    (workspace / "small.txt").write_text("x\n")
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    command = [sys.executable, "-c", WATCH, str(workspace), str(state), path, *map(str, offsets)]
    done = subprocess.run(command, env={"PYTHONPATH": source}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_memory_is_bounded_whatever_the_file(large: tuple[Path, int], tmp_path: Path) -> None:
    folder, total = large
    assert grown(folder, tmp_path / "state", "large.txt", 1, -2000, total // 2, total, -total, 1) <= 64


def test_memory_is_bounded_when_the_file_is_one_line(workspace: Path, tmp_path: Path, deep: bool) -> None:
    mib = 512 if deep else 128
    with (workspace / "wide.txt").open("wb") as file:
        for _ in range(mib):
            file.write(b"x" * MIB)
    assert grown(workspace, tmp_path / "state", "wide.txt", 1, -1) <= 64


def test_one_line_of_a_large_file_is_cut_and_its_length_said(one: Handrail, workspace: Path) -> None:
    (workspace / "wide.txt").write_bytes(b"x" * 9 * MIB + b"\nend\n")
    result = one.read("wide.txt")
    assert result.content == f"{'x' * 2_000}… [{9 * MIB - 2_000} more characters]\nend\n"
    assert result.meta.total == 2
    assert result.warnings == ("1 lines over 2,000 characters were cut.",)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("character", ["x", "é", "漢", "🦀"])
@pytest.mark.parametrize(("length", "more"), [(1_999, 0), (2_000, 0), (2_001, 1)])
def test_lines_are_cut_alike_in_large_and_small_files(
    one: Handrail, workspace: Path, character: str, length: int, more: int, end: bytes
) -> None:
    start = (character * length).encode() + end
    (workspace / "small.txt").write_bytes(start)
    (workspace / "large.txt").write_bytes(start + b"y" * 99 + end + (b"z" * 99 + end) * 90_000)
    small, large = one.read("small.txt"), one.read("large.txt", limit=1)
    assert large.content == small.content
    assert large.warnings == small.warnings
    assert large.data.line_ending == small.data.line_ending


@pytest.mark.parametrize("character", ["é", "漢", "🦀"])
def test_a_cut_inside_a_character_is_no_damage(one: Handrail, workspace: Path, character: str) -> None:
    for shift in range(4):
        (workspace / "wide.txt").write_bytes(b"x" * shift + character.encode() * (9 * MIB // 2) + b"\n")
        result = one.read("wide.txt")
        assert result.content.startswith(("x" * shift + character * 2_000)[:2_000] + "… [")
        assert result.warnings == ("1 lines over 2,000 characters were cut.",)


def test_marks_and_endings_of_a_large_file_are_told(one: Handrail, workspace: Path, joined: Callable[..., str]) -> None:
    body = "".join(f"{number} \ufeffgrün\r\n" for number in range(600_000))
    (workspace / "a.txt").write_bytes(b"\xef\xbb\xbf" + body.encode())
    result = one.read("a.txt", limit=3)
    assert result.content == "0 \ufeffgrün\n1 \ufeffgrün\n2 \ufeffgrün\n"
    assert (result.data.encoding, result.data.line_ending) == ("utf-8-sig", "crlf")
    assert one.read("a.txt", offset=-2).content == "599998 \ufeffgrün\n599999 \ufeffgrün\n"


def test_a_mark_inside_a_large_file_stays(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"\xef\xbb\xbffirst\n\xef\xbb\xbfsecond\n" + b"x\n" * 5 * MIB)
    assert one.read("a.txt", limit=2).content == "first\n\ufeffsecond\n"


def test_latin_1_and_damage_in_large_files(one: Handrail, workspace: Path) -> None:
    (workspace / "latin").write_bytes("café au lait\n".encode("latin-1") * MIB)
    assert one.read("latin", offset=-1).content == "café au lait\n"
    (workspace / "damaged").write_bytes("grün\n".encode() * 2 * MIB + b"bl\xffau\n")
    result = one.read("damaged", offset=-1)
    assert result.content == "bl\ufffdau\n"
    assert result.warnings == ("1 bytes are not valid in the file's encoding and are shown as \ufffd.",)


def test_a_large_file_of_utf16_or_of_no_text_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "wide").write_bytes(b"\xff\xfe" + "grün\n".encode("utf-16-le") * MIB)
    assert one.read("wide").error.code == "LIMIT_EXCEEDED"
    (workspace / "binary").write_bytes(os.urandom(64) + bytes(9 * MIB))
    assert one.read("binary").error.code == "BINARY_FILE"


@pytest.mark.parametrize("end", ["\n", "", "\n\n\n", "\r\n"])
def test_pages_of_a_large_file_joined_are_the_text(
    one: Handrail, workspace: Path, joined: Callable[..., str], end: str
) -> None:
    text = "".join(f"{number} {'grün ' * (number * 7919 % 180)}\n" for number in range(22_000)) + "last" + end
    (workspace / "a.txt").write_text(text, newline="")
    assert len(text.encode()) > 8 * MIB
    assert joined(one, "a.txt", itertools.repeat(10_000)) == text.replace("\r\n", "\n")
    tail = joined(one, "a.txt", itertools.repeat(10_000), offset=-3_000)
    assert text.replace("\r\n", "\n").endswith(tail)
    assert tail.count("\n") == 3_000 - (end == "")


def test_a_file_that_is_cut_while_it_is_read_gives_lines_that_were_there(
    one: Handrail, workspace: Path, meanwhile: Callable[..., object], count: Callable[[int], int]
) -> None:
    path = workspace / "a.txt"
    total = write_lines(path, 12)
    known = {line(number) for number in range(1, total + 1)} | {""}
    shrink = """
os.truncate(sys.argv[1], (turn % 12) << 20)
os.truncate(sys.argv[1], 12 << 20)
"""
    with meanwhile(shrink, path):
        for turn in range(count(400)):
            result = one.read("a.txt", offset=(1, -100, total // 2, total - 5)[turn % 4], limit=100)
            codes = {"INVALID_ARGUMENT", "BINARY_FILE"}
            assert result.ok or result.error.code in codes, result.error
            shown = (
                {part.replace("\0", "") for part in result.content.splitlines(keepends=True)} if result.ok else set()
            )
            assert all(part in known or "\n" not in part or "characters" in part for part in shown)


def test_a_file_that_grows_while_it_is_read_gives_a_page_of_what_was_there(
    one: Handrail, workspace: Path, meanwhile: Callable[..., object], count: Callable[[int], int]
) -> None:
    path = workspace / "a.txt"
    write_lines(path, 9)
    grow = """
with open(sys.argv[1], "ab") as file:
    file.write(b"more\\n" * 50)
if turn % 200 == 0:
    os.truncate(sys.argv[1], 9 << 20)
"""
    with meanwhile(grow, path):
        for turn in range(count(400)):
            result = one.read("a.txt", offset=(-20, 1, -2_000)[turn % 3], limit=2_000 if turn % 2 else 10)
            assert result.ok, result.error
            following = result.meta.next_offset
            assert following is None or following > 1 or following < 0
            assert result.meta.returned <= (20, 2_000, 2_000)[turn % 3]
