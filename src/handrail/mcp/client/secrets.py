"""The secrets that a server was given, so that they can be kept out of what is written down."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from handrail.policy.secret_values import looks_random, looks_secret
from handrail.policy.variables import names_secret
from handrail.settings.project_servers import Server

_SHORTEST = 6
"""Characters: a shorter one is in any text by chance."""


class Secrets:
    """Replaces each by the name that it was given under."""

    def __init__(self, server: Server) -> None:
        given = (*_by_name(server), *_of_words(server.words), *_of_address(server.url))
        found = {part: name for name, value in given for part in _parts(value) if len(part) >= _SHORTEST}
        self._found = sorted(found.items(), key=lambda one: -len(one[0]))

    def hidden(self, text: str) -> str:
        """The text without them. Who cuts it, cuts it afterwards: half of a secret is not recognised."""
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


def _by_name(server: Server) -> Iterator[tuple[str, str]]:
    for name, value in (*server.variables, *server.headers):
        if names_secret(name) or _looks_like_one(value):
            yield name, value


def _of_words(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Not what only looks random: that may be a folder, which every other result names."""
    for option, word in pairwise(words):
        name, sign, value = word.partition("=")
        if sign and names_secret(name):
            yield name.lstrip("-"), value
        elif option.startswith("-") and "=" not in option and names_secret(option):
            yield option.lstrip("-"), word
        elif looks_secret(word):
            yield "argument", word


def _of_address(url: str) -> Iterator[tuple[str, str]]:
    parts = urlsplit(url)
    for segment in parts.path.split("/"):
        if _looks_like_one(segment):
            yield "url", segment
    for name, value in parse_qsl(parts.query):
        if names_secret(name) or _looks_like_one(value):
            yield name, value


def _parts(value: str) -> Iterator[str]:
    """The whole, and what of it is told alone: what follows `Bearer`, the password in an address."""
    yield value
    yield value.partition(" ")[2].strip()
    if "://" in value and "@" in value:
        password = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
        yield from (password, unquote(password))


def _looks_like_one(value: str) -> bool:
    return looks_secret(value) or looks_random(value)
