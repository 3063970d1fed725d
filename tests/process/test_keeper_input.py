"""Kept commands that are written to: any bytes, any length, keys, passwords, programs that do not read."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from process_launches import comes_true

from handrail.process.sessions.sessions import ProcessSession
from handrail.protocol.errors import ToolError

Start = Callable[..., ProcessSession]
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable


def printed(one: ProcessSession) -> bytes:
    return b"".join(one.log.kept())


def prints(one: ProcessSession, text: bytes) -> bool:
    return comes_true(lambda: text in printed(one), 60.0)


def test_cat_gives_back_every_byte(start: Start, tmp_path: Path) -> None:
    one = start("cat > all; echo done")
    data = bytes(range(256)) * 3 + b"\n" + bytes(range(256))
    one.write(data, eof=True)
    assert one.wait(60.0)
    assert (tmp_path / "workspace" / "all").read_bytes() == data


def test_a_line_of_a_megabyte_arrives_whole(start: Start, tmp_path: Path) -> None:
    one = start("cat > all")
    data = os.urandom(1 << 19).hex().encode() + b"\n"
    one.write(data, eof=False)
    one.write(b"and more", eof=True)
    assert one.wait(60.0)
    assert one.record().exit_code == 0
    assert (tmp_path / "workspace" / "all").read_bytes() == data + b"and more"


def test_it_gets_what_is_written_before_the_line_ends(start: Start) -> None:
    one = start("head -c 3; echo; cat")
    one.write(b"abc", eof=False)
    assert prints(one, b"abc\n")
    one.write(b"", eof=True)
    assert one.wait(60.0)


def test_an_interrupt_reaches_the_program_and_nobody_else(start: Start) -> None:
    one = start("trap 'echo interrupted' INT; echo ready; while :; do sleep 1000; echo woken; done")
    assert prints(one, b"ready")

    def pressed_until_woken() -> bool:
        one.write(b"\x03", eof=False)  # the shell may be between two sleeps
        return b"woken" in printed(one)

    assert comes_true(pressed_until_woken, 60.0)
    assert b"interrupted" in printed(one)
    assert one.running


def test_a_control_byte_among_others_is_no_key(start: Start) -> None:
    one = start("cat")
    one.write(b"a\x03b\n", eof=False)
    assert prints(one, b"a\x03b\n")
    one.write(b"\x04", eof=False)
    assert one.wait(60.0)


def test_a_password_is_read_and_not_shown(start: Start) -> None:
    text = "import getpass; print('got', len(getpass.getpass('Secret: ')))"
    one = start(f'{PYTHON} -c "{text}"; read -s -p "Again: " word; echo; echo ${{#word}}')
    assert prints(one, b"Secret: ")
    one.write(b"swordfish\n", eof=False)
    assert prints(one, b"Again: ")
    one.write(b"xyz\n", eof=False)
    assert one.wait(60.0)
    assert b"got 9\n" in printed(one)
    assert printed(one).endswith(b"3\n")
    assert b"swordfish" not in printed(one)


def test_an_interpreter_is_spoken_with(start: Start) -> None:
    one = start(f"{PYTHON} -q -i")
    assert prints(one, b">>> ")
    one.write(b"6 * 7\n", eof=False)
    assert prints(one, b"42\n>>> ")
    one.write(b"", eof=True)
    assert one.wait(60.0)


def test_a_shell_is_spoken_with(start: Start) -> None:
    one = start("bash --norc -i")
    one.write(b"sh -c 'echo $((6 * 7)); exec sleep 1000'\n", eof=False)
    assert prints(one, b"42")
    one.write(b"\x03", eof=False)
    one.write(b"echo still here\nexit 3\n", eof=False)
    assert one.wait(60.0)
    assert one.record().exit_code == 3


def test_who_does_not_read_is_told_about(start_confined: Start) -> None:
    one = start_confined("echo ready; trap 'echo asked; exit 0' TERM; sleep 1000 & wait")
    assert prints(one, b"ready")
    with pytest.raises(ToolError) as caught:
        one.write(b"line\n" * 100_000, eof=False)
    assert caught.value.code == "TIMEOUT"
    assert "of 500,000 bytes" in caught.value.message
    one.stop()
    assert b"asked" in printed(one)
