"""Every event of a session, each valid by the exported schema, and together a story that can be true."""

import json
from itertools import pairwise
from typing import Any

from handrail import AsyncHandrail, Handrail
from handrail.protocol.events import End, Error, Event, User, get_event_kind
from handrail.protocol.wire import encode
from schemas import validate


def check_events(rail: AsyncHandrail | Handrail) -> list[Any]:
    """All events, checked; an assertion where one is not right."""
    events = list(rail.events())
    for event in events:
        assert isinstance(event, Event), event
        validate(json.loads(encode(event)))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    ends = [event.tool_call_id for event in events if get_event_kind(event) in {"tool_call.end", "tool_call.error"}]
    assert len(ends) == len(set(ends)), "a call has two results"
    marks = [event for event in events if isinstance(event, User | End | Error)]
    for before, after in pairwise(marks):
        over = isinstance(before, End) and before.reason in {"done", "cancelled", "limit"}
        assert not over or isinstance(after, User), "a turn that was over ended once more"
    return events
