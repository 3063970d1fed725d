"""What holds for every edit that a fuzzy strategy makes, whatever the texts are."""

from difflib import SequenceMatcher
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from handrail.edit.fuzzy.candidates import IndexedText, Tolerance
from handrail.edit.fuzzy.normalize import list_readings, squash_spaces
from handrail.edit.fuzzy.strategies import FORGIVEN
from handrail.edit.lines import Replacement, apply_replacements
from handrail.edit.match import EditMatch, match_edit
from handrail.protocol.errors import ToolError

WORDS = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "x",
    "“y”",
    "'z'",
    "10",
    "if a:",
    "call( b )",
    "return",
    "...",
    "# ... rest",
)
INDENTS = ("", "  ", "    ", "        ", "\t", "\t\t")
lines = st.builds(
    lambda indent, words, end: f"{indent}{' '.join(words)}{end}",
    st.sampled_from(INDENTS),
    st.lists(st.sampled_from(WORDS), min_size=0, max_size=3),
    st.sampled_from(("", "", "", " ", "\t")),
)
texts = st.lists(lines, min_size=1, max_size=14)
SLIPS = (
    lambda line: f"{line} ",
    lambda line: line.lstrip(),
    lambda line: f"    {line}",
    lambda line: line.replace("    ", "\t"),
    lambda line: line.replace("\t", "    "),
    lambda line: line.replace(" ", "  "),
    lambda line: line.replace("“", '"').replace("”", '"'),
    lambda line: line.replace("'", "’"),
    lambda line: line.replace("alpha", "alphas"),
    lambda line: line,
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text, a part of it that is not quite copied, and what is to be in its place."""
    there = draw(texts)
    first = draw(st.integers(0, len(there) - 1))
    last = draw(st.integers(first + 1, len(there)))
    slip = draw(st.sampled_from(SLIPS))
    old = [slip(line) if draw(st.booleans()) else line for line in there[first:last]]
    if draw(st.booleans()) and len(old) > 2:
        old.pop(draw(st.integers(1, len(old) - 2)))
    new = list(old)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(new)))
        if draw(st.booleans()) or at == len(new):
            new.insert(at, draw(lines))
        else:
            new[at : at + 1] = draw(st.sampled_from(([], [draw(lines)])))
    end = draw(st.sampled_from(("", "\n")))
    return "\n".join(there) + draw(st.sampled_from(("", "\n"))), "\n".join(old) + end, "\n".join(new) + end


def made(text: str, old: str, new: str, *, every: bool = False) -> EditMatch | None:
    try:
        return match_edit(text, old, new, "a.txt", every=every)
    except ToolError as error:
        if error.code not in {"NO_MATCH", "AMBIGUOUS_MATCH"}:
            raise
        return None


@given(edits(), st.booleans())
def test_nothing_outside_the_places_changes(edit: tuple[str, str, str], every: bool) -> None:
    text, old, new = edit
    assume(old)
    placed = made(text, old, new, every=every)
    if placed is None:
        return
    assert all(one.end <= other.start for one, other in pairwise(placed.spans))
    assert all(one.end <= other.start for one, other in pairwise(placed.replacements))
    for start, end, _ in placed.replacements:
        assert any(span.start <= start and end <= span.end for span in placed.spans)
    assert every or len(placed.spans) == 1


@given(edits())
def test_what_was_replaced_can_be_put_back(edit: tuple[str, str, str]) -> None:
    text, old, new = edit
    assume(old)
    placed = made(text, old, new)
    if placed is None:
        return
    after = apply_replacements(text, placed.replacements)
    back: list[Replacement] = []
    grown = 0
    for start, end, come in placed.replacements:
        back.append(Replacement(start + grown, start + grown + len(come), text[start:end]))
        grown += len(come) - (end - start)
    assert apply_replacements(after, back) == text


@given(edits())
@example(("    a\n    b\n", "a \nb\n", "a\nc\n"))
def test_a_text_that_could_mean_two_places_is_never_applied(edit: tuple[str, str, str]) -> None:
    text, old, new = edit
    assume(old.strip())
    if not text.endswith("\n"):
        text += "\n"
    twice = f"{text}\n# between\n\n{text}"
    placed = made(twice, old, new)
    if placed is not None:  # only across the line between, which is there once
        [span] = placed.spans
        assert "# between" in twice[span.start : span.end]


@given(edits())
def test_a_strategy_is_used_only_where_those_before_it_find_nothing(edit: tuple[str, str, str]) -> None:
    text, old, new = edit
    assume(old)
    placed = made(text, old, new)
    if placed is None:
        return
    assert (placed.strategy == "exact") == (old in text)
    if placed.strategy == "exact":
        assert text.count(old) == 1
        return
    order = list(FORGIVEN)
    page = IndexedText(text)
    literal, *others = list_readings(old, new)
    rungs = sorted(fit.tolerance for fit in page.find_lines(literal))
    if order.index(placed.strategy) > order.index("typography"):
        assert not rungs
    elif rungs:
        assert rungs.count(rungs[0]) == 1
    if placed.strategy in {"context-aware", "block-anchor"}:
        assert not any(fit.tolerance < Tolerance.TOKENS for reading in others for fit in page.find_lines(reading))


SPACE_ONLY = ("line-trimmed", "indentation-flexible", "trimmed-boundary", "whitespace-normalised", "typography")


@given(edits())
def test_where_only_space_and_looks_differ_the_place_then_says_what_new_text_says(edit: tuple[str, str, str]) -> None:
    text, old, new = edit
    assume(old)
    placed = made(text, old, new)
    if placed is None or placed.strategy not in SPACE_ONLY:
        return
    [span] = placed.spans
    after = apply_replacements(text, placed.replacements, span.start, span.end)
    assert squash_spaces(after).replace("\n", "") == squash_spaces(new).replace("\n", "")


@given(edits())
def test_lines_that_the_edit_keeps_stay_as_the_file_has_them(edit: tuple[str, str, str]) -> None:
    text, old, new = edit
    assume(old)
    placed = made(text, old, new)
    if placed is None or placed.strategy not in SPACE_ONLY:
        return
    [span] = placed.spans
    after = apply_replacements(text, placed.replacements, span.start, span.end).split("\n")
    own, wanted, come = ([line for line in part.split("\n") if line.strip()] for part in (text[slice(*span)], old, new))
    matcher = SequenceMatcher(None, wanted, come, autojunk=False)
    for i, k, size in matcher.get_matching_blocks():
        for line, other in zip(own[i : i + size], come[k : k + size], strict=True):
            # Of equal lines another may be the one that is kept: then this one is written anew.
            assert line in after or come.count(other) > 1 or wanted.count(other) > 1


@given(st.text(max_size=60), st.text(min_size=1, max_size=30), st.text(max_size=30), st.booleans())
def test_any_texts_at_all_are_replaced_or_refused(text: str, old: str, new: str, every: bool) -> None:
    placed = made(text, old, new, every=every)
    if placed is not None:
        apply_replacements(text, placed.replacements)
