"""Output becomes text: as a person would see it, in linear time, however it is cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.process.output import Cleaner, clean_output

CASES = {
    "plain": (b"plain\ttext\n", "plain\ttext\n"),
    "no newline at the end": (b"a\nb", "a\nb"),
    "utf-8": ("Grüße, 世界 🎉\n".encode(), "Grüße, 世界 🎉\n"),
    "colours": (b"\x1b[1;31mred\x1b[0m \x1b[38;5;12mblue\x1b[m\n", "red blue\n"),
    "colours with colons": (b"\x1b[38:2::10:20:30mx\x1b[0m", "x"),
    "cursor moves": (b"\x1b[2J\x1b[H\x1b[?25lhi\x1b[?25h\x1b[1 q", "hi"),
    "a title": (b"\x1b]0;a title\x07text", "text"),
    "a title with the other end": (b"\x1b]0;a title\x1b\\text", "text"),
    "a link": (b"\x1b]8;;https://e.org\x1b\\name\x1b]8;;\x1b\\!", "name!"),
    "a device string": (b"\x1bPq#0;2;0~\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", "xyz"),
    "character sets and keypads": (b"\x1b(Ba\x1b)0b\x1b=c\x1b>d\x1b7e\x1b8f\x1bMg\x1b#8h", "abcdefgh"),
    "a sequence that a newline cuts": (b"\x1b[31\nnext", "\nnext"),
    "a title without end": (b"\x1b]0;title\nnext", "0;title\nnext"),
    "a title without end, then a colour": (b"\x1b]0;title\x1b[31mred", "0;titlered"),
    "a sequence that the end cuts": (b"text\x1b[31", "text"),
    "an escape at the end": (b"text\x1b", "text"),
    "two escapes": (b"\x1b\x1b[31mred", "red"),
    "an escape before what is none": ("\x1bé".encode(), "é"),
    "windows": (b"a\r\nb\r\n", "a\nb\n"),
    "windows twice": (b"a\r\r\nb", "a\nb"),
    "a progress bar": (b"10%\r50%\r100%\ndone\n", "100%\ndone\n"),
    "a progress bar on a later line": (b"one\n10%\r100%\nthree\rfour\r\n", "one\n100%\nfour\n"),
    "a progress bar that ends with a return": (b"10%\r100%\r", "100%"),
    "a progress bar, cleared each time": (b"\r\x1b[K 1/2\r\x1b[K 2/2\n", " 2/2\n"),
    "returns alone": (b"\r\r\n\r", "\n"),
    "a spinner": (b"|\b/\b-\b\\\bdone", "done"),
    "overstruck": (b"b\bbo\bol\bld\bd _\bu", "bold u"),
    "more backspaces than text": (b"ab\b\b\b\bc\n\b\bd", "c\nd"),
    "a backspace stays on its line and after its return": (b"a\n\bb\rc\r\bd", "a\nd"),
    "a backspace takes a whole character": ("世\b界".encode(), "界"),
    "a backspace looks through a colour": (b"a\x1b[0m\bb", "b"),
    "control characters": (b"a\0b\x01\x07\x0b\x0c\x7fc", "a�b�����c"),
    "control characters of two bytes": (b"a\xc2\x9b31mb\xc2\x85", "a�31mb�"),
    "bytes that are no text": (b"a\xff\xfeb\xe4\xb8", "a��b�"),
    "half of a surrogate": (b"\xed\xa0\x80", "���"),
}


@pytest.mark.parametrize(("data", "text"), CASES.values(), ids=CASES)
def test_text_is_as_a_person_would_see_it(data: bytes, text: str) -> None:
    assert clean_output(data) == text
    assert fed(data, [1] * len(data)) == text


def test_a_title_of_four_thousand_characters_is_one_and_a_longer_one_is_text() -> None:
    assert clean_output(b"\x1b]0;" + b"t" * 4094 + b"\x07.") == "."
    assert clean_output(b"\x1b]0;" + b"t" * 4095 + b"\x07.") == "0;" + "t" * 4095 + "�."


def fed(data: bytes, sizes: list[int]) -> str:
    cleaner, text = Cleaner(), ""
    for size in sizes:
        text += cleaner.feed(data[:size])
        data = data[size:]
    return text + cleaner.feed(data) + cleaner.end()


CONTROLS = (b"\x1b", b"\x1b]", b"\x1b[", b"\x1bP", b"\x1b\\", b"\x1b(", b"\x07", b"\x18", b"\r", b"\n", b"\b")
PARTS = (b"text ", b"31m", b"\xe4", b"\xb8\x96", b"\xc2", b"\x9b")
PIECES = st.sampled_from([*(data for data, _ in CASES.values()), *CONTROLS, *PARTS])
OUTPUT = st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join)


@given(OUTPUT, st.lists(st.integers(0, 9), max_size=30))
def test_how_it_is_cut_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    assert fed(data, sizes) == clean_output(data)


@given(OUTPUT)
def test_what_is_clean_stays_and_has_no_control_characters(data: bytes) -> None:
    text = clean_output(data)
    assert clean_output(text.encode()) == text
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) is None


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_text_is_not_touched(text: str) -> None:
    assert clean_output(text.encode()) == text


HOSTILE = {
    "escapes": b"\x1b",
    "titles": b"\x1b]",
    "titles cut by escapes": b"\x1b]a\x1b",
    "sequences": b"\x1b[",
    "returns": b"\r",
    "returns and text": b"\ra",
    "returns before a newline": b"\r\r\n",
    "backspaces": b"\b",
    "text and backspaces": b"a\b",
    "backspaces deep into text": b"aaaaaaaab\b\b",
    "zeros": b"\0",
    "one line": b"a",
    "newlines": b"\n",
    "half characters": b"\xe4",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("end", [b"", b"x", b"\r\n", b"\bx"])
def test_no_output_takes_more_than_linear_time(piece: bytes, end: bytes) -> None:
    # Quadratic would be minutes: then this does not come back.
    data = piece * ((1 << 18) // len(piece)) + end
    whole = clean_output(data)
    assert len(whole) <= len(data)
    assert fed(data, [4096] * (len(data) // 4096)) == whole


def test_a_line_without_end_is_passed_on_in_parts() -> None:
    cleaner = Cleaner()
    parts = [cleaner.feed(b"a" * 100_000) for _ in range(50)]
    assert sum(map(len, parts)) >= 4_000_000
    assert "".join(parts) + cleaner.end() == "a" * 5_000_000


def test_a_progress_bar_without_end_is_held_in_bounded_memory() -> None:
    cleaner = Cleaner()
    for percent in range(100_000):
        assert cleaner.feed(b"\rprogress: %d of many, and more to come" % percent) == ""
    assert sum(map(len, cleaner._line)) < 2_000_000
    assert cleaner.end() == "progress: 99999 of many, and more to come"


DRAWN = {
    "git": (
        b"remote: Counting objects:  50% (1/2)\x1b[K\rremote: Counting objects: 100% (2/2), done.\x1b[K\n"
        b"Receiving objects:  99% (299/302)\rReceiving objects: 100% (302/302), done.\n",
        "remote: Counting objects: 100% (2/2), done.\nReceiving objects: 100% (302/302), done.\n",
    ),
    "pip": (
        b"\x1b[?25l   \x1b[90m--\x1b[0m 0.1/2.0 MB\r\x1b[2K   \x1b[32m----\x1b[0m 2.0/2.0 MB\n\x1b[?25h",
        "   ---- 2.0/2.0 MB\n",
    ),
    "npm": ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 3 packages\n".encode(), "added 3 packages\n"),
    "yarn": (b"\x1b[2K\x1b[Gstep 1\x1b[2K\x1b[Gstep 2\n", "step 2\n"),
    "cargo": (
        b"    Building [=>   ] 1/9: a\r\x1b[K   Compiling b v0\n    Building [==> ] 2/9\r\x1b[K    Finished\n",
        "   Compiling b v0\n    Finished\n",
    ),
    "tqdm": ("\r  0%|    | 0/3\r 33%|█▎  | 1/3\r100%|████| 3/3\n".encode(), "100%|████| 3/3\n"),
    "count": (b"10%\b\b\b20%\b\b\b30%\n", "30%\n"),
    "link": (b"\x1b]0;title\x07see \x1b]8;;http://a\x1b\\this\x1b]8;;\x1b\\\n", "see this\n"),
    "wide": ("日本\r日́é\n".encode(), "日́é\n"),
    "binary": (b"a\0b\xff\n", "a�b�\n"),
}


@pytest.mark.parametrize(("drawn", "seen"), DRAWN.values(), ids=DRAWN)
def test_what_was_drawn_is_told_as_it_looked_in_the_end(drawn: bytes, seen: str) -> None:
    assert clean_output(drawn) == seen


@pytest.mark.parametrize(("drawn", "seen"), DRAWN.values(), ids=DRAWN)
def test_it_does_not_matter_where_it_is_cut(drawn: bytes, seen: str) -> None:
    for place in range(len(drawn)):
        cleaner = Cleaner()
        assert cleaner.feed(drawn[:place]) + cleaner.feed(drawn[place:]) + cleaner.end() == seen
    cleaner = Cleaner()
    assert "".join(cleaner.feed(bytes([byte])) for byte in drawn) + cleaner.end() == seen
