"""Text that every match of an expression holds: where it is missing, nothing has to be tried."""

from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.tree import Characters, Concatenation, Node, PositionTest, Repeat


def find_required_text(node: Node, alphabet: Alphabet) -> str:
    """The longest text that stands in every match; empty when there is none."""
    runs: list[str] = []
    last = ""
    for character in _spelled(node, alphabet):
        if character is None:
            runs.append(last)
            last = ""
        else:
            last += character
    return max((*runs, last), key=len)


def _spelled(node: Node, alphabet: Alphabet) -> list[str | None]:
    """The characters that must come, None where others may come between them."""
    match node:
        case Characters():
            members = alphabet.members(node)
            return [next(iter(members)) if len(members) == 1 else None]
        case PositionTest():
            return []
        case Concatenation(parts):
            return [character for part in parts for character in _spelled(part, alphabet)]
        case Repeat(body, least, most, _) if least > 0:
            once = _spelled(body, alphabet)
            return once if least == most == 1 else [*once, None]
        case _:
            return [None]
