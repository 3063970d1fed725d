"""Positions of characters and of UTF-16 code units."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.lines import apply_replacements
from handrail.lsp.connection import MAX_HEADER_BYTES, ConnectionEndedError, encode_frame, read_frame
from handrail.lsp.messages import LspPosition, LspRange, LspTextEdit
from handrail.lsp.source_text import SourceText, decode_source, parse_uri, to_uri
from handrail.tools.text_edit import decode_text_file

TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\t😀é한\u2028𝒳"), max_size=40)


@given(TEXTS)
def test_a_position_goes_to_code_units_and_back(text: str) -> None:
    source = SourceText(text)
    for line in range(source.line_count):
        shown = source.get_line(line)
        for character in range(len(shown) + 1):
            position = source.to_lsp(line, character)
            assert position.character == len(shown[:character].encode("utf-16-le")) // 2
            assert source.to_character(position) == character


@given(TEXTS, st.integers(0, 50), st.integers(0, 50))
def test_any_position_of_a_server_is_a_place_in_the_text(text: str, line: int, unit: int) -> None:
    source = SourceText(text)
    assert 0 <= source.find_offset(LspPosition(line, unit)) <= len(text)


@given(TEXTS, st.data())
def test_an_edit_replaces_exactly_its_range(text: str, data: st.DataObject) -> None:
    source = SourceText(text)
    line = data.draw(st.integers(0, source.line_count - 1))
    length = len(source.get_line(line))
    start = data.draw(st.integers(0, length))
    end = data.draw(st.integers(start, length))
    place = LspRange(source.to_lsp(line, start), source.to_lsp(line, end))
    old = source.slice(place)
    assert old == source.get_line(line)[start:end]
    offset = source.find_offset(place.start)
    assert (
        apply_replacements(text, source.list_replacements([LspTextEdit(place, "new")]))
        == text[:offset] + "new" + text[offset + len(old) :]
    )


@given(st.binary(max_size=60))
def test_the_bytes_around_an_edit_stay_as_they_are(data: bytes) -> None:
    source = decode_source(data)
    if source is not None and not data.startswith(b"%PDF-"):
        file = decode_text_file(data, "a")
        assert source.text == file.readable, "servers and edits see the same text"
        assert file.rewrite(source.list_replacements([]), "", "a").data == data


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_path_survives_its_address(name: str) -> None:
    path = "/" + name.replace("/", "_").replace(".", "_")
    assert parse_uri(to_uri(path)) == path


def read_frames(*pieces: bytes) -> list[bytes]:
    """The bodies of a stream that arrives in pieces."""

    async def read() -> list[bytes]:
        reader = asyncio.StreamReader(MAX_HEADER_BYTES)
        for piece in pieces:
            reader.feed_data(piece)
        reader.feed_eof()
        found: list[bytes] = []
        while (body := await read_frame(reader)) is not None:
            found.append(body)
        return found

    return asyncio.run(read())


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers()), max_size=5), st.integers(1, 30))
def test_frames_arrive_whole_however_they_are_cut(messages: list[dict[str, int]], size: int) -> None:
    data = b"".join(map(encode_frame, messages))
    found = read_frames(*(data[start : start + size] for start in range(0, len(data), size)))
    assert found == [encode_frame(message).partition(b"\r\n\r\n")[2] for message in messages]


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_nonsense(data: bytes) -> None:
    try:
        read_frames(data)
    except ConnectionEndedError:
        return
