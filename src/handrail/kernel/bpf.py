"""Assembles the small programs that the kernel runs before every system call of a filtered process."""

import struct
from typing import NamedTuple

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
