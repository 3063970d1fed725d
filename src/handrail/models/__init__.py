"""Models behind one protocol. Packages of providers are imported when a model is called."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.models.base import ModelError
    from handrail.models.registry import find_model, warm_up

__all__ = ["ModelError", "find_model", "warm_up"]

_HOMES = {
    "ModelError": "handrail.models.base",
    "find_model": "handrail.models.registry",
    "warm_up": "handrail.models.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)
