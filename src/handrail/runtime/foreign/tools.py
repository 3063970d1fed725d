"""Makes a tool of ours of one that another server lists."""

import re
from typing import Literal

import msgspec

from handrail.protocol.decisions import ForeignFact
from handrail.protocol.permissions import Permission, Preview
from handrail.protocol.text import clip_text
from handrail.protocol.tool_spec import Foreign, ForeignArguments, ForeignData, ToolSpec
from handrail.protocol.wire import encode
from handrail.runtime.foreign.calling import call_foreign_tool
from handrail.runtime.foreign.checking import find_argument_problems
from handrail.runtime.foreign.describing import compute_fingerprint, to_description
from handrail.runtime.foreign.known import PinStore
from handrail.runtime.foreign.naming import build_tool_name
from handrail.runtime.foreign.showing import clean_schema
from handrail.runtime.foreign.unseen import strip_invisible, strip_invisible_schema
from handrail.runtime.sources import ForeignTool, ToolSource
from handrail.tools.contract import CommandContext, Output, Tool, Touches
from handrail.tools.custom import ANY_EFFECT

_MAX_DESCRIPTION_CHARS = 10_000
_MAX_SHOWN_CHARS = 20_000
"""Characters of arguments, or of a difference, that a request shows."""


def build_foreign_tool(source: ToolSource, listed: ForeignTool, known: PinStore, *, looks: bool) -> Tool:
    """The tool. `known`: as what it was met before; `looks`: whether somebody vouches that it changes nothing."""
    server = source.server
    spec = build_foreign_spec(server, listed, looks=looks, reach=source.reach)

    def fact() -> ForeignFact:
        changed = known.is_changed(server, to_description(listed))
        return ForeignFact(server=server, tool=listed.name, read_only=listed.read_only, changed=changed)

    def preview(_: CommandContext, arguments: ForeignArguments) -> Preview:
        difference = known.difference(server, to_description(listed))
        if difference is not None:
            return _cut("diff", difference)
        return _cut("input", msgspec.json.format(encode(arguments.given), indent=2).decode())

    def run(context: CommandContext, arguments: ForeignArguments) -> Output:
        return call_foreign_tool(source, spec, context, arguments, looks=looks)

    return Tool(spec, run, lambda _: Touches(foreign=fact()), preview, context=CommandContext)


def build_foreign_spec(
    server: str, listed: ForeignTool, *, looks: bool, reach: tuple[Permission, ...] = ()
) -> ToolSpec:
    """All that is said of a tool here. What its server says is cleaned, cut, and nowhere believed."""
    title = clip_text(" ".join(strip_invisible(listed.title).split()), 80)
    return ToolSpec(
        name=build_tool_name(server, listed.name),
        title=f"{title or clip_text(listed.name, 80)} ({server})",  # or it could pass for one of ours
        description=strip_invisible(listed.description)[:_MAX_DESCRIPTION_CHARS] or title or clip_text(listed.name, 80),
        arguments=ForeignArguments,
        data=ForeignData,
        side_effects=() if looks else ANY_EFFECT,
        category="mcp",
        server=server,
        # The stranger's words stay where models look for them: the prompt is the person's.
        intent=f"call {re.sub(r'[^A-Za-z0-9]+', ' ', listed.name)[:60].strip() or 'a tool'} of the server {server}",
        foreign=Foreign(
            name=listed.name,
            input_schema=clean_schema(strip_invisible_schema(listed.input_schema)),
            output_schema=strip_invisible_schema(listed.output_schema),
            fingerprint=compute_fingerprint(to_description(listed)),
            problems=lambda given: find_argument_problems(listed.input_schema, given),
            reach=reach,
        ),
    )


def _cut(kind: Literal["diff", "input"], text: str) -> Preview:
    shown, truncated = text[:_MAX_SHOWN_CHARS], len(text) > _MAX_SHOWN_CHARS
    return Preview(kind=kind, text=shown, truncated=truncated)
