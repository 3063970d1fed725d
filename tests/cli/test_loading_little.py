"""What a command loads is what its person waits for."""

import subprocess
import sys
from pathlib import Path

_CALL = """
import sys
from handrail.cli.main import run
code = run(["call", "read", '{"path": "a.txt"}', "--workspace", sys.argv[1]])
loaded = "typing_extensions" in sys.modules
import typing_extensions, msgspec
class Pair(typing_extensions.TypedDict):
    one: int
    two: typing_extensions.NotRequired[int]
print(code, loaded, msgspec.convert({"one": 1}, Pair))
"""


def test_a_call_does_without_typing_extensions_and_leaves_it_to_who_asks(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("text\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CALL, str(tmp_path / "workspace")],
        env={"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 False {'one': 1}"
