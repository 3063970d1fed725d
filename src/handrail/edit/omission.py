"""Refuses edits whose new text leaves code out."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from handrail.edit.diff import LineChange, diff_lines
from handrail.edit.omission_grammar import OmissionMark, may_be_mark, parse_mark
from handrail.protocol.errors import ToolError

# § [edit.omission.guard] The omission guard: a placeholder in the place of real lines is refused, since what it
# § stands for would be lost.  A placeholder is no fault in itself. It is one where it comes with the edit and real
# § lines go in the same hunk.

_SIGNS = (
    *("...", "…", ". . .", "rest", "remain", "existing", "unchanged", "unmodified", "untouched", "same", "previous"),
    *(
        "original",
        "other",
        "omit",
        "elided",
        "snip",
        "trunc",
        "abbrev",
        "not shown",
        "change",
        "keep",
        "as is",
        "as-is",
    ),
    *("as before", "everything", "line"),
)
"""Every placeholder has one of these: without, what knows more about them is not even loaded."""


class Placeholder(NamedTuple):
    """A line of the new text that stands for lines of the old one."""

    line: int
    text: str
    lost: int
    """How many lines of the old text would be gone with it."""


def find_placeholder(old: str, new: str, path: str) -> Placeholder | None:
    """The first placeholder that comes in place of real lines; both texts have plain newlines."""
    return _first(old, new, path, certain=False)


def find_certain_placeholder(old: str, new: str, path: str) -> Placeholder | None:
    """The same for a whole file, where dots alone may be meant: only what says in words that something is left out."""
    return _first(old, new, path, certain=True)


def refuse_omission(old: str, new: str, path: str) -> None:
    """OMITTED_TEXT where a part of a file would become a placeholder."""
    found = find_placeholder(old, new, path)
    if found:
        advice = "Send the real lines in its place, or leave out both it and them."
        raise _refusal(found, "newText", advice)


def refuse_omission_in_file(old: str, new: str, path: str) -> None:
    """OMITTED_TEXT where a file would lose lines to a placeholder that says so in words."""
    found = find_certain_placeholder(old, new, path)
    if found:
        advice = "Send the whole content with the real lines, or change a part of the file with edit."
        raise _refusal(found, "content", advice)


def _first(old: str, new: str, path: str, *, certain: bool) -> Placeholder | None:
    lowered = new.lower()
    if not old or not any(sign in lowered for sign in _SIGNS):
        return None

    return next(list_placeholders(old, new, path, certain=certain), None)


def _refusal(found: Placeholder, where: str, advice: str) -> ToolError:
    lost = "a line" if found.lost == 1 else f"{found.lost} lines"
    message = (
        f"Line {found.line} of {where} is a placeholder ({found.text!r}): {lost} of the file would be lost. "
        f"Nothing was changed. {advice} "
        "If the file is to have this very line, add it first, without removing anything."
    )
    details = {"line": found.line, "placeholder": found.text, "lost": found.lost}
    return ToolError("OMITTED_TEXT", message, details=details)


# § [edit.omission.places] Whether a line that can be read as a mark is one where it stands: in this kind of file,
# § among these lines.

_PROSE = frozenset(("md", "mdx", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "tex", "textile", "wiki", ""))
_PROSE_OR_NOT = frozenset(("txt", ""))
"""Where `#` may begin a heading as well as a comment."""
_SETTINGS = re.compile(r".*file|cmakelists\.txt|.*(?:requirements|constraints).*\.txt")
"""Names that look like prose by their suffix, in lower case: `Dockerfile`, `requirements.txt`."""
_CODE = frozenset(
    re.findall(
        r"\w+",
        "js jsx mjs cjs ts tsx mts cts java go rs kt kts cs css scss less json jsonc toml sql "
        "swift scala dart php rb groovy gradle c h cc cpp cxx hpp hh m mm sh bash zsh ex exs erl hs ml fs zig proto "
        "graphql tf html htm vue svelte settings",
    )
)
"""Where dots alone are no statement and no end of a document."""
_VARIADIC = frozenset(("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "php", "rb"))
"""Where they may be the last of several parameters."""
_MAX_FRAGMENT_WORDS = 3
"""A sentence of fewer words may be the end of another one."""


def is_placeholder_here(mark: OmissionMark, number: int, after: Sequence[str], path: str) -> bool:
    """Whether the mark in this line says that lines were left out."""
    kind = _kind(path)
    if kind in _PROSE:
        return mark.certain and not _is_prose(mark, kind)
    if mark.words:
        return not (mark.plain and mark.words.count(" ") < _MAX_FRAGMENT_WORDS and _explains(number, after))
    if not mark.bare:
        sign = after[number].lstrip()[:1]
        around = _above(number, after).lstrip(), _below(number, after).lstrip()
        return not all(_is_comment(line) and line.startswith(sign) for line in around)
    return _dots_count(number, after, kind)


def is_explicit(mark: OmissionMark, path: str) -> bool:
    """Whether a mark is one whatever comes with it. A sentence may also speak of what the program does, unless it is a
    comment about code."""
    speaks_of_code = not mark.bare and "code" in mark.words.split()
    return mark.certain and (speaks_of_code or not mark.plain) and _kind(path) not in _PROSE


def may_be_text(number: int, after: Sequence[str]) -> bool:
    """Whether a line is all that an element holds, `<p>` above and `</p>` below: it may be what readers are to see."""
    above = _above(number, after).rstrip()
    return above.endswith(">") and not above.endswith("=>") and _below(number, after).lstrip().startswith("</")


def _kind(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    if _SETTINGS.fullmatch(name):
        return "settings"
    return name.rpartition(".")[2] if "." in name else ""


def _is_prose(mark: OmissionMark, kind: str) -> bool:
    if mark.bulleted:
        return mark.plain or kind not in _PROSE_OR_NOT
    return mark.plain and mark.bare


def _dots_count(number: int, after: Sequence[str], kind: str) -> bool:
    """Whether dots in no comment are a mark."""
    if kind in {"py", "pyi"}:
        return kind == "py" and _is_amid(number, after)
    sign = after[number].strip()[0]
    if sign not in {".", "…"}:
        return kind in _CODE or (sign == "[" and kind in {"yaml", "yml"})
    if kind in {"html", "htm"}:
        return _is_markup(number, after)
    return kind in _CODE and not (kind in _VARIADIC and _above(number, after).rstrip().endswith((",", "(")))


def _is_markup(number: int, after: Sequence[str]) -> bool:
    """Whether dots stand behind an element, and not behind the text of one, as in an example between `<pre>`."""
    above = _above(number, after).rstrip()
    return above.endswith(">") if above else _next(number, after).lstrip().startswith("<")


def _is_amid(number: int, after: Sequence[str]) -> bool:
    """Whether dots in Python stand with a statement in the same block: as a body they would be alone."""
    above = _above(number, after).rstrip()
    if above.endswith((",", "(", "[", "\\")) or _is_example(number, after):
        return False
    return _goes_on(number, after) or (
        bool(above) and _indent(above) == _indent(after[number]) and not above.endswith((":", '"""', "'''"))
    )


def _goes_on(number: int, after: Sequence[str]) -> bool:
    """Whether the block goes on below. The first line may be the end of one: then its indentation is not known."""
    line, below = after[number], _next(number, after)
    if not below or below.lstrip().startswith((")", "]", "}", '"""', "'''")):
        return False
    if number or _indent(line):
        return _indent(below) == _indent(line)
    return not _DEFINITION.match(below)


_DEFINITION = re.compile(r"\s*(?:@|(?:async\s+)?(?:def|class)\b)")


def _is_example(number: int, after: Sequence[str]) -> bool:
    """Whether a line belongs to what a doctest is given, or expects."""
    for at in range(number - 1, max(number - _MAX_DOCTEST_LINES, 0) - 1, -1):
        if not after[at].strip():
            return False
        if after[at].lstrip().startswith((">>>", "Traceback ")):
            return True
    return False


_MAX_DOCTEST_LINES = 50
"""Lines of a doctest that are looked through for its beginning."""


def _explains(number: int, after: Sequence[str]) -> bool:
    """Whether a short sentence belongs to what is around it: to a comment above, or to the branch that it begins."""
    above, below = _above(number, after), _below(number, after)
    if _is_comment(above):
        return True
    return bool(_BRANCH.match(above)) and _indent(below) == _indent(after[number]) and any(map(str.isalnum, below))


_BRANCH = re.compile(r"\s*(?:\}\s*)?(?:if|elif|elsif|else|case|default|when)\b.*[:{]\s*$")


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(("#", "//", "*", "--", ";", "%"))


def _above(number: int, after: Sequence[str]) -> str:
    return after[number - 1] if number else ""


def _below(number: int, after: Sequence[str]) -> str:
    return after[number + 1] if number + 1 < len(after) else ""


def _next(number: int, after: Sequence[str]) -> str:
    """The next line that is not blank."""
    return next((line for line in after[number + 1 : number + _LOOK_AHEAD_LINES] if line.strip()), "")


_LOOK_AHEAD_LINES = 4


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# § [edit.omission.lost_lines] Where a placeholder comes and real lines go, hunk by hunk.

_MAX_GAP_LINES = 3
"""Lines without a word between two hunks that are judged as one."""
_MAX_PARSED_LINES = 5_000
"""Lines of each text that are taken apart."""
_MAX_TEXT_LINES = 1
"""Lines whose place dots may take that can be meant as text."""


def list_placeholders(old: str, new: str, path: str, *, certain: bool) -> Iterator[Placeholder]:
    """The placeholders of the new text in whose hunk lines of the old one are lost."""
    before, after = old.split("\n"), new.split("\n")
    marks = _new_marks(before, after, path, certain=certain)
    if not marks:
        return
    gone = Counter(map(str.strip, before)) - Counter(map(str.strip, after))
    all_marks, old_marks = _marks(after), _marks(before)
    for part in _joined(diff_lines(before, after), before):
        inside = [number for number in marks if part.c <= number < part.d]
        if not inside:
            continue
        lost = sum(before[at].strip() in gone for at in _real(before, old_marks, part.a, part.b))
        come = sum(1 for _ in _real(after, all_marks, part.c, part.d))
        for number in inside:
            mark = marks[number]
            meant = _MAX_TEXT_LINES if mark.bare and may_be_text(number, after) else 0
            if lost > come + meant or (lost and is_explicit(mark, path)):
                yield Placeholder(number + 1, after[number].strip(), lost)


def _new_marks(before: Sequence[str], after: Sequence[str], path: str, *, certain: bool) -> dict[int, OmissionMark]:
    """The marks of the new text, by line, that the old one does not have."""
    found = {
        number: mark
        for number, mark in _marks(after, frozenset(before)).items()
        if (mark.certain or not certain) and is_placeholder_here(mark, number, after, path)
    }
    said = {mark.words for mark in _marks(before).values()} if found else ()
    return {number: mark for number, mark in found.items() if mark.words not in said}


def _marks(lines: Sequence[str], known: frozenset[str] = frozenset()) -> dict[int, OmissionMark]:
    """The marks among lines, but for those that are known; of very many that could be one, the first."""
    maybe = (number for number, line in enumerate(lines) if line not in known and may_be_mark(line))
    looked = ((number, parse_mark(lines[number])) for number in islice(maybe, _MAX_PARSED_LINES))
    return {number: mark for number, mark in looked if mark}


def _real(lines: Sequence[str], marks: dict[int, OmissionMark], start: int, end: int) -> Iterator[int]:
    """The lines with which something would be lost."""
    return (number for number in range(start, end) if number not in marks and _has_words(lines[number]))


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def _joined(parts: Iterator[LineChange], before: Sequence[str]) -> Iterator[LineChange]:
    """Hunks with nothing but brackets and blank lines between them are one: where a diff divides is chance."""
    last: LineChange | None = None
    for part in parts:
        if last and part.a - last.b <= _MAX_GAP_LINES and not any(map(_has_words, before[last.b : part.a])):
            last = LineChange(last.a, part.b, last.c, part.d)
            continue
        if last:
            yield last
        last = part
    if last:
        yield last
