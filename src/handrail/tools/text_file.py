"""A file as text to be changed: what is replaced in it becomes bytes, and all other bytes stay."""

from collections.abc import Sequence

import msgspec

from handrail.edit.line_parts import line_parts
from handrail.edit.newlines import LineEnding, Replacement, ending_after, in_file, plain
from handrail.protocol.error import ToolError
from handrail.tools.edit import LONGEST
from handrail.workspace.lossless import Lossless, lossless, shown, spliced
from handrail.workspace.text import Encoding

PDF = b"%PDF-"


class Rewritten(msgspec.Struct, frozen=True):
    """What the bytes of a file become."""

    data: bytes
    encoding: Encoding
    line_ending: LineEnding


class TextFile(msgspec.Struct, frozen=True):
    """A file that is text."""

    file: Lossless
    text: str
    """With plain newlines; bytes that are no text are lone surrogates."""

    @property
    def readable(self) -> str:
        """The text as `read` shows it, of the same length."""
        return shown(self.text) if self.file.damaged else self.text

    def rewritten(self, replacements: Sequence[Replacement], given: str, path: str) -> Rewritten:
        """The bytes with parts of the text replaced, in order. A file without lines takes the endings of a `given`
        text; where endings are mixed, lines that stay keep theirs."""
        file = self.file
        if file.line_ending == "mixed":
            replacements = list(line_parts(self.text, replacements))
        grown = sum(len(text) - (end - start) for start, end, text in replacements)
        if len(file.text) + grown > LONGEST:  # before it is in memory; a character is a byte at least
            raise _too_long(path)
        own = list(in_file(file.text, self.text, file.line_ending, replacements, given))
        try:
            data = spliced(file, own)
        except UnicodeEncodeError as error:
            raise _no_such_character(error, file.encoding, path) from None
        if len(data) > LONGEST:
            raise _too_long(path)
        return Rewritten(data, file.encoding, ending_after(file.text, file.line_ending, own))


def text_file(data: bytes, path: str) -> TextFile:
    """The text of a file; BINARY_FILE when it is none."""
    file = None if data.startswith(PDF) else lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    return TextFile(file, plain(file.text))


def _no_such_character(error: UnicodeEncodeError, encoding: str, path: str) -> ToolError:
    character = error.object[error.start]
    message = f"The new text has {character!r} (U+{ord(character):04X}), which {encoding} does not have: "
    advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
    return ToolError("INVALID_ARGUMENT", f"{message}{advice}")


def _too_long(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that is made of a file. Replace less."
    return ToolError("LIMIT_EXCEEDED", message)
