"""Filters that the running kernel has taken: in processes of their own, since none comes back from one."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail.kernel.syscall_numbers import NUMBERS, UnknownMachineError, detect_machine

try:
    MACHINE = detect_machine()
except UnknownMachineError:
    pytest.skip("no table of system calls for this machine", allow_module_level=True)

SOURCE = str(Path(handrail.__file__).parents[1])
BEGIN = f"""
import ctypes, json, os, sys
sys.path.insert(0, {SOURCE!r})
from handrail.kernel.process import filter_system_calls, refuse_new_privileges
from handrail.kernel.seccomp import *
from handrail.kernel.syscall_numbers import *
libc = ctypes.CDLL(None, use_errno=True)
machine = detect_machine()
def raw(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return [result, ctypes.get_errno()]
def install(program):
    refuse_new_privileges()
    filter_system_calls(program)
def tell(value):
    print(json.dumps(value), flush=True)
"""
# On a 64-bit kernel the number 20 asked for in the way of 32-bit programs is getpid.
IN_THE_WAY_OF_32_BITS = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000" "cd80" "c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
tell(call() == os.getpid())
"""


def child(script: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-I", "-c", BEGIN + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def told(script: str) -> Any:
    done = child(script)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_named_call_is_refused_with_the_error_that_was_asked_for() -> None:
    unheard_of = 777
    answers = told(f"""
refused = {{name: RefuseOutcome({unheard_of}) for name in NUMBERS if name != "ioctl"}}
install(build_filter_program(machine, refused))
numbers = {{name: machine.number(name) for name in refused}}
tell({{name: raw(number) for name, number in numbers.items() if number is not None}})
""")
    present = {name for name in NUMBERS if name != "ioctl" and MACHINE.number(name) is not None}
    assert answers == {name: [-1, unheard_of] for name in present}


def test_what_is_not_named_goes_on_as_before() -> None:
    assert told("""
install(build_filter_program(machine, {"mount": RefuseOutcome(1)}))
os.mkdir(folder := f"/tmp/filtered-{os.getpid()}")
os.rmdir(folder)
tell([os.getpid() == raw(172 if machine is AARCH64 else 39)[0], os.path.exists(folder)])
""") == [True, False]


def test_a_test_of_an_argument_ignores_the_upper_half_that_the_kernel_drops() -> None:
    assert told("""
install(build_filter_program(machine, {"kill": ChoiceOutcome(1, EVERY_BIT, ((0, RefuseOutcome(77)),), ALLOW)}))
kill = machine.number("kill")
tell([raw(kill, os.getpid(), 0), raw(kill, os.getpid(), 1 << 32), raw(kill, os.getpid(), 28)])
""") == [[-1, 77], [-1, 77], [0, 0]]


def test_numbers_of_x32_and_of_calls_yet_to_come_do_not_exist() -> None:
    answers = told("""
install(build_filter_program(machine, {}))
x32 = 0x40000000
tell([raw(number) for number in (machine.newest + 1, 511, 512, 547, x32, x32 + 39, x32 + 521, 2**31 - 1, -1, -2**31)])
""")
    assert answers == [[-1, errno.ENOSYS]] * 10


@pytest.mark.skipif(MACHINE.name != "x86_64", reason="other machines have no int 0x80")
def test_a_call_in_the_way_of_32_bits_ends_the_process() -> None:
    if child(IN_THE_WAY_OF_32_BITS).stdout != "true\n":
        pytest.skip("this kernel runs no 32-bit code")
    done = child(f"install(build_filter_program(machine, {{}}))\n{IN_THE_WAY_OF_32_BITS}")
    assert (done.returncode, done.stdout) == (-signal.SIGSYS, "")


def test_children_and_programs_are_filtered_too_and_gain_no_rights() -> None:
    assert told("""
import subprocess
install(build_filter_program(machine, {"kill": RefuseOutcome(77)}))
state = subprocess.run(["grep", "-E", "^(NoNewPrivs|Seccomp):", "/proc/self/status"], capture_output=True, text=True)
tell(state.stdout.split())
""") == ["NoNewPrivs:", "1", "Seccomp:", "2"]


def test_a_program_that_the_kernel_does_not_take_is_an_error() -> None:
    assert (
        told("""
problems = []
for program in (b"", b"\\xff" * 8, build_filter_program(machine, {})[:-8]):
    try:
        install(program)
    except OSError as error:
        problems.append(error.errno)
tell(problems)
""")
        == [errno.EINVAL] * 3
    )


def test_assembling_a_filter_does_not_load_ctypes() -> None:
    script = (
        f"import sys; sys.path.insert(0, {SOURCE!r}); import handrail.kernel.seccomp; print('ctypes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
