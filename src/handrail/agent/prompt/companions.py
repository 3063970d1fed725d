"""How to use the tools that work on the conversation, where they are offered."""

from collections.abc import Sequence

from handrail.protocol.tool_spec import ToolSpec

_MANNERS = {
    "display": "In a task of several steps, call display once at the start of each step: what you do now, and why.",
    "question": "Ask with question only what you need to know and cannot find out. It is the only call of its message: "
    "the turn ends with it and goes on with the reply.",
    "todo": "In a task of several steps, keep the list with todo: send all of it whenever an item begins or is done.",
    "memory": "Keep with memory only what will still hold in later sessions, such as the person's wishes and facts "
    "about the project; no secrets.",
}


def render_companions(specs: Sequence[ToolSpec]) -> str:
    """A line for each of them that is offered."""
    names = {spec.name for spec in specs}
    lines = [f"- {text}" for name, text in _MANNERS.items() if name in names]
    return "\n".join(("# With the person", *lines)) if lines else ""
