"""The manifest of requirements names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

from requirements import REQUIREMENTS

TESTS = Path(__file__).parent


def test_functions() -> set[str]:
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        found |= {f"{path.relative_to(TESTS)}::{name}" for name in names if name.startswith("test_")}
    return found


test_functions.__test__ = False
EXISTING = test_functions()


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_named_test_exists(requirement: str) -> None:
    named = {test for clause in REQUIREMENTS[requirement] for test in clause.tests}
    assert named <= EXISTING, f"no such test: {sorted(named - EXISTING)}"


def test_every_id_has_clauses_and_every_clause_says_something() -> None:
    for requirement, clauses in REQUIREMENTS.items():
        assert re.fullmatch(r"[A-Z]-\d+", requirement)
        assert clauses
        assert all(len(clause.text) > 3 for clause in clauses)


def test_a_clause_without_tests_says_planned_in_the_manifest() -> None:
    """A forgotten clause must not look like a planned one: `planned` is written out."""
    tree = ast.parse((TESTS / "requirements.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "clause"]
    silent = [ast.unparse(call.args[0]) for call in calls if len(call.args) < 2]
    assert not silent, f"clauses with neither tests nor planned: {silent}"
