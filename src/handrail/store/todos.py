"""The model's list of what is to be done, as it stands in a session's journal: the result of the last call that gave
one."""

import msgspec

from handrail.protocol.event import ToolCallEnd, decode_event
from handrail.protocol.reading import UNREADABLE, convert
from handrail.protocol.todo import TodoItem
from handrail.store.database import Database

_CALL = '"tool_call_name":"todo"'
_BEFORE = """
SELECT seq, data FROM event WHERE seq < ? AND kind = 'tool_call.end' AND instr(data, CAST(? AS BLOB)) > 0
ORDER BY seq DESC LIMIT 1
"""
_LAST = 1 << 62


class _Data(msgspec.Struct):
    items: tuple[TodoItem, ...]


def read_last_todo(database: Database) -> tuple[TodoItem, ...]:
    """The list; empty while there is none."""
    before = _LAST
    while row := database.row(_BEFORE, (before, _CALL)):
        before = row[0]
        try:
            event = decode_event(row[1])
            if isinstance(event, ToolCallEnd) and event.tool_call_name == "todo":
                return convert(event.result.data, _Data).items
        except UNREADABLE:
            pass  # what cannot be read is not the last list that can
    return ()
