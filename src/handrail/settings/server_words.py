"""What a server is, in a few words that hold no secret."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail.policy.secret_values import looks_random, looks_secret
from handrail.policy.variables import names_secret
from handrail.settings.errors import plain

if TYPE_CHECKING:
    from handrail.settings.servers import ServerTable

_HIDDEN = "…"
_LONGEST_COMMAND = 500
_OF_A_SHELL = re.compile(r"[;&|<>(){}$`\n]")
_TOKEN = re.compile(r"""(?:(?:bearer|basic)\s+)?[^\s;&|<>(){}$`'"\\]+""", re.IGNORECASE)


def server_words(table: "ServerTable") -> str:
    """`runs npx -y a-server, with GITHUB_TOKEN; reaches api.github.com`."""
    if table.url is not None:
        first = f"connects to {origin(table.url)}"
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
    return plain("; ".join((first, *told)))


def origin(url: str) -> str:
    """The server of an address: the rest of it may hold a token."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else _HIDDEN
    except ValueError:
        return _HIDDEN


def _command_words(words: tuple[str, ...]) -> str:
    """What is run, word by word as a shell would take it; what is too long says how much of it is not shown."""
    line = plain(" ".join(_shown_words(words)))
    if len(line) <= _LONGEST_COMMAND:
        return line
    return f"{line[:_LONGEST_COMMAND]}… ({len(line) - _LONGEST_COMMAND:,} characters more)"


def _shown_words(words: tuple[str, ...]) -> Iterator[str]:
    """The words of a command; what looks like a secret, or stands behind an option that is called so, is left out."""
    yield shlex.quote(words[0])  # which is never a secret
    for before, word in pairwise(words):
        option, sign, _ = word.partition("=")
        after = before.startswith("-") and "=" not in before and names_secret(before)
        parts = _TOKEN.sub(lambda token: _HIDDEN if _is_secret(token[0]) else token[0], word)
        if _OF_A_SHELL.search(word) or (" " in word and parts not in {word, _HIDDEN}):
            yield shlex.quote(parts)  # more than a value: no program may pass for a key, which is left out
        elif sign and names_secret(option):
            yield f"{option}={_HIDDEN}"
        else:
            yield _HIDDEN if after or _is_secret(word) else shlex.quote(word)


def _is_secret(word: str) -> bool:
    return looks_secret(word) or looks_random(word)
