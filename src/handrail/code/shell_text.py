"""What the words of a shell command say: quotes are taken off, what would be expanded stays as it is written."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_C_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def get_source(node: "Node", data: bytes) -> str:
    """As it is written."""
    return data[node.start_byte : node.end_byte].decode(errors="replace")


def unquote_word(node: "Node", data: bytes) -> str:
    """A word without its quotes."""
    match node.type:
        case "command_name" | "concatenation":
            return "".join(unquote_word(child, data) for child in node.children)
        case "raw_string":
            return get_source(node, data)[1:-1]
        case "ansi_c_string":
            return _ANSI_C.sub(_ansi_c, get_source(node, data)[2:-1]).partition("\0")[0]  # as bash does
        case "string" | "translated_string":
            inner = get_source(node, data).removeprefix("$")[1:-1]
            return _ESCAPED_IN_QUOTES.sub(r"\1", inner)
        case "word":
            return _ESCAPED.sub(r"\1", get_source(node, data))
        case _:
            return get_source(node, data)


def join_continued_lines(text: str) -> str:
    """With lines that end in a backslash put together with the next, as bash does everywhere but in single quotes."""
    return _CONTINUED.sub(r"\1", text)


def _ansi_c(match: re.Match[str]) -> str:
    *codes, octal, sign = match.groups()
    if sign is not None:
        return _ANSI_C_SIGNS.get(sign, sign)
    code = int(octal, 8) if octal is not None else next(int(code, 16) for code in codes if code is not None)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "\ufffd"
