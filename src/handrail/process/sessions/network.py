"""The network of a process session: what its keeper's proxy is told, and what it tells."""

import msgspec


class ProxyPlan(msgspec.Struct, frozen=True):
    """A proxy for a keeper to run, as long as the command does."""

    folder: str
    """Where its socket is; the launch shows it to the command."""
    allow: tuple[str, ...]
    """The entries that are open, as settings write them."""
