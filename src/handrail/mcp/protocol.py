"""The Model Context Protocol as clients speak it: versions, capabilities, error codes, roots."""

from typing import Any, Literal, cast, get_args

import msgspec

from handrail.protocol.errors import list_frames

HANDSHAKE = ("2025-06-18", "2025-11-25")
"""The versions that begin with `initialize`, the oldest first."""
MODERN = ("2026-07-28",)
"""The versions without a handshake. Each request names its version, its client and the client's capabilities."""
SUPPORTED = (*HANDSHAKE, *MODERN)

LEVEL_KEY = "io.modelcontextprotocol/logLevel"
"""The field of a modern request's `_meta` with its log level."""

BUSY = -32010
"""Our own error code: too many requests. To the official clients -32000 and -32001 mean something else."""
SAME_ID = "a request with this id is still running; use each id once."

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels of log messages, the least severe first."""
DEFAULT_LEVEL: Level = "warning"
"""The log level of a client with a handshake until it sets another."""

# Clients that deviate from the protocol, by the names that they send. docs/how-to/add-to-your-agent.md lists the tested
# versions. A name grants no permission.
_SHOWS_STRUCTURE_ONLY = frozenset(
    {"claude-code", "codex-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"}
)
"""They show their model `structuredContent` instead of the text. Ours is the whole result for programs, with the output
of a command in it twice. Claude Code stores a result of that length in a file. VS Code is listed by its source."""
_SENDS_NO_EMPTY_FIELD = frozenset({"codex-mcp-client"})
"""Their forms cannot be sent while a text field is empty, not even an optional one."""

_MAX_LISTED_ROOTS = 256


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A client, by its `initialize` or by the `_meta` of a modern request."""

    name: str = ""
    version: str = ""
    protocol: str = HANDSHAKE[-1]
    elicits: bool = False
    """Whether it can show a form to its user."""
    has_roots: bool = False
    """Whether it can list the folders that it works on."""

    @property
    def modern(self) -> bool:
        return is_modern(self.protocol)

    @property
    def reads_text(self) -> bool:
        """Whether it gets results as text alone. Its model would not see the text otherwise."""
        return self.name in _SHOWS_STRUCTURE_ONLY

    @property
    def fills_all_fields(self) -> bool:
        """Whether its forms cannot leave a field empty."""
        return self.name in _SENDS_NO_EMPTY_FIELD


def parse_caller(protocol: str, info: object, capabilities: object) -> Caller:
    known, able = _get_object(info), _get_object(capabilities)
    elicitation = able.get("elicitation")
    return Caller(
        name=_get_text(known.get("name")),
        version=_get_text(known.get("version")),
        protocol=protocol,
        # Forms were there first: a client that names no kind means them.
        elicits=isinstance(elicitation, dict) and (not elicitation or "form" in elicitation),
        has_roots=isinstance(able.get("roots"), dict),
    )


def negotiate_version(requested: object) -> str:
    """The version of a handshake: the requested one, or else our latest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE else HANDSHAKE[-1]


def is_modern(version: str) -> bool:
    """Whether a version has no handshake."""
    return version in MODERN


def describe_defect(error: Exception) -> str:
    """Tells a person where a defect is. It leaves out the text of the error, which may hold contents."""
    where = (list_frames(error) or ["an unknown place"])[-1]
    return f"handrail: an internal error occurred ({type(error).__name__} at {where}); the server continues"


def parse_roots(result: dict[str, Any]) -> tuple[str, ...]:
    """The folders of this machine in an answer to `roots/list`. Other roots are ignored."""
    listed = result.get("roots")
    roots = cast("list[Any]", listed)[:_MAX_LISTED_ROOTS] if isinstance(listed, list) else []
    found = [_parse_root(cast("dict[str, Any]", root).get("uri")) for root in roots if isinstance(root, dict)]
    return tuple(folder for folder in found if folder is not None)


def _parse_root(uri: object) -> str | None:
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415  few clients have roots, and all wait for the start

    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="surrogateescape")
    except ValueError:
        return None
    is_local = parts.scheme == "file" and parts.netloc in {"", "localhost"}
    is_whole = "?" not in uri and "#" not in uri  # otherwise the path is cut, mostly to a folder above
    return path if is_local and is_whole and path.startswith("/") and "\0" not in path else None


def _get_object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _get_text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""
