"""Lines that stand for lines that were left out: `# ... rest unchanged ...`, in any comment, in brackets or bare.

A mark may be dots alone, or say in words that something is not there. Words are judged by a small grammar and not by
single words: "the rest of the function stays the same" is a mark, "the rest of the function handles errors" is not.
"""

import re
from typing import NamedTuple

from handrail.edit.omission.words import is_certain_wording, is_likely_wording

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
