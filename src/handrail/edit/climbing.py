"""Climbs the ladder, and says why where it leads to no certain place."""

from handrail.edit.ladder.climb import FuzzyMatch, find_match
from handrail.edit.ladder.errors import RefusedError
from handrail.edit.refusals.refusals import (
    build_ambiguous_error,
    build_no_match_error,
    build_too_many_error,
    build_undecodable_error,
)
from handrail.edit.refusals.wording import Wording


def match_or_refuse(
    text: str, old: str, new: str, path: str, *, every: bool, readable: str, wording: Wording
) -> FuzzyMatch:
    """What a text that is not there as it is means; ToolError with a reason to learn from where that is not certain."""
    if text is not readable and old in readable:
        raise build_undecodable_error(readable, old, path, wording)
    try:
        found = find_match(text, old, new, every=every)
    except RefusedError as refused:
        raise build_no_match_error(readable, old, new, path, refused, wording) from None
    if found is None:
        raise build_no_match_error(readable, old, new, path, None, wording)
    if every and not found.all_of_them:
        raise build_too_many_error(found.strategy, path, wording)
    if len(found.places) > 1 and not every:
        spans = [each.span for each in found.places]
        raise build_ambiguous_error(readable, found.strategy, spans, wording, all_of_them=found.all_of_them)
    return found
