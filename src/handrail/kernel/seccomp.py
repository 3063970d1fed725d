"""Filters of system calls: from what shall happen to which call, to the program that the kernel runs.

A filter begins with the architecture: the same number is another call on another one, so a call that is made in a
foreign way (32-bit code on a 64-bit kernel) ends the process. Numbers that no kernel had when the table was written,
and with them those of x32, do not exist for a filtered process. Everything that is not named is allowed.
"""

from collections.abc import Iterator, Mapping
from errno import ENOSYS
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from handrail.kernel.bpf import AT_LEAST, IS, Code, assemble_code, build_branch, build_return, keep, load
from handrail.kernel.syscalls import Machine

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
