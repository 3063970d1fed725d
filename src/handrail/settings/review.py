"""Looks through the rules of all layers together when they are loaded."""

from handrail.policy.rules.review import review
from handrail.policy.rules.rule import Rule
from handrail.protocol.text import escape_unprintable
from handrail.settings.errors import SettingsError
from handrail.settings.layers import Layer
from handrail.settings.problem import list_first_problems


def review_rules(rules: tuple[Rule, ...], layers: list[Layer]) -> tuple[str, ...]:
    """What a person should be told about the rules; a SettingsError where they cannot be used."""
    faults = review(rules)
    if problems := list_first_problems(escape_unprintable(fault.problem) for fault in faults if fault.is_error):
        where = " and ".join(layer.source for layer in layers if layer.rules)
        raise SettingsError(
            f"The rules cannot be used ({where})", problems, "Nothing was run. Correct them, then try again."
        )
    return tuple(escape_unprintable(fault.problem) for fault in faults)
