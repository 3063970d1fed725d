"""Runs a filter of system calls as the kernel would, for any machine; and says what its description asks for."""

import struct
from collections.abc import Mapping
from errno import ENOSYS

from handrail.kernel.seccomp import AllowOutcome, ChoiceOutcome, Outcome, RefuseOutcome
from handrail.kernel.syscall_numbers import Machine

ALLOWED = 0
KILLED = -1

Arguments = tuple[int, ...]


def answered(program: bytes, architecture: int, number: int, arguments: Arguments = ()) -> int:
    """What becomes of the call: ALLOWED, KILLED, or the error it fails with."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    instructions = list(struct.iter_unpack("=HBBI", program))
    at = taken = 0
    while True:
        code, if_true, if_false, constant = instructions[at]
        at += 1
        match code:
            case 0x20:  # load a word
                assert constant % 4 == 0
                (taken,) = struct.unpack_from("<I", data, constant)
            case 0x54:  # and
                taken &= constant
            case 0x05:  # jump
                at += constant
            case 0x15:  # equal
                at += if_true if taken == constant else if_false
            case 0x35:  # at least
                at += if_true if taken >= constant else if_false
            case 0x06:  # answer
                return meaning(constant)
            case _:
                raise AssertionError(f"an instruction that is not expected: {code:#x}")


def meaning(value: int) -> int:
    action, errno = value & 0xFFFF0000, value & 0xFFFF
    known = {0x7FFF0000: ALLOWED, 0x80000000: KILLED, 0x00050000: errno}
    return known[action]


def described(outcomes: Mapping[str, Outcome], machine: Machine, number: int, arguments: Arguments) -> int:
    """The same, from the description alone."""
    if not 0 <= number <= machine.newest:
        return ENOSYS
    named = [outcome for name, outcome in outcomes.items() if machine.number(name) == number]
    return decided(named[0], arguments) if named else ALLOWED


def decided(outcome: Outcome, arguments: Arguments) -> int:
    match outcome:
        case AllowOutcome():
            return ALLOWED
        case RefuseOutcome(errno):
            return errno
        case ChoiceOutcome(argument, mask, cases, otherwise):
            seen = (*arguments, 0, 0, 0, 0, 0, 0)[argument] & mask & 0xFFFFFFFF
            return decided(next((then for value, then in cases if value == seen), otherwise), arguments)


def told_apart(outcome: Outcome) -> set[int]:
    """Values of arguments that such a description can tell apart."""
    if not isinstance(outcome, ChoiceOutcome):
        return set()
    inner = [told_apart(then) for _, then in outcome.cases]
    return {outcome.mask, *(value for value, _ in outcome.cases)}.union(told_apart(outcome.otherwise), *inner)
