"""The numbers of system calls, against the kernel's own headers."""

import os
import re
from pathlib import Path

import pytest

from handrail.kernel.syscall_numbers import AARCH64, NUMBERS, X86_64, Machine, UnknownMachineError, detect_machine

INCLUDED = Path("/usr/include")
HEADERS = {
    X86_64: ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h"),
    AARCH64: ("aarch64-linux-gnu/asm/unistd_64.h", "asm-generic/unistd.h"),
}
# Calls younger than the headers of the oldest system that this is tested on: the same number everywhere.
YOUNG = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469}
ABSENT_ON_AARCH64 = "chmod chown lchown mknod utime utimes futimesat iopl ioperm modify_ldt uselib"


@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
def test_every_number_is_the_one_in_the_kernels_header(machine: Machine) -> None:
    header = next((file for name in HEADERS[machine] if (file := INCLUDED / name).exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    # Where 32 and 64 bits differ, the generic header gives the number under another name.
    known = {
        name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    }
    ours = {name: number for name in NUMBERS if (number := machine.number(name)) is not None}
    assert {name: known.get(name, YOUNG.get(name)) for name in ours} == ours
    assert not {name for name in NUMBERS if machine.number(name) is None} & known.keys()


def test_only_old_forms_and_hardware_of_pcs_are_absent_on_aarch64() -> None:
    assert {name for name in NUMBERS if AARCH64.number(name) is None} == set(ABSENT_ON_AARCH64.split())
    assert [name for name in NUMBERS if X86_64.number(name) is None] == []


@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
def test_no_two_calls_have_one_number_and_none_is_newer_than_the_newest(machine: Machine) -> None:
    numbers = [number for name in NUMBERS if (number := machine.number(name)) is not None]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) <= machine.newest


def test_a_machine_without_a_table_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "node", "6.1", "#1", "riscv64")))
    with pytest.raises(UnknownMachineError, match="'riscv64'"):
        detect_machine()


@pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=lambda machine: machine.name)
def test_a_known_machine_is_found_by_its_name(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "node", "6.1", "#1", machine.name)))
    assert detect_machine() == machine
