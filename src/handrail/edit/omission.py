"""The omission guard: refuses a placeholder that an edit puts in the place of real lines, which would be lost.

A placeholder is dots alone, or says in words that code is omitted: `# ... rest unchanged ...`, in any comment, in
brackets or bare. A small grammar judges the words, not single words: "the rest of the function stays the same" is one,
"the rest of the function handles errors" is not.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from handrail.edit.diff import LineChange, diff_lines
from handrail.edit.fuzzy.normalize import extract_indent
from handrail.protocol.errors import ToolError

# The grammar of placeholders

_MAX_MARK_CHARS = 200
"""Longer lines are not parsed."""
_MAX_MARK_SPACES = 14

# The grammar matches words in lower case with single spaces.
_THE = r"(?:(?:the|this|that|these|those|all|any|your|my|our|its|and|with|plus|of) )*"
_NAME = r"(?: [\w.$/@#+]+)"
_PROGRAMMING = (
    r"code|implementations?|logic|lines|methods|functions|imports|body|bodies|class(?:es)?|components?|tests|cases|styles"
    r"|rules|routes|handlers|definitions|declarations|statements|setup|sections?|markup|html|jsx"
)
"""Words that only a comment about code uses."""
_CODE_WORDS = (
    rf"(?:{_PROGRAMMING}|contents?|lines?|methods?|functions?|imports?|file|modules?|script|document|program|tests?|fields?"
    r"|properties|props|cases?|definitions?|rules?|routes?|handlers?|entries|items|config|configuration|text|parts?|block"
    r"|loop|struct|enum|interface|types?|variables?|constants?|template|schema|table|list|array|object|dict)"
)
_PROGRAM = rf"(?:{_PROGRAMMING}|contents? from)"
_SAME = (
    r"(?:(?:exactly )?(?:the )?(?:exact )?same|unchanged|unmodified|unaltered|untouched|intact|as is|as it (?:is|was)"
    r"|as they (?:are|were)|as (?:before|above|previously)|omitted|elided|truncated|abbreviated|snipped|not shown"
    r"|(?:with )?no changes?|not changed)"
)
_STAYS = (
    r"(?:(?:that|which|remains?|stays?|is|are|was|were|be|will|should|must|has|have|been|left|kept|still|all"
    rf"|exactly|completely|entirely|otherwise|here) )*{_SAME}"
)
_TAIL = (
    r"(?: (?:as|from|like|in|of|for|above|below|here|before|previously|originally|original|the|brevity|clarity|code"
    r"|file|version|previous|earlier|existing|implementation|simplicity|space|needed|required|now|continues?))*"
)
_VERB = r"(?:(?:keep|insert|include|add|copy|paste|then) )?"
_REST = r"(?:rest|remainder)"
_KEPT = r"(?:existing|unchanged|unmodified|remaining|previous|original|same|omitted|earlier|prior|surrounding)"
_FORMER = rf"(?:existing|{_REST}|remaining|other|same|original|previous)"
_SENTENCES = "|".join(
    (
        rf"{_THE}{_REST}(?: of)?{_NAME}{{0,5}} {_STAYS}{_TAIL}",
        rf"{_THE}(?:{_KEPT}|other|more|\d+){_NAME}{{0,2}} {_PROGRAM}{_NAME}{{0,4}} {_STAYS}{_TAIL}",
        rf"{_THE}(?:everything|all)(?: else| other| above| below| before| after)+{_NAME}{{0,2}} {_STAYS}{_TAIL}",
        rf"{_THE}{_PROGRAM}(?: above| below| before| after| here)? {_STAYS}{_TAIL}",
        rf"{_THE}(?:existing|unchanged|previous|remaining)(?: {_CODE_WORDS})?"
        r" (?:code|implementation|contents?|logic)(?: (?:goes|stays|continues|here|below|above|follows))*",
        rf"{_THE}{_REST} of {_THE}(?:[\w.]+ ){{0,2}}(?:{_PROGRAM}|page|page contents?)"
        r"(?: (?:goes|stays|continues|here|below|above))*",
        rf"{_THE}(?:other|more|additional){_NAME}{{0,2}} {_PROGRAM}(?: (?:go|stay|continue|remain|are))? here",
        rf"keep {_THE}{_FORMER}(?: of)? ?{_THE}(?:{_PROGRAM}{_TAIL}|{_CODE_WORDS} {_STAYS}{_TAIL})",
        rf"lines? \d+(?: (?:to|through))? \d+(?: (?:and \d+ \d+|of {_CODE_WORDS}))?(?: {_STAYS}{_TAIL})?",
        r"unchanged(?: code)?(?: here| below| above| from .{1,40})?",
        r"no (?:further |other )?changes?(?: around| needed| required)* (?:here|below|above|from here)",
        rf"(?:the )?same (?:{_CODE_WORDS} )?as (?:before|previously|(?:the )?(?:original|previous)(?: {_CODE_WORDS})?)",
        r"(?:omitted|elided|truncated|snipped|abbreviated|shortened) for (?:brevity|clarity|simplicity|space)",
        r"snip",
    )
)
"""Wordings that are certain without dots."""
_IN_DOTS = "|".join(
    (
        rf"{_VERB}{_THE}{_REST}(?: of{_NAME}{{1,5}})?",
        rf"{_VERB}{_THE}{_KEPT}(?: {_CODE_WORDS}|{_NAME} {_CODE_WORDS}){_NAME}{{0,3}}",
        rf"{_THE}(?:code|lines?|methods?) (?:continues?|goes here|here)",
        rf"(?:{_THE}{_CODE_WORDS} )?{_SAME}{_TAIL}",
        r"snip|skip|skipped|cut|trimmed|truncated|omitted|elided|hidden|(?:\d+|many|more) (?:more )?lines?",
    )
)
"""Wordings that are certain between dots or in brackets."""
_BEHIND_DOTS = rf"{_VERB}{_THE}{_KEPT}{_NAME}{{0,4}}"
_LIKELY_BEHIND_DOTS = rf"(?:and )?(?:so on|so forth|etc|more)|{_THE}(?:other|more|additional){_NAME}{{1,3}}"
_LIKELY_WITH_DOTS = rf"{_THE}(?:other|more|additional){_NAME}{{0,1}} (?:{_PROGRAMMING})"
_MAX_WORDS_BETWEEN_DOTS = 8
"""Any words count between dots, if they are fewer."""
_ELLIPSIS = r"(?:\.{3,6}(?!\.)|…|\. \. \.)"
_SIGNS = re.compile(
    r"\.\.\.|…|\. \. \.|rest|remain|existing|unchanged|unmodified|untouched|same|previous|original|other"
    r"|omit|elided|snip|trunc|abbrev|not shown|no (?:further |other )?change|nothing|keep|kept|as[ -]is|as before"
    r"|everything|lines? \d",
    re.IGNORECASE,
)
_PUNCTUATION = re.compile(r"[,:;()\[\]{}<>*`\"'’—–-]+|\.(?=\s|$)")
_ASIDE = re.compile(r"(?:todo|fixme|xxx|hack|note|nb|see|type ignore|noqa|pragma)\b")
_BLOCK_COMMENTS = (
    ("{/*", "*/}"), ("/**", "*/"), ("/*", "*/"), ("<!--", "-->"), ("<%--", "--%>"), ("{{!--", "--}}"), ("{#", "#}"),
    ("(*", "*)"), ("{-", "-}"), ("--[[", "]]"), ('"""', '"""'), ("'''", "'''"),
)  # fmt: skip
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}
_LINE_COMMENT = re.compile(
    r"//[/!]?|#{1,6}(?=[\s.…(]|$)|--(?=[\s.…(\[])|;{1,4}(?=[\s.…(\[])|%{1,3}(?=[\s.…(\[])|\*(?=[\s.…(\[])"
    r"|!(?=[\s.…])|'(?=[^']*$)(?=[\s.…(\[])|rem(?=\s)|/\*{1,2}",
    re.IGNORECASE,
)
_BODY = re.compile(rf"[\w)>\]]\s*(?:=>\s*)?\{{\s*(?P<inner>{_ELLIPSIS}|/\*.{{0,120}}\*/)\s*\}}[;,)]*$")
_STUB = re.compile(r"\s*(?:pass|return|return None|return null);?\s+(?P<inner>(?:#|//)\s*\S+\s\S.*)$")
_TRAILING = re.compile(rf"\s(?P<inner>(?://|#|--|/\*|<!--)\s*{_ELLIPSIS}.*)$")


class OmissionMark(NamedTuple):
    """A line that may be a placeholder."""

    words: str
    """Without dots, brackets and comment signs. Empty for dots alone."""
    certain: bool
    """Whether the words say that code is omitted, and not only the dots around them."""
    bare: bool
    """Whether it is in no comment."""
    plain: bool = False
    """Whether it may speak of something else: a sentence without dots and brackets, a line of a longer comment."""
    bulleted: bool = False
    """Whether its comment sign starts a heading or a list item in prose."""


def is_mark(line: str) -> bool:
    """Whether a line is nothing but a mark."""
    return may_be_mark(line) and _parse_line(line.strip()) is not None


def parse_mark(line: str) -> OmissionMark | None:
    """Parse a line that is a mark, or ends with one."""
    return (_parse_line(line.strip()) or _parse_trailing(line)) if may_be_mark(line) else None


def may_be_mark(line: str) -> bool:
    """Rule out lines quickly. True for every mark."""
    return len(line) <= _MAX_MARK_CHARS and _SIGNS.search(line) is not None


class _PeeledLine(NamedTuple):
    inner: str
    bare: bool
    bracketed: bool
    dots_before: bool
    dots_after: bool


def _parse_line(text: str) -> OmissionMark | None:
    peeled = _peel(text)
    if peeled.bare and not _is_english(text):
        return None
    words = " ".join(_PUNCTUATION.sub(" ", peeled.inner.lower()).split())
    if words.count(" ") > _MAX_MARK_SPACES:
        return None
    has_dots = peeled.dots_before or peeled.dots_after
    if not words:
        return OmissionMark("", certain=False, bare=peeled.bare) if has_dots else None
    if _ASIDE.match(words) or (peeled.bare and " " not in words and not (has_dots or words == "snip")):
        return None
    is_marked = has_dots or peeled.bracketed
    certain = _is_certain(words, is_marked=is_marked, dots_before=peeled.dots_before)
    if certain or _is_likely(words, dots_before=peeled.dots_before, dots_after=peeled.dots_after):
        plain = not is_marked or text[0] == "*"
        return OmissionMark(words, certain=certain, bare=peeled.bare, plain=plain, bulleted=text[0] in "#*-")
    return None


def _parse_trailing(line: str) -> OmissionMark | None:
    """Parse a mark behind code: `f() { /* unchanged */ }`, `class A {  // ... methods ...`, `pass  # unchanged`."""
    found = _BODY.search(line) or _TRAILING.search(line) or _STUB.match(line)
    if not found or _strip_comment(line.strip())[1]:
        return None
    mark = _parse_line(found["inner"])
    return mark._replace(bare=False) if mark and (mark.certain or found.re is _BODY) else None


def _is_certain(words: str, *, is_marked: bool, dots_before: bool) -> bool:
    """Whether the words say that code is omitted. With dots or brackets around them, fewer words do."""
    if _matches(_SENTENCES, words):
        return True
    return is_marked and (_matches(_IN_DOTS, words) or (dots_before and _matches(_BEHIND_DOTS, words)))


def _is_likely(words: str, *, dots_before: bool, dots_after: bool) -> bool:
    """Whether words with dots stand for code: a few between dots, or certain ones."""
    if not dots_before:
        return dots_after and _matches(_LIKELY_WITH_DOTS, words)
    return (dots_after and words.count(" ") < _MAX_WORDS_BETWEEN_DOTS) or _matches(_LIKELY_BEHIND_DOTS, words)


def _matches(grammar: str, words: str) -> bool:
    return _compile(grammar).fullmatch(words) is not None


@cache
def _compile(grammar: str) -> re.Pattern[str]:
    """Compile on first use: it takes 20 ms."""
    return re.compile(grammar)


def _peel(text: str) -> _PeeledLine:
    """Strip comment signs, dots and brackets, in any order."""
    bare, bracketed, before, after = True, False, False, False
    for _ in range(6):
        previous = text
        if not bracketed:
            text, is_comment = _strip_comment(text)
            bare = bare and not is_comment
        if found := re.match(_ELLIPSIS, text):
            before, text = True, text[found.end() :].strip()
        if found := re.search(rf"(?<!\.){_ELLIPSIS}\.?$", text):
            after, text = True, text[: found.start()].strip()
        if text[:1] in _BRACKETS and text[-1:] == _BRACKETS[text[0]] and text[0] not in text[1:]:
            text, bracketed = text[1:-1].strip(), True
        if text == previous:
            break
    return _PeeledLine(text, bare, bracketed, before, after)


def _strip_comment(text: str) -> tuple[str, bool]:
    for opening, closing in _BLOCK_COMMENTS:
        if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
            return text[len(opening) : -len(closing)].strip(), True
    found = _LINE_COMMENT.match(text)
    if found:
        return text[found.end() :].strip(), True
    return (text[:-2].strip(), True) if text.endswith("*/") else (text, False)


def _is_english(text: str) -> bool:
    """Whether a line without a comment sign can be no code. Dots stand alone, unlike those of `...args`."""
    return bool(re.fullmatch(r"[\w\s.…()\[\]<>{}’'–—#/-]+", text)) and not re.search(r"(?:\.\.\.|…)[\w$]|\w\(", text)


# The guard

_MAX_GAP_LINES = 3
"""Lines without words between two hunks that are judged as one."""
_MAX_PARSED_LINES = 5_000
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
    if found := find_placeholder(old, new, path):
        raise _build_error(found, "newText", "Send the real lines in its place, or leave out both it and them.")


def refuse_omission_in_file(old: str, new: str, path: str) -> None:
    """Raise OMITTED_TEXT if a whole file would lose lines to a placeholder that says so in words."""
    if found := find_placeholder(old, new, path, certain=True):
        advice = "Send the whole content with the real lines, or change a part of the file with edit."
        raise _build_error(found, "content", advice)


def find_placeholder(old: str, new: str, path: str, *, certain: bool = False) -> Placeholder | None:
    """Find the first new placeholder in whose hunk real lines are lost. `certain`: only those in words count."""
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
            # Equal lines divide the hunks by chance.
            if all_lost and not certain and _is_explicit(mark, path):
                return Placeholder(number + 1, after[number].strip(), all_lost)
    return None


def _build_error(found: Placeholder, argument: str, advice: str) -> ToolError:
    message = (
        f"{found.describe(argument)} Nothing was changed. {advice} "
        "If the file needs this exact line, add it first, without removing anything."
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


def _join_hunks(hunks: Iterator[LineChange], before: Sequence[str]) -> list[LineChange]:
    """Join hunks with only brackets and blank lines between them: where a diff divides them is chance."""
    joined: list[LineChange] = []
    for hunk in hunks:
        last = joined[-1] if joined else None
        if last and hunk.a - last.b <= _MAX_GAP_LINES and not any(map(_has_words, before[last.b : hunk.a])):
            joined[-1] = LineChange(last.a, hunk.b, last.c, hunk.d)
        else:
            joined.append(hunk)
    return joined


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
    return next((line for line in after[number + 1 : number + _LOOK_AHEAD_LINES] if line.strip()), "")
