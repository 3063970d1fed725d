"""Which files git tracks, and which drivers its configurations define."""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.protocol.errors import ToolError
from handrail.workspace.facts import build_driver_settings, list_tracked


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in (".env", "sub/.env", "x.env", "keys/server.pem"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path


def found(folder: Path, *names: str) -> set[str]:
    paths = [str(folder / name) for name in names]
    return {str(Path(path).relative_to(folder)) for path in list_tracked(paths, [str(folder)])}


def test_what_was_added_is_tracked_and_what_lies_beside_it_is_not(repository: Path) -> None:
    git(repository, "add", ".env", "keys")
    assert found(repository, ".env", "sub/.env", "x.env", "keys/server.pem", "env") == {".env", "keys/server.pem"}


def test_the_end_of_another_name_is_not_taken_for_a_name(repository: Path) -> None:
    git(repository, "add", "sub/.env", "x.env")
    assert found(repository, ".env", "sub/.env", "x.env") == {"sub/.env", "x.env"}


def test_what_was_taken_out_is_tracked_no_more(repository: Path) -> None:
    git(repository, "add", ".env")
    assert found(repository, ".env") == {".env"}
    git(repository, "rm", "-q", "--cached", ".env")
    assert found(repository, ".env") == set()


def test_without_a_repository_nothing_is_tracked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("x")
    assert found(tmp_path, ".env") == set()


def test_the_innermost_repository_counts(repository: Path) -> None:
    git(repository / "sub", "init", "-q")
    git(repository / "sub", "add", ".env")
    assert found(repository, "sub/.env", ".env") == {"sub/.env"}


def test_an_index_that_is_none_tracks_nothing(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"\x00\x04.env\x00"[1:])
    assert found(repository, ".env") == set()


# Drivers


def test_drivers_of_included_configurations_are_disabled(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "config").write_text('[include]\n\tpath = sub/more\n\tpath = missing\n[filter "a"]\n')
    (tmp_path / "sub/more").write_text('[include]\n\tpath = ../config\n\tpath = more\n[filter "b"]\n')
    names = {name for name, _ in build_driver_settings([str(tmp_path / "config")])}
    assert {"filter.a.clean", "filter.b.clean"} <= names


def test_configurations_in_a_circle_end_and_too_many_are_refused(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(".")
    (tmp_path / "config").write_text("".join(f"[include] path = {'again/' * n}config\n" for n in (1, 3, 4, 7)))
    settings = '[filter "%s"]\n' % ("x" * 1000)
    (tmp_path / "large").write_text(settings * (17 << 10))
    with pytest.raises(ToolError, match="too much git configuration"):
        build_driver_settings([str(tmp_path / "large")])
    assert build_driver_settings([str(tmp_path / "config")]) == build_driver_settings([])


def test_what_is_called_like_a_configuration_and_is_none_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = os.listdir("/proc/self/fd")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    found = build_driver_settings([str(tmp_path / "config"), str(tmp_path / "pipe"), str(tmp_path / "none")])
    os.close(writer)
    assert found == build_driver_settings([])
    assert len(os.listdir("/proc/self/fd")) == len(before)
