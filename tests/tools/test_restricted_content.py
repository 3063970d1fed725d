"""The restricted profile keeps only data that parses; elsewhere broken data is written, with a warning."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

Make = Callable[..., Handrail]
RESTRICTED = Settings(profile="restricted", tools=Tools(enable=("apply_patch", "multi_edit")))
BROKEN = [("x.json", "{"), ("x.yaml", "a: [1"), ("x.yml", "a: b: c"), ("x.md", "---\na: [1\n---\ntext\n")]


@pytest.fixture
def notes(workspace: Path) -> Path:
    folder = workspace / ".minds"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("name", "content"), BROKEN)
def test_data_that_does_not_parse_is_not_written(rail: Make, notes: Path, name: str, content: str) -> None:
    result = rail(settings=RESTRICTED).write(f".minds/{name}", content)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert isinstance(result.error.details, dict)
    assert list(result.warnings) == result.error.details["warnings"] != []
    assert not (notes / name).exists()


@pytest.mark.parametrize(
    ("name", "content"), [("x.json", "{}"), ("x.yaml", "a: 1\n"), ("x.md", "text\n"), ("x.py", "(")]
)
def test_what_parses_or_is_no_data_is_written(rail: Make, notes: Path, name: str, content: str) -> None:
    assert rail(settings=RESTRICTED).write(f".minds/{name}", content).ok
    assert (notes / name).read_text() == content


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("edit", {"path": ".minds/a.json", "oldText": "1", "newText": "["}),
        ("multi_edit", {"path": ".minds/a.json", "edits": [{"oldText": "1", "newText": "["}]}),
        (
            "apply_patch",
            {
                "patch": "*** Begin Patch\n*** Update File: .minds/a.json\n@@\n-[1]\n+[\n"
                "*** Add File: .minds/b.txt\n+x\n*** End Patch\n"
            },
        ),
    ],
)
def test_no_tool_leaves_broken_data(rail: Make, notes: Path, tool: str, args: dict[str, Any]) -> None:
    (notes / "a.json").write_text("[1]\n")
    house = rail(settings=RESTRICTED)
    result = house.call(tool, args)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT", result.content
    assert (notes / "a.json").read_text() == "[1]\n"
    assert not (notes / "b.txt").exists()


def test_elsewhere_it_is_written_with_a_warning(rail: Make, notes: Path) -> None:
    result = rail().write(".minds/x.json", "{")
    assert result.ok
    assert result.warnings


def test_a_patch_may_delete_data(rail: Make, notes: Path) -> None:
    (notes / "x.json").write_text("{}")
    patch = "*** Begin Patch\n*** Delete File: .minds/x.json\n*** End Patch\n"
    assert rail(settings=RESTRICTED).call("apply_patch", {"patch": patch}).ok
    assert not (notes / "x.json").exists()
