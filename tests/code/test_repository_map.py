"""The map of a repository: its most referenced definitions, within a number of tokens."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.code.repository_map import arrange_map
from handrail.settings import Settings
from handrail.store.code_index import IndexedChunk


def define(name: str, path: str, line: int, parent: str = "") -> IndexedChunk:
    return IndexedChunk(line, path.encode(), line, line + 5, name, "function", parent, f"def {name}()", 1)


DEFINITIONS = [define("open_door", "b.py", 9), define("shut_door", "a.py", 3), define("lock", "b.py", 2, "Door")]
REFERENCES = {"open_door": 5, "shut_door": 2, "lock": 1}


def test_definitions_stand_below_their_files_in_the_order_of_lines() -> None:
    whole = "a.py:\n  3: def shut_door()\nb.py:\n  2: Door: def lock()\n  9: def open_door()"
    assert arrange_map(DEFINITIONS, REFERENCES, 1_000) == whole
    assert arrange_map(DEFINITIONS[::-1], REFERENCES, 1_000) == whole


def test_the_most_referenced_ones_fit_first_and_unreferenced_ones_never() -> None:
    assert arrange_map(DEFINITIONS, REFERENCES, 8) == "b.py:\n  9: def open_door()"
    assert arrange_map(DEFINITIONS, {}, 1_000) == ""


@pytest.mark.parametrize("tokens", [10, 50, 100, 400])
def test_a_map_is_no_longer_than_its_tokens(tokens: int) -> None:
    many = [define(f"name_{n}", f"folder/file_{n % 7}.py", n) for n in range(200)]
    assert 0 < len(arrange_map(many, dict.fromkeys((one.name for one in many), 3), tokens)) <= 4 * tokens


def test_the_map_of_a_workspace_counts_the_files_that_mention_a_name(
    rail: Callable[..., Handrail], workspace: Path
) -> None:
    (workspace / "door.py").write_text(
        "class Door:\n    def open_door(self):\n        open_door\n\ndef helper(): ...\n"
    )
    for name in ("one", "two"):
        (workspace / f"{name}.py").write_text("from door import Door\nDoor().open_door()\nhelper = 1\n")
    with rail(settings=Settings.from_values({"agent.map": 100})) as opened:
        assert opened.repository_map() == "door.py:\n  1: class Door\n  2: Door: def open_door(self)"
    with rail(settings=Settings()) as opened:
        assert opened.repository_map() == ""
    with rail(settings=Settings.from_values({"agent.map": 100, "tools.deny": ("fs.read",)})) as opened:
        assert opened.repository_map() == ""
