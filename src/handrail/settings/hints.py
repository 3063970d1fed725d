"""What more there is to say about a value that is refused: which part of it is wrong, and what was meant."""

from typing import cast

from handrail.policy.rules.foreign_names import MCP_PREFIX
from handrail.settings.errors import truncate_repr
from handrail.settings.ranges import suggest_amount

_MAX_HINTS = 3


def describe_hint(key: str, value: object) -> str:
    """The end of a sentence about a refused value; empty where its beginning says everything."""
    if key == "sandbox.environment":
        return _about_variables(value)
    if key == "network.allow":
        return _about_hosts(value)
    if key == "tools.deny" and MCP_PREFIX in truncate_repr(value):
        return "; tools of other servers are taken away by tools.disable"
    section, _, name = key.partition(".")
    meant = suggest_amount(name, value) if section == "limits" else None
    return f'; did you mean "{meant}"?' if meant else ""


def _about_hosts(value: object) -> str:
    from handrail.policy.network.entries import parse_host_pattern  # noqa: PLC0415 - only for an error

    told: list[str] = []
    for entry in cast("list[object]", value) if isinstance(value, list | tuple) else []:
        try:
            parse_host_pattern(entry) if isinstance(entry, str) else None
        except ValueError as error:
            told.append("; " + str(error).partition(". Write ")[0])
    return "".join(told[:_MAX_HINTS])


def _about_variables(value: object) -> str:
    from handrail.policy.variables import find_withheld_reason  # noqa: PLC0415 - only for an error

    names = cast("list[object]", value) if isinstance(value, list | tuple) else []
    reasons = {name: find_withheld_reason(name) for name in names if isinstance(name, str)}
    told = [f"; {truncate_repr(name)} {reason}" for name, reason in reasons.items() if reason]
    return "".join(told[:_MAX_HINTS])
