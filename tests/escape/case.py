"""What one attack is, and what is expected of it."""

from typing import Literal, get_args

import msgspec
from tests.escape.gaps import GAPS

User = Literal["root", "ordinary"]
Trust = Literal["proven", "unasked", "approved"]
LAYERED = 3
ASKED = 4
"""In mode `ask`, while nobody answers."""
GRANTED = 5
"""The same, where a person gave the grants for plain edits and for local git."""
USERS: tuple[User, ...] = get_args(User)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One program that really tries to get out. What it did is seen from outside, not told by it (see `outside/`)."""

    id: str
    family: str
    tries: str
    """In one sentence, as it goes on after "it"."""
    program: str
    """Python that `attack.py` puts its words before; bash where `shell`."""
    shell: bool = False
    command: str | None = None
    """What is run instead of the program itself: a command that policy proves, which meets the program on its way."""
    cwd: str = "ordinary"
    """A folder of the workspace in which every tier lets it write."""
    trust: Trust = "unasked"
    gap: str | None = None
    """Why a tier does not contain it: a name in `gaps.GAPS`."""
    gap_of: tuple[User, ...] = USERS
    """Whose attack is not contained; anyone else's is."""
    floor: bool = False
    """Whether tier 0 contains it too."""
    harmless: bool = True
    """Whether it may be tried where nothing confines it: it hurts only what the harness has put there."""
    real_for: tuple[User, ...] = USERS
    """Who succeeds with it where nothing confines it; for others the kernel's ordinary rules are enough."""
    host_may_refuse: bool = False
    """Whether some kernels refuse it to everybody: it is then not shown to be real there."""
    not_tried_at: tuple[int, ...] = ()
    """Tiers at which it would be dangerous, or means nothing."""
    survives: bool = True
    """Whether the program is to get to its end: not where it is to be killed."""

    def contained_at(self, tier: int, user: User) -> bool:
        """Whether the tier is expected to contain it."""
        if tier == 0:
            return self.floor
        # In a layer there is tier 2.
        return self.gap is None or GAPS[self.gap].tier != min(tier, 2) or user not in self.gap_of

    def tried_at(self, tier: int, user: User) -> bool:
        """Whether it is run at this tier: at tier 0 only what hurts nobody, and succeeds there or is held there."""
        if min(tier, LAYERED) in self.not_tried_at or (tier == LAYERED and self.trust == "proven"):
            return False  # what only looks gets no layer
        return tier > 0 or (self.harmless and (self.floor or user in self.real_for))


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one attack went."""

    id: str
    tier: int
    """-1 where it was a bare process."""
    tried: bool
    effects: tuple[str, ...]
    """What was seen from outside; nothing where it was contained."""
    output: str
    seconds: float = 0.0
