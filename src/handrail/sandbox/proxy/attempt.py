"""What somebody tried to reach, and whether it was let through."""

from typing import NamedTuple


class Attempt(NamedTuple):
    """One request to the proxy, whatever became of it."""

    host: str
    """A name or an address; what was written in its place, safe to be shown, where it is neither."""
    port: int
    """0 where none could be told."""
    allowed: bool
    reason: str
    """Why not, in words; of one that was allowed, what kept it from being reached, or nothing."""
