"""Sessions with language servers over small projects."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import DEEP

from handrail import Handrail
from handrail.protocol.results import ToolResult
from handrail.settings import Settings

TOOLS = ("definition", "references", "hover", "diagnostics", "symbols", "rename", "format")
ENABLED = (*(f"lsp_{name}" for name in TOOLS), "apply_patch", "multi_edit", "delete")
PYTHON_SERVERS = ("ty", "basedpyright") if DEEP else ("ty",)
"""Every day both servers are only compared: the second one takes seconds to start."""
FAKE = Path(__file__).parent / "fake_server.py"
Make = Callable[..., Handrail]


def find_program(name: str) -> str | None:
    """A server in PATH, or beside the Python of the tests, where the development requirements put it."""
    return shutil.which(name, path=os.pathsep.join((os.environ["PATH"], os.path.dirname(sys.executable))))


def choose(*servers: str, **settings: Any) -> Settings:
    """The settings of a session whose tools ask these servers."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return Settings.from_values({"tools.enable": ENABLED, "lsp.servers": servers, **given})


def fake(workspace: Path, mode: str) -> str:
    """A server of `.fake` files that does one thing wrong."""
    folder = workspace / ".servers"
    folder.mkdir(exist_ok=True)
    shutil.copy(FAKE, folder / "server.py")
    return f"*.fake={sys.executable} -u .servers/server.py {mode}"


def succeed(result: ToolResult[Any]) -> Any:
    """The data of a call that succeeded."""
    assert result.ok, result.content
    return result.data


def code_of(result: ToolResult[Any]) -> str:
    assert result.error is not None, result.content
    return result.error.code


def place_of(text: str, word: str, number: int = 0) -> dict[str, int]:
    """The position of a word, from 0."""
    offset = -1
    for _ in range(number + 1):
        offset = text.index(word, offset + 1)
    before = text[:offset]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
