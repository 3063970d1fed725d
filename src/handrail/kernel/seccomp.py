"""Compiles seccomp filters."""

import struct
from collections.abc import Iterator, Mapping
from errno import ENOSYS
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from handrail.kernel.syscall_numbers import Machine

# § [kernel.bpf] Assembles the small programs that the kernel runs before every system call of a filtered process.

_LOAD_WORD = 0x20
_AND = 0x54
_JUMP = 0x05
_RETURN = 0x06
IS = 0x15
AT_LEAST = 0x35

_MAX_JUMP_INSTRUCTIONS = 0xFF
"""A conditional jump skips no more instructions than this."""
_MAX_INSTRUCTIONS = 4096
"""The kernel takes no longer program."""


class Instruction(NamedTuple):
    """One `struct sock_filter`: how many instructions a test skips when it holds, and when it does not."""

    code: int
    skip_if_true: int
    skip_if_false: int
    constant: int


Code = tuple[Instruction, ...]
"""Instructions that always end in an answer, whichever way they are run: so code can follow code without a jump."""


def load(offset: int) -> Instruction:
    """Takes the 32 bits at `offset` of what the kernel says about the call."""
    return Instruction(_LOAD_WORD, 0, 0, offset)


def keep(mask: int) -> Instruction:
    """Clears every bit of the taken value that is not in `mask`."""
    return Instruction(_AND, 0, 0, mask)


def build_return(value: int) -> Code:
    """Ends the program: this is what becomes of the call."""
    return (Instruction(_RETURN, 0, 0, value),)


def build_branch(test: int, constant: int, then: Code, otherwise: Code) -> Code:
    """Runs `then` when the taken value passes the test (`IS`, `AT_LEAST`), else `otherwise`."""
    if len(then) <= _MAX_JUMP_INSTRUCTIONS:
        return (Instruction(test, 0, len(then), constant), *then, *otherwise)
    # Too far for a test: it skips, or meets, an unconditional jump, which has 32 bits for the distance.
    return (Instruction(test, 1, 0, constant), Instruction(_JUMP, 0, 0, len(then)), *then, *otherwise)


def assemble_code(code: Code) -> bytes:
    """The instructions as the kernel reads them."""
    if len(code) > _MAX_INSTRUCTIONS:
        raise ValueError(
            f"a filter of {len(code)} instructions; the kernel takes {_MAX_INSTRUCTIONS}: refuse fewer calls"
        )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


# § [kernel.seccomp] Filters of system calls: from what shall happen to which call, to the program that the kernel
# § runs.  A filter begins with the architecture: the same number is another call on another one, so a call that is
# § made in a foreign way (32-bit code on a 64-bit kernel) ends the process. Numbers that no kernel had when the
# § table was written, and with them those of x32, do not exist for a filtered process. Everything that is not named
# § is allowed.

_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _ERROR, _KILL_PROCESS = 0x7FFF_0000, 0x0005_0000, 0x8000_0000

EVERY_BIT = 0xFFFF_FFFF


class AllowOutcome(NamedTuple):
    """The call is made."""


class RefuseOutcome(NamedTuple):
    """The call is not made and fails with this error."""

    errno: int


class ChoiceOutcome(NamedTuple):
    """What happens depends on an argument: on those of its bits that are in `mask`.

    Only the lower 32 bits are looked at. That is meant: the kernel itself drops the upper ones of every argument that
    is tested so, and a filter that compares all 64 can be walked around with a bit that nobody else sees.
    """

    argument: int
    mask: int
    cases: tuple[tuple[int, "Outcome"], ...]
    otherwise: "Outcome"


Outcome = AllowOutcome | RefuseOutcome | ChoiceOutcome

ALLOW = AllowOutcome()


def build_filter_program(machine: Machine, outcomes: Mapping[str, Outcome]) -> bytes:
    """The filter for calls by name; names that the machine does not have are left out."""
    ranges = tuple(_ranges(machine, outcomes))
    native = (load(_NUMBER_AT), *_search(ranges))
    return assemble_code(
        (load(_ARCHITECTURE_AT), *build_branch(IS, machine.architecture, native, build_return(_KILL_PROCESS)))
    )


class _Range(NamedTuple):
    """Numbers from `first` up to where the next range begins."""

    first: int
    outcome: Outcome


def _ranges(machine: Machine, outcomes: Mapping[str, Outcome]) -> Iterator[_Range]:
    """All numbers from 0 on, neighbours with one outcome together."""
    starts: dict[int, Outcome] = {0: ALLOW, machine.newest + 1: RefuseOutcome(ENOSYS)}
    numbers = {number: outcome for name, outcome in outcomes.items() if (number := machine.number(name)) is not None}
    for number, outcome in sorted(numbers.items()):
        starts[number] = outcome
        if number < machine.newest:
            starts[number + 1] = ALLOW
    for _, alike in groupby(sorted(starts.items(), key=itemgetter(0)), key=itemgetter(1)):
        yield _Range(*next(alike))


def _search(ranges: tuple[_Range, ...]) -> Code:
    """Halves the numbers until one range is left.

    A list that is gone through from the front would be shorter to write. But when a filter is installed the kernel
    tries it with every number that there is, to remember those that are always allowed: that is paid at every start.
    """
    if len(ranges) == 1:
        return _outcome(ranges[0].outcome)
    middle = len(ranges) // 2
    return build_branch(AT_LEAST, ranges[middle].first, _search(ranges[middle:]), _search(ranges[:middle]))


def _outcome(outcome: Outcome) -> Code:
    match outcome:
        case AllowOutcome():
            return build_return(_ALLOW)
        case RefuseOutcome(errno):
            return build_return(_ERROR | errno)
        case ChoiceOutcome():
            return _choice(outcome)


def _choice(choice: ChoiceOutcome) -> Code:
    code = _outcome(choice.otherwise)
    for value, outcome in reversed(choice.cases):
        code = build_branch(IS, value, _outcome(outcome), code)
    taken = load(_ARGUMENTS_AT + 8 * choice.argument)
    return (taken, *code) if choice.mask == EVERY_BIT else (taken, keep(choice.mask), *code)
