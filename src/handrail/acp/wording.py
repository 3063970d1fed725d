"""What is said in words: by the model, and by handrail, which marks what it says by itself."""

import re

from acp.helpers import text_block
from acp.schema import AgentMessageChunk, AgentThoughtChunk

from handrail.protocol import events
from handrail.protocol.events import AnyEvent
from handrail.protocol.text import to_one_line

_MARKUP, _ESCAPED = re.compile(r"([\[\]<`])"), r"\\\1"


def build_message_chunk(text: str, message: str | None = None) -> AgentMessageChunk:
    """A piece of what is said to the person."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message)


def build_thought_chunk(event: events.Reasoning) -> AgentThoughtChunk:
    """A piece of what the model says to itself."""
    content = text_block(event.text)
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=content, message_id=event.message_id)


def format_remark(text: str) -> str:
    """What handrail says by itself, marked: the model did not say it. What it quotes is no picture and no link."""
    return f"\n\n> {_MARKUP.sub(_ESCAPED, to_one_line(text))}\n\n"


def render_event(event: AnyEvent, *, again: bool) -> str:
    """What is neither words of the model nor a call, as a paragraph of its own; empty where nobody needs it."""
    match event:
        case events.Display():
            title = f"**{to_one_line(event.title)}**\n\n" if event.title else ""
            return f"\n\n{title}{event.content.rstrip()}\n\n"
        case events.Notice() | events.Warning() if getattr(event, "tool_call_id", None) is None:
            return format_remark(event.text)
        case events.Network() if not event.allowed:
            return format_remark(f"{event.host}:{event.port} was not reached: {event.reason}")
        case events.Process() if event.state == "ended":
            how = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            return format_remark(f"{event.process} has ended ({how}): {event.command}")
        case events.Error() if again:
            return format_remark(event.message)
        case _:
            return ""
