"""The tools that come with handrail, for tests about what is said of them."""

from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings
from handrail.settings.model import Tools

RETIRED = [
    "read_file",
    "write_file",
    "list_directory",
    "create_directory",
    "move_files",
    "edit_text",
    "glob_search",
    "directory_tree",
    "get_file_info",
    "grep_search",
    "text_replace",
    "edit_file",
    "execute_command",
]


def every_tool() -> tuple[ToolSpec, ...]:
    """All of them, on or off by default."""
    names = build_tool_set(Settings()).registered
    return tuple(tool.spec for tool in build_tool_set(Settings(tools=Tools(enable=names))).tools)


def named(*names: str) -> tuple[ToolSpec, ...]:
    """Some of them."""
    return tuple(spec for spec in every_tool() if spec.name in names)
