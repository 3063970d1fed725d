"""Climbs the ladder, and says why where it leads to no certain place."""

from handrail.edit.ladder.climb import Found, climb
from handrail.edit.ladder.errors import RefusedError
from handrail.edit.refusals.refusals import ambiguous, no_match, too_often, undecodable
from handrail.edit.refusals.wording import Wording


def climbed(text: str, old: str, new: str, path: str, *, every: bool, readable: str, wording: Wording) -> Found:
    """What a text that is not there as it is means; ToolError with a reason to learn from where that is not certain."""
    if text is not readable and old in readable:
        raise undecodable(readable, old, path, wording)
    try:
        found = climb(text, old, new, every=every)
    except RefusedError as refused:
        raise no_match(readable, old, new, path, refused, wording) from None
    if found is None:
        raise no_match(readable, old, new, path, None, wording)
    if every and not found.all_of_them:
        raise too_often(found.strategy, path, wording)
    if len(found.places) > 1 and not every:
        spans = [each.span for each in found.places]
        raise ambiguous(readable, found.strategy, spans, wording, all_of_them=found.all_of_them)
    return found
