"""Which permission bits a file gets that is to be executable, or no longer."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.workspace import file_state
from handrail.workspace.file_state import build_executable_mode


@pytest.fixture(params=[0o022, 0o027, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What new files of this process are not given."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the umask is read from /proc")
def test_a_new_file_gets_what_the_umask_leaves(umask: int) -> None:
    assert build_executable_mode(None) == 0o777 & ~umask
    assert build_executable_mode(None, on=False) == 0o666 & ~umask


@pytest.mark.parametrize("status", [None, "Name:\tpython\nPid:\t7\n", "Umask:\tnone\n", ""])
def test_where_the_umask_is_not_known_a_new_file_is_for_its_owner_only(
    status: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if status is not None:
        (tmp_path / "status").write_text(status)
    monkeypatch.setattr(file_state, "_UMASK_SOURCE", str(tmp_path / "status"))
    assert (build_executable_mode(None), build_executable_mode(None, on=False)) == (0o700, 0o600)


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750), (0o444, 0o555)])
def test_who_may_read_may_execute_and_back(before: int, after: int) -> None:
    assert build_executable_mode(before) == after
    assert build_executable_mode(after, on=False) == before
