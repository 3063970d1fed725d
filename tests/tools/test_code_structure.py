"""code_outline, code_analyze and code_symbols: off until enabled, and what they answer."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.code.languages import load_grammar
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("code_outline", "code_analyze", "code_symbols")))
SOURCE = '''import os

LIMIT = 3


class Shop(Base):
    """Sells things."""

    def total(self, day: int) -> int:
        return LIMIT if day else 0
'''


@pytest.fixture
def coder(rail: Callable[..., Handrail], workspace: Path) -> Handrail:
    (workspace / "shop.py").write_text(SOURCE)
    return rail(settings=ON, mode="plan")


def test_the_code_tools_are_off_until_the_settings_enable_them(rail: Callable[..., Handrail]) -> None:
    for name in ON.tools.enable:
        assert rail().call(name, {"path": "shop.py"}).error.code == "UNKNOWN_TOOL"


def test_an_outline_is_markdown_with_the_lines_of_each_definition(coder: Handrail) -> None:
    result = coder.call("code_outline", {"path": "shop.py"})
    assert result.ok
    assert result.content == (
        "# shop.py (Python, 10 lines)\n\n- `LIMIT = 3` 3\n- `class Shop(Base)` 6–10 — Sells things.\n"
        "  - `def total(self, day: int) -> int` 9–10\n"
    )
    assert (result.data.language, result.data.symbols, result.data.has_errors) == ("python", 3, False)


def test_a_large_outline_leaves_out_the_deepest_levels(coder: Handrail, workspace: Path) -> None:
    rows = (f"class Shop{n}:\n    def method_with_a_long_name_{n}(self): pass\n" for n in range(800))
    (workspace / "large.py").write_text("".join(rows))
    result = coder.call("code_outline", {"path": "large.py"})
    assert result.ok
    assert "`class Shop799`" in result.content
    assert "method_with" not in result.content
    assert result.meta.truncated
    assert "800 definitions did not fit" in result.warnings[0]


def test_an_analysis_has_imports_arguments_bases_and_complexity(coder: Handrail) -> None:
    data = coder.call("code_analyze", {"path": "shop.py"}).data
    assert [one.name for one in data.imports] == ["os"]
    assert [(one.name, one.bases, one.methods) for one in data.classes] == [("Shop", ("Base",), ("total",))]
    assert [(one.name, one.args, one.complexity) for one in data.functions] == [("total", ("self", "day: int"), 1)]
    assert [(one.name, one.value) for one in data.global_variables] == [("LIMIT", "3")]


def test_symbols_are_chosen_by_kind_and_by_a_regular_expression(coder: Handrail) -> None:
    def list_names(**arguments: str) -> list[str]:
        result = coder.call("code_symbols", {"path": "shop.py", **arguments})
        assert result.ok, result.error
        return [one.name for one in result.data.symbols]

    assert list_names() == ["LIMIT", "Shop", "total"]
    assert list_names(kind="class") == ["Shop"]
    assert list_names(kind="variable") == ["LIMIT"]
    assert list_names(pattern="^[Ss]h|tal$") == ["Shop", "total"]
    assert list_names(kind="function", pattern="Shop") == []
    assert coder.call("code_symbols", {"path": "shop.py", "pattern": "("}).error.code == "INVALID_ARGUMENT"
    assert coder.call("code_symbols", {"path": "shop.py", "pattern": "(a+)+$(?=b)"}).error.code == "INVALID_ARGUMENT"


def test_a_file_without_a_grammar_is_unavailable(coder: Handrail, workspace: Path) -> None:
    (workspace / "a.zig").write_text("const a = 1;\n")
    error = coder.call("code_outline", {"path": "a.zig"}).error
    assert (error.code, "no grammar for a.zig" in error.message) == ("UNAVAILABLE", True)


def test_a_missing_extra_is_named(coder: Handrail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    load_grammar.cache_clear()
    try:
        error = coder.call("code_outline", {"path": "shop.py"}).error
    finally:
        load_grammar.cache_clear()
    assert error.code == "UNAVAILABLE"
    assert "pip install 'handrail[code]'" in error.message


def test_broken_code_is_outlined_with_a_warning(coder: Handrail, workspace: Path) -> None:
    (workspace / "broken.py").write_text("def f(:\n    pass\n\ndef g():\n    pass\n")
    result = coder.call("code_outline", {"path": "broken.py"})
    assert "`def g()`" in result.content
    assert "could not be parsed" in result.warnings[0]


@pytest.mark.parametrize("name", ["code_outline", "code_analyze", "code_symbols"])
def test_a_code_tool_reads_nothing_that_read_may_not(coder: Handrail, workspace: Path, name: str) -> None:
    (workspace / ".env").write_text("TOKEN=1\n")
    (workspace / "link.py").symlink_to("/etc/passwd")
    assert coder.call(name, {"path": "../outside.py"}).error.code == "OUTSIDE_WORKSPACE"
    assert coder.call(name, {"path": "link.py"}).error.code == "OUTSIDE_WORKSPACE"
    assert coder.call(name, {"path": ".env"}).error.code == "POLICY_DENIED"
    assert coder.call(name, {"path": "none.py"}).error.code == "NOT_FOUND"


def test_a_session_that_uses_no_code_tool_imports_nothing_of_them(workspace: Path, environment: dict[str, str]) -> None:
    (workspace / "a.py").write_text(SOURCE)
    code = """
        import sys
        from handrail import Handrail
        from handrail.settings import Settings
        settings = Settings.from_values({"tools.enable": ("code_outline", "code_lint")})
        with Handrail(".", settings=settings) as rail:
            assert rail.read("a.py").ok
        names = ("tree_sitter", "handrail.code", "handrail.tools.code")
        print([name for name in sys.modules if name.startswith(names)])
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
