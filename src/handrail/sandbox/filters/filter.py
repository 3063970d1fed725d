"""Which filter of system calls a command gets: the wall behind mounts, namespaces and Landlock."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from handrail.kernel.seccomp import Outcome, build_filter_program
from handrail.kernel.syscall_numbers import Machine, UnknownMachineError, detect_machine
from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import CommandOrigin
from handrail.sandbox.filters.refused_calls import (
    REFUSED_ALWAYS,
    REFUSED_READ_ONLY,
    REFUSED_WITHOUT_NAMESPACES,
    REFUSED_WITHOUT_NETWORK,
    RefusedCalls,
)
from handrail.sandbox.filters.tested_calls import (
    TESTED_ALWAYS,
    TESTED_READ_ONLY,
    TESTED_WITHOUT_NAMESPACES,
    TESTED_WITHOUT_NETWORK,
    build_ownership_outcomes,
)

__all__ = ["Owner", "UnknownMachineError", "build_filter", "build_outcomes", "require_filter"]


class Owner(NamedTuple):
    """Whose files a command's new files are."""

    user: int
    group: int


def build_filter(trust: CommandOrigin, tier: int) -> bytes:
    """The filter for a command of this trust in this tier, as bwrap and the kernel take it.

    UnknownMachineError on an architecture whose calls are not known. Tier 0 confines nothing and has no filter.
    """
    return _filter_for(trust, tier, detect_machine(), Owner(os.geteuid(), os.getegid()))


def require_filter(trust: CommandOrigin, tier: int) -> bytes:
    """The same for a command that is about to be run: where there is no filter, it is not."""
    try:
        return build_filter(trust, tier)
    except UnknownMachineError as error:
        raise ToolError("SANDBOX_UNAVAILABLE", f"{error}. Nothing was run.") from None


def build_outcomes(trust: CommandOrigin, tier: int, owner: Owner) -> dict[str, Outcome]:
    """What becomes of calls that are not simply allowed; of two filters that name a call the later, stricter counts."""
    if tier < 1:
        raise ValueError(f"tier {tier} has no filter of system calls; tiers 1, 2 and 3 have")
    outcomes: dict[str, Outcome] = {}
    for refused, tested in _layers(trust, tier, owner):
        outcomes |= tested
        outcomes |= {name: refuse for group in refused for name, refuse in group.outcomes()}
    return outcomes


_Layer = tuple[tuple[RefusedCalls, ...], Mapping[str, Outcome]]


def _layers(trust: CommandOrigin, tier: int, owner: Owner) -> Iterator[_Layer]:
    own_namespaces = tier > 1
    yield REFUSED_ALWAYS, TESTED_ALWAYS
    if trust == "proven" or not own_namespaces:
        yield REFUSED_WITHOUT_NETWORK, TESTED_WITHOUT_NETWORK
    if not own_namespaces:
        yield REFUSED_WITHOUT_NAMESPACES, TESTED_WITHOUT_NAMESPACES
        yield (), build_ownership_outcomes(*owner)
    if trust == "proven":
        yield REFUSED_READ_ONLY, TESTED_READ_ONLY


@lru_cache(maxsize=16)
def _filter_for(trust: CommandOrigin, tier: int, machine: Machine, owner: Owner) -> bytes:
    return build_filter_program(machine, build_outcomes(trust, tier, owner))
