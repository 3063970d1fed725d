"""The tools of our own are loaded when they are needed, and are what is said of them before that."""

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.protocol.tool_spec import BASE_NAMES
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings
from handrail.settings.model import Tools

SETTINGS = Settings()
NAMES = build_tool_set(SETTINGS).registered


@pytest.mark.parametrize("name", NAMES)
def test_each_is_what_is_said_of_it_before_it_is_loaded(name: str) -> None:
    tool = build_tool_set(SETTINGS).get_registered(name)
    assert tool is not None
    assert tool.spec.name == name
    assert tool.spec.category == "builtin"
    assert tool.spec.enabled == (name in build_tool_set(SETTINGS).names)
    assert (tool.spec.layer == "base") == (name in BASE_NAMES)


def test_who_asks_twice_gets_the_same_one() -> None:
    offer = build_tool_set(Settings(tools=Tools(enable=("todo",))))
    for name in offer.names:
        assert offer.get(name) is offer.get(name) is offer.get_registered(name)


LOADED = """
import sys
from handrail import Handrail
with Handrail(sys.argv[1], state_dir=sys.argv[2]) as rail:
    assert rail.read("a.txt").ok
print(*(name for name in sys.modules if name.startswith("handrail.tools.")))
"""


def test_a_session_that_only_reads_loads_no_other_tool(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("a\n")
    command = [sys.executable, "-c", LOADED, str(workspace), str(tmp_path / "state")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    others = {f"handrail.tools.{name}" for name in NAMES} | {"handrail.tools.exec.exec_tool"}
    others -= {"handrail.tools.read", "handrail.tools.exec"}  # the latter is a package
    assert "handrail.tools.read" in loaded
    assert others.isdisjoint(loaded)
    assert "handrail.tools.exec.exec_tool" not in loaded
    assert not any(name.startswith("handrail.tools.companions") for name in loaded)
