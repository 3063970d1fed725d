"""What commands print comes back whole or says what is missing, in little memory, whatever they print."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Sandbox
from in_time import cut_short

COMMANDER = Path(__file__).parent.parent / "commander.py"
GIGABYTES_10 = 10 * 10**9
EVERY_DAY = 200 * 10**6
MOST_GROWTH = 64 * 1024
"""KB."""
FIRST = 1_000_000_000
LINE = 11
"""Bytes of a line: ten digits and its end."""


@pytest.fixture
def one(rail: Callable[..., Handrail]) -> Handrail:
    return rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2, least=2)))


def run(one: Handrail, command: str, **more: Any) -> Any:
    result = one.call("exec", {"command": command, **more})
    assert result.ok, result.error
    return result


def pages_of(one: Handrail, path: str) -> str:
    pages: list[str] = []
    at: int | None = 1
    while at is not None:
        result = one.read(path, offset=at)
        assert result.ok, result.error
        pages.append(result.content)
        at = result.meta.next_offset
    return "".join(pages)


def test_ten_gigabytes_take_little_memory_and_end_exactly(tmp_path: Path, workspace: Path, deep: bool) -> None:
    lines = (GIGABYTES_10 if deep else EVERY_DAY) // LINE
    last = FIRST + lines - 1
    command = f"seq {FIRST} {last} && sync && touch finished"
    result = in_a_process_of_its_own(tmp_path, workspace, ["true", command])[1]
    assert result["ok"], result["error"]
    assert (workspace / "finished").exists(), "the call ended before the command"
    assert result["growth"] <= MOST_GROWTH
    assert "output" in result["meta"]["limits"]
    assert f"{lines * LINE:,} bytes" in result["content"]
    assert_ends_exactly(result["content"], last)


def assert_ends_exactly(content: str, last: int) -> None:
    assert content.startswith(f"{FIRST}\n{FIRST + 1}\n")
    numbers = [int(line) for line in content.rpartition("…\n")[2].splitlines() if line.isdecimal()]
    assert len(numbers) > 1_000
    assert numbers == list(range(last - len(numbers) + 1, last + 1))


def in_a_process_of_its_own(tmp_path: Path, workspace: Path, commands: list[str]) -> list[dict[str, Any]]:
    task = {
        "workspace": str(workspace), "state": str(tmp_path / "state"),
        "settings": {"sandbox": {"tier": 2, "least": 2}},
        "calls": [{"command": command, "timeoutMs": 600_000} for command in commands],
    }  # fmt: skip
    done = subprocess.run([sys.executable, COMMANDER, json.dumps(task)], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_is_kept_has_a_note_where_some_is_missing(one: Handrail) -> None:
    lines = 100_000_000 // LINE
    result = run(one, f"seq {FIRST} {FIRST + lines - 1}")
    head, note, tail = one.raw_output(result.tool_call_id).partition("\n… ".encode())
    assert note
    said, _, tail = tail.partition("…\n".encode())
    lost = int(said.decode().partition(" bytes")[0].replace(",", ""))
    assert len(head) + len(tail) + lost == lines * LINE
    assert len(head) >= 64 << 20
    first = b"".join(b"%d\n" % (FIRST + number) for number in range(-(-len(head) // LINE)))
    assert first.startswith(head)
    assert tail.endswith(b"\n%d\n" % (FIRST + lines - 1))
    assert "output" in result.meta.limits
    assert "most of it" in result.content


@pytest.mark.parametrize("lines", [100, 2_000])
def test_pages_joined_are_what_was_printed(one: Handrail, lines: int) -> None:
    result = run(one, f"seq -f %01000.0f 1 {lines}")
    assert result.meta.output == f"@output/{result.tool_call_id}"
    assert pages_of(one, result.meta.output) == "".join(f"{number + 1:01000}\n" for number in range(lines))
    assert "output" not in result.meta.limits


def test_a_line_of_a_megabyte_is_kept_whole(one: Handrail) -> None:
    result = run(one, "head -c 1048576 /dev/zero | tr '\\0' x; echo; echo end")
    assert len(result.content) <= 30_000
    assert result.content.endswith("end\n")
    assert pages_of(one, result.meta.output) == "x" * (1 << 20) + "\nend\n"


def test_a_producer_without_end_stops_when_nobody_reads(one: Handrail) -> None:
    result = run(one, "yes | head -n 5")
    assert (result.content, result.data.exit_code) == ("y\n" * 5, 0)


def test_binary_output_is_text_for_the_model_and_bytes_for_people(one: Handrail, workspace: Path) -> None:
    data = bytes(range(256)) * 16
    (workspace / "data").write_bytes(data)
    result = run(one, "cat data")
    assert "\0" not in result.content
    assert result.content.encode()
    assert one.raw_output(result.tool_call_id) == data


@pytest.mark.parametrize("character", ["é", "€", "😀"])
def test_a_character_in_several_writes_is_one(one: Handrail, character: str) -> None:
    writes = "; ".join(f"printf '\\x{byte:02x}'; sleep 0.05" for byte in character.encode())
    assert run(one, f"{writes}; echo").data.output == f"{character}\n"


@pytest.mark.parametrize("shift", [1, 2])
def test_a_character_on_any_border_is_not_torn(one: Handrail, workspace: Path, shift: int) -> None:
    text = "x" * shift + "😀" * 1_250_000
    (workspace / "text").write_text(text)
    result = run(one, "cat text")
    assert "\ufffd" not in result.content
    assert pages_of(one, result.meta.output) == text


def test_both_streams_come_in_their_order(one: Handrail) -> None:
    result = run(one, "for n in 1 2 3; do echo out $n; echo err $n >&2; done; ls /nowhere-at-all; echo last")
    lines = result.data.output.splitlines()
    assert lines[:6] == ["out 1", "err 1", "out 2", "err 2", "out 3", "err 3"]
    assert "nowhere-at-all" in lines[6]
    assert lines[7] == "last"


def test_a_child_that_holds_the_pipe_does_not_hold_the_call(one: Handrail) -> None:
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run, one, "(trap '' TERM HUP PIPE; sleep 300; echo late) & echo early; exit 3")
        result = call.result(40)
    assert (result.data.output, result.data.exit_code) == ("early\n", 3)


def test_what_a_child_printed_before_the_end_is_there(one: Handrail) -> None:
    result = run(one, f"seq {FIRST} {FIRST + 2_000} & wait; sleep 300 & exit 0")
    assert result.data.output == "".join(f"{FIRST + n}\n" for n in range(2_001))


def test_a_command_that_closes_its_output_runs_to_its_end(one: Handrail, workspace: Path) -> None:
    result = run(one, "echo first; exec >&- 2>&-; sleep 0.5; touch finished; exit 7")
    assert (result.data.output, result.data.exit_code) == ("first\n", 7)
    assert (workspace / "finished").exists()


def test_output_after_a_timeout_is_kept_up_to_it(one: Handrail) -> None:
    def run_for(milliseconds: int) -> ToolResult[Any]:
        return one.call("exec", {"command": "echo before; sleep 300; echo after", "timeoutMs": milliseconds})

    result, _ = cut_short(run_for, 500, lambda result: result.data is not None and result.data.output)
    assert result.error is not None
    assert result.error.code == "TIMEOUT"
    assert result.content.startswith("before\n")
    assert result.data.output == "before\n"
