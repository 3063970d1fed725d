"""An expression in Python's words.

Python tries one way after the other and Rust all at once, but both prefer the same match: the leftmost, and there the
one that comes first when alternatives are tried in order.
"""

from handrail.workspace.search.regex.alphabet import NO_CHARACTER, Alphabet
from handrail.workspace.search.regex.tree import Alternation, Characters, Concatenation, Node, PositionTest, Repeat


def translate_pattern(node: Node, alphabet: Alphabet) -> str:
    """The same expression for Python's `re`, for texts of many lines in this alphabet."""
    match node:
        case Characters():
            return alphabet.spelled(alphabet.members(node))
        case PositionTest():
            return _place(node, alphabet)
        case Concatenation(parts):
            return "".join(translate_pattern(part, alphabet) for part in parts)
        case Alternation(ways):
            return f"(?:{'|'.join(translate_pattern(way, alphabet) for way in ways)})"
        case Repeat(body, least, most, greedy):
            counts = f"{{{least},{'' if most is None else most}}}{'' if greedy else '?'}"
            return f"(?:{translate_pattern(body, alphabet)}){counts}"


def _place(node: PositionTest, alphabet: Alphabet) -> str:
    """A carriage return ends a line as a newline does, and both together only once."""
    word = alphabet.words()
    match node.position:
        case "line start":
            return r"(?:(?<![^\n])|(?<=\r)(?!\n))"
        case "line end":
            return r"(?:(?=\r|\Z)|(?<!\r)(?=\n))"
        case "word start":
            return f"(?<![{word}])(?=[{word}])"
        case "word end":
            return f"(?<=[{word}])(?![{word}])"
        case "boundary":
            return f"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"
        case "no boundary":
            neither = f"(?<![{word}{NO_CHARACTER}])(?![{word}{NO_CHARACTER}])"
            return f"(?:(?<=[{word}])(?=[{word}])|{neither})"
