"""What a session comes to when it is read, in short: stored with it, and the same in every later version."""

from collections import Counter
from pathlib import Path
from typing import Any

from handrail.protocol.events import Event, get_event_kind
from handrail.protocol.messages import AssistantMessage, Message, ResultsMessage, SummaryMessage, SystemMessage
from handrail.state import open_journal
from handrail.store.state_dir import StateFolder
from handrail.store.transcript import Messages


def expected_of(workspace: Path, state: Path, session: str) -> dict[str, Any]:
    """Read from the journal, without being at work on the session."""
    with open_journal(StateFolder(str(state)).session(str(workspace.resolve()), session)) as journal:
        events = list(journal.events())
        kinds = Counter(get_event_kind(event) if isinstance(event, Event) else "broken" for event in events)
        results = [
            [call_id, *([one.name, one.ok, one.error.code if one.error else None, one.summary] if one else ["?"])]
            for call_id, one in journal.list_finished()
        ]
        talk = [_told(one.message) for one in Messages(journal).list_after(0)]
    return {"events": len(events), "kinds": dict(sorted(kinds.items())), "results": results, "talk": talk}


def _told(message: Message) -> list[Any]:
    kind = str(message.__struct_config__.tag)
    match message:
        case SystemMessage():
            return [kind, list(message.tools)]
        case AssistantMessage():
            return [kind, message.text, [[call.tool_call_id, call.name, call.args] for call in message.calls]]
        case ResultsMessage():
            return [kind, [[one.tool_call_id, one.ok, one.content] for one in message.results]]
        case SummaryMessage():
            return [kind, message.text, message.kept_from]
        case _:
            return [kind, message.text]
