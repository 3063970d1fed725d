"""The guide to the tools, for people: which one for what, layer by layer, made from the specs alone."""

from collections.abc import Collection, Sequence

from handrail.agent.prompt.order import in_order
from handrail.agent.prompt.signatures import signature
from handrail.agent.prompt.tools import not_for
from handrail.agent.prompt.words import capitalised, intent_of
from handrail.protocol.tool import Layer, ToolSpec

_LAYERS: tuple[tuple[Layer, str], ...] = (
    ("base", "Base layer: files and commands"),
    ("companion", "Companions: the talk with the person"),
    ("gain", "Gain layer: what the base layer lacks"),
)
_HEAD = "| to | take | not for |\n|---|---|---|"


def guide(specs: Sequence[ToolSpec]) -> str:
    """A table a layer, as Markdown; a layer that nothing is offered of is left out."""
    names = {spec.name for spec in specs}
    layers = ((title, [spec for spec in in_order(specs) if spec.layer == layer]) for layer, title in _LAYERS)
    return "\n".join(f"### {title}\n{_HEAD}\n{_rows(found, names)}\n" for title, found in layers if found)


def _rows(specs: Sequence[ToolSpec], names: Collection[str]) -> str:
    return "\n".join(f"| {' | '.join(_cells(spec, names))} |" for spec in specs)


def _cells(spec: ToolSpec, names: Collection[str]) -> tuple[str, str, str]:
    off = "" if spec.enabled else " (off by default)"
    call = f"`{signature(spec)}`{off}"
    return _cell(capitalised(intent_of(spec))), _cell(call), _cell(not_for(spec, names).removeprefix("not for "))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
