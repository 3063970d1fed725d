"""The system calls that Python does not have do what their manual says."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.kernel.files import RESOLVE_NO_SYMLINKS, exchange, has_openat2, openat2, rename_new


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a").write_text("a")
    (tmp_path / "inner" / "b").write_text("b")
    descriptor = os.open(tmp_path / "inner", os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def error_of(folder: int, path: str, resolve: int = 0) -> int | None:
    try:
        os.close(openat2(folder, path, os.O_RDONLY, resolve=resolve))
    except OSError as error:
        return error.errno
    return None


@pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2")
def test_openat2_never_leaves_the_folder(tmp_path: Path, folder: int) -> None:
    (tmp_path / "outside").write_text("x")
    for name, target in (("in", "a"), ("out", "../outside"), ("absolute", "/etc"), ("magic", "/proc/self/root")):
        os.symlink(target, name, dir_fd=folder)
    assert error_of(folder, "a") is None
    assert error_of(folder, "in") is None
    assert error_of(folder, "in", RESOLVE_NO_SYMLINKS) == errno.ELOOP
    for path in ("../outside", "..", "/etc", "out", "absolute", "magic", "../inner/a"):
        assert error_of(folder, path) == errno.EXDEV
    assert error_of(folder, "none") == errno.ENOENT


@pytest.mark.skipif(not has_openat2(), reason="this kernel has no openat2")
def test_a_descriptor_is_not_passed_on_to_programs(folder: int) -> None:
    descriptor = openat2(folder, "a", os.O_RDONLY)
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_exchange_swaps_two_names(tmp_path: Path, folder: int) -> None:
    exchange(folder, "a", "b")
    assert (tmp_path / "inner" / "a").read_text() == "b"
    assert (tmp_path / "inner" / "b").read_text() == "a"
    with pytest.raises(FileNotFoundError):
        exchange(folder, "a", "none")


def test_rename_new_replaces_nothing(tmp_path: Path, folder: int) -> None:
    with pytest.raises(FileExistsError):
        rename_new(folder, "a", "b")
    rename_new(folder, "a", "c")
    assert sorted(os.listdir(folder)) == ["b", "c"]
