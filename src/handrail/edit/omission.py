"""The omission guard: refuses a placeholder that an edit puts in the place of real lines, which would be lost."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from handrail.edit.fuzzy.normalize import extract_indent
from handrail.edit.omission_grammar import OmissionMark, may_be_mark, parse_mark
from handrail.edit.sequences import LineChange, diff_lines
from handrail.protocol.errors import ToolError

_MAX_GAP_LINES = 3
"""Lines without words between two hunks that are judged as one."""
_MAX_PARSED_LINES = 5_000
"""Lines of each text that are parsed."""
_MAX_DOCTEST_LINES = 50
"""Lines that are searched for the start of a doctest."""
_LOOK_AHEAD_LINES = 4
_MAX_FRAGMENT_WORDS = 3
"""A sentence of fewer words may be the end of another one."""
_PROSE = frozenset(("md", "mdx", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "tex", "textile", "wiki", ""))
_PROSE_OR_NOT = frozenset(("txt", ""))
"""Here `#` may start a heading or a comment."""
_SETTINGS = re.compile(r".*file|cmakelists\.txt|.*(?:requirements|constraints).*\.txt")
"""Lower-case names that are no prose, with any suffix: `Dockerfile`, `requirements.txt`."""
_CODE = frozenset(
    re.findall(
        r"\w+",
        "js jsx mjs cjs ts tsx mts cts java go rs kt kts cs css scss less json jsonc toml sql "
        "swift scala dart php rb groovy gradle c h cc cpp cxx hpp hh m mm sh bash zsh ex exs erl hs ml fs zig proto "
        "graphql tf html htm vue svelte settings",
    )
)
"""Here dots alone are no statement, and do not end a document."""
_VARIADIC = frozenset(("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "php", "rb"))
"""Here dots may be the last of several parameters."""
_DEFINITION = re.compile(r"\s*(?:@|(?:async\s+)?(?:def|class)\b)")
_BRANCH = re.compile(r"\s*(?:\}\s*)?(?:if|elif|elsif|else|case|default|when)\b.*[:{]\s*$")


class Placeholder(NamedTuple):
    """A line of the new text that stands for lines of the old one."""

    line: int
    text: str
    lost: int
    """Lines of the old text that would be lost."""

    def describe(self, argument: str) -> str:
        lost = "a line" if self.lost == 1 else f"{self.lost} lines"
        return f"Line {self.line} of {argument} is a placeholder ({self.text!r}): {lost} of the file would be lost."

    @property
    def details(self) -> dict[str, object]:
        return {"line": self.line, "placeholder": self.text, "lost": self.lost}


def refuse_omission(old: str, new: str, path: str) -> None:
    """Raise OMITTED_TEXT if a placeholder would replace a part of a file."""
    found = find_placeholder(old, new, path)
    if found:
        raise _build_error(found, "newText", "Send the real lines in its place, or leave out both it and them.")


def refuse_omission_in_file(old: str, new: str, path: str) -> None:
    """Raise OMITTED_TEXT if a whole file would lose lines to a placeholder that says so in words."""
    found = find_placeholder(old, new, path, certain=True)
    if found:
        advice = "Send the whole content with the real lines, or change a part of the file with edit."
        raise _build_error(found, "content", advice)


def find_placeholder(old: str, new: str, path: str, *, certain: bool = False) -> Placeholder | None:
    """Find the first placeholder of the new text in whose hunk real lines are lost. Both texts have plain newlines.

    With `certain` only placeholders in words count: in a whole file, dots alone may be meant.
    """
    before, after = old.split("\n"), new.split("\n")
    marks = _find_new_marks(before, after, path, certain=certain) if old else {}
    if not marks:
        return None
    gone = Counter(map(str.strip, before)) - Counter(map(str.strip, after))
    old_marks, new_marks = _parse_marks(before), _parse_marks(after)
    all_lost = sum(before[number].strip() in gone for number in _list_real(before, old_marks, 0, len(before)))
    for part in _join_hunks(diff_lines(before, after), before):
        inside = [number for number in marks if part.c <= number < part.d]
        if not inside:
            continue
        lost = sum(before[number].strip() in gone for number in _list_real(before, old_marks, part.a, part.b))
        added = sum(1 for _ in _list_real(after, new_marks, part.c, part.d))
        for number in inside:
            mark = marks[number]
            may_be_text = mark.bare and _may_be_text(number, after)  # one line of text may become dots
            if lost > added + may_be_text or (lost and _is_explicit(mark, path)):
                return Placeholder(number + 1, after[number].strip(), lost)
            if all_lost and not certain and _is_explicit(mark, path):
                return Placeholder(
                    number + 1, after[number].strip(), all_lost
                )  # equal lines divide the hunks by chance
    return None


def _build_error(found: Placeholder, argument: str, advice: str) -> ToolError:
    message = (
        f"{found.describe(argument)} Nothing was changed. {advice} "
        "If the file is to have this very line, add it first, without removing anything."
    )
    return ToolError("OMITTED_TEXT", message, details=found.details)


def _find_new_marks(
    before: Sequence[str], after: Sequence[str], path: str, *, certain: bool
) -> dict[int, OmissionMark]:
    """Return the marks of the new text, by line, that the old text does not have. `...` and `# ...` are two marks."""
    found = {
        number: mark
        for number, mark in _parse_marks(after, frozenset(before)).items()
        if (mark.certain or not certain) and _is_placeholder_here(mark, number, after, path)
    }
    known = {(mark.words, mark.bare) for mark in _parse_marks(before).values()} if found else ()
    return {number: mark for number, mark in found.items() if (mark.words, mark.bare) not in known}


def _parse_marks(lines: Sequence[str], known: frozenset[str] = frozenset()) -> dict[int, OmissionMark]:
    """Parse the lines that may be marks, `known` ones excepted, up to a limit."""
    numbers = (number for number, line in enumerate(lines) if line not in known and may_be_mark(line))
    marks = ((number, parse_mark(lines[number])) for number in islice(numbers, _MAX_PARSED_LINES))
    return {number: mark for number, mark in marks if mark}


def _list_real(lines: Sequence[str], marks: dict[int, OmissionMark], start: int, end: int) -> Iterator[int]:
    return (number for number in range(start, end) if number not in marks and _has_words(lines[number]))


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def _join_hunks(hunks: Iterator[LineChange], before: Sequence[str]) -> Iterator[LineChange]:
    """Join hunks with only brackets and blank lines between them: where a diff divides them is chance."""
    last: LineChange | None = None
    for hunk in hunks:
        if last and hunk.a - last.b <= _MAX_GAP_LINES and not any(map(_has_words, before[last.b : hunk.a])):
            last = LineChange(last.a, hunk.b, last.c, hunk.d)
            continue
        if last:
            yield last
        last = hunk
    if last:
        yield last


def _is_placeholder_here(mark: OmissionMark, number: int, after: Sequence[str], path: str) -> bool:
    """Whether a mark is a placeholder in this kind of file, among these lines."""
    kind = _find_kind(path)
    if kind in _PROSE:
        is_prose = mark.plain or kind not in _PROSE_OR_NOT if mark.bulleted else mark.plain and mark.bare
        return mark.certain and not is_prose
    if mark.words:
        return not (mark.plain and mark.words.count(" ") < _MAX_FRAGMENT_WORDS and _is_explanation(number, after))
    if not mark.bare:
        sign = after[number].lstrip()[:1]
        around = _get_line_above(number, after).lstrip(), _get_line_below(number, after).lstrip()
        return not all(_is_comment(line) and line.startswith(sign) for line in around)
    return _are_dots_placeholder(number, after, kind)


def _is_explicit(mark: OmissionMark, path: str) -> bool:
    """Whether a mark is a placeholder in any context. A sentence may describe the program instead."""
    is_about_code = not mark.bare and "code" in mark.words.split()
    return mark.certain and (is_about_code or not mark.plain) and _find_kind(path) not in _PROSE


def _may_be_text(number: int, after: Sequence[str]) -> bool:
    """Whether a line is all that an element holds, `<p>` above and `</p>` below: it may be content."""
    above = _get_line_above(number, after).rstrip()
    return above.endswith(">") and not above.endswith("=>") and _get_line_below(number, after).lstrip().startswith("</")


def _find_kind(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    if _SETTINGS.fullmatch(name):
        return "settings"
    return name.rpartition(".")[2] if "." in name else ""


def _are_dots_placeholder(number: int, after: Sequence[str], kind: str) -> bool:
    if kind in {"py", "pyi"}:
        return kind == "py" and _is_among_statements(number, after)
    sign = after[number].strip()[0]
    if sign not in {".", "…"}:
        return kind in _CODE or (sign == "[" and kind in {"yaml", "yml"})
    above = _get_line_above(number, after).rstrip()
    if kind in {"html", "htm"}:  # behind an element, and not behind the text of one, such as an example in <pre>
        return above.endswith(">") if above else _find_next(number, after).lstrip().startswith("<")
    return kind in _CODE and not (kind in _VARIADIC and above.endswith((",", "(")))


def _is_among_statements(number: int, after: Sequence[str]) -> bool:
    """Whether dots in Python have a statement in the same block: as a body they would be alone."""
    above = _get_line_above(number, after).rstrip()
    if above.endswith((",", "(", "[", "\\")) or _is_in_doctest(number, after):
        return False
    is_beside = bool(above) and extract_indent(above) == extract_indent(after[number])
    return _has_block_below(number, after) or (is_beside and not above.endswith((":", '"""', "'''")))


def _has_block_below(number: int, after: Sequence[str]) -> bool:
    """Whether the block continues below. The first line may be the end of a line, so its indentation is unknown."""
    line, below = after[number], _find_next(number, after)
    if not below or below.lstrip().startswith((")", "]", "}", '"""', "'''")):
        return False
    if number or extract_indent(line):
        return extract_indent(below) == extract_indent(line)
    return not _DEFINITION.match(below)


def _is_in_doctest(number: int, after: Sequence[str]) -> bool:
    for at in range(number - 1, max(number - _MAX_DOCTEST_LINES, 0) - 1, -1):
        if not after[at].strip():
            return False
        if after[at].lstrip().startswith((">>>", "Traceback ")):
            return True
    return False


def _is_explanation(number: int, after: Sequence[str]) -> bool:
    """Whether a short sentence belongs to a comment above, or to the branch that it starts."""
    above, below = _get_line_above(number, after), _get_line_below(number, after)
    if _is_comment(above):
        return True
    is_beside = extract_indent(below) == extract_indent(after[number])
    return bool(_BRANCH.match(above)) and is_beside and _has_words(below)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("#", "//", "*", "--", ";", "%"))


def _get_line_above(number: int, after: Sequence[str]) -> str:
    return after[number - 1] if number else ""


def _get_line_below(number: int, after: Sequence[str]) -> str:
    return after[number + 1] if number + 1 < len(after) else ""


def _find_next(number: int, after: Sequence[str]) -> str:
    """Return the next line that is not blank."""
    return next((line for line in after[number + 1 : number + _LOOK_AHEAD_LINES] if line.strip()), "")
