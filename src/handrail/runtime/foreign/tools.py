"""Makes a tool of ours of one that another server lists."""

import re
from typing import Literal

import msgspec

from handrail.protocol.decision import ForeignFact
from handrail.protocol.permission import Permission, Preview
from handrail.protocol.tool import Foreign, ForeignArguments, ForeignData, ToolSpec
from handrail.protocol.wire import encode
from handrail.protocol.wording import visible
from handrail.runtime.foreign.calling import call
from handrail.runtime.foreign.checking import problems_of
from handrail.runtime.foreign.describing import described, fingerprint
from handrail.runtime.foreign.known import Known
from handrail.runtime.foreign.naming import name_of
from handrail.runtime.foreign.showing import as_shown
from handrail.runtime.foreign.unseen import seen, seen_in
from handrail.runtime.sources import ForeignTool, ToolSource
from handrail.tools.contract import CommandContext, Output, Tool, Touched
from handrail.tools.custom import ANY_EFFECT

_LONGEST_DESCRIPTION = 10_000
_MOST_SHOWN = 20_000
"""Characters of arguments, or of a difference, that a request shows."""


def foreign_tool(source: ToolSource, listed: ForeignTool, known: Known, *, looks: bool) -> Tool:
    """The tool. `known`: as what it was met before; `looks`: whether somebody vouches that it changes nothing."""
    server = source.server
    spec = spec_of(server, listed, looks=looks, reach=source.reach)

    def fact() -> ForeignFact:
        changed = known.is_another(server, described(listed))
        return ForeignFact(server=server, tool=listed.name, read_only=listed.read_only, changed=changed)

    def preview(_: CommandContext, arguments: ForeignArguments) -> Preview:
        difference = known.difference(server, described(listed))
        if difference is not None:
            return _cut("diff", difference)
        return _cut("input", msgspec.json.format(encode(arguments.given), indent=2).decode())

    def run(context: CommandContext, arguments: ForeignArguments) -> Output:
        return call(source, spec, context, arguments, looks=looks)

    return Tool(spec, run, lambda _: Touched(foreign=fact()), preview, context=CommandContext)


def spec_of(server: str, listed: ForeignTool, *, looks: bool, reach: tuple[Permission, ...] = ()) -> ToolSpec:
    """All that is said of a tool here. What its server says is cleaned, cut, and nowhere believed."""
    title = visible(" ".join(seen(listed.title).split()), 80)
    return ToolSpec(
        name=name_of(server, listed.name),
        title=f"{title or visible(listed.name, 80)} ({server})",  # or it could pass for one of ours
        description=seen(listed.description)[:_LONGEST_DESCRIPTION] or title or visible(listed.name, 80),
        arguments=ForeignArguments,
        data=ForeignData,
        side_effects=() if looks else ANY_EFFECT,
        category="mcp",
        server=server,
        # The stranger's words stay where models look for them: the prompt is the person's.
        intent=f"call {re.sub(r'[^A-Za-z0-9]+', ' ', listed.name)[:60].strip() or 'a tool'} of the server {server}",
        foreign=Foreign(
            name=listed.name,
            input_schema=as_shown(seen_in(listed.input_schema)),
            output_schema=seen_in(listed.output_schema),
            fingerprint=fingerprint(described(listed)),
            problems=lambda given: problems_of(listed.input_schema, given),
            reach=reach,
        ),
    )


def _cut(kind: Literal["diff", "input"], text: str) -> Preview:
    shown, truncated = text[:_MOST_SHOWN], len(text) > _MOST_SHOWN
    return Preview(kind=kind, text=shown, truncated=truncated)
