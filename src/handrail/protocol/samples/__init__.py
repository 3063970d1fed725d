"""One sample of every wire type, as JSON. Nothing is loaded before it is asked for."""

from typing import Any


def wire_samples() -> dict[str, Any]:
    """A sample of every wire type by the name of its schema."""
    from handrail.protocol.samples.made import MADE  # noqa: PLC0415  only who exports or documents the contract pays
    from handrail.protocol.samples.recorded import RECORDED  # noqa: PLC0415  as above
    from handrail.protocol.schema import WIRE_TYPES  # noqa: PLC0415  as above

    samples = MADE | RECORDED
    return {name: samples[name] for name in WIRE_TYPES}


def made_by_hand() -> frozenset[str]:
    """The samples of what nothing emits yet; all others come from a run."""
    from handrail.protocol.samples.made import MADE  # noqa: PLC0415  as above

    return frozenset(MADE)
