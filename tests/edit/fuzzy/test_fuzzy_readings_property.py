"""Slips of a whole text: the edit is made as it was meant, or refused; and a line that stays is not touched."""

from collections.abc import Callable
from html import escape
from typing import NamedTuple
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.edit.lines import apply_replacements
from handrail.edit.match import match_edit
from handrail.protocol.errors import ToolError

INDENTS = ("", "    ", "        ", "\t")


class Edit(NamedTuple):
    """Lines of a file, and what they become."""

    old: list[str]
    new: list[str]


def line_of(indent: str, name: str) -> str:
    return f'{indent}{name}("é{name}", [x < 1 && y, "\\t"] - z),'


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    old = [line_of(draw(st.sampled_from(INDENTS)), f"call_{number}") for number in range(draw(st.integers(2, 9)))]
    new: list[str] = []
    for number, line in enumerate(old):
        come = line_of(draw(st.sampled_from(INDENTS)), f"come_{number}")
        changed = line.replace("x < 1", "x < 2")
        new += draw(st.sampled_from(([line], [line], [line], [], [changed], [line, come], [come, line])))
    if new and draw(st.booleans()):
        new.append(new.pop(draw(st.integers(0, len(new) - 1))))
    return Edit(old, new)


@st.composite
def line_for_line(draw: st.DrawFn) -> Edit:
    old = [line_of(draw(st.sampled_from(INDENTS)), f"call_{number}") for number in range(draw(st.integers(2, 9)))]
    return Edit(old, [draw(st.sampled_from((line, line.replace("x < 1", "x < 2")))) for line in old])


def result_of(edit: Edit, old: str, new: str) -> tuple[str | None, str]:
    """What the file becomes, None if the edit is refused; and what it should become."""
    text, right = ("\n".join(("top()", *lines, "end()\n")) for lines in edit)
    assume(edit.new and edit.old != edit.new and old not in text)
    try:
        return apply_replacements(text, match_edit(text, old, new, "a.js").replacements), right
    except ToolError as error:
        if error.code not in {"NO_MATCH", "AMBIGUOUS_MATCH"}:
            raise
        return None, right


WHOLE: dict[str, Callable[[str], str]] = {
    "fenced": lambda text: f"```js\n{text}\n```",
    "entities": lambda text: escape(text, quote=False),
    "entities and quotes": escape,
    "full width": lambda text: text.translate(str.maketrans(",()", "，（）")),
    "odd spaces": lambda text: text.replace(" ", "\u00a0"),
    "decomposed": lambda text: normalize("NFD", text),
    "doubled": lambda text: text.replace("\\", "\\\\"),
}


@given(edits(), st.sampled_from(sorted(WHOLE)), st.booleans())
def test_a_slip_of_a_whole_text_is_understood_or_refused(edit: Edit, name: str, both: bool) -> None:
    old, new = map("\n".join, edit)
    got, right = result_of(edit, WHOLE[name](old), WHOLE[name](new) if both else new)
    assert got in {None, right}


KEPT: dict[str, Callable[[str], str]] = {
    "other white space": lambda line: line.replace(", ", ",  "),
    "other quotes": lambda line: line.replace('"', "'"),
    "a lost comma": lambda line: line.rstrip(","),
    "a stale word": lambda line: line.replace("call_", "old_call_"),
    "a stale word that the file has": lambda line: line.replace("- z", "- Y"),
}


@given(edits(), st.sampled_from(sorted(KEPT)), st.data())
def test_a_line_that_stays_is_never_changed_by_a_slip_in_it(edit: Edit, name: str, data: st.DataObject) -> None:
    kept = [line for line in edit.old if line in edit.new]
    assume(kept)
    wrong = data.draw(st.sampled_from(kept))
    old, new = ("\n".join(KEPT[name](line) if line == wrong else line for line in lines) for lines in edit)
    got, right = result_of(edit, old, new)
    assert got in {None, right}


@given(line_for_line())
def test_a_flat_block_that_changes_line_for_line_keeps_its_depths(edit: Edit) -> None:
    got, right = result_of(edit, *("\n".join(map(str.lstrip, lines)) for lines in edit))
    assert got == right


@given(edits())
def test_two_places_are_never_told_apart_by_a_slip(edit: Edit) -> None:
    old, new = map("\n".join, edit)
    assume(old != new)
    twice = f"top()\n{old}\nmiddle()\n{old}\nend()\n"
    for slip in (*WHOLE.values(), lambda text: text.replace('"', "'")):
        if slip(old) == old:
            continue
        with pytest.raises(ToolError):
            match_edit(twice, slip(old), slip(new), "a.js")
