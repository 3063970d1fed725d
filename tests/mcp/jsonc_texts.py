"""Generates settings files as people write them: comments, commas too many, any indentation, any line ending."""

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["mcpServers", "permissions", "deny", "allow", "handrail", "other", "command", "args", "env", "a b", "ä", "//", "x"]
)
SCALARS = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(10**6), 10**6),
    st.sampled_from(["", "Bash", "a // no comment", "/* none */", 'quo"te', "back\\slash", "é\u2028", "}", "]"]),
)
COMMENTS = st.sampled_from(["", "", "", "// x }", '// , "', "/* y ] */", "/* two\nlines */", "//"])


def values(depth: int = 3) -> st.SearchStrategy[Any]:
    """JSON values with names that matter to an edit."""
    return st.recursive(
        SCALARS,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
        max_leaves=depth * 4,
    )


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """A text that says this value, in one of many ways."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    step = draw(st.sampled_from(["  ", "    ", "\t", ""]))
    head = draw(st.sampled_from(["", "// settings\n", "\ufeff", "\n\n"]))
    tail = draw(st.sampled_from(["", "\n", "\n// end", " /* end */\n"]))
    return (head + _written(draw, value, "", step) + tail).replace("\n", newline)


def _written(draw: st.DrawFn, value: Any, indent: str, step: str) -> str:
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    tall = draw(st.booleans())
    deeper = indent + step
    pieces = [
        f"{json.dumps(key)}{draw(st.sampled_from(['', ' ']))}: {_written(draw, one, deeper, step)}"
        for key, one in (value.items() if isinstance(value, dict) else ())
    ] or [_written(draw, one, deeper, step) for one in (value if isinstance(value, list) else ())]
    text = opening
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        text += f"\n{deeper}" if tall else draw(st.sampled_from(["", " "]))
        text += piece
        text += "" if last and draw(st.booleans()) else ","
        text += _comment(draw, tall)
    text += _comment(draw, tall) if not pieces else ""
    return f"{text}\n{indent}{closing}" if tall else f"{text}{closing}"


def _comment(draw: st.DrawFn, tall: bool) -> str:
    comment = draw(COMMENTS)
    if comment.startswith("//") and not tall:
        return f" {comment}\n"
    return f" {comment}" if comment else ""
