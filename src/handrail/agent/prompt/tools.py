"""Which tool for what: the offered tools by what somebody wants, with their parameters."""

from collections.abc import Collection, Sequence

from handrail.agent.prompt.order import sort_specs
from handrail.agent.prompt.signatures import render_signature
from handrail.agent.prompt.words import describe_intent, uppercase_first
from handrail.protocol.tool_spec import ToolSpec

_TOOLS_HEAD = """\
# Which tool for what
Choose by purpose. Parameters with `=` have that value where you leave them out; those with `?` are optional too."""


def render_tools(specs: Sequence[ToolSpec]) -> str:
    """One line a tool."""
    if not specs:
        return "# Which tool for what\nNo tools are offered: answer from what you are told."
    names = {spec.name for spec in specs}
    return "\n".join((_TOOLS_HEAD, *(_render_tool(spec, names) for spec in sort_specs(specs))))


def describe_exclusions(spec: ToolSpec, names: Collection[str]) -> str:
    """What it is not for, with the tools that are, as far as they are offered."""
    others = [f"{what} ({name})" for what, name in spec.not_for if name in names]
    return f"not for {', '.join(others)}" if others else ""


def _render_tool(spec: ToolSpec, names: Collection[str]) -> str:
    others = describe_exclusions(spec, names)
    return f"- {uppercase_first(describe_intent(spec))}: `{render_signature(spec)}`{f'; {others}' if others else ''}"
