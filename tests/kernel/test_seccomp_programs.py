"""Any description of a filter becomes a program that does just that, on both machines."""

import random
from errno import ENOSYS

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpf_interpreter import KILLED, answered, described, told_apart
from handrail.kernel.seccomp import (
    ALLOW,
    EVERY_BIT,
    ChoiceOutcome,
    Instruction,
    Outcome,
    RefuseOutcome,
    assemble_code,
    build_filter_program,
)
from handrail.kernel.syscall_numbers import AARCH64, NUMBERS, X86_64, Machine

WORDS = st.integers(0, EVERY_BIT)
LEAVES = st.one_of(st.just(ALLOW), st.builds(RefuseOutcome, st.integers(1, 4095)))


def choices(inner: st.SearchStrategy[Outcome]) -> st.SearchStrategy[Outcome]:
    cases = st.lists(st.tuples(WORDS, inner), max_size=5, unique_by=lambda case: case[0]).map(tuple)
    return st.builds(ChoiceOutcome, st.integers(0, 5), st.one_of(st.just(EVERY_BIT), WORDS), cases, inner)


OUTCOMES = st.dictionaries(st.sampled_from(sorted(NUMBERS)), st.recursive(LEAVES, choices, max_leaves=12), max_size=60)


@given(OUTCOMES, st.sampled_from([X86_64, AARCH64]), st.randoms(use_true_random=False))
def test_a_filter_does_what_its_description_says(
    outcomes: dict[str, Outcome], machine: Machine, chance: random.Random
) -> None:
    program = build_filter_program(machine, outcomes)
    values = sorted({0, 1, EVERY_BIT, 1 << 32, (1 << 64) - 1}.union(*map(told_apart, outcomes.values())))
    named = [number for name in outcomes if (number := machine.number(name)) is not None]
    edges = [near for number in named for near in (number - 1, number, number + 1)]
    for number in (*edges, 0, machine.newest, machine.newest + 1, 0x40000000, EVERY_BIT):
        arguments = tuple(chance.choice(values) for _ in range(6))
        expected = described(outcomes, machine, number, arguments)
        assert answered(program, machine.architecture, number, arguments) == expected


@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
@pytest.mark.parametrize("cases", [1, 126, 127, 128, 129, 254, 255, 256, 257, 400])
def test_a_branch_may_be_longer_than_a_test_can_jump(machine: Machine, cases: int) -> None:
    many = ChoiceOutcome(0, EVERY_BIT, tuple((value, RefuseOutcome(1 + value)) for value in range(cases)), ALLOW)
    last = ChoiceOutcome(0, EVERY_BIT, ((7, many), (8, RefuseOutcome(4000))), RefuseOutcome(4001))
    outcomes = {"mount": many, "umount2": last, "swapon": ChoiceOutcome(1, 1, ((0, many), (1, last)), ALLOW)}
    program = build_filter_program(machine, outcomes)
    for name in (*outcomes, "swapoff"):
        number = machine.number(name)
        assert number is not None
        for first in (0, 1, 7, 8, cases - 1, cases, EVERY_BIT):
            for arguments in ((first, 0), (first, 1)):
                expected = described(outcomes, machine, number, arguments)
                assert answered(program, machine.architecture, number, arguments) == expected


@pytest.mark.parametrize("foreign", [0x40000003, 0xC000003E, 0xC00000B7, 0x40000028, 0, EVERY_BIT])
@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
def test_a_call_of_another_architecture_ends_the_process(machine: Machine, foreign: int) -> None:
    program = build_filter_program(machine, {"mount": RefuseOutcome(1)})
    ended = {answered(program, foreign, number) == KILLED for number in (0, 20, 165, 471, 472)}
    assert ended == {foreign != machine.architecture}


def test_a_filter_that_is_too_long_for_the_kernel_is_refused() -> None:
    assert len(assemble_code((Instruction(6, 0, 0, 0),) * 4096)) == 4096 * 8
    with pytest.raises(ValueError, match="4097 instructions"):
        assemble_code((Instruction(6, 0, 0, 0),) * 4097)


def test_numbers_behind_the_newest_call_do_not_exist_even_if_that_call_is_named() -> None:
    machine = X86_64._replace(newest=469)
    program = build_filter_program(machine, {"file_setattr": RefuseOutcome(1)})
    assert [answered(program, machine.architecture, number) for number in (468, 469, 470)] == [0, 1, ENOSYS]
