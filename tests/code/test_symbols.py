"""The definitions of files: against lists written by hand, the parser of Python, in broken and hostile files."""

import ast
import contextlib
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_files import SOURCES, list_rows, read_golden, render_outline

from handrail import Handrail
from handrail.code.languages import LANGUAGES, MissingGrammarError, find_language, load_grammar, load_query
from handrail.code.symbols import list_symbols
from handrail.protocol.errors import ToolError
from handrail.settings import Settings

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NAMES = {"function", "method", "class"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_definitions_of_a_file_are_those_that_a_person_listed(source: Path) -> None:
    language, golden = find_language(source.name.removesuffix(".txt")), read_golden(source)
    assert language is not None
    found = list_rows(source.read_bytes(), language)
    assert [row for line, _, row in found if line < golden.broken_from] == golden.rows
    assert golden.broken <= {name for line, name, _ in found if line >= golden.broken_from}
    assert not golden.missed & {name for _, name, _ in found}, "the grammar sees more now: list it"


def test_the_outline_of_a_file_is_the_one_that_a_person_listed(rail: Callable[..., Handrail], workspace: Path) -> None:
    opened = rail(settings=Settings.from_values({"tools.enable": ("code_outline",)}))
    for source in SOURCES:
        name, golden = source.name.removesuffix(".txt"), read_golden(source)
        shutil.copy(source, workspace / name)
        expected = render_outline(golden.rows)
        content = opened.call("code_outline", {"path": name}).content.splitlines()
        assert content[2 : 2 + len(expected)] == expected


def test_every_language_has_a_golden_file() -> None:
    assert {find_language(path.name.removesuffix(".txt")) for path in SOURCES} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_queries_fit_the_grammar(language: str) -> None:
    assert load_query(language, analysis=True).pattern_count >= load_query(language).pattern_count > 0


def test_every_function_and_class_of_the_standard_library_is_found_with_its_lines() -> None:
    """Of each file of the standard library, with its tests; every day a seeded share."""
    files = sorted(path for path in Path(sysconfig.get_paths()["stdlib"]).rglob("*.py") if "-packages" not in str(path))
    files = files if DEEP else random.Random(31).sample(files, min(80, len(files)))
    expected, found, both = 0, 0, 0
    for path in files:
        data = path.read_bytes()
        try:
            with warnings.catch_warnings(action="ignore"):
                tree, text = ast.parse(data), data.decode()
        except (SyntaxError, ValueError):
            continue  # files with broken code, for the tests of the parser
        nodes = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
        parsed = {(node.name, node.lineno, node.end_lineno) for node in nodes}
        symbols = {
            (one.name, one.line, one.end_line) for one in list_symbols(text.encode(), "python") if one.kind in NAMES
        }
        expected, found, both = expected + len(parsed), found + len(symbols), both + len(parsed & symbols)
    assert expected > 1_000
    assert both / expected >= 0.999, "recall"
    assert both / found >= 0.999, "precision"


def test_broken_code_gives_what_can_be_seen() -> None:
    text = b"class A:\n    def f(self):\n        return (1 +\n\n    def g(self): pass\n\ndef h(): pass\n"
    assert {"A", "f", "h"} <= {one.name for one in list_symbols(text, "python")}
    text = b"func a() {}\nfunc ( {{{\nfunc b() {}\n"
    assert "a" in {one.name for one in list_symbols(text, "go")}


@pytest.mark.parametrize("text", [b"", b"\n", b"\xff\xfe\x00\x00", b"\r\r\n", "def f(): pass # \u00e4\n".encode()])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_too_odd(language: str, text: bytes) -> None:
    list_symbols(text, language)


HOSTILE = [
    (language, text)
    for language in ("python", "typescript", "cpp", "html", "yaml")
    for text in (
        *(b"(" * 50_000, b"def f(" * 20_000, b"{[" * 50_000, b"class A:\n" * 5_000, b"'" * 100_001),
        *(b"<div>" * 20_000, b"a: " * 50_000),
    )
]


@pytest.mark.parametrize(("language", "text"), HOSTILE if DEEP else random.Random(31).sample(HOSTILE, 6))
def test_hostile_text_takes_bounded_time(language: str, text: bytes) -> None:
    started = time.thread_time()
    with contextlib.suppress(ToolError):  # LIMIT_EXCEEDED
        list_symbols(text, language)
    assert time.thread_time() - started < 8


def test_a_missing_grammar_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_ruby", None)
    load_grammar.cache_clear()
    try:
        with pytest.raises(MissingGrammarError, match=r"pip install 'handrail\[code\]'") as raised:
            list_symbols(b"", "ruby")
    finally:
        load_grammar.cache_clear()
    assert (raised.value.code, raised.value.language) == ("UNAVAILABLE", "ruby")


def test_the_memory_of_many_files_is_freed() -> None:
    """The binding leaks in some calls. None of them may be used here."""
    code = """
        from handrail.code.symbols import list_symbols
        text = b"def f(a, b=1):\\n    'doc'\\n    return [x for x in a]\\n\\n" * 400
        def measure():
            for _ in range(60):
                list_symbols(text, "python")
            return int(open("/proc/self/statm").read().split()[1]) * 4
        measure()
        print(measure(), measure())
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    before, after = map(int, out.stdout.split())
    assert after - before < 4_000, "kilobytes"
