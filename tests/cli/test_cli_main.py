"""The process of a command: little is imported at its start, nothing is missed at its end."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

_VERSION = "import sys; from handrail.cli.main import main; sys.argv[1:] = ['--version']; "


def ended(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False)


def test_it_ends_where_it_is_told_to() -> None:
    done = ended(_VERSION + "main(); print('and goes on')")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("handrail ")
    assert "goes on" not in done.stdout


def test_its_exit_code_is_that_of_the_command() -> None:
    assert ended("import sys; from handrail.cli.main import main; sys.argv[1:] = ['none']; main()").returncode == 2


def test_what_was_registered_for_the_end_is_done() -> None:
    done = ended("import atexit; atexit.register(print, 'done'); " + _VERSION + "main()")
    assert done.stdout.endswith("\ndone\n")


def test_what_is_still_in_a_buffer_is_written() -> None:
    done = ended("print('before'); " + _VERSION + "main()")
    assert done.stdout.startswith("before\nhandrail ")


def test_threads_that_are_at_work_are_waited_for() -> None:
    code = """
import sys, threading
from handrail.cli.main import main
over = threading.Event()
threading.Thread(target=lambda: (over.wait(), print("the thread is done"))).start()
sys.argv[1:] = ["--version"]
code = main()
over.set()
sys.exit(code)
"""
    done = ended(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nthe thread is done\n")


@pytest.mark.parametrize("watching", ["sys.setprofile(lambda *_: None)", "sys.settrace(lambda *_: None)"])
def test_who_measures_or_traces_it_has_its_end(watching: str) -> None:
    assert ended(_VERSION + f"{watching}; main(); print('and goes on')").stdout.endswith("\nand goes on\n")


def test_who_looks_for_what_was_left_open_has_its_end() -> None:
    assert ended(_VERSION + "main(); print('and goes on')", "-X", "dev").stdout.endswith("\nand goes on\n")


def test_an_output_that_cannot_be_written_is_told_as_python_tells_it() -> None:
    full = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); sys.stdout.write('x'); main()"
    done = ended(_VERSION + full)
    assert done.returncode != 0


_CALL = """
import sys
from handrail.cli.main import run
code = run(["call", "read", '{"path": "a.txt"}', "--workspace", sys.argv[1]])
loaded = [name for name in ("typing_extensions", "platform", "textwrap", "msgspec.inspect") if name in sys.modules]
import datetime, pickle, platform, typing_extensions, msgspec, msgspec.inspect
class Pair(typing_extensions.TypedDict):
    one: int
    two: typing_extensions.NotRequired[int]
print(code, loaded, msgspec.convert({"one": 1}, Pair))
print(msgspec.inspect.type_info(list[Pair]).item_type.cls is Pair, platform.system())
print(msgspec.json.schema(int), msgspec.json.schema_components([int])[0])
moment = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
read = msgspec.json.decode(msgspec.json.encode(moment), type=datetime.datetime)
print(pickle.loads(pickle.dumps(moment)) == moment, read)
"""


def test_a_call_does_without_some_modules_and_leaves_them_to_who_asks(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("text\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CALL, str(tmp_path / "workspace")],
        env={"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-4:] == [
        "0 [] {'one': 1}",
        f"True {platform.system()}",
        "{'type': 'integer'} ({'type': 'integer'},)",
        "True 2026-01-02 00:00:00+00:00",
    ]
