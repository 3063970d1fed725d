"""Normal forms of text for tolerant comparison."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from unicodedata import normalize

# § [edit.ladder.reading] The two texts of an edit as lines, read the way they were meant: several ways, the most
# § literal first.

_NUMBER = re.compile(r"[ \t]*(\d{1,9})(?:→|\t| ?\| ?|[:-] ?|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_HALVED = {'"': '"', "'": "'", "`": "`", "\\": "\\"}
_MEANS = {**_HALVED, "n": "\n", "t": "\t", "r": "", "/": "/"}
_QUOTE = re.compile(r"(?<!\\)(\\*)([\"'`])")
_FENCED = re.compile(r"\s*(```+|~~~+)[^\n`]*\n((?:.*\n)?)[ \t]*\1\s*", re.DOTALL)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
_ENTITY = re.compile("|".join(_ENTITIES))
FENCES = ("```", "~~~")


class EditReading(NamedTuple):
    """What the texts are taken to say."""

    name: str
    """The strategy that this way of reading is; empty where they are taken as they are."""
    old: list[str]
    new: list[str]
    terminated: bool
    """Whether the last line is meant with its newline."""
    stated: int | None = None
    """The line that it begins in, where what looks like line numbers may be something else."""


def list_readings(old: str, new: str) -> Iterator[EditReading]:
    """The ways to read an edit. Both texts are read the same way."""
    yield _reading("", old, new)
    for form in ("NFC", "NFD"):
        if not old.isascii() and normalize(form, old) != old:
            yield _reading("typography", normalize(form, old), normalize(form, new))
    bare = strip_line_numbers(old, new)
    if bare:
        yield _reading("line-numbers", *bare)._replace(stated=_stated(old))
    fenced = _FENCED.fullmatch(old), _FENCED.fullmatch(new)
    if fenced[0] and fenced[1] and not any(fence in found[2] for found in fenced if found for fence in FENCES):
        yield _reading("code-fences", fenced[0][2], fenced[1][2])
    escapes = list(dict.fromkeys((*_old_escapes(old, new), *_entities(old, new), *_escapes(old, new))))
    for one, other in escapes:
        # Where one oldText could have two newTexts, nobody can tell which.
        if one not in {old, other} and sum(each == one for each, _ in escapes) == 1:
            yield _reading("escape-normalised", one, other)


def _reading(name: str, old: str, new: str) -> EditReading:
    """A newline that ends both ends their last lines; one that only the old text has is a blank line that goes."""
    one, other = old.split("\n"), new.split("\n")
    if one[-1] or other[-1] or len(one) == 1:
        return EditReading(name, one, other, terminated=False)
    return EditReading(name, one[:-1], other[:-1], terminated=True)


def strip_line_numbers(old: str, new: str) -> tuple[str, str] | None:
    """Without the line numbers that listings show; the new text may have them, from the same on, or not at all."""
    bare = _bare(old)
    if bare is None:
        return None
    *lines, last = new.split("\n")
    found = [_NUMBER.match(line) for line in (*lines, last) if line.strip()]
    first = _NUMBER.match(old)
    alike = [each for each in found if each and first and _separator(each) == _separator(first)]
    if not alike:
        return bare, new  # what looks like numbers in it is its own
    other = _bare(new)
    same = other is not None and len(alike) == len(found) and first is not None and int(alike[0][1]) == int(first[1])
    return (bare, other) if same and other is not None else None


def _separator(found: re.Match[str]) -> str:
    """What is behind a line number; a search has : and - side by side."""
    return found[0].strip(" 0123456789").replace("-", ":")


def has_numbers(text: str) -> bool:
    """Whether all lines begin with numbers that count up."""
    return _bare(text) is not None


def _stated(text: str) -> int | None:
    """The line where it begins, where what is behind the number may be something else than a listing's."""
    found = _NUMBER.match(text)
    return int(found[1]) if found and "→" not in found[0] else None


def _bare(text: str) -> str | None:
    """The lines of a text without their numbers, which count up; None where they do not."""
    *lines, last = text.split("\n")
    if last:
        lines.append(last)
    found = [_NUMBER.match(line) for line in lines]
    numbers = [int(each[1]) for each in found if each]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    bare = [line[each.end() :] for line, each in zip(lines, found, strict=True) if each]
    return "\n".join(bare if last else [*bare, ""])


def _old_escapes(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Escapes that only the old text has, and all of it."""
    if "\\\\" in old and "\\\\" not in new and not _others(old, {"\\": "\\"}):
        yield old.replace("\\\\", "\\"), new
    if "\\${" in old and "\\${" not in new:
        yield old.replace("\\${", "${"), new


def _entities(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The texts without HTML's entities, if nothing that has one is in them as it is."""
    signs = {"<", ">", "&"}.union(_ENTITIES[found] for found in _ENTITY.findall(old + new))
    if _ENTITY.search(old) and signs.isdisjoint(_ENTITY.sub("", old + new)):
        yield _ENTITY.sub(_sign, old), _ENTITY.sub(_sign, new)


def _sign(found: re.Match[str]) -> str:
    return _ENTITIES[found[0]]


def _escapes(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The texts as strings of some language are read once more, where both are escaped alike."""
    texts = (old, new)
    if "\\" not in old or _both_ways(texts) or _quotes(new) - _quotes(old):
        return
    if "\n" not in old and ("\n" not in new or "\\" not in new) and not any(_others(text, _MEANS) for text in texts):
        whole = _unescaped(old, _MEANS), _unescaped(new, _MEANS)
        if "\\r" not in old + new and not (_torn(whole[1]) and not _torn(whole[0])):
            yield whole
    if not any(_others(text, _HALVED) for text in texts):
        yield _unescaped(old, _HALVED), _unescaped(new, _HALVED)
    yield _unquoted(old), _unquoted(new)


def _torn(text: str) -> bool:
    """Whether a line ends within quotes, or has a tab within: then an escape was one of the text's own."""
    return any(line.count('"') % 2 or line.count("'") % 2 or "\t" in line.strip() for line in text.split("\n"))


def _quotes(text: str) -> set[str]:
    """The quotes that have a backslash."""
    return {found[2] for found in _QUOTE.finditer(text) if len(found[1]) % 2}


def _both_ways(texts: tuple[str, str]) -> bool:
    """Whether some double quotes are escaped, and others are not."""
    quotes = (found for text in texts for found in _QUOTE.finditer(text) if found[2] == '"')
    return len({len(found[1]) % 2 for found in quotes}) > 1


def _others(text: str, means: Mapping[str, str]) -> bool:
    """Whether there are escapes that mean something else, or the text ends in the middle of one."""
    return any(found[1] not in means for found in _ESCAPE.finditer(f"{text}$"))


def _unescaped(text: str, means: Mapping[str, str]) -> str:
    return _ESCAPE.sub(lambda found: means[found[1]], text)


def _unquoted(text: str) -> str:
    """Without the backslashes before quotes, whatever else there is."""
    return _QUOTE.sub(lambda found: f"{found[1][1:]}{found[2]}" if len(found[1]) % 2 else found[0], text)


# § [edit.ladder.typography] Characters that look like others: models write plain ones for them, or them for plain
# § ones.

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
"""What each of them is folded to."""
_LAST_COMMA = re.compile(r"(?<=[^\n]),(?=\n|\Z)")
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace() and character != "\n")


def fold_typography(text: str) -> str:
    """The text with the plain characters."""
    if text.isascii():
        return text
    for (
        odd,
        plain,
    ) in PLAIN_CHARACTERS.items():  # one pass each, where it is there at all: quicker than a table for all characters
        if odd in text:
            text = text.replace(odd, plain)
    return text


def squash_spaces(text: str) -> str:
    """The text with plain characters and without white space; it has as many lines."""
    text = fold_typography(text)
    for space in _SPACES:
        if space in text:
            text = text.replace(space, "")
    return text


def loosen_punctuation(text: str) -> str:
    """The text squashed, with one kind of quotes and without commas at the ends of lines; it has as many lines."""
    return _LAST_COMMA.sub("", squash_spaces(text).replace("'", '"'))


# § [edit.ladder.tokens] Lines in words and signs, with the white space before each of them.

_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s]|$)")
_WORD = re.compile(r"\w+|[^\w\s]")


class Token(NamedTuple):
    """A word or a sign; the last of a line is empty, and has the white space at its end."""

    space: str
    text: str


def split_tokens(line: str) -> list[Token]:
    """All of a line: joined, they are the line again."""
    found = [Token(*match.groups()) for match in _TOKEN.finditer(line)]
    # After white space at the end, the end itself is found once more.
    return found[:-1] if len(found) > 1 and not found[-2].text else found


def split_words(line: str) -> list[str]:
    """What a line says, whatever its white space is."""
    return _WORD.findall(line)


def split_plain_words(line: str) -> list[str]:
    """What a line says, however its characters look."""
    return _WORD.findall(fold_typography(line))


def extract_indent(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]
