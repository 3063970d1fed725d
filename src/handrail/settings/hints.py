"""What more there is to say about a value that is refused: which part of it is wrong, and what was meant."""

from typing import cast

from handrail.policy.rules.foreign_names import FOREIGN
from handrail.settings.errors import shown
from handrail.settings.ranges import nearest

_MOST = 3


def hint(key: str, value: object) -> str:
    """The end of a sentence about a refused value; empty where its beginning says everything."""
    if key == "sandbox.environment":
        return _about_variables(value)
    if key == "network.allow":
        return _about_hosts(value)
    if key == "tools.deny" and FOREIGN in shown(value):
        return "; tools of other servers are taken away by tools.disable"
    section, _, name = key.partition(".")
    meant = nearest(name, value) if section == "limits" else None
    return f'; did you mean "{meant}"?' if meant else ""


def _about_hosts(value: object) -> str:
    from handrail.policy.network.entries import parse_entry  # noqa: PLC0415 - only for an error

    told: list[str] = []
    for entry in cast("list[object]", value) if isinstance(value, list | tuple) else []:
        try:
            parse_entry(entry) if isinstance(entry, str) else None
        except ValueError as error:
            told.append("; " + str(error).partition(". Write ")[0])
    return "".join(told[:_MOST])


def _about_variables(value: object) -> str:
    from handrail.policy.variables import why_kept_back  # noqa: PLC0415 - only for an error

    names = cast("list[object]", value) if isinstance(value, list | tuple) else []
    reasons = {name: why_kept_back(name) for name in names if isinstance(name, str)}
    told = [f"; {shown(name)} {reason}" for name, reason in reasons.items() if reason]
    return "".join(told[:_MOST])
