"""Replay of sessions that spoke dialects: the journal has canonical calls, and helpers that only dialects have."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.replay.player import replay_session
from handrail.settings import LoadedSettings, Settings
from handrail.store.state_dir import StateFolder

PATCH = "*** Begin Patch\n*** Add File: n.py\n+x\n*** End Patch"
CALLS: dict[str, tuple[tuple[str, Any, str], ...]] = {
    "devminds": (
        ("workspace.fs", {"op": "append", "path": "note.md", "content": "more\n"}, "append"),
        ("workspace.fs", {"op": "read", "path": "note.md"}, "read"),
    ),
    "claude-code": (
        ("Grep", {"pattern": "one", "output_mode": "count"}, "search_text"),
        ("Edit", {"file_path": "new.py", "old_string": "", "new_string": "x\n"}, "write"),
        ("Bash", {"command": "echo out; echo err >&2"}, "exec"),
        ("TodoWrite", {"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]}, "todo"),
    ),
    "agentica": (
        ("multi_edit", {"file_path": "a.py", "edits": [{"old_string": "one", "new_string": "two"}]}, "multi_edit"),
        ("execute", {"command": "cat a.py"}, "exec"),
    ),
    "codex": (
        ("apply_patch", PATCH, "apply_patch"),
        ("exec_command", {"cmd": "cat n.py", "workdir": "."}, "exec"),
    ),
}


@pytest.mark.parametrize("dialect", CALLS)
def test_a_session_in_a_dialect_comes_out_the_same(tmp_path: Path, dialect: str) -> None:
    workspace = tmp_path / "ws"
    (workspace / ".minds").mkdir(parents=True)
    (workspace / ".minds" / "note.md").write_text("# Note\n")
    (workspace / "a.py").write_text("one\n")
    with Handrail(workspace, state_dir=tmp_path / "state", session="s", mode="auto", dialect=dialect) as rail:
        for name, args, _ in CALLS[dialect]:
            assert rail.call(name, args).ok
    folder = StateFolder(str(tmp_path / "state")).session(str(workspace), "s")
    # Settings that choose a dialect do not reach the replay, whose calls are canonical.
    settings = LoadedSettings(settings=Settings.from_values({"dialect": "opencode"}), sources={})
    replay = replay_session(folder, str(workspace), StateFolder(str(tmp_path / "state")), settings)
    expected = [(canonical, "left-out" if _goes_on(args) else "same") for _, args, canonical in CALLS[dialect]]
    assert [(one.name, one.verdict) for one in replay.calls] == expected


def _goes_on(args: Any) -> bool:
    """Whether the command may outlast its call, so that it is not run again."""
    return isinstance(args, dict) and "cmd" in args
