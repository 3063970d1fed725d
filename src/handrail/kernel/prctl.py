"""prctl(2): what a process decides about itself before it runs something that it does not trust.

The supervisor of a command imports this with a bare interpreter: nothing here may cost a start.
"""

import ctypes
import os

CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3

_SET_PDEATHSIG = 1
_SET_SECCOMP, _MODE_FILTER = 22, 2
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVS = 38
_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 47, 4

_CAPABILITY_VERSION_3 = 0x20080522
_INSTRUCTION = 8

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def refuse_new_privileges() -> None:
    """No program that is run from here on gains rights by running: no setuid, no file capabilities."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def die_with_parent(number: int) -> None:
    """This process gets the signal when its parent ends."""
    _prctl(_SET_PDEATHSIG, number)


def filter_system_calls(program: bytes) -> None:
    """Installs a compiled seccomp filter for this thread and all that it starts, for good; no_new_privs must be set."""
    _prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_Program(len(program) // _INSTRUCTION, program)))


def keep_capabilities(kept: tuple[int, ...]) -> None:
    """Gives up all of root's rights but these, for this process and everything it starts; others have none anyway."""
    # What is not in the permitted set comes back to root with the next program, unless it may gain no rights at all.
    refuse_new_privileges()
    _prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of the first 32, then of the others
    _checked(_libc.capget(header, sets), "capget")
    mask = sum(1 << one for one in kept)
    left = (ctypes.c_uint32 * 6)(sets[0] & mask, sets[1] & mask)
    _checked(_libc.capset(header, left), "capset")


def _prctl(option: int, *arguments: object) -> None:
    padded = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in (*arguments, 0, 0, 0, 0)]
    _checked(_libc.prctl(option, *padded[:4]), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, f"{what}: {os.strerror(problem)}")
