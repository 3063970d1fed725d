"""Characters that look like others: the file's stay, and those of a slip are not written into it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.edit.lines import apply_replacements
from handrail.edit.match import match_edit
from handrail.protocol.errors import ToolError

NO_BREAK = "\u00a0"


def edited(text: str, old: str, new: str) -> str | None:
    """What the text becomes; None if the edit is refused."""
    try:
        return apply_replacements(text, match_edit(text, old, new, "a.py").replacements)
    except ToolError as error:
        if error.code not in {"NO_MATCH", "AMBIGUOUS_MATCH"}:
            raise
        return None


SPACES = {
    "between words": ("x = 1\ny = 2\n", "x~=~1\ny~=~2", "x~=~3\ny~=~2", "x = 3\ny = 2\n"),
    "in a line that comes in": ("x = 1\ny = 2\n", "x~= 1\ny = 2", "x~= 1\nz~= 3\ny = 2", "x = 1\nz = 3\ny = 2\n"),
    "before lines": (
        "if a:\n    b()\n", "if~a:\n~~~~b()", "if~a:\n~~~~if c:\n~~~~~~~~b()", "if a:\n    if c:\n        b()\n",
    ),
    "in a part of a line": ("say(x, y); done\n", "say(x,~y)", "say(x,~z)", "say(x, z); done\n"),
    "where the file has two spaces": ("x  = 1\n", "x~= 1", "x~= 2", "x  = 2\n"),
    "that the file has too": ("a = '1~km'\nb = 1\n", "a = '1~km' \nb = 1", "a = '2~km'\nb = 1", "a = '2~km'\nb = 1\n"),
    "that newText alone has": ("a = '1 km' \n", "a = '1 km'  \n", "a = '1~km'\n", "a = '1~km'\n"),
    "that the file has in one place of two": ("a = '1~km'\nb = 1\n", "a = '1~km'\nb~= 1", "a = '2~km'\nb~= 1", None),
}  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
def test_no_break_spaces_of_a_slip_are_not_written(name: str) -> None:
    text, old, new, expected = (part and part.replace("~", NO_BREAK) for part in SPACES[name])
    assert edited(text or "", old or "", new or "") == expected


lines = st.lists(st.sampled_from(("x = load( a )", "if a: b()", "    y = 2", "        z  = 3", "")), min_size=1)


@given(lines, st.sampled_from((NO_BREAK, "\u2009", "\u3000")), st.data())
def test_a_file_without_odd_spaces_gets_none_that_old_text_has(there: list[str], odd: str, data: st.DataObject) -> None:
    text = "\n".join(there)
    old, come = (
        "".join(data.draw(st.sampled_from((" ", odd))) if sign == " " else sign for sign in line)
        for line in (text, data.draw(st.sampled_from(there)).replace("a", "c"))
    )
    assume(odd in old)
    after = edited(text, old, f"{old}\n{come}")
    assert after is None or odd not in after


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a — b\n", "a - b", "a -- b", "a -- b\n"),
        ("a — b\n", "a - b", "a --- b", "a --- b\n"),
        ("a — b\n", "a - b", "a -> b", "a -> b\n"),
        ("a — b\n", "a - b", "a <- b", "a <- b\n"),
        ("a — b\n", "a - b", "c - b", "c — b\n"),
        ("a—b_c\n", "a- b_c", "a- b_d", "a—b_d\n"),
        ("10–20 km\n", "10-20 km", "10-25 km", "10–25 km\n"),
        ("“best” shop\n", '"best" shop', '"best!" shop', "“best!” shop\n"),
        ("it’s here\n", "it's here", "it''s here", "it''s here\n"),
    ],
)
def test_a_sign_that_the_change_touches_is_new_texts(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, old, new) == expected
