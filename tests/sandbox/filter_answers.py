"""What the assembled filters answer, on both machines; for whom."""

from functools import cache
from itertools import product

from bpf_interpreter import answered
from handrail.kernel.seccomp import build_filter_program
from handrail.kernel.syscall_numbers import AARCH64, X86_64, Machine
from handrail.sandbox.profile import CommandOrigin
from handrail.sandbox.seccomp_rules import Owner, build_outcomes

OWNER = Owner(1000, 1001)
TRUSTS: tuple[CommandOrigin, ...] = ("proven", "unasked", "approved")
EVERY = tuple(product(TRUSTS, (1, 2, 3)))
PROVEN = tuple(product(("proven",), (1, 2, 3)))
TIER_1 = tuple(product(TRUSTS, (1,)))
WITHOUT_NETWORK = tuple(sorted({*PROVEN, *TIER_1}))
CONFINED_BY_NAMESPACES = tuple(product(("unasked", "approved"), (2, 3)))

BESIDE = 1 << 40
"""A bit that the kernel drops from arguments of 32 bits."""


def becomes(trust: CommandOrigin, tier: int, name: str, *arguments: int) -> set[int]:
    """What becomes of the call on the machines that have it."""
    return {
        answered(program(trust, tier, machine), machine.architecture, number, arguments)
        for machine in (X86_64, AARCH64)
        if (number := machine.number(name)) is not None
    }


@cache
def program(trust: CommandOrigin, tier: int, machine: Machine) -> bytes:
    return build_filter_program(machine, build_outcomes(trust, tier, OWNER))
