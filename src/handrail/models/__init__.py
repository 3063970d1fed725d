"""Models: what the loop asks, whoever answers. Providers are imported when one is called."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.models.finding import find_model
    from handrail.models.loading import warm_up
    from handrail.models.model import ModelError

__all__ = ["ModelError", "find_model", "warm_up"]

_HOMES = {
    "ModelError": "handrail.models.model",
    "find_model": "handrail.models.finding",
    "warm_up": "handrail.models.loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)
