"""The first of the places that a text means, where which of them is meant does not matter."""

from handrail.edit.matching import matched
from handrail.edit.newlines import Replacement
from handrail.edit.placing import Placed
from handrail.edit.refusals.wording import Wording


def first_place(text: str, old: str, new: str, path: str, *, readable: str, wording: Wording) -> Placed:
    """The first of the places that replacing all of them would replace; ToolError where there is none.

    All texts have plain newlines, and `old` is not empty; `readable` is the text as it can be shown.
    """
    match = matched(text, old)
    if match is not None:
        return Placed("exact", (match.first,), (Replacement(*match.first, new),))
    from handrail.edit.climbing import climbed  # noqa: PLC0415  most texts are there as they are

    found = climbed(text, old, new, path, every=True, readable=readable, wording=wording)
    first = found.places[0]
    return Placed(found.strategy, (first.span,), tuple(first.replacements))
