"""Recognises placeholders for omitted code: `# ... rest unchanged ...`, in any comment, in brackets or bare.

A placeholder is dots alone, or says in words that code is omitted. A small grammar judges the words, not single
words: "the rest of the function stays the same" is one, "the rest of the function handles errors" is not.
"""

import re
from functools import cache
from typing import NamedTuple

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
_CODE = (
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
        rf"{_THE}(?:existing|unchanged|previous|remaining)(?: {_CODE})?"
        r" (?:code|implementation|contents?|logic)(?: (?:goes|stays|continues|here|below|above|follows))*",
        rf"{_THE}{_REST} of {_THE}(?:[\w.]+ ){{0,2}}(?:{_PROGRAM}|page|page contents?)"
        r"(?: (?:goes|stays|continues|here|below|above))*",
        rf"{_THE}(?:other|more|additional){_NAME}{{0,2}} {_PROGRAM}(?: (?:go|stay|continue|remain|are))? here",
        rf"keep {_THE}{_FORMER}(?: of)? ?{_THE}(?:{_PROGRAM}{_TAIL}|{_CODE} {_STAYS}{_TAIL})",
        rf"lines? \d+(?: (?:to|through))? \d+(?: (?:and \d+ \d+|of {_CODE}))?(?: {_STAYS}{_TAIL})?",
        r"unchanged(?: code)?(?: here| below| above| from .{1,40})?",
        r"no (?:further |other )?changes?(?: around| needed| required)* (?:here|below|above|from here)",
        rf"(?:the )?same (?:{_CODE} )?as (?:before|previously|(?:the )?(?:original|previous)(?: {_CODE})?)",
        r"(?:omitted|elided|truncated|snipped|abbreviated|shortened) for (?:brevity|clarity|simplicity|space)",
        r"snip",
    )
)
"""Wordings that are certain without dots."""
_IN_DOTS = "|".join(
    (
        rf"{_VERB}{_THE}{_REST}(?: of{_NAME}{{1,5}})?",
        rf"{_VERB}{_THE}{_KEPT}(?: {_CODE}|{_NAME} {_CODE}){_NAME}{{0,3}}",
        rf"{_THE}(?:code|lines?|methods?) (?:continues?|goes here|here)",
        rf"(?:{_THE}{_CODE} )?{_SAME}{_TAIL}",
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
