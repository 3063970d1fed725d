"""Texts of a server without the secrets that it was given."""

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

from handrail.protocol.text import escape_unprintable, truncate
from handrail.settings.mcp_json import ConfiguredServer

_MIN_SECRET_CHARS = 6
"""Shorter secrets are in any text by chance."""
_MAX_LINE_CHARS = 300
_MAX_PROGRESS_CHARS = 500


class Redactor:
    """Replaces each secret of a server by its name."""

    def __init__(self, server: ConfiguredServer) -> None:
        secrets = {
            part: name
            for name, value in server.list_secrets()
            for part in _split_secret(value)
            if len(part) >= _MIN_SECRET_CHARS
        }
        self._secrets = sorted(secrets.items(), key=lambda one: -len(one[0]))

    def redact(self, text: str) -> str:
        """The text without secrets. Truncate it afterwards only: half of a secret is not recognised."""
        for secret, name in self._secrets:
            text = text.replace(secret, f"[{name}]")
        return text

    def redact_line(self, text: str) -> str:
        """A text of the server as a short line."""
        return render_line(self.redact(text))

    def redact_progress(self, text: str) -> str:
        """A progress text of the server, for live views."""
        return render_line(self.redact(text), _MAX_PROGRESS_CHARS)

    def redact_json(self, value: Any) -> Any:
        """A JSON value without secrets at any depth."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_json(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.redact(key): self.redact_json(one) for key, one in cast("dict[str, Any]", value).items()}
        return value


def render_line(text: str, most: int = _MAX_LINE_CHARS) -> str:
    """The text on one line, with unprintable characters escaped, truncated."""
    return truncate(escape_unprintable(" ".join(text.split())[: most + 1]), most)


def _split_secret(value: str) -> Iterator[str]:
    """The value, and the parts of it that are secret alone: a token after `Bearer`, the password in an address."""
    yield value
    yield value.partition(" ")[2].strip()
    if "://" in value and "@" in value:
        password = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
        yield from (password, unquote(password))
