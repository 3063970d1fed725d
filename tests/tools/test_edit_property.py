"""Whatever the text, the encoding and the line endings: edit is str.replace, and not a byte besides changes."""

import codecs
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.settings import Settings

MARKS = {"utf-8": b"", "utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
CODECS = {"utf-8-sig": "utf-8"}
FIRST = "gruen é 漢 𝄞\n"  # makes UTF-8 certain where there is no mark


class Bench:
    """One Handrail for all examples."""

    def __init__(self, folder: Path) -> None:
        (folder / "workspace").mkdir()
        self.path = folder / "workspace" / "file.txt"
        self.rail = Handrail(folder / "workspace", mode="full", state_dir=folder / "state", settings=Settings())

    def edited(self, before: bytes, old: str, new: str, *, every: bool = False) -> bytes | None:
        """What the file is afterwards; None when the edit was refused and it is as it was."""
        self.path.write_bytes(before)
        self.rail.read("file.txt")
        result = self.rail.edit("file.txt", old, new, replace_all=every)
        after = self.path.read_bytes()
        if result.ok:
            return after
        assert result.error.code in {"NO_MATCH", "AMBIGUOUS_MATCH", "NO_CHANGE"}, result.error
        assert after == before
        return None


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        one = Bench(Path(folder))
        with one.rail:
            yield one


letters = st.sampled_from("ab \t\n\n") | st.characters(codec="utf-8", exclude_characters="\0\r\ufeff")
texts = st.text(letters, max_size=60)
encodings = st.sampled_from(list(MARKS))


def occurrences(text: str, part: str) -> int:
    return sum(text.startswith(part, at) for at in range(len(text)))


@given(texts, st.data(), texts, encodings, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["\n", "\r\n"]))
def test_a_unique_text_is_replaced_as_str_replace_does(
    bench: Bench, text: str, data: st.DataObject, new: str, encoding: str, ending: str, spoken: str
) -> None:
    text = FIRST + text
    start = data.draw(st.integers(0, len(text) - 1))
    old = text[start : data.draw(st.integers(start + 1, len(text)))]
    assume(old != new)
    codec = CODECS.get(encoding, encoding)

    def stored(plain: str) -> bytes:
        return plain.replace("\n", ending).encode(codec)

    before = MARKS[encoding] + stored(text)
    after = bench.edited(before, old.replace("\n", spoken), new.replace("\n", spoken))
    if occurrences(text, old) > 1:
        assert after is None
        return
    assert after is not None
    head, tail = MARKS[encoding] + stored(text[:start]), stored(text[start + len(old) :])
    # A file that has no newline but in the place that goes has no ending of its own any more to tell.
    assert after == head + stored(new) + tail
    assert after.startswith(head)
    assert after.endswith(tail)


@given(texts, st.text(st.sampled_from("ab\n"), min_size=1, max_size=3), texts, st.sampled_from(["\n", "\r\n"]))
@example("aaa\naaa", "aa", "", "\n")
def test_all_places_are_replaced_as_str_replace_does(bench: Bench, text: str, old: str, new: str, ending: str) -> None:
    text = FIRST + text
    after = bench.edited(text.replace("\n", ending).encode(), old, new, every=True)
    expected = text.replace(old, new).replace("\n", ending).encode()
    assert after == (expected if old in text and old != new else None)


pieces = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xff", b"\xe2\x82", "é".encode(), b" "]), max_size=30
).map(b"".join)


@given(pieces, pieces, st.text(st.sampled_from("xy\n"), max_size=5))
@example(b"a\r\nb\n", b"\r\n", "x\ny")
@example(b"\r", b"\n\r", "\nx")
def test_mixed_endings_and_damaged_bytes_stay_around_the_place(
    bench: Bench, head: bytes, tail: bytes, new: str
) -> None:
    head = FIRST.encode() + head
    after = bench.edited(head + b"<the place>" + tail, "<the place>", new)
    assert after is not None
    assert after.startswith(head)
    assert after.endswith(tail)
    middle = after[len(head) : len(after) - len(tail)]
    assert middle.replace(b"\r\n", b"\n") == new.encode()


@given(st.lists(st.sampled_from(["a", "b", "c", "\n", "\r\n"]), max_size=20).map("".join), st.data())
def test_lines_that_an_edit_keeps_keep_their_ending(bench: Bench, text: str, data: st.DataObject) -> None:
    """Old and new text share their first and last lines, whose endings are not the edit's to change."""
    raw = f"{FIRST}{text}<the place>{text}"
    shown = raw.replace("\r\n", "\n")
    start = data.draw(st.integers(0, shown.index("<the place>")))
    end = data.draw(st.integers(shown.index("<the place>") + 11, len(shown)))
    old = shown[start:end]
    after = bench.edited(raw.encode(), old, old.replace("<the place>", "<here>"))
    assert after == raw.replace("<the place>", "<here>").encode()


@given(texts, st.data())
def test_an_edit_and_its_reverse_give_the_file_back(bench: Bench, text: str, data: st.DataObject) -> None:
    before = (FIRST + text).replace("\n", data.draw(st.sampled_from(["\n", "\r\n"]))).encode()
    there = bench.edited(before, "é 漢", "\ue000\nnew\n")
    assert there is not None
    assert bench.edited(there, "\ue000\nnew\n", "é 漢") == before
