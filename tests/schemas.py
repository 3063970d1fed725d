"""Validates events and messages by the schemas that are exported, which anybody else would go by too."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from handrail.protocol.schema import build_wire_schemas


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    return build_wire_schemas()


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(_schemas()[name])


def validate(value: Any, room: str = "event") -> None:
    """An event as JSON, or a message of the talk (`room="message"`); ValidationError where it is not as promised."""
    _validator(f"{room}.{value['kind']}").validate(value)
