"""A file as text to be changed: what is replaced in it becomes bytes, and all other bytes stay."""

from collections.abc import Sequence

import msgspec

from handrail.edit.lines import LineEnding, Replacement, normalize_newlines, predict_line_ending, restore_newlines
from handrail.edit.sequences import narrow_replacements
from handrail.protocol.errors import ToolError
from handrail.tools.contract import MAX_TEXT_BYTES
from handrail.workspace.text import Encoding, LosslessText, decode_lossless, replace_surrogates, splice_bytes

PDF = b"%PDF-"


class FileRewrite(msgspec.Struct, frozen=True):
    """What the bytes of a file become."""

    data: bytes
    encoding: Encoding
    line_ending: LineEnding


class TextFile(msgspec.Struct, frozen=True):
    """A file that is text."""

    file: LosslessText
    text: str
    """With plain newlines; bytes that are no text are lone surrogates."""

    @property
    def readable(self) -> str:
        """The text as `read` shows it, of the same length."""
        return replace_surrogates(self.text) if self.file.damaged else self.text

    def rewritten(self, replacements: Sequence[Replacement], given: str, path: str) -> FileRewrite:
        """The bytes with parts of the text replaced, in order. A file without lines takes the endings of a `given`
        text; where endings are mixed, lines that stay keep theirs."""
        file = self.file
        if file.line_ending == "mixed":
            replacements = list(narrow_replacements(self.text, replacements))
        grown = sum(len(text) - (end - start) for start, end, text in replacements)
        if len(file.text) + grown > MAX_TEXT_BYTES:  # before it is in memory; a character is a byte at least
            raise _too_long(path)
        own = list(restore_newlines(file.text, self.text, file.line_ending, replacements, given))
        try:
            data = splice_bytes(file, own)
        except UnicodeEncodeError as error:
            raise _no_such_character(error, file.encoding, path) from None
        if len(data) > MAX_TEXT_BYTES:
            raise _too_long(path)
        return FileRewrite(data, file.encoding, predict_line_ending(file.text, file.line_ending, own))


def decode_text_file(data: bytes, path: str) -> TextFile:
    """The text of a file; BINARY_FILE when it is none."""
    file = None if data.startswith(PDF) else decode_lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    return TextFile(file, normalize_newlines(file.text))


def _no_such_character(error: UnicodeEncodeError, encoding: str, path: str) -> ToolError:
    character = error.object[error.start]
    message = f"The new text has {character!r} (U+{ord(character):04X}), which {encoding} does not have: "
    advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
    return ToolError("INVALID_ARGUMENT", f"{message}{advice}")


def _too_long(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that is made of a file. Replace less."
    return ToolError("LIMIT_EXCEEDED", message)
