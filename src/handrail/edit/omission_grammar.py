"""Recognises placeholders for omitted code."""

import re
from functools import cache
from typing import NamedTuple

# § [edit.omission.words] The grammar of placeholders: words, in lower case with single spaces, that say that
# § something was left out.

_THE = r"(?:(?:the|this|that|these|those|all|any|your|my|our|its|and|with|plus|of) )*"
_NAME = r"(?: [\w.$/@#+]+)"
_PROGRAMMING = (
    r"code|implementations?|logic|lines|methods|functions|imports|body|bodies|class(?:es)?|components?|tests|cases|styles"
    r"|rules|routes|handlers|definitions|declarations|statements|setup|sections?|markup|html|jsx"
)
"""What only somebody who edits speaks of."""
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
"""What says so without dots."""
_IN_DOTS = "|".join(
    (
        rf"{_VERB}{_THE}{_REST}(?: of{_NAME}{{1,5}})?",
        rf"{_VERB}{_THE}{_KEPT}(?: {_CODE}|{_NAME} {_CODE}){_NAME}{{0,3}}",
        rf"{_THE}(?:code|lines?|methods?) (?:continues?|goes here|here)",
        rf"(?:{_THE}{_CODE} )?{_SAME}{_TAIL}",
        r"snip|skip|skipped|cut|trimmed|truncated|omitted|elided|hidden|(?:\d+|many|more) (?:more )?lines?",
    )
)
"""What says so between dots or in brackets."""
_BEHIND_DOTS = rf"{_VERB}{_THE}{_KEPT}{_NAME}{{0,4}}"
_LIKELY_BEHIND_DOTS = rf"(?:and )?(?:so on|so forth|etc|more)|{_THE}(?:other|more|additional){_NAME}{{1,3}}"
_LIKELY_WITH_DOTS = rf"{_THE}(?:other|more|additional){_NAME}{{0,1}} (?:{_PROGRAMMING})"
_MAX_WORDS_BETWEEN_DOTS = 8
"""Words between dots that may be any."""


def is_certain_wording(words: str, *, dotted: bool, behind_dots: bool) -> bool:
    """Whether the words say so; dots or brackets around them make fewer words enough."""
    if _match(_SENTENCES, words):
        return True
    return dotted and (_match(_IN_DOTS, words) or (behind_dots and _match(_BEHIND_DOTS, words)))


def is_likely_wording(words: str, *, behind_dots: bool, before_dots: bool) -> bool:
    """Whether words with dots stand for something else: few between dots, or some that always do."""
    if not behind_dots:
        return before_dots and _match(_LIKELY_WITH_DOTS, words)
    return (before_dots and words.count(" ") < _MAX_WORDS_BETWEEN_DOTS) or _match(_LIKELY_BEHIND_DOTS, words)


def _match(grammar: str, words: str) -> bool:
    return _compiled(grammar).fullmatch(words) is not None


@cache
def _compiled(grammar: str) -> re.Pattern[str]:
    """When it is first needed: it takes 20 ms."""
    return re.compile(grammar)


# § [edit.omission.marks] Lines that stand for lines that were left out: `# ... rest unchanged ...`, in any comment,
# § in brackets or bare.  A mark may be dots alone, or say in words that something is not there. Words are judged by
# § a small grammar and not by single words: "the rest of the function stays the same" is a mark, "the rest of the
# § function handles errors" is not.

_MAX_MARK_CHARS = 200
"""A mark is short; longer lines are not looked at."""
_MAX_MARK_SPACES = 14


class OmissionMark(NamedTuple):
    """What a line says about lines that are not there."""

    words: str
    """Without dots, brackets and comment signs; empty where it is dots alone."""
    certain: bool
    """Whether the words say so, and not only the dots around them."""
    bare: bool
    """Whether it stands in no comment."""
    plain: bool = False
    """Whether it may speak of something else: a sentence without dots and brackets, a line of a longer comment."""
    bulleted: bool = False
    """Whether what looks like a comment sign begins a heading or a list item in prose."""


def is_mark(line: str) -> bool:
    """Whether a line is nothing but a mark."""
    return may_be_mark(line) and _whole(line.strip()) is not None


def parse_mark(line: str) -> OmissionMark | None:
    """The mark that a line is, or that closes it."""
    return (_whole(line.strip()) or _inline(line)) if may_be_mark(line) else None


def may_be_mark(line: str) -> bool:
    """Whether it is worth looking: quick, and true of every mark."""
    return len(line) <= _MAX_MARK_CHARS and _SIGNS.search(line) is not None


def _whole(text: str) -> OmissionMark | None:
    """A line that is nothing but a mark."""
    peeled = _peeled(text)
    if peeled.bare and not _is_english(text):
        return None
    words = " ".join(_BETWEEN.sub(" ", peeled.inner.lower()).split())
    if words.count(" ") > _MAX_MARK_SPACES:
        return None
    if not words:
        return OmissionMark("", certain=False, bare=peeled.bare) if peeled.dots else None
    if _ASIDE.match(words) or (peeled.bare and " " not in words and not (peeled.dots or words == "snip")):
        return None
    dotted, behind_dots = bool(peeled.dots) or peeled.bracketed, "before" in peeled.dots
    certain = is_certain_wording(words, dotted=dotted, behind_dots=behind_dots)
    if certain or is_likely_wording(words, behind_dots=behind_dots, before_dots="after" in peeled.dots):
        plain = not dotted or text[0] == "*"
        return OmissionMark(words, certain=certain, bare=peeled.bare, plain=plain, bulleted=text[0] in "#*-")
    return None


_ELLIPSIS = r"(?:\.{3,6}(?!\.)|…|\. \. \.)"
_SIGNS = re.compile(
    r"\.\.\.|…|\. \. \.|rest|remain|existing|unchanged|unmodified|untouched|same|previous|original|other"
    r"|omit|elided|snip|trunc|abbrev|not shown|no (?:further |other )?change|nothing|keep|kept|as[ -]is|as before"
    r"|everything|lines? \d",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[,:;()\[\]{}<>*`\"'’—–-]+|\.(?=\s|$)")
_ASIDE = re.compile(r"(?:todo|fixme|xxx|hack|note|nb|see|type ignore|noqa|pragma)\b")


class _Peeled(NamedTuple):
    inner: str
    bare: bool
    bracketed: bool
    dots: set[str]


_PAIRS = (
    ("{/*", "*/}"),
    ("/**", "*/"),
    ("/*", "*/"),
    ("<!--", "-->"),
    ("<%--", "--%>"),
    ("{{!--", "--}}"),
    ("{#", "#}"),
    ("(*", "*)"),
    ("{-", "-}"),
    ("--[[", "]]"),
    ('"""', '"""'),
    ("'''", "'''"),
)
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}
_LINE_COMMENT = re.compile(
    r"//[/!]?|#{1,6}(?=[\s.…(]|$)|--(?=[\s.…(\[])|;{1,4}(?=[\s.…(\[])|%{1,3}(?=[\s.…(\[])|\*(?=[\s.…(\[])"
    r"|!(?=[\s.…])|'(?=[^']*$)(?=[\s.…(\[])|rem(?=\s)|/\*{1,2}",
    re.IGNORECASE,
)


def _peeled(text: str) -> _Peeled:
    """Takes comment signs, dots and brackets off, whichever comes next."""
    bare, bracketed = True, False
    dots: set[str] = set()
    for _ in range(6):
        before = text
        text, commented = _uncommented(text) if not bracketed else (text, False)
        bare = bare and not commented
        text, found = _undotted(text)
        dots |= found
        if text[:1] in _BRACKETS and text[-1:] == _BRACKETS[text[0]] and text[0] not in text[1:]:
            text, bracketed = text[1:-1].strip(), True
        if text == before:
            break
    return _Peeled(text, bare, bracketed, dots)


def _uncommented(text: str) -> tuple[str, bool]:
    for opening, closing in _PAIRS:
        if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
            return text[len(opening) : -len(closing)].strip(), True
    found = _LINE_COMMENT.match(text)
    if found:
        return text[found.end() :].strip(), True
    return (text[:-2].strip(), True) if text.endswith("*/") else (text, False)


def _undotted(text: str) -> tuple[str, set[str]]:
    dots: set[str] = set()
    if found := re.match(_ELLIPSIS, text):
        dots.add("before")
        text = text[found.end() :].strip()
    if found := re.search(rf"(?<!\.){_ELLIPSIS}\.?$", text):
        dots.add("after")
        text = text[: found.start()].strip()
    return text, dots


def _is_english(text: str) -> bool:
    """Whether a line without a comment sign can be no code: dots stand alone, as they do not in `...args`."""
    return bool(re.fullmatch(r"[\w\s.…()\[\]<>{}’'–—#/-]+", text)) and not re.search(r"(?:\.\.\.|…)[\w$]|\w\(", text)


_BODY = re.compile(rf"[\w)>\]]\s*(?:=>\s*)?\{{\s*(?P<inner>{_ELLIPSIS}|/\*.{{0,120}}\*/)\s*\}}[;,)]*$")
_STUB = re.compile(r"\s*(?:pass|return|return None|return null);?\s+(?P<inner>(?:#|//)\s*\S+\s\S.*)$")
_TRAILING = re.compile(rf"\s(?P<inner>(?://|#|--|/\*|<!--)\s*{_ELLIPSIS}.*)$")


def _inline(line: str) -> OmissionMark | None:
    """A mark behind code: `f() { /* unchanged */ }`, `class A {  // ... methods ...`, `pass  # rest unchanged`."""
    found = _BODY.search(line) or _TRAILING.search(line) or _STUB.match(line)
    if not found or _uncommented(line.strip())[1]:
        return None
    mark = _whole(found["inner"])
    return mark._replace(bare=False) if mark and (mark.certain or found.re is _BODY) else None
