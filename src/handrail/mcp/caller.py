"""Who is at the other end, as far as it said."""

import msgspec

from handrail.mcp.versions import HANDSHAKE, is_modern


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
        return is_modern(self.protocol)
