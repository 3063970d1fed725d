"""Why a text is outside the subset, in words that a person understands."""

import re

from handrail.policy.shell.script import Unparsed

_REASONS = {
    "$": "uses a variable or a substitution ($)",
    "`": "uses a command substitution (`)",
    "(": "uses a subshell, a function or a substitution ( )",
    ")": "uses a subshell, a function or a substitution ( )",
    "{": "uses braces, which the shell may expand ({ })",
    "}": "uses braces, which the shell may expand ({ })",
    "~": "names a home folder (~)",
    "#": "has a comment (#)",
    "&": "runs something in the background, or copies a stream in an unusual way (&)",
    "|": "joins commands in an unusual way (|)",
    ";": "has a ; with no command before it, or a sign of case behind it (;; ;&)",
    "<": "redirects in an unusual way (<)",
    ">": "redirects in an unusual way (>)",
    "\\": "has a backslash at the end of a line, or before a sign that cannot be seen",
    "'": "has a quote that is never closed",
    '"': "has a quote that is never closed",
    "": "ends before its command does",
    "\n": "has a line that ends before its command does",
}
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# Printable, says Unicode, yet nothing of them is seen: fillers, selectors, the blank of Braille, tags.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0000-\U000e0fff]"
)


class UnsupportedSyntax(Exception):  # noqa: N818  nothing went wrong: the text is one that nothing can be said about
    """The text is outside the subset."""

    def __init__(self, reason: str, at: int, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.outside = Unparsed(reason, at, too_large)


def build_unsupported_syntax(text: str, at: int) -> UnsupportedSyntax:
    """What is wrong with the sign at a place where neither a word nor an operator can stand."""
    if not text:
        return UnsupportedSyntax("is empty", 0)
    sign = text[at : at + 1]
    if sign in _REASONS:
        return UnsupportedSyntax(_REASONS[sign], at)
    return _not_plain(sign, at)


def check_visible(text: str) -> None:
    """What a person reads must be what is run: no marks for direction, nothing of no width, no private signs."""
    if text.isascii():
        return
    beyond = "".join(_BEYOND_ASCII.findall(text))
    if beyond.isprintable() and not _UNSEEN.search(beyond):
        return
    at = next(at for at, sign in enumerate(text) if not (sign.isascii() or sign.isprintable()) or _UNSEEN.match(sign))
    raise _not_plain(text[at], at)


def _not_plain(sign: str, at: int) -> UnsupportedSyntax:
    return UnsupportedSyntax(f"has a sign that is not plain text (U+{ord(sign):04X})", at)
