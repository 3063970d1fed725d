"""Every byte of a file can be told from its text, and a part exchanged without touching the others."""

import codecs

from hypothesis import example, given
from hypothesis import strategies as st

from handrail.edit.lines import (
    Replacement,
    apply_replacements,
    normalize_newlines,
)
from handrail.workspace.lossless_text import LosslessText, replace_surrogates
from handrail.workspace.text import detect_line_ending

marks = st.sampled_from([b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
pieces = st.sampled_from(
    [b"a", b"\n", b"\r\n", b"\xff", b"\xe2\x82", b"\xed\xa0\x80", "é漢𝄞".encode(), b"\x00\xd8", b"\x01"]
)
contents = st.tuples(marks, st.lists(pieces | st.binary(max_size=4), max_size=12).map(b"".join)).map(b"".join)


@given(contents, st.data())
@example(codecs.BOM_UTF16_LE + b"\x00\xd8\x00\xdc\x41", None)
def test_a_part_is_exchanged_and_all_other_bytes_stay(data: bytes, draw: st.DataObject | None) -> None:
    file = LosslessText.decode(data)
    if file is None:
        return
    assert file.splice([]) == data
    assert file.splice([Replacement(0, 0, "")]) == data
    end = len(file.text)
    assert file.splice([Replacement(at, at, "") for at in range(end + 1)]) == data
    if draw is None or not end:
        return
    start = draw.draw(st.integers(0, end))
    stop = draw.draw(st.integers(start, end))
    after = file.splice([Replacement(start, stop, "XY")])
    codec = file.encoding.removesuffix("-sig")
    head = file.splice([Replacement(start, end, "")])
    assert after.startswith(head[: len(head) - (len(data) % 2 if codec.startswith("utf-16") else 0)])
    assert "XY".encode(codec) in after


@given(contents)
def test_what_is_shown_is_as_long_and_can_be_sent(data: bytes) -> None:
    file = LosslessText.decode(data)
    if file is not None:
        assert len(replace_surrogates(file.text)) == len(file.text)
        replace_surrogates(file.text).encode()
        assert file.damaged == (replace_surrogates(file.text) != file.text)


texts = st.text(st.sampled_from("ab\r\n"), max_size=12)


@given(texts, texts, st.data())
def test_the_line_ending_afterwards_is_known_without_the_whole_text(text: str, new: str, draw: st.DataObject) -> None:
    shown, new = normalize_newlines(text), normalize_newlines(new)
    start = draw.draw(st.integers(0, len(shown)))
    replacements = [Replacement(start, draw.draw(st.integers(start, len(shown))), new)]
    file = LosslessText(b"", text, "utf-8", detect_line_ending(text))
    own = list(file.restore_newlines(shown, replacements, new))
    assert file.predict_line_ending(own) == detect_line_ending(apply_replacements(text, own))
