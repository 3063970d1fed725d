"""What a server is, in a few words that hold no secret."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail.policy.secret_values import is_random_value, is_secret_value
from handrail.policy.variables import is_secret_name
from handrail.protocol.text import escape_unprintable

if TYPE_CHECKING:
    from handrail.settings.servers import ServerTable

_HIDDEN = "…"
_MAX_COMMAND_CHARS = 500
_OF_A_SHELL = re.compile(r"[;&|<>(){}$`\n]")
_TOKEN = re.compile(r"""(?:(?:bearer|basic)\s+)?[^\s;&|<>(){}$`'"\\]+""", re.IGNORECASE)


def describe_server(table: "ServerTable") -> str:
    """`runs npx -y a-server, with GITHUB_TOKEN; reaches api.github.com`."""
    if table.url is not None:
        first = f"connects to {to_origin(table.url)}"
    elif table.command is not None:
        first = f"runs {_command_words((table.command, *table.args))}"
    else:
        first = "adds to the one of .mcp.json"
    names = (*table.env, *table.headers)
    told = [
        *([f"with {', '.join(names)}"] if names else []),
        *([f"reaches {', '.join(table.network)}"] if table.network else []),
        *(["changes the workspace"] if table.writable else []),
        *([f"asks less for {', '.join(table.read_only)}"] if table.read_only else []),
        *(["is believed about which tools only look"] if table.hints else []),
        *([] if table.enabled else ["switched off"]),
    ]
    return escape_unprintable("; ".join((first, *told)))


def to_origin(url: str) -> str:
    """The server of an address: the rest of it may hold a token."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else _HIDDEN
    except ValueError:
        return _HIDDEN


def _command_words(words: tuple[str, ...]) -> str:
    """What is run, word by word as a shell would take it; what is too long says how much of it is not shown."""
    line = escape_unprintable(" ".join(_shown_words(words)))
    if len(line) <= _MAX_COMMAND_CHARS:
        return line
    return f"{line[:_MAX_COMMAND_CHARS]}… ({len(line) - _MAX_COMMAND_CHARS:,} characters more)"


def _shown_words(words: tuple[str, ...]) -> Iterator[str]:
    """The words of a command; what looks like a secret, or stands behind an option that is called so, is left out."""
    yield shlex.quote(words[0])  # which is never a secret
    for before, word in pairwise(words):
        option, sign, _ = word.partition("=")
        after = before.startswith("-") and "=" not in before and is_secret_name(before)
        parts = _TOKEN.sub(lambda token: _HIDDEN if _is_secret(token[0]) else token[0], word)
        if _OF_A_SHELL.search(word) or (" " in word and parts not in {word, _HIDDEN}):
            yield shlex.quote(parts)  # more than a value: no program may pass for a key, which is left out
        elif sign and is_secret_name(option):
            yield f"{option}={_HIDDEN}"
        else:
            yield _HIDDEN if after or _is_secret(word) else shlex.quote(word)


def _is_secret(word: str) -> bool:
    return is_secret_value(word) or is_random_value(word)
