"""Whether a line that can be read as a mark is one where it stands: in this kind of file, among these lines."""

import re
from collections.abc import Sequence

from handrail.edit.omission.marks import OmissionMark

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
