"""Which files git tracks."""

import subprocess
from pathlib import Path

import pytest

from handrail.workspace.tracked import tracked


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
    return {str(Path(path).relative_to(folder)) for path in tracked(paths, [str(folder)])}


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
