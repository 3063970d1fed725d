"""What of a call's arguments may stand in the audit: enough to recognise it, not what it carried."""

from typing import Any

from handrail.protocol.wire import Json

_MAX_PLAIN_CHARS = 200
_MAX_NAME_CHARS = 40
_NUMBERS = (bool, int, float)


def redact_arguments(arguments: Json, plain: tuple[str, ...]) -> Json:
    """Numbers and the arguments a tool calls plain stay; every other text becomes its length."""
    if not isinstance(arguments, dict):
        return _hidden(arguments)
    items: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    return {name if name in plain else _shown(name): _kept(name, value, plain) for name, value in items.items()}


def redact_commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """What commands start, by the names of the programs: their other words may be anything."""
    if not commands:
        return ()
    from handrail.policy.confinement import build_runnable  # noqa: PLC0415  the tables are only for commands

    return tuple(dict.fromkeys(program for text in commands for program in build_runnable(text, ".").programs))


def _shown(name: object) -> str:
    """A name that no tool could have given may be a text in the place of one."""
    text = str(name)
    return text if text.isidentifier() and len(text) <= _MAX_NAME_CHARS else _hidden(text)


def _kept(name: object, value: Json, plain: tuple[str, ...]) -> Json:
    if value is None or isinstance(value, _NUMBERS):
        return value
    harmless = name in plain and isinstance(value, str) and len(value) <= _MAX_PLAIN_CHARS
    return value if harmless else _hidden(value)


def _hidden(value: Json) -> str:
    if isinstance(value, str):
        return f"<{len(value)} characters>"
    return f"<{type(value).__name__}>"
