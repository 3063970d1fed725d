"""The layers of settings, each checked on its own before they are merged."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from handrail.settings.check import DEFAULTS, find_invalid_values
from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.reference import REFERENCE

if TYPE_CHECKING:
    from handrail.policy.rules.rule import Rule
    from handrail.settings.servers import ServerTable
    from handrail.settings.strictness import LayerKind

_VARIABLES = {"mode": "HANDRAIL_MODE", "model": "HANDRAIL_MODEL"}


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Values by dotted key, all known and allowed, and where they come from."""

    kind: "LayerKind"
    source: str
    values: Mapping[str, object] = {}
    rules: "tuple[Rule, ...]" = ()
    servers: "Mapping[str, ServerTable] | None" = None
    """Other MCP servers by name; None where nothing is said of them."""
    lines: Mapping[str, int] = {}
    """Where the values stand, for a file."""
    trusted: bool = True
    """Whether it may loosen anything at all."""

    @property
    def speaks(self) -> bool:
        """Whether it says anything."""
        return bool(self.values or self.rules) or self.servers is not None


def build_default_layer() -> Layer:
    """Every setting as it is when nobody says otherwise."""
    return Layer(kind="default", source="default", values=DEFAULTS)


def build_session_layer(said: Mapping[str, object]) -> Layer:
    """What was said for this session alone: values by dotted key, and under `rule` tables as a file has them."""
    values = {key: value for key, value in said.items() if key != "rule"}
    rules, problems = _session_rules(said["rule"]) if "rule" in said else ((), [])
    if problems := [*_described(find_invalid_values(values)), *problems]:
        raise SettingsError(
            "The session's settings cannot be used", problems, "Nothing was run. Correct them, then try again."
        )
    return Layer(kind="session", source="session", values=values, rules=rules)


def build_environment_layers(environ: Mapping[str, str]) -> list[Layer]:
    """HANDRAIL_MODE, which can be stricter than what the layers below say, never looser; HANDRAIL_MODEL."""
    given = {key: (name, environ[name]) for key, name in _VARIABLES.items() if environ.get(name)}
    for key, (name, value) in given.items():
        if find_invalid_values({key: value}):
            allowed = REFERENCE[key].allowed
            raise SettingsError(
                "The environment cannot be used",
                [f"{name} is {truncate_repr(value)}; allowed: {allowed}"],
                f"Nothing was run. Set {name} to {'one of these' if key == 'mode' else 'such a name'}, or unset it.",
            )
    return [
        Layer(kind="environment", source=f"environment {name}", values={key: value})
        for key, (name, value) in given.items()
    ]


def build_flag_layer(flags: Mapping[str, object]) -> Layer:
    """What was given on the command line; None is a flag that was not."""
    values = {key: value for key, value in flags.items() if value is not None}
    if wrong := find_invalid_values(values):
        raise SettingsError(
            "The flags cannot be used", _described(wrong), "Nothing was run. Correct them, then try again."
        )
    return Layer(kind="flag", source="flag", values=values)


def _session_rules(tables: object) -> "tuple[tuple[Rule, ...], list[str]]":
    from handrail.settings.rule_tables import parse_rules  # noqa: PLC0415 - only where there are rules

    return parse_rules(tables, "session", "")


def _described(wrong: Mapping[str, object]) -> list[str]:
    if not wrong:
        return []
    from handrail.settings.problem import describe_refused  # noqa: PLC0415 - only for an error

    return describe_refused(wrong)
