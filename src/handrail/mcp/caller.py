"""Who is at the other end, as far as it said."""

from typing import Any, Literal, cast, get_args

import msgspec

from handrail.mcp.quirks import SENDS_NO_EMPTY_FIELD, SHOWS_STRUCTURE_ONLY
from handrail.mcp.versions import HANDSHAKE, MODERN

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
"""What a request of a version without a handshake says about itself, in its `_meta`."""


Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""How grave a log message is, the least first."""
DEFAULT_LEVEL: Level = "warning"
"""From where on a client with a handshake is told that has not said so."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A client: by its `initialize`, or by what a request of a version without a handshake says."""

    name: str = ""
    version: str = ""
    protocol: str = HANDSHAKE[-1]
    elicits: bool = False
    """Whether it can put a form to its person."""
    has_roots: bool = False
    """Whether it tells which folders it works on."""

    @property
    def modern(self) -> bool:
        """Whether its version has no handshake."""
        return self.protocol in MODERN

    @property
    def reads_text(self) -> bool:
        """Whether it is to have results as text alone, since its model would not see the text else."""
        return self.name in SHOWS_STRUCTURE_ONLY

    @property
    def fills_all_fields(self) -> bool:
        """Whether a form of its has no field that can be left empty."""
        return self.name in SENDS_NO_EMPTY_FIELD


def parse_caller(protocol: str, info: object, capabilities: object) -> Caller:
    """The caller who says this of itself; what it does not say, it cannot do."""
    named, able = _object(info), _object(capabilities)
    return Caller(
        name=_text(named.get("name")),
        version=_text(named.get("version")),
        protocol=protocol,
        elicits=_has_forms(able.get("elicitation")),
        has_roots=isinstance(able.get("roots"), dict),
    )


def _has_forms(elicitation: object) -> bool:
    """Forms are what there was first: who names no kind means them."""
    return isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""
