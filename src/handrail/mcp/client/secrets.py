"""The secrets that a server was given, so that they can be kept out of what is written down."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from handrail.policy.secrets import is_random_value, is_secret_name, is_secret_value
from handrail.settings.mcp_json import ConfiguredServer

_MIN_SECRET_CHARS = 6
"""Characters: a shorter one is in any text by chance."""


class Secrets:
    """Replaces each by the name that it was given under."""

    def __init__(self, server: ConfiguredServer) -> None:
        given = (*_by_name(server), *_of_words(server.words), *_of_address(server.url))
        found = {part: name for name, value in given for part in _parts(value) if len(part) >= _MIN_SECRET_CHARS}
        self._found = sorted(found.items(), key=lambda one: -len(one[0]))

    def redact(self, text: str) -> str:
        """The text without them. Who cuts it, cuts it afterwards: half of a secret is not recognised."""
        for value, name in self._found:
            text = text.replace(value, f"[{name}]")
        return text

    def redact_value(self, value: Any) -> Any:
        """A JSON value without them, whatever it is made of."""
        if not self._found:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_value(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.redact(key): self.redact_value(one) for key, one in cast("dict[str, Any]", value).items()}
        return value


def _by_name(server: ConfiguredServer) -> Iterator[tuple[str, str]]:
    for name, value in (*server.variables, *server.headers):
        if is_secret_name(name) or _looks_like_one(value):
            yield name, value


def _of_words(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Not what only looks random: that may be a folder, which every other result names."""
    for option, word in pairwise(words):
        name, sign, value = word.partition("=")
        if sign and is_secret_name(name):
            yield name.lstrip("-"), value
        elif option.startswith("-") and "=" not in option and is_secret_name(option):
            yield option.lstrip("-"), word
        elif is_secret_value(word):
            yield "argument", word


def _of_address(url: str) -> Iterator[tuple[str, str]]:
    parts = urlsplit(url)
    for segment in parts.path.split("/"):
        if _looks_like_one(segment):
            yield "url", segment
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) or _looks_like_one(value):
            yield name, value


def _parts(value: str) -> Iterator[str]:
    """The whole, and what of it is told alone: what follows `Bearer`, the password in an address."""
    yield value
    yield value.partition(" ")[2].strip()
    if "://" in value and "@" in value:
        password = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
        yield from (password, unquote(password))


def _looks_like_one(value: str) -> bool:
    return is_secret_value(value) or is_random_value(value)
