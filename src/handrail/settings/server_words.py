"""What a server is, in a few words that hold no secret."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail.policy.secret_values import looks_random, looks_secret
from handrail.policy.variables import names_secret
from handrail.settings.errors import clip, plain

if TYPE_CHECKING:
    from handrail.settings.servers import ServerTable

_HIDDEN = "…"


def server_words(table: "ServerTable") -> str:
    """`runs npx -y a-server, with GITHUB_TOKEN; reaches api.github.com`."""
    if table.url is not None:
        first = f"connects to {origin(table.url)}"
    elif table.command is not None:
        first = f"runs {clip(plain(' '.join(_shown_words((table.command, *table.args)))))}"
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


def _shown_words(words: tuple[str, ...]) -> list[str]:
    """The words of a command; what looks like a secret, or stands behind an option that is called so, is left out."""
    shown: list[str] = []
    for at, word in enumerate(words):
        option, sign, _ = word.partition("=")
        after = at > 0 and words[at - 1].startswith("-") and "=" not in words[at - 1] and names_secret(words[at - 1])
        if sign and names_secret(option):
            shown.append(f"{option}={_HIDDEN}")
        elif after or looks_secret(word) or looks_random(word):
            shown.append(_HIDDEN)
        else:
            shown.append(word)
    return shown
