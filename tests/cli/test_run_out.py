"""run -o: what the model says last is written where the person meant it, and nowhere that the model chose."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DONE = {"text": "words of the model"}


@pytest.fixture
def run(here):
    return here


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def write(*lines: dict[str, Any]) -> str:
        (tmp_path / "script.json").write_text(json.dumps(lines))
        return f"scripted:{tmp_path / 'script.json'}"

    return write


def _link(target: Path, name: str) -> dict[str, object]:
    return {"calls": [["exec", {"command": f"rm -rf {name}; ln -s {target} {name}"}]]}


def test_a_link_that_the_model_makes_in_the_way_is_not_followed(run, script, workspace: Path, tmp_path: Path) -> None:
    victim = tmp_path / "profile"
    victim.write_text("mine\n")
    done = run(
        "run", "x", "--mode", "auto", "--model", script(_link(victim, "out.md"), DONE), "-o", str(workspace / "out.md")
    )
    assert victim.read_text() == "mine\n"
    assert done.code == 0
    assert (workspace / "out.md").read_text() == "words of the model\n"
    assert not (workspace / "out.md").is_symlink()


def test_a_folder_that_the_model_makes_a_link_is_not_followed(run, script, workspace: Path, tmp_path: Path) -> None:
    (workspace / "reports").mkdir()
    other = tmp_path / "other"
    other.mkdir()
    run(
        "run",
        "x",
        "--mode",
        "auto",
        "--model",
        script(_link(other, "reports"), DONE),
        "-o",
        str(workspace / "reports" / "out.md"),
    )
    assert list(other.iterdir()) == []


def test_a_link_that_the_workspace_brings_is_refused_before_anything_runs(
    run, script, workspace: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "profile"
    victim.write_text("mine\n")
    (workspace / "out.md").symlink_to(victim)
    (workspace / "reports").symlink_to(tmp_path)
    for name in ("out.md", "reports/new.md"):
        done = run("run", "x", "--model", script(DONE), "-o", str(workspace / name))
        assert done.code == 2
        assert "Nothing was run" in done.err
    assert victim.read_text() == "mine\n"
    assert not (tmp_path / "new.md").exists()


def test_a_pipe_that_nobody_reads_is_not_waited_for(run, script, workspace: Path) -> None:
    os.mkfifo(workspace / "out.md")
    done = run("run", "x", "--model", script(DONE), "-o", str(workspace / "out.md"))
    assert done.code == 2
    assert "Nothing was run" in done.err


def test_a_device_is_written_to(run, script) -> None:
    assert run("run", "x", "--model", script(DONE), "-o", "/dev/null").code == 0
