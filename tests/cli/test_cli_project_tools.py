"""Tool files of the project at the command line: only trusted content is run."""

import json
import os
from pathlib import Path

import pytest

GREET = '''
from pathlib import Path
from handrail import tool

Path(__file__).with_name("ran").write_text("x")

@tool(read_only=True, auto_execute=True)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"
'''
CALL = ("call", "greet", '{"name": "Ada"}')


@pytest.fixture
def tool_file(workspace: Path) -> Path:
    folder = workspace / ".handrail" / "tools"
    folder.mkdir(parents=True)
    (folder / "greeting.py").write_text(GREET)
    return folder / "greeting.py"


def has_run(tool_file: Path) -> bool:
    return tool_file.with_name("ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        CALL, ("tools",), ("config",), ("doctor",), ("skills",), ("trust", "--list"), ("log",), ("undo",), ("modes",),
        ("policy", "explain", "read", "a.txt"), ("run", "--model", "script:none", "hi"), ("tools", "--mcp"),
    ],
)  # fmt: skip
def test_nothing_runs_before_the_person_trusts_the_project(here, tool_file: Path, words: tuple[str, ...]) -> None:
    here(*words)
    assert not has_run(tool_file)


def test_a_tool_file_is_used_once_it_is_trusted(here, tool_file: Path) -> None:
    before = here(*CALL)
    assert before.code != 0
    assert ".handrail/tools brings 1 tool file, not loaded until you trust this project: handrail trust" in before.err
    assert here("trust", "--yes").code == 0
    assert not has_run(tool_file)  # trusting runs nothing either
    after = here(*CALL)
    assert (after.code, after.out.strip()) == (0, "hello Ada")
    assert "handrail/tools" not in after.err
    assert "greet" in here("tools").out
    assert "greet" in {one["name"] for one in json.loads(here("tools", "--mcp").out)}


def test_trust_shows_the_files_and_their_content_is_pinned(here, tool_file: Path) -> None:
    shown = here("trust", "--yes")
    assert shown.out.splitlines()[0] == (
        ".handrail/tools has code that handrail runs with your rights, outside the sandbox. Read it first:"
    )
    assert shown.out.splitlines()[1].startswith("  .handrail/tools/greeting.py: 10 lines, 225 bytes (SHA-256 ")
    assert shown.err == "Trusted until the file changes. To revoke it: handrail trust --revoke\n"
    tool_file.write_text(GREET.replace("hello", "goodbye"))
    changed = here(*CALL)
    assert changed.code != 0
    assert ".handrail/tools changed since you trusted it: check it before you trust it again" in changed.err
    assert not has_run(tool_file)
    here("trust", "--yes")
    assert here(*CALL).out.strip() == "goodbye Ada"


@pytest.mark.parametrize("how", ["added", "removed", "renamed"])
def test_another_set_of_files_is_another_content(here, tool_file: Path, how: str) -> None:
    other = tool_file.with_name("other.py")
    other.write_text("")
    here("trust", "--yes")
    if how == "added":
        tool_file.with_name("third.py").write_text("")
    elif how == "removed":
        other.unlink()
    else:
        other.rename(tool_file.with_name("renamed.py"))
    assert "changed since you trusted it" in here(*CALL).err
    assert not has_run(tool_file)


def test_trust_in_the_settings_is_no_trust_in_tools_that_come_later(here, workspace: Path, tool_file: Path) -> None:
    text = tool_file.read_text()
    tool_file.unlink()
    (workspace / "handrail.toml").write_text('mode = "auto"\n')
    here("trust", "--yes")
    tool_file.write_text(text)
    assert here(*CALL).code != 0
    assert not has_run(tool_file)


def test_a_compiled_copy_is_not_run(here, tool_file: Path) -> None:
    """A `.pyc` with the time and size of the source, but other code, as Python would use it."""
    import importlib.util
    import py_compile

    evil = GREET.replace("hello", "hacky")
    tool_file.write_text(evil)
    py_compile.compile(str(tool_file), importlib.util.cache_from_source(str(tool_file)))
    status = tool_file.stat()
    tool_file.write_text(GREET)
    os.utime(tool_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    here("trust", "--yes")
    assert here(*CALL).out.strip() == "hello Ada"


def test_revoked_trust_loads_no_tools(here, tool_file: Path) -> None:
    here("trust", "--yes")
    assert ".handrail/tools are ignored" in here("trust", "--revoke").out
    assert here(*CALL).code != 0
    assert not has_run(tool_file)


def test_trust_speaks_of_tools_in_json(here, tool_file: Path) -> None:
    found = here("trust", "--yes", "--json").json["tools"]
    assert list(found["files"]) == [".handrail/tools/greeting.py"]
    assert len(found["digest"]) == 64


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_a_tool_file_that_is_no_plain_file_is_refused(here, tool_file: Path, tmp_path: Path, kind: str) -> None:
    tool_file.unlink()
    if kind == "link":
        (tmp_path / "elsewhere.py").write_text(GREET)
        tool_file.symlink_to(tmp_path / "elsewhere.py")
    elif kind == "pipe":
        os.mkfifo(tool_file)
    elif kind == "folder":
        tool_file.mkdir()
    else:
        tool_file.write_text("#" * 2_000_000)
    refused = here("trust", "--yes")
    assert refused.code != 0
    assert ".handrail/tools cannot be used" in refused.err
    assert "Nothing was trusted." in refused.err
    assert here("call", "ls", '{"path": "."}').code == 0


def test_a_trusted_file_that_does_not_load_is_named(here, tool_file: Path) -> None:
    tool_file.write_text("from handrail import tool\n@tool\ndef bad(x):\n    'Bad.'\n")
    here("trust", "--yes")
    failed = here(*CALL)
    assert failed.code == 2
    assert "greeting.py" in failed.err
    assert "the tool 'bad' has the parameter 'x' without a type; use str, int" in failed.err
    assert here("undo").code != 2  # a broken tool keeps nobody from undoing


def test_an_agent_cannot_change_a_tool_file_unseen(here, tool_file: Path) -> None:
    here("trust", "--yes")
    done = here("call", "--mode", "auto", "write", json.dumps({"path": ".handrail/tools/greeting.py", "content": "x"}))
    assert done.code == 3
