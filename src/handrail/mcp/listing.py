"""Our tools as the protocol lists them."""

from functools import lru_cache
from typing import Any

from handrail.protocol.result import ToolResult
from handrail.protocol.schema import flat_schema
from handrail.protocol.tool import ToolSpec, input_schema


def tool_entry(spec: ToolSpec) -> dict[str, Any]:
    """One tool: what it takes, what it gives (a whole result of ours), and hints about what it does."""
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": input_schema(spec),
        "outputSchema": _result_schema(spec.data),
        "annotations": annotations(spec),
    }


def annotations(spec: ToolSpec) -> dict[str, Any]:
    """What a client may tell its person about a tool before it is called."""
    only_looks = not spec.side_effects
    return {
        "title": spec.title,
        "readOnlyHint": only_looks,
        "destructiveHint": not only_looks,
        "idempotentHint": only_looks,
        "openWorldHint": "network" in spec.side_effects,
    }


@lru_cache(256)
def _result_schema(data: Any) -> dict[str, Any]:
    return flat_schema(ToolResult[data])
