"""What of all servers' tools fits into one question: with more of them, a provider refuses every one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode

MAX_OFFERED_TOOLS = 100
"""Tools of all other servers. The strictest providers take 128, of which some are ours."""
MAX_SPEC_CHARACTERS = 400_000
"""Of their descriptions and schemas together: about half of what models take."""


def select_fitting(specs: Iterable[ToolSpec]) -> set[str]:
    """The names of those that fit. Servers take turns, so that none takes the room of another."""
    by_server: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        by_server.setdefault(spec.server, []).append(spec)
    found: set[str] = set()
    room = MAX_SPEC_CHARACTERS
    for spec in _in_turns(tuple(by_server.values())):
        size = len(spec.description) + (len(encode(spec.foreign.input_schema)) if spec.foreign is not None else 0)
        if len(found) < MAX_OFFERED_TOOLS and size <= room:
            room -= size
            found.add(spec.name)
    return found


def _in_turns(lists: Sequence[list[ToolSpec]]) -> Iterator[ToolSpec]:
    return (spec for turn in zip_longest(*lists) for spec in turn if spec is not None)
