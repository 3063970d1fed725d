"""What reaches a terminal, a pipe, and a stream that nobody reads."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.cli.output import render_table, warn
from handrail.protocol.text import to_one_line, truncate
from people import Terminal


def test_a_cell_of_a_table_is_one_line_whatever_is_in_it() -> None:
    assert to_one_line("a\nb\tc\x1b") == "a\\nb c\\u001b"
    assert truncate("x" * 200, 100) == "x" * 99 + "…"
    assert render_table([("a", "bb"), ("ccc\n", "")]) == "a      bb\nccc\\n\n"


def test_columns_stand_below_each_other_however_wide_the_characters_are() -> None:
    rows = render_table([("name", "what"), ("日本語", "x"), ("e\u0301te\u0301", "y"), ("abcdefgh", "z")]).splitlines()
    assert rows == ["name      what", "日本語    x", "e\u0301te\u0301       y", "abcdefgh  z"]


def on_a_terminal(words: list[str], cwd: Path, environment: dict[str, str]) -> bytes:
    """Everything the command shows where stdout and stderr are a terminal."""
    control, terminal = pty.openpty()
    with subprocess.Popen(words, cwd=cwd, env=environment, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = bytearray()
        try:
            while part := os.read(control, 65536):
                shown += part
        except OSError:  # what Linux says when the other end is closed
            pass
        process.wait()
    os.close(control)
    return bytes(shown)


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_nothing_from_a_file_reaches_a_terminal_raw(form, environment: dict[str, str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("\x1b]0;owned\x07 \u202edwor\u202c \x9b31m\u200b\r end".encode())
    words = [sys.executable, "-m", "handrail", "call", "read", '{"path": "a.txt"}', *form]
    shown = on_a_terminal(words, workspace, environment).decode().replace("\r\n", "\n")
    assert "\\u001b]0;owned\\u0007 \\u202edwor\\u202c \\u009b31m\\u200b" in shown
    assert shown.endswith("\n")
    assert set(shown) <= {chr(code) for code in range(32, 127)} | {"\n", "–"}


def test_nothing_from_an_argument_reaches_a_terminal_raw(environment: dict[str, str], workspace: Path) -> None:
    words = [sys.executable, "-m", "handrail", "call", "\x1b[2J", '{"path": "\\u001b[2J\\u202e"}']
    shown = on_a_terminal(words, workspace, environment)
    assert b"Unknown Agent tool" in shown
    assert b"\x1b" not in shown
    refused = on_a_terminal([*words[:4], "--\x1b[2J"], workspace, environment)
    assert b"\x1b" not in refused


def test_a_reader_that_stops_early_is_no_error(environment: dict[str, str], workspace: Path) -> None:
    (workspace / "long.txt").write_text("line\n" * 2000)
    command = f"""'{sys.executable}' -m handrail call read '{{"path": "long.txt"}}' -q; echo $? >code"""
    done = subprocess.run(
        ["sh", "-c", f"{{ {command}; }} | head -n 1"], cwd=workspace, env=environment, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == (b"line\n", b"")
    assert (workspace / "code").read_text() == "0\n"


@pytest.mark.parametrize("words", [["tools", "--json"], ["--help"], ["call", "--help"]], ids=" ".join)
def test_a_reader_that_was_never_there_is_no_error(words, environment: dict[str, str], workspace: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "handrail", *words],
        cwd=workspace, env=environment, stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
def test_output_that_cannot_be_written_is_exit_4(environment: dict[str, str], workspace: Path) -> None:
    with open("/dev/full", "wb") as full:
        words = [sys.executable, "-m", "handrail", "tools"]
        done = subprocess.run(words, cwd=workspace, env=environment, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert done.stderr == b"error: the output cannot be written: No space left on device\nnext: handrail doctor\n"


def test_closed_streams_are_no_error(environment: dict[str, str], workspace: Path) -> None:
    command = f"""exec '{sys.executable}' -m handrail call ls '{{"path": "."}}' <&- >&- 2>&-"""
    assert subprocess.run(["sh", "-c", command], cwd=workspace, env=environment, check=False).returncode == 0
    stdin = f"exec '{sys.executable}' -m handrail call ls - <&-"
    done = subprocess.run(["sh", "-c", stdin], cwd=workspace, env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"stdin is closed" in done.stderr


def test_an_encoding_that_lacks_a_character_gets_its_escape(run, workspace: Path) -> None:
    (workspace / "a.txt").write_text("→ é\n")
    assert run("call", "read", '{"path": "a.txt"}', PYTHONIOENCODING="ascii").raw == b"\\u2192 \\xe9\n"
    done = run("call", "read", '{"path": "a.txt"}', "--json", PYTHONIOENCODING="ascii")
    assert done.json["content"] == "→ é\n"
    assert run("doctor", PYTHONIOENCODING="ascii").raw.startswith(b"containment\n  ok    ")


def test_names_that_are_not_utf8_break_nothing(run, workspace: Path) -> None:
    Path(os.fsdecode(os.fsencode(workspace) + b"/\xff\xfe.txt")).write_text("x")
    assert run("call", "ls", '{"path": "."}').code == 0
    assert run("call", "ls", '{"path": "."}', "--json").json["ok"]
    done = run("call", "\udcff", "{}", "-q")
    assert done.code == 1
    assert done.err == "error: Unknown Agent tool: \\udcff. Nothing was run. (UNKNOWN_TOOL)\nnext: handrail tools\n"


def test_on_a_narrow_terminal_each_command_of_a_hint_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    hint = "To answer it: handrail approvals allow 8f2, or: handrail approvals deny 8f2 --reason TEXT"
    for columns, expected in ((100, f"{hint}\n"), (60, f"{hint}\n".replace(", or", ",\n  or"))):
        terminal = Terminal(columns)
        with open(terminal.device, "w") as stream:
            monkeypatch.setattr("sys.stderr", stream)
            warn(hint)
            assert terminal.sees_whole() == expected
