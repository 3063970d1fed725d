"""One text of a file in the place of another: what the bytes become, or why not. Nothing is written here."""

import itertools

import msgspec

from handrail.edit.matching import Match, Span, matched
from handrail.edit.newlines import Replacement, in_file, plain
from handrail.protocol.error import ToolError
from handrail.workspace.lossless import Lossless, shown, spliced

LONGEST = 32 * 1024 * 1024
"""Bytes that a file may have to be edited, before and after: several copies of them are in memory."""
PLACES = 100_000
"""Places that are replaced in one step."""


class Replaced(msgspec.Struct, frozen=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The whole text before, with plain newlines, as it can be shown."""
    replacements: list[Replacement]
    strategy: str
    data: bytes


def replaced(file: Lossless, old: str, new: str, path: str, *, every: bool) -> Replaced:
    """Replaces the only place where `old` is, or every place; ToolError with a reason to learn from otherwise."""
    text = plain(file.text)
    readable = shown(text) if file.damaged else text
    match = _matched(text, readable, old, new, path)
    spans = _spans(match, path) if every else [match.first]
    if not every and not match.unique:
        from handrail.edit.refusals import ambiguous  # noqa: PLC0415  most edits are not refused

        raise ambiguous(readable, match)
    replacements = [Replacement(start, end, plain(new)) for start, end in spans]
    return Replaced(readable, replacements, match.strategy, _data(file, replacements, new, path))


def _matched(text: str, readable: str, old: str, new: str, path: str) -> Match:
    if not old:
        return _all_of_nothing(text, path)
    found = matched(text, plain(old))
    if found is not None:
        return found
    from handrail.edit.refusals import no_match, undecodable  # noqa: PLC0415  as above

    if text is not readable and plain(old) in readable:
        raise undecodable(readable, plain(old), path)
    raise no_match(readable, plain(old), plain(new), path)


def _all_of_nothing(text: str, path: str) -> Match:
    """An empty text is at no certain place, but in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return Match("exact", _nowhere, Span(0, 0))


def _nowhere(_: int) -> Span | None:
    return None


def _spans(match: Match, path: str) -> list[Span]:
    found = list(itertools.islice(match.separate(), PLACES + 1))
    if len(found) > PLACES:
        message = f"oldText occurs more than {PLACES} times in {path}, the most one edit replaces. Use a longer oldText"
        raise ToolError("LIMIT_EXCEEDED", f"{message}, or write the whole file.")
    return found


def _data(file: Lossless, replacements: list[Replacement], new: str, path: str) -> bytes:
    grown = sum(len(text) - (end - start) for start, end, text in replacements)
    if len(file.text) + grown > LONGEST:  # before it is in memory
        raise _too_long(path)
    try:
        data = spliced(file, in_file(file.text, file.line_ending, replacements, new))
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        message = f"newText has {character!r} (U+{ord(character):04X}), which {file.encoding} does not have: "
        advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
        raise ToolError("INVALID_ARGUMENT", f"{message}{advice}") from None
    if len(data) > LONGEST:
        raise _too_long(path)
    return data


def _too_long(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that edit makes of a file. Replace fewer places."
    return ToolError("LIMIT_EXCEEDED", message)
