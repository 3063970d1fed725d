"""The secrets that a server was given, so that they can be kept out of what is written down."""

from typing import Any, cast

from handrail.policy.secret_values import looks_random, looks_secret
from handrail.policy.variables import names_secret
from handrail.settings.project_servers import Server

_SHORTEST = 6
"""Characters: a shorter one is in any text by chance."""


class Secrets:
    """Replaces each by the name that it was given under."""

    def __init__(self, server: Server) -> None:
        given = (*server.variables, *server.headers)
        found = [(value, name) for name, value in given if _is_secret(name, value)]
        found += [(value.partition(" ")[2], name) for value, name in found if value.lower().startswith("bearer ")]
        usable = [(value, name) for value, name in found if len(value) >= _SHORTEST]
        self._found = sorted(usable, key=lambda one: -len(one[0]))

    def hidden(self, text: str) -> str:
        """The text without them."""
        for value, name in self._found:
            text = text.replace(value, f"[{name}]")
        return text

    def hidden_in(self, value: Any) -> Any:
        """A JSON value without them, whatever it is made of."""
        if not self._found:
            return value
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self.hidden_in(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.hidden(key): self.hidden_in(one) for key, one in cast("dict[str, Any]", value).items()}
        return value


def _is_secret(name: str, value: str) -> bool:
    return names_secret(name) or looks_secret(value) or looks_random(value)
