"""The guide to the tools, for people: which one for what, group by group, made from the specs alone."""

from collections.abc import Collection, Sequence

from handrail.agent.prompt.order import sort_specs
from handrail.agent.prompt.signatures import render_signature
from handrail.agent.prompt.tools import describe_exclusions
from handrail.agent.prompt.words import describe_intent, uppercase_first
from handrail.protocol.tool_spec import Layer, ToolSpec

_LAYER_TITLES: tuple[tuple[Layer, str], ...] = (
    ("base", "Base tools: files and commands"),
    ("companion", "Companions: the conversation with the person"),
    ("gain", "Extra tools: what the base tools lack"),
)
_TABLE_HEAD = "| to | take | not for |\n|---|---|---|"


def render_guide(specs: Sequence[ToolSpec]) -> str:
    """A table for each group, as Markdown; a group without tools is left out."""
    names = {spec.name for spec in specs}
    layers = ((title, [spec for spec in sort_specs(specs) if spec.layer == layer]) for layer, title in _LAYER_TITLES)
    return "\n".join(f"### {title}\n{_TABLE_HEAD}\n{_rows(found, names)}\n" for title, found in layers if found)


def _rows(specs: Sequence[ToolSpec], names: Collection[str]) -> str:
    return "\n".join(f"| {' | '.join(_cells(spec, names))} |" for spec in specs)


def _cells(spec: ToolSpec, names: Collection[str]) -> tuple[str, str, str]:
    off = "" if spec.enabled else " (off by default)"
    call = f"`{render_signature(spec)}`{off}"
    return (
        _cell(uppercase_first(describe_intent(spec))),
        _cell(call),
        _cell(describe_exclusions(spec, names).removeprefix("not for ")),
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
