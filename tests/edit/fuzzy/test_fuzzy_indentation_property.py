"""newText may stand at the depth of the file or at that of oldText, and its lines come out at the file's depth once."""

from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.edit.lines import apply_replacements
from handrail.edit.match import match_edit
from handrail.protocol.errors import ToolError


class Frame(NamedTuple):
    """How lines are indented: from where on, and how much for each level."""

    start: str
    step: str

    def lines(self, lines: list["Line"]) -> list[str]:
        return [f"{self.start}{self.step * depth}{words}" for depth, words in lines]


class Line(NamedTuple):
    depth: int
    words: str


class Edit(NamedTuple):
    """Lines of a file, of which the first and the last stay, and what they become."""

    before: list[Line]
    after: list[Line]


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    depths = draw(st.lists(st.integers(0, 3), min_size=3, max_size=7))
    before = [Line(depth, f"call_{number}(x)") for number, depth in enumerate(depths)]
    after: list[Line] = []
    for number, line in enumerate(before[1:-1]):
        come = Line(draw(st.sampled_from(depths)), f"new_{number}(y)")
        after += draw(st.sampled_from(([line], [line], [], [come], [line, come], [come, line])))
    assume(after != before[1:-1])
    return Edit(before, [before[0], *after, before[-1]])


FRAMES = [Frame(start, step) for start in ("", "  ", "    ", "\t") for step in ("  ", "    ", "\t")]
frames = st.sampled_from(FRAMES)


def result_of(edit: Edit, file: Frame, old: Frame, new: Frame) -> tuple[str | None, str]:
    """What the file becomes, None if the edit is refused; and what it should become."""
    top, end = "def top():\n", "\nreturn None\n"
    before, after = ("\n".join(file.lines(lines)) for lines in edit)
    text = f"{top}{before}{end}"
    assume("\n".join(old.lines(edit.before)) not in text)
    try:
        placed = match_edit(text, "\n".join(old.lines(edit.before)), "\n".join(new.lines(edit.after)), "a.py")
    except ToolError as error:
        if error.code != "NO_MATCH":
            raise
        return None, f"{top}{after}{end}"
    return apply_replacements(text, placed.replacements), f"{top}{after}{end}"


@given(edits(), frames, frames)
def test_new_text_at_the_depth_of_the_file_comes_in_as_it_is(edit: Edit, file: Frame, old: Frame) -> None:
    assume(file.lines(edit.before[:1]) != old.lines(edit.before[:1]))
    got, right = result_of(edit, file, old, new=file)
    assert got == right


@given(edits(), st.permutations(range(3)), st.sampled_from(("  ", "    ", "\t")))
def test_texts_that_are_at_another_depth_alike_are_moved_or_refused(edit: Edit, starts: list[int], step: str) -> None:
    file, old = (Frame(step * start, step) for start in starts[:2])
    got, right = result_of(edit, file, old, new=old)
    assert got in {None, right}


@given(edits(), st.permutations(("", "  ", "    ", "      ")), st.sampled_from(("  ", "    ")))
def test_new_text_at_a_third_depth_is_refused(edit: Edit, starts: list[str], step: str) -> None:
    file, old, new = (Frame(start, step) for start in starts[:3])
    assert result_of(edit, file, old, new)[0] is None


@given(edits(), st.permutations(range(3)), st.sampled_from(("  ", "    ", "\t")), st.booleans())
def test_lines_that_an_edit_puts_into_a_block_are_indented_once(
    edit: Edit, starts: list[int], step: str, as_file: bool
) -> None:
    file, old = (Frame(step * start, step) for start in starts[:2])
    first, *inner, last = edit.before
    least = min(line.depth for line in inner)
    block = [Line(least, "if wanted:"), *(Line(depth + 1, words) for depth, words in inner)]
    wrapped = Edit(edit.before, [first, *block, last])
    got, right = result_of(wrapped, file, old, new=file if as_file else old)
    assert got in {None, right}


@given(frames, frames, st.integers(1, 4))
def test_a_block_around_lines_is_made_at_the_depth_of_the_file(file: Frame, old: Frame, count: int) -> None:
    assume(file.start != old.start)
    inner = [Line(0, f"call_{number}(x)") for number in range(count)]
    first, last = Line(0, "first()"), Line(0, "last()")
    block = [Line(0, "if wanted:"), *(Line(1, words) for _, words in inner)]
    got, right = result_of(Edit([first, *inner, last], [first, *block, last]), file, old, new=file)
    assert got == right
