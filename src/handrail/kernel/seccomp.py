"""Compiles seccomp filters.

A filter first checks the architecture, because a number means another call on another one. A call of a foreign
architecture (32-bit code on a 64-bit kernel) kills the process. Numbers newer than the table, x32 calls among them,
fail with ENOSYS. Every call that no outcome names is allowed.
"""

import struct
from collections.abc import Iterator, Mapping
from errno import ENOSYS
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from handrail.kernel.syscall_numbers import Machine

EVERY_BIT = 0xFFFF_FFFF

_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _ERROR, _KILL_PROCESS = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_LOAD_WORD, _AND, _JUMP, _RETURN = 0x20, 0x54, 0x05, 0x06
_IS, _AT_LEAST = 0x15, 0x35
_MAX_JUMP_INSTRUCTIONS = 0xFF
"""A conditional jump skips no more instructions than this."""
_MAX_INSTRUCTIONS = 4096
"""The kernel takes no longer program."""


class AllowOutcome(NamedTuple):
    """The call is made."""


class RefuseOutcome(NamedTuple):
    """The call is not made and fails with this error."""

    errno: int


class ChoiceOutcome(NamedTuple):
    """The outcome depends on those bits of an argument that are in `mask`.

    Only the lower 32 bits are compared, because the kernel drops the upper ones of these arguments. A filter that
    compared all 64 could be bypassed with a bit that the kernel ignores.
    """

    argument: int
    mask: int
    cases: tuple[tuple[int, "Outcome"], ...]
    otherwise: "Outcome"


Outcome = AllowOutcome | RefuseOutcome | ChoiceOutcome

ALLOW = AllowOutcome()


def build_filter_program(machine: Machine, outcomes: Mapping[str, Outcome]) -> bytes:
    """The filter for calls by name. Names that the machine lacks are ignored."""
    native = (_load(_NUMBER_AT), *_build_search(tuple(_list_ranges(machine, outcomes))))
    return assemble_code(
        (_load(_ARCHITECTURE_AT), *_build_branch(_IS, machine.architecture, native, _build_return(_KILL_PROCESS)))
    )


_Range = tuple[int, Outcome]
"""The first number and the outcome of all numbers up to the next range."""


def _list_ranges(machine: Machine, outcomes: Mapping[str, Outcome]) -> Iterator[_Range]:
    """All numbers from 0 on. Neighbours with the same outcome form one range."""
    starts: dict[int, Outcome] = {0: ALLOW, machine.newest + 1: RefuseOutcome(ENOSYS)}
    numbers = {number: outcome for name, outcome in outcomes.items() if (number := machine.number(name)) is not None}
    for number, outcome in sorted(numbers.items()):
        starts[number] = outcome
        if number < machine.newest:
            starts[number + 1] = ALLOW
    for _, alike in groupby(sorted(starts.items(), key=itemgetter(0)), key=itemgetter(1)):
        yield next(alike)


class Instruction(NamedTuple):
    """One `struct sock_filter`. A test skips some instructions if it holds and some if it does not."""

    code: int
    skip_if_true: int
    skip_if_false: int
    constant: int


Code = tuple[Instruction, ...]
"""Instructions that end in a return on every path, so other code can follow without a jump."""


def _build_search(ranges: tuple[_Range, ...]) -> Code:
    """A binary search for the range of a number.

    A linear list would be simpler. But the kernel runs a new filter for every number, to cache those that are always
    allowed, and each start of a command pays for that.
    """
    if len(ranges) == 1:
        return _build_outcome(ranges[0][1])
    middle = len(ranges) // 2
    lower, upper = _build_search(ranges[:middle]), _build_search(ranges[middle:])
    return _build_branch(_AT_LEAST, ranges[middle][0], upper, lower)


def _build_outcome(outcome: Outcome) -> Code:
    match outcome:
        case AllowOutcome():
            return _build_return(_ALLOW)
        case RefuseOutcome(errno):
            return _build_return(_ERROR | errno)
        case ChoiceOutcome():
            return _build_choice(outcome)


def _build_choice(choice: ChoiceOutcome) -> Code:
    code = _build_outcome(choice.otherwise)
    for value, outcome in reversed(choice.cases):
        code = _build_branch(_IS, value, _build_outcome(outcome), code)
    argument = _load(_ARGUMENTS_AT + 8 * choice.argument)
    mask = () if choice.mask == EVERY_BIT else (Instruction(_AND, 0, 0, choice.mask),)
    return (argument, *mask, *code)


def _load(offset: int) -> Instruction:
    """Load the 32 bits at `offset` of the kernel's `struct seccomp_data`."""
    return Instruction(_LOAD_WORD, 0, 0, offset)


def _build_return(value: int) -> Code:
    return (Instruction(_RETURN, 0, 0, value),)


def _build_branch(test: int, constant: int, then: Code, otherwise: Code) -> Code:
    """Run `then` if the loaded value passes the test (`_IS`, `_AT_LEAST`), else `otherwise`."""
    if len(then) <= _MAX_JUMP_INSTRUCTIONS:
        return (Instruction(test, 0, len(then), constant), *then, *otherwise)
    # Too far for a test: it skips, or meets, an unconditional jump, which has 32 bits for the distance.
    return (Instruction(test, 1, 0, constant), Instruction(_JUMP, 0, 0, len(then)), *then, *otherwise)


def assemble_code(code: Code) -> bytes:
    """The instructions in the kernel's layout."""
    if len(code) > _MAX_INSTRUCTIONS:
        raise ValueError(
            f"a filter of {len(code)} instructions; the kernel takes {_MAX_INSTRUCTIONS}: refuse fewer calls"
        )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
