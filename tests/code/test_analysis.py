"""The structure of files, and its complexity against ruff's."""

import json
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from golden_files import ANALYZED

from handrail.code.analysis import Analysis, analyze_source
from handrail.code.languages import find_language

RUFF = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")


def analyze(name: str) -> Analysis:
    language = find_language(name)
    assert language is not None
    return analyze_source((ANALYZED / f"{name}.txt").read_bytes(), language)


def test_a_python_file_is_analyzed_as_a_person_would() -> None:
    found = analyze("shop.py")
    assert [(one.name, one.alias, one.line) for one in found.imports] == [
        ("annotations", None, 3),
        ("json", "data", 5),
        ("os.path", None, 6),
        ("decimal.Decimal", None, 7),
        (".stock.Item", None, 8),
        (".stock.count", "count_items", 8),
    ]
    assert next((one.name, one.value) for one in found.global_variables) == ("LIMIT", "3")
    assert [(one.name, one.bases, one.methods) for one in found.classes] == [
        ("Shop", ("Base", "metaclass=Meta"), ("__init__", "total")),
        ("Till", (), ("ring",)),
    ]
    functions = {one.name: one for one in found.functions}
    assert functions["__init__"].args == ("self", "name: str", "*items: Item", "**options")
    assert functions["open_shop"].args == ("name", 'day="Monday"')
    assert {name: one.complexity for name, one in functions.items()} == {
        "__init__": 1,
        "total": 4,
        "ring": 1,
        "open_shop": 2,
    }
    assert (found.lines, found.complexity, found.max_complexity, found.has_errors) == (47, 8, 4, False)


IMPORTS: list[tuple[str, set[str]]] = [
    ("shop.js", {"fs", "path", "./side-effect.js"}),
    ("shop.ts", {"./item"}),
    ("shop.go", {"fmt", "strings"}),
    ("shop.rs", {"std::collections::{HashMap, HashSet}", "std::fmt"}),
    ("Shop.java", {"java.util.List", "java.lang.Math.max"}),
    ("shop.c", {"stdio.h", "stock.h"}),
    ("Shop.cs", {"System", "System.Collections.Generic"}),
    ("shop.rb", {"json"}),
]


@pytest.mark.parametrize(("name", "imports"), IMPORTS)
def test_imports_are_found(name: str, imports: set[str]) -> None:
    assert {one.name for one in analyze(name).imports} == imports


BASES: list[tuple[str, str, tuple[str, ...], set[str]]] = [
    ("shop.js", "Shop", ("base.Store",), {"constructor", "open", "total"}),
    ("shop.ts", "Shop", ("Store", "Priced<T>", "Named"), {"handler", "constructor", "convert", "total"}),
    ("shop.go", "Shop", ("Store",), {"Total"}),
    ("Shop.java", "Shop", ("Store", "Priced", "Comparable<Shop>"), {"Shop", "compareTo"}),
    ("shop.cpp", "Shop", ("Store", "Priced"), {"Shop", "~Shop", "total", "open", "count"}),
    ("Shop.cs", "Shop", ("Store", "IPriced"), {"Shop", "Total"}),
    ("shop.rb", "Shop", ("Store",), {"initialize", "open", "total"}),
    ("shop.php", "Shop", ("Store", "Priced"), {"__construct", "price"}),
]


@pytest.mark.parametrize(("name", "title", "bases", "methods"), BASES)
def test_classes_have_their_bases_and_methods(name: str, title: str, bases: tuple[str, ...], methods: set[str]) -> None:
    found = next(one for one in analyze(name).classes if one.name == title)
    assert (found.bases, set(found.methods)) == (bases, methods)


COMPLEXITIES: list[tuple[str, str, int]] = [
    ("shop.js", "open", 3),
    ("shop.js", "close", 2),
    ("shop.go", "Open", 3),
    ("shop.rs", "price", 1),
    ("Shop.java", "compareTo", 3),
    ("shop.c", "open_shop", 3),
    ("shop.cpp", "count", 3),
    ("Shop.cs", "Total", 3),
    ("shop.rb", "open", 2),
    ("shop.php", "price", 1),
    ("shop.sh", "open_shop", 2),
]


@pytest.mark.parametrize(("name", "function", "complexity"), COMPLEXITIES)
def test_the_complexity_is_one_more_than_the_branches(name: str, function: str, complexity: int) -> None:
    found = next(one for one in analyze(name).functions if one.name == function)
    assert found.complexity == complexity


@pytest.mark.skipif(RUFF is None, reason="needs ruff")
def test_the_complexity_of_python_is_that_of_ruff(tmp_path: Path) -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    files = random.Random(31).sample(sorted(library.glob("*.py")), 60)
    (tmp_path / "ruff.toml").write_text('lint.select = ["C901"]\nlint.mccabe.max-complexity = 0\n')
    command = [str(RUFF), "check", "--no-cache", "--isolated", "--select", "C901", "--output-format", "json"]
    command += ["--config", "lint.mccabe.max-complexity = 0", *map(str, files)]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    expected = {
        (one["filename"], one["location"]["row"]): int(one["message"].partition("(")[2].partition(" ")[0])
        for one in report
        if one["code"] == "C901"
    }
    found = {
        (str(path), one.line): one.complexity
        for path in files
        for one in analyze_source(path.read_bytes(), "python").functions
    }
    same = {place for place, complexity in expected.items() if found.get(place) == complexity}
    assert len(expected) > 500
    assert len(same) / len(expected) >= 0.99, sorted(set(expected) - same)[:10]
