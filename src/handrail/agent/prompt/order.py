"""The order of tools in the prompt and the guide: the order of work, whoever registered them when."""

from collections.abc import Sequence

from handrail.protocol.tool_spec import Layer, Stage, ToolSpec

_STAGES: tuple[Stage, ...] = ("look", "read", "change", "run", "other")
_LAYERS: tuple[Layer, ...] = ("base", "companion", "gain")


def sort_specs(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """By the step of work that they serve; within one the base tools first, then by name."""
    return sorted(specs, key=lambda spec: (_STAGES.index(spec.stage), _LAYERS.index(spec.layer), spec.name))
