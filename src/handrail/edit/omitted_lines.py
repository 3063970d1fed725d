"""Where a placeholder comes and real lines go, hunk by hunk; and in which kind of file what counts as one."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from handrail.edit.hunks import Changed, changed_parts
from handrail.edit.omission import Placeholder
from handrail.edit.placeholders import Mark, mark_of, may_be_mark

_NEAR = 3
"""Lines without a word between two hunks that are judged as one."""
_LOOKED = 5_000
"""Lines of each text that are taken apart."""


def placeholders(old: str, new: str, path: str, *, certain: bool) -> Iterator[Placeholder]:
    """The placeholders of the new text in whose hunk lines of the old one are lost."""
    before, after = old.split("\n"), new.split("\n")
    marks = _new_marks(before, after, path, certain=certain)
    if not marks:
        return
    gone = Counter(map(str.strip, before)) - Counter(map(str.strip, after))
    all_marks, old_marks = _marks(after), _marks(before)
    for part in _joined(changed_parts(before, after), before):
        inside = [number for number in marks if part.c <= number < part.d]
        if not inside:
            continue
        lost = sum(before[at].strip() in gone for at in _real(before, old_marks, part.a, part.b))
        come = sum(1 for _ in _real(after, all_marks, part.c, part.d))
        for number in inside:
            if lost > come or (lost and _says_so(marks[number], path)):
                yield Placeholder(number + 1, after[number].strip(), lost)


def _new_marks(before: Sequence[str], after: Sequence[str], path: str, *, certain: bool) -> dict[int, Mark]:
    """The marks of the new text, by line, that the old one does not have."""
    found = {
        number: mark
        for number, mark in _marks(after, frozenset(before)).items()
        if (mark.certain or not certain) and _counts(mark, number, after, path)
    }
    said = {mark.words for mark in _marks(before).values()} if found else ()
    return {number: mark for number, mark in found.items() if mark.words not in said}


def _marks(lines: Sequence[str], known: frozenset[str] = frozenset()) -> dict[int, Mark]:
    """The marks among lines, but for those that are known; of very many that could be one, the first."""
    maybe = (number for number, line in enumerate(lines) if line not in known and may_be_mark(line))
    looked = ((number, mark_of(lines[number])) for number in islice(maybe, _LOOKED))
    return {number: mark for number, mark in looked if mark}


def _real(lines: Sequence[str], marks: dict[int, Mark], start: int, end: int) -> Iterator[int]:
    """The lines with which something would be lost."""
    return (number for number in range(start, end) if number not in marks and _has_words(lines[number]))


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def _joined(parts: Iterator[Changed], before: Sequence[str]) -> Iterator[Changed]:
    """Hunks with nothing but brackets and blank lines between them are one: where a diff divides is chance."""
    last: Changed | None = None
    for part in parts:
        if last and part.a - last.b <= _NEAR and not any(map(_has_words, before[last.b : part.a])):
            last = Changed(last.a, part.b, last.c, part.d)
            continue
        if last:
            yield last
        last = part
    if last:
        yield last


_PROSE = frozenset(("md", "mdx", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "tex", "textile", "wiki", ""))
_CODE = frozenset(
    re.findall(
        r"\w+",
        "js jsx mjs cjs ts tsx mts cts java go rs kt kts cs css scss less json jsonc toml sql "
        "swift scala dart php rb groovy gradle c h cc cpp cxx hpp hh m mm sh bash zsh ex exs erl hs ml fs zig proto "
        "graphql tf",
    )
)
"""Where dots alone are no statement, no text and no end of a document."""
_VARIADIC = frozenset(("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "php", "rb"))
"""Where they may be the last of several parameters."""


def _counts(mark: Mark, number: int, after: Sequence[str], path: str) -> bool:
    """Whether a line that can be read as a mark is one in this kind of file."""
    kind = _kind(path)
    if kind in _PROSE:
        return mark.certain and not (mark.bulleted or (mark.plain and mark.bare))
    if mark.words:
        return not (mark.plain and mark.words.count(" ") < _SUBJECT and _is_comment(after[number - 1 : number]))
    if not mark.bare:
        return not (_is_comment(after[number - 1 : number]) and _is_comment(after[number + 1 : number + 2]))
    if after[number].strip()[:1] not in {".", "…"}:
        return kind in _CODE
    if kind in {"py", "pyi"}:
        return kind == "py" and _is_amid(number, after)
    return kind in _CODE and not (kind in _VARIADIC and after[number - 1].rstrip().endswith((",", "(")))


_SUBJECT = 3
"""A sentence of fewer words may be the end of another one."""


def _is_comment(lines: Sequence[str]) -> bool:
    return any(line.lstrip().startswith(("#", "//", "*", "--", ";", "%")) for line in lines)


def _says_so(mark: Mark, path: str) -> bool:
    """Whether a mark is one whatever comes with it. A sentence may also speak of what the program does."""
    return mark.certain and not mark.plain and _kind(path) not in _PROSE


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def _is_amid(number: int, after: Sequence[str]) -> bool:
    """Whether dots in Python stand behind a statement of the same block: as a body they would be alone."""
    line = after[number]
    above = after[number - 1] if number else ""
    if not above.strip() or above.rstrip().endswith((":", ",", "(", "[", '"""', "'''", "\\")):
        return False
    return _indent(above) == _indent(line) and above.lstrip()[:3] not in {">>>", "..."}


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
