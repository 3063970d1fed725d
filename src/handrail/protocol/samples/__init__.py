"""One sample of every wire type, as JSON, all from a run. Nothing is loaded before it is asked for."""

from typing import Any


def build_wire_samples() -> dict[str, Any]:
    """A sample of every wire type by the name of its schema."""
    from handrail.protocol.samples.recorded import RECORDED  # noqa: PLC0415  only who exports or documents the contract pays
    from handrail.protocol.schema import WIRE_TYPES  # noqa: PLC0415  as above

    return {name: RECORDED[name] for name in WIRE_TYPES}
