"""Answers of dialects within the budget of a result."""

import json
from pathlib import Path
from typing import Any

import pytest
from spoken import build_workspace, open_rail
from test_dialects import build_call

from handrail.dialects.dialect import DIALECTS
from handrail.protocol.calls import Done
from handrail.settings import Settings

LIMIT = 5_000
BIG = "".join(f"hit {number} {'x' * 20}\n" for number in range(2_000))
PATCH = "*** Begin Patch\n*** Add File: new.txt\n" + "+y\n" * 9_000 + "*** End Patch"
CALLS: dict[str, tuple[tuple[str, Any], ...]] = {
    "deepchat": (
        ("exec", {"command": "seq 1 60000"}),
        ("grep", {"pattern": "hit", "maxResults": 1_000}),
        ("read", {"path": "big.txt"}),
        ("write", {"path": "w.txt", "content": BIG}),
    ),
    "devminds": (
        ("workspace.fs", {"op": "read", "path": "big.txt"}),
        ("workspace.shell", {"cmd": "cat", "args": [".minds/big.txt"]}),
        ("workspace.fs", {"op": "append", "path": "big.txt", "content": BIG}),
    ),
    "clude": (
        ("run_terminal_cmd", {"command": "seq 1 60000"}),
        ("grep", {"pattern": "hit", "head_limit": 10_000}),
        ("glob_file_search", {"glob_pattern": "many/*"}),
        ("read_file", {"path": "big.txt"}),
        ("apply_patch", {"patch_text": PATCH}),
    ),
    "agentica": (
        ("execute", {"command": "seq 1 60000; seq 1 60000 >&2"}),
        ("grep", {"pattern": "hit", "output_mode": "content", "max_results": 10_000}),
        ("glob", {"pattern": "many/*"}),
        ("read_file", {"file_path": "big.txt", "limit": 10_000}),
        ("edit_file", {"file_path": "a.py", "old_string": "z" * 20_000, "new_string": ""}),
    ),
    "onething": (
        ("bash", {"command": "seq 1 60000"}),
        ("grep", {"pattern": "hit", "context_lines": 20}),
        ("read", {"file_path": "big.txt", "limit": 10_000}),
        ("write", {"file_path": "w.txt", "content": BIG}),
        ("edit", {"file_path": "a.py", "old_string": "y = 2", "new_string": BIG}),
    ),
    "claude-code": (
        ("Bash", {"command": "seq 1 60000; seq 1 60000 >&2; exit 3"}),
        ("Grep", {"pattern": "hit", "output_mode": "content", "head_limit": 0}),
        ("Grep", {"pattern": "hit", "output_mode": "count", "head_limit": 0}),
        ("Read", {"file_path": "big.txt", "limit": 10_000}),
        ("Write", {"file_path": "w.txt", "content": BIG}),
        ("Edit", {"file_path": "a.py", "old_string": "y = 2", "new_string": BIG}),
        ("TodoWrite", {"todos": [{"content": "z" * 400, "status": "pending", "activeForm": "z" * 4_000}] * 20}),
    ),
    "codex": (
        ("exec_command", {"cmd": "seq 1 60000", "max_output_tokens": 100_000}),
        ("apply_patch", PATCH),
    ),
    "opencode": (
        ("bash", {"command": "seq 1 60000"}),
        ("grep", {"pattern": "hit"}),
        ("read", {"filePath": "big.txt"}),
        ("read", {"filePath": "many"}),
        ("write", {"filePath": "w.txt", "content": BIG}),
        ("edit", {"filePath": "a.py", "oldString": "y = 2", "newString": BIG}),
        ("todowrite", {"todos": [{"content": "z" * 400, "status": "pending", "priority": "low"}] * 20}),
    ),
}


def open_big(folder: Path, dialect: str, **options: Any):
    workspace = build_workspace(folder)
    (workspace / "big.txt").write_text(BIG)
    (workspace / ".minds" / "big.txt").write_text(BIG)
    (workspace / "many").mkdir()
    for number in range(900):
        (workspace / "many" / f"file_with_a_long_name_{number}.txt").touch()
    settings = {"results.characters": LIMIT, "results.batch_characters": 3 * LIMIT}
    return open_rail(folder, dialect, settings=Settings.from_values(settings), mode="full", **options)


def measure(value: Any) -> int:
    """The characters of all texts of an answer."""
    if isinstance(value, str):
        return len(value)
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return sum(map(measure, items))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_answer_is_longer_than_the_limit(tmp_path: Path, dialect: str) -> None:
    with open_big(tmp_path, dialect) as rail:
        for name, args in CALLS[dialect]:
            result = rail.call(name, args)
            assert len(result.content) <= LIMIT, (name, len(result.content))
            assert measure(result.data) <= 2 * LIMIT + 500, (name, measure(result.data))
            if result.content.startswith("{"):
                assert json.loads(result.content) == json.loads(json.dumps(result.data))


def test_the_whole_answer_is_stored_and_the_reading_tool_shows_it(tmp_path: Path) -> None:
    with open_big(tmp_path, "claude-code") as rail:
        found = rail.call("Grep", {"pattern": "hit", "output_mode": "content", "head_limit": 0, "-n": True})
        assert found.meta.truncated
        assert found.meta.output
        assert found.meta.output in found.content
        page = rail.call("Read", {"file_path": found.meta.output, "offset": 1_500, "limit": 1})
        assert "big.txt:1500:hit 1499" in page.content


def test_a_page_that_its_numbers_make_too_long_has_fewer_lines(tmp_path: Path) -> None:
    with open_big(tmp_path, "onething") as rail:
        first = rail.call("read", {"file_path": "big.txt", "limit": 10_000}).data["data"]
        count = first["metadata"]["lineCount"]
        assert f"[Showing lines 1-{count} of 2000 total lines]" in first["output"]
        assert "not shown" not in first["output"]
        second = rail.call("read", {"file_path": "big.txt", "offset": count + 1, "limit": 1}).data["data"]
        assert second["output"].lstrip().startswith(f"{count + 1}\thit {count} ")


def test_answers_of_a_batch_share_its_budget(tmp_path: Path) -> None:
    with open_big(tmp_path, "agentica") as rail:
        args = {"pattern": "hit", "output_mode": "content", "max_results": 10_000}
        outcome = rail.batch([build_call(rail, "grep", args) for _ in range(5)])
        assert isinstance(outcome, Done)
        lengths = [len(result.content) for result in outcome.results]
        assert all(result.meta.output for result in outcome.results)
    assert lengths[0] > 4_000
    assert all(length <= 2_000 for length in lengths[3:])


def test_a_page_with_odd_line_ends_and_signs_stays_numbered(tmp_path: Path) -> None:
    with open_big(tmp_path, "agentica") as rail:
        text = "".join(f"{number}\x01\u2028\x0b{'x' * 9}\n" for number in range(1, 2_000))
        Path(rail.workspace, "odd.txt").write_text(text)
        rows = rail.call("read_file", {"file_path": "odd.txt", "limit": 10_000}).content.split("\n")
    pages = [row.split("\t") for row in rows if "\t" in row]
    assert len(pages) > 100
    assert all(number.strip() == row.partition("\x01")[0] for number, row in pages)
