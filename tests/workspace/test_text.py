"""Bytes become text and the same bytes again: encodings, byte order marks, line endings."""

import codecs
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.workspace.text import SAMPLE_BYTES, decode_text, detect_encoding, detect_start_encoding, encode_text

BOMS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"plain\n", "utf-8", "plain\n"),
        ("grün – 漢字 🦀\n".encode(), "utf-8", "grün – 漢字 🦀\n"),
        (codecs.BOM_UTF8 + "grün\n".encode(), "utf-8-sig", "grün\n"),
        (codecs.BOM_UTF8, "utf-8-sig", ""),
        (codecs.BOM_UTF16_LE + "grün 🦀\n".encode("utf-16-le"), "utf-16-le", "grün 🦀\n"),
        (codecs.BOM_UTF16_BE + "grün 🦀\n".encode("utf-16-be"), "utf-16-be", "grün 🦀\n"),
        ("grün\n".encode("latin-1"), "latin-1", "grün\n"),
        ("ein café".encode("latin-1"), "latin-1", "ein café"),
        ("ÿ".encode("latin-1"), "latin-1", "ÿ"),
        ("smörgåsbord, ".encode("latin-1") * 1000, "latin-1", "smörgåsbord, " * 1000),
        (b"\x1b[31mred\x1b[0m\n", "utf-8", "\x1b[31mred\x1b[0m\n"),
    ],
)
def test_the_encoding_is_found_and_the_bytes_come_back(data: bytes, encoding: str, text: str) -> None:
    found = decode_text(data)
    assert found is not None
    assert (found.encoding, found.text, found.damaged) == (encoding, text, 0)
    assert encode_text(found.text, found.encoding, found.line_ending) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01\0\0",
        "no mark".encode("utf-16-le"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x1f\x8b\x08\x08" + bytes(range(1, 256)) * 3,
        bytes([0x80, 0x03, 0x95, 0x12, 0xF7]) * 20,
    ],
)
def test_bytes_that_are_no_text_are_none(data: bytes) -> None:
    assert decode_text(data) is None
    assert detect_encoding(data[:SAMPLE_BYTES]) is None


@pytest.mark.parametrize(
    ("data", "damaged"),
    [
        ("grün ".encode() + b"\xff" + " grün\n".encode(), 1),
        ("grün ".encode() + b"\xc3", 1),
        ("\ufffd grün ".encode() + b"\xfe\xff", 2),
    ],
)
def test_a_few_wrong_bytes_do_not_make_utf8_another_encoding(data: bytes, damaged: int) -> None:
    found = decode_text(data)
    assert found is not None
    assert (found.encoding, found.damaged) == ("utf-8", damaged)
    assert "\ufffd" in found.text


def test_half_a_character_at_the_end_of_utf16_is_shown_as_damage() -> None:
    found = decode_text(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"c")
    assert found is not None
    assert (found.encoding, found.text, found.damaged) == ("utf-16-le", "ab\ufffd", 1)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_sample_that_ends_inside_a_character_is_utf8_all_the_same(cut: int) -> None:
    sample = ("x" * (SAMPLE_BYTES - cut) + "🦀").encode()[:SAMPLE_BYTES]
    assert detect_start_encoding(sample) == "utf-8"


@pytest.mark.parametrize(
    ("text", "ending", "lines"),
    [
        ("a\nb\n", "lf", "a\nb\n"),
        ("a\r\nb\r\n", "crlf", "a\nb\n"),
        ("a\r\nb\n", "mixed", "a\nb\n"),
        ("a\rb\r", "none", "a\rb\r"),
        ("a", "none", "a"),
        ("", "none", ""),
        ("a\r\nb\rc\r\n", "crlf", "a\nb\rc\n"),
        ("\r\n", "crlf", "\n"),
    ],
)
def test_line_endings_are_named_and_lines_end_in_a_newline(text: str, ending: str, lines: str) -> None:
    found = decode_text(text.encode())
    assert found is not None
    assert (found.line_ending, found.text) == (ending, lines)


@pytest.mark.parametrize("content", ["a\nb\n", "a\r\nb\r\n", "a\r\nb\n"])
def test_a_file_that_has_crlf_keeps_it_however_the_new_text_ends_its_lines(content: str) -> None:
    assert encode_text(content, "utf-8", "crlf") == b"a\r\nb\r\n"


def test_a_character_the_encoding_lacks_is_an_error_and_not_a_question_mark() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_text("漢", "latin-1", "lf")


encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
endings = st.sampled_from(["lf", "crlf"])
# A text of its own may begin with a mark, or be binary: those are not the property's business.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\ufeff"), max_size=200)


@given(texts, encodings, endings)
@example("grün\n", "utf-16-be", "crlf")
def test_any_text_in_any_encoding_comes_back(text: str, encoding: str, ending: str) -> None:
    data = encode_text(text, encoding, ending)
    assert data.startswith(BOMS.get(encoding, b""))
    found = decode_text(data)
    assert found is not None
    assert (found.text, found.encoding, found.damaged) == (text, encoding, 0)
    assert encode_text(found.text, found.encoding, found.line_ending) == data


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"]), min_size=1))
def test_any_latin_1_text_that_is_not_utf8_comes_back(text: str) -> None:
    data = text.encode("latin-1")
    found = decode_text(data)
    assert found is not None
    if found.encoding == "latin-1":
        assert found.text == text
        assert encode_text(found.text, "latin-1", found.line_ending) == data


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    for start, cut in product((b"", *BOMS.values()), (len(data), SAMPLE_BYTES)):
        decode_text(start + data[:cut])
        detect_start_encoding(start + data[:cut])
