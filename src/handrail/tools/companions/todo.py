"""The tool todo: each call replaces the list of steps."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.protocol.records import TodoItem
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool

Status = Literal["pending", "active", "done"]


class GivenItem(Arguments, frozen=True):
    """One thing to do."""

    text: Annotated[str, Meta(min_length=1, max_length=500, description="The step, in one line.")]
    status: Annotated[Status, Meta(description="active: you work on it now.")]


class TodoArguments(Arguments, frozen=True):
    """The arguments of todo."""

    items: Annotated[tuple[GivenItem, ...], Meta(max_length=100, description="The whole list, in order; [] clears it.")]


class TodoData(Wire, frozen=True, omit_defaults=False):
    """The list as it is now."""

    items: tuple[TodoItem, ...]


TODO = ToolSpec(
    name="todo",
    title="To do",
    description=(
        "Keep the list of steps, for yourself and for the user. Every call replaces the whole list. Use it for work of "
        "three or more steps. Write the list first, keep one item active, mark each item as soon as it is done, and "
        "add new steps. Do not use it for work of one or two calls."
    ),
    arguments=TodoArguments,
    data=TodoData,
    side_effects=("conversation",),
    idempotent=True,
    enabled=False,
    layer="companion",
    intent="keep the list of steps of longer work",
    not_for=(("what later sessions should know", "memory"),),
)


def build_todo_tool() -> Tool:
    """The tool todo. The list is stored only as the result of its last call."""
    return Tool(TODO, _replace_list)


def _replace_list(_: Context, arguments: TodoArguments) -> Output:
    items = tuple(TodoItem(text=item.text, status=item.status) for item in arguments.items)
    done, active = ([item for item in items if item.status == status] for status in ("done", "active"))
    summary = f"{len(done)} of {len(items)} done" if items else "the list is empty"
    now = f" Now: {active[0].text}" if active else ""
    several = f"{len(active)} items are active; one at a time is easier to follow."
    return Output(
        summary=summary,
        content=f"{summary[0].upper()}{summary[1:]}.{now}\n",
        data=TodoData(items=items),
        warnings=(several,) if len(active) > 1 else (),
    )
