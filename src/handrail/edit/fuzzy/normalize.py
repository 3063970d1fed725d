"""Normal forms of text for tolerant comparison."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from unicodedata import normalize

FENCES = ("```", "~~~")
_FOLDS = {
    '"': "“”„‟″",
    "'": "‘’‚‛′",
    "-": "‐‑‒–—―−",
    ",": "，",
    "(": "（",
    ")": "）",
    ":": "：",
    ";": "；",
    "...": "…",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "": "\u200b\u200c\u200d\u2060\ufeff\u00ad",
}
PLAIN_CHARACTERS = {odd: plain for plain, odds in _FOLDS.items() for odd in odds}
"""Typographic characters with the plain ones that models write for them."""
_SPACES = " \t\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"
"""White space but for newlines and the characters of `_FOLDS`."""
_LAST_COMMA = re.compile(r"(?<=[^\n]),(?=\n|\Z)")
_WORD = re.compile(r"\w+|[^\w\s]")
_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s]|$)")
_LINE_NUMBER = re.compile(r"[ \t]*(\d{1,9})(?:→|\t| ?\| ?|[:-] ?|$)")
_FENCED = re.compile(r"\s*(```+|~~~+)[^\n`]*\n((?:.*\n)?)[ \t]*\1\s*", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTE = re.compile(r"(?<!\\)(\\*)([\"'`])")
_ESCAPED_SIGNS = {'"': '"', "'": "'", "`": "`", "\\": "\\"}
_ESCAPED = {**_ESCAPED_SIGNS, "n": "\n", "t": "\t", "r": "", "/": "/"}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
_ENTITY = re.compile("|".join(_ENTITIES))


def fold_typography(text: str) -> str:
    if text.isascii():
        return text
    for odd, plain in PLAIN_CHARACTERS.items():
        if odd in text:  # faster than translating every character by a table
            text = text.replace(odd, plain)
    return text


def squash_spaces(text: str) -> str:
    """Fold typography and remove all white space but newlines."""
    text = fold_typography(text)
    for space in _SPACES:
        if space in text:
            text = text.replace(space, "")
    return text


def loosen_punctuation(text: str) -> str:
    """Squash spaces, use one kind of quotes and remove commas at the ends of lines."""
    return _LAST_COMMA.sub("", squash_spaces(text).replace("'", '"'))


def extract_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def split_words(line: str) -> list[str]:
    """Split a line into words and signs, without white space."""
    return _WORD.findall(line)


def split_plain_words(line: str) -> list[str]:
    """Split a line into words and signs, with plain characters."""
    return _WORD.findall(fold_typography(line))


class Token(NamedTuple):
    """A word or sign with the white space before it. The last token of a line is empty."""

    space: str
    text: str


def split_tokens(line: str) -> list[Token]:
    """Split a line into tokens that join to the line again."""
    tokens = [Token(*match.groups()) for match in _TOKEN.finditer(line)]
    # Behind white space at the end, the end itself matches once more.
    return tokens[:-1] if len(tokens) > 1 and not tokens[-2].text else tokens


class EditReading(NamedTuple):
    """One interpretation of the two texts of an edit."""

    name: str
    """Its strategy. Empty: the texts are taken literally."""
    old: list[str]
    new: list[str]
    terminated: bool
    """Whether the last line includes its newline."""
    stated: int | None = None
    """Line in which the old text must start, if its line numbers could be something else."""


def list_readings(old: str, new: str) -> Iterator[EditReading]:
    """Yield the ways to read an edit, the most literal first. Both texts are read the same way."""
    yield _build_reading("", old, new)
    for form in ("NFC", "NFD"):
        if not old.isascii() and normalize(form, old) != old:
            yield _build_reading("typography", normalize(form, old), normalize(form, new))
    bare = strip_line_numbers(old, new)
    if bare:
        number = _LINE_NUMBER.match(old)
        stated = int(number[1]) if number and "→" not in number[0] else None
        yield _build_reading("line-numbers", *bare)._replace(stated=stated)
    fenced = _FENCED.fullmatch(old), _FENCED.fullmatch(new)
    if fenced[0] and fenced[1] and not any(fence in match[2] for match in fenced if match for fence in FENCES):
        yield _build_reading("code-fences", fenced[0][2], fenced[1][2])
    unescaped = (*_unescape_old(old, new), *_unescape_entities(old, new), *_unescape_both(old, new))
    escapes = list(dict.fromkeys(unescaped))
    for one, other in escapes:
        # If one oldText could have two newTexts, neither is certain.
        if one not in {old, other} and sum(each == one for each, _ in escapes) == 1:
            yield _build_reading("escape-normalised", one, other)


def strip_line_numbers(old: str, new: str) -> tuple[str, str] | None:
    """Remove line numbers from both texts, or from the old one alone. None: it has none, or the new one has others."""
    bare = _strip_numbers(old)
    if bare is None:
        return None
    matches = [_LINE_NUMBER.match(line) for line in new.split("\n") if line.strip()]
    first = _LINE_NUMBER.match(old)
    alike = [match for match in matches if match and first and _extract_separator(match) == _extract_separator(first)]
    if not alike:
        return bare, new  # numbers in it are its own
    other = _strip_numbers(new)
    same = other is not None and len(alike) == len(matches) and first is not None and int(alike[0][1]) == int(first[1])
    return (bare, other) if same and other is not None else None


def has_numbers(text: str) -> bool:
    """Whether all lines start with numbers that count up."""
    return _strip_numbers(text) is not None


def _build_reading(name: str, old: str, new: str) -> EditReading:
    """A newline at the end of both texts ends their last lines. Only in the old text, it is a blank line to remove."""
    one, other = old.split("\n"), new.split("\n")
    if one[-1] or other[-1] or len(one) == 1:
        return EditReading(name, one, other, terminated=False)
    return EditReading(name, one[:-1], other[:-1], terminated=True)


def _strip_numbers(text: str) -> str | None:
    *lines, last = text.split("\n")
    if last:
        lines.append(last)
    matches = [_LINE_NUMBER.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    bare = [line[match.end() :] for line, match in zip(lines, matches, strict=True) if match]
    return "\n".join(bare if last else [*bare, ""])


def _extract_separator(match: re.Match[str]) -> str:
    """Return the sign behind a line number. Search results mix : and -."""
    return match[0].strip(" 0123456789").replace("-", ":")


def _unescape_old(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Unescape the old text if only that one is escaped, in all places."""
    if "\\\\" in old and "\\\\" not in new and not _has_other_escapes(old, {"\\": "\\"}):
        yield old.replace("\\\\", "\\"), new
    if "\\${" in old and "\\${" not in new:
        yield old.replace("\\${", "${"), new


def _unescape_entities(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Replace HTML entities, unless the texts also have their characters unescaped."""
    signs = {"<", ">", "&"}.union(_ENTITIES[entity] for entity in _ENTITY.findall(old + new))
    if _ENTITY.search(old) and signs.isdisjoint(_ENTITY.sub("", old + new)):
        one, other = (_ENTITY.sub(lambda match: _ENTITIES[match[0]], text) for text in (old, new))
        yield one, other


def _unescape_both(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Read both texts as string literals once more, if they are escaped alike."""
    texts = (old, new)
    if "\\" not in old or _mixes_quotes(texts) or _list_escaped_quotes(new) - _list_escaped_quotes(old):
        return
    is_one_line = "\n" not in old and ("\n" not in new or "\\" not in new)
    if is_one_line and not any(_has_other_escapes(text, _ESCAPED) for text in texts):
        one, other = _unescape(old, _ESCAPED), _unescape(new, _ESCAPED)
        if "\\r" not in old + new and not (_is_torn(other) and not _is_torn(one)):
            yield one, other
    if not any(_has_other_escapes(text, _ESCAPED_SIGNS) for text in texts):
        yield _unescape(old, _ESCAPED_SIGNS), _unescape(new, _ESCAPED_SIGNS)
    yield _unescape_quotes(old), _unescape_quotes(new)


def _is_torn(text: str) -> bool:
    """Whether a line ends within quotes, or has a tab inside: then an escape belonged to the text itself."""
    return any(line.count('"') % 2 or line.count("'") % 2 or "\t" in line.strip() for line in text.split("\n"))


def _list_escaped_quotes(text: str) -> set[str]:
    return {match[2] for match in _QUOTE.finditer(text) if len(match[1]) % 2}


def _mixes_quotes(texts: tuple[str, str]) -> bool:
    """Whether some double quotes are escaped and others are not."""
    quotes = (match for text in texts for match in _QUOTE.finditer(text) if match[2] == '"')
    return len({len(match[1]) % 2 for match in quotes}) > 1


def _has_other_escapes(text: str, escapes: Mapping[str, str]) -> bool:
    """Whether there are other escapes than these, or the text ends within one."""
    return any(match[1] not in escapes for match in _ESCAPE.finditer(f"{text}$"))


def _unescape(text: str, escapes: Mapping[str, str]) -> str:
    return _ESCAPE.sub(lambda match: escapes[match[1]], text)


def _unescape_quotes(text: str) -> str:
    return _QUOTE.sub(lambda match: f"{match[1][1:]}{match[2]}" if len(match[1]) % 2 else match[0], text)
