"""What `import handrail` offers: a name that appears or disappears here is a decision, not an accident."""

import subprocess
import sys

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


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, handrail; print(sorted({'msgspec', 'sqlite3', 'asyncio', 'ctypes'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(handrail, "read_file")
