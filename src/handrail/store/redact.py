"""What of a call's arguments may stand in the audit: enough to recognise it, not what it carried."""

from typing import Any

from handrail.protocol.wire import Json

_PLAIN_LENGTH = 200
_NUMBERS = (bool, int, float)


def redacted(arguments: Json, plain: tuple[str, ...]) -> Json:
    """Numbers and the arguments a tool calls plain stay; every other text becomes its length."""
    if not isinstance(arguments, dict):
        return _hidden(arguments)
    items: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    return {str(name)[:80]: value if _harmless(name, value, plain) else _hidden(value) for name, value in items.items()}


def _harmless(name: str, value: Json, plain: tuple[str, ...]) -> bool:
    if value is None or isinstance(value, _NUMBERS):
        return True
    return name in plain and isinstance(value, str) and len(value) <= _PLAIN_LENGTH


def _hidden(value: Json) -> str:
    if isinstance(value, str):
        return f"<{len(value)} characters>"
    return f"<{type(value).__name__}>"
