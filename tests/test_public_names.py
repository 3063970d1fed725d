"""What `import handrail` offers: a name that appears or disappears here is a decision, not an accident."""

import inspect
import pydoc
import subprocess
import sys
from typing import Any, ForwardRef, get_type_hints

import pytest

import handrail


def test_the_root_exports_exactly_these_names() -> None:
    assert sorted(handrail.__all__) == [
        "Agent", "Answer", "AsyncHandrail", "Context", "Done", "ForeignTool", "Handrail", "HandrailError", "Output",
        "Parked", "PermissionRequest", "Question", "Reply", "ServerProgram", "ServerProgramSpec", "ServerPrograms",
        "SettingsError", "SourceContext", "StoreError", "Tool", "ToolCall", "ToolError", "ToolResult", "ToolSource",
        "Turn", "TurnLimits", "UsageError", "__version__", "parse_diff", "tool", "tool_from_definition",
    ]  # fmt: skip


def test_every_exported_name_is_there() -> None:
    for name in handrail.__all__:
        assert getattr(handrail, name) is not None


def list_functions(public: Any) -> list[Any]:
    """The object itself, and if it is a class, its public methods and properties."""
    if not inspect.isclass(public):
        return [public]
    members = [
        getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", value)
        for name, value in inspect.getmembers_static(public)
        if name == "__init__" or not name.startswith("_")
    ]
    return [public, *filter(inspect.isfunction, members)]


@pytest.mark.parametrize("name", [name for name in handrail.__all__ if name != "__version__"])
def test_everything_can_be_inspected(name: str) -> None:
    public = getattr(handrail, name)
    assert name in pydoc.render_doc(public)
    for function in list_functions(public):
        assert inspect.signature(function)
        hints = get_type_hints(function)
        assert not [hint for hint in hints.values() if isinstance(hint, ForwardRef)]


def test_the_methods_of_asyncio_have_the_signatures_of_the_others() -> None:
    assert inspect.signature(handrail.AsyncHandrail.exec) == inspect.signature(handrail.Handrail.exec)
    assert inspect.iscoroutinefunction(handrail.AsyncHandrail.exec)
    assert get_type_hints(handrail.Handrail.undo)["return"].__args__[0].__name__ == "UndoData"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, handrail; print(sorted({'msgspec', 'sqlite3', 'asyncio', 'ctypes'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(handrail, "read_file")
