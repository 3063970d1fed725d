"""What JavaScript and TypeScript have and the grammars of tree-sitter do not: put into words that they know.

Every byte keeps its place, and every line its number. It is meant for texts that did not parse, to tell their errors
from the grammar's; a text that has none of this comes back as it is.
"""

import re

_UNKNOWN = re.compile(
    rb"(?<![\w$.])accessor(?=[ \t]+(?!(?:in|instanceof|as|satisfies|of)\b)[\w$#\[\"'])"  # class A { accessor b = 1 }
    rb"|(?<=\bexport default )abstract(?= class\b)"
    rb"|(?<=\bexport )type(?= \*)"
    rb"|(?<=\bimport )(?:defer(?= \*)|source(?= (?!from\b)[\w$]+ from\b))"
    rb"|(?<=\bimport)\.(?:defer|source)(?=\()"
    rb"|(?<=[\"'] )with \{[^{}\n]{0,200}\}"  # export * from "a" with { type: "json" }
    rb"|(?<=>)\?\.(?=\()"  # a<b>?.(c)
)
_VARIANCE = re.compile(rb"([<,]\s{0,200}(?:/\*{1,2}[^*]{0,200}\*/\s{0,200})?)(in[ \t]+out|in|out)(?=[ \t]+[\w$])")
"""`in` and `out` before a parameter of a type."""
_IMPORTED = re.compile(
    rb"(?<![\w$.])import(\(\s{0,200}(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\")\s{0,200},?\s{0,200}\))"
    rb"(?=\.[\w$]|\s{0,200}>)"
)
"""Another module in a type, as in `import("a").B` and `f<typeof import("a")>()`."""
_UNENDED = re.compile(
    rb"(?<=[\w$>\])}])(?<!=>)(\r?\n(?:[ \t]*(?://[^\n]{0,200})?\n){0,9}[ \t]{0,200})[ \t]"
    rb"(?=<[\w$\r\n]|in(?:[\d_$][\w$]*)?\??:)"
)
"""The end of a member of an interface, where the next line could go on with its type."""


def strip_unknown_syntax(data: bytes) -> bytes:
    """The same program without what the grammars do not know.

    `&` in the text of an element is the commonest of it: everywhere, `|` may stand in its place.
    """
    data = _UNKNOWN.sub(lambda found: b" " * len(found[0]), data)
    data = _VARIANCE.sub(lambda found: found[1] + b" " * len(found[2]), data)
    data = _IMPORTED.sub(lambda found: b"______" + re.sub(rb"[^\n]", b" ", found[1]), data)
    return _UNENDED.sub(_ended, data).replace(b"&", b"|")


def _ended(found: re.Match[bytes]) -> bytes:
    """A comment is no end of a member: what is before it may have one."""
    line = found.string[found.string.rfind(b"\n", 0, found.start()) + 1 : found.start()]
    return found[0] if b"//" in line else found[1] + b";"
