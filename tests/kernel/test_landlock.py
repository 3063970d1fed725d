"""Landlock as the kernel does it, also as older kernels would: each of its versions can be asked for."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.kernel.landlock import (
    READ_DIR,
    READ_FILE,
    REFER,
    WRITE_FILE,
    Ruleset,
    build_file_rights,
    describe_missing_rights,
    read_abi_version,
    restrict_self,
)
from handrail.kernel.process import refuse_new_privileges

pytestmark = pytest.mark.skipif(not read_abi_version(), reason="this kernel has no Landlock")
VERSIONS = range(1, min(read_abi_version(), 7) + 1)


def restricted(version: int, attempt: Callable[[], object], **allowed: int) -> str | None:
    """The name of the error with which an attempt fails in a process that is restricted; None where it succeeds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ruleset = Ruleset(version)
            for path, rights in allowed.items():
                place = os.open(path, os.O_PATH)
                ruleset.allow(place, rights)
                os.close(place)
            refuse_new_privileges()
            restrict_self(ruleset.descriptor)
            attempt()
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    told = os.read(reading, 100).decode()
    os.close(reading)
    os.waitpid(child, 0)
    return told or None


def test_each_version_can_withhold_more() -> None:
    assert [build_file_rights(version).bit_count() for version in range(1, 8)] == [13, 14, 15, 15, 16, 16, 16]
    assert [len(describe_missing_rights(version)) for version in range(8)] == [5, 5, 4, 3, 2, 1, 0, 0]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_allowed_is_refused_by_every_version(tmp_path: Path, version: int) -> None:
    (tmp_path / "file").write_text("x")
    read = (tmp_path / "file").read_text
    assert restricted(version, read) == "PermissionError"
    assert restricted(version, read, **{str(tmp_path): READ_FILE}) is None
    assert restricted(version, read, **{str(tmp_path / "file"): READ_FILE}) is None
    assert restricted(version, lambda: os.listdir(tmp_path), **{str(tmp_path): READ_DIR}) is None
    assert (
        restricted(version, lambda: (tmp_path / "file").write_text("y"), **{str(tmp_path): READ_FILE})
        == "PermissionError"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_moving_between_folders_takes_version_2(tmp_path: Path, version: int) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one/file").touch()
    everything = {str(tmp_path): build_file_rights(version)}
    error = restricted(version, lambda: os.rename(tmp_path / "one/file", tmp_path / "other/file"), **everything)
    assert error == (None if version >= 2 else "OSError")
    assert bool(build_file_rights(version) & REFER) == (error is None)


@pytest.mark.parametrize("version", VERSIONS)
def test_emptying_a_file_that_can_only_be_read_takes_version_3_to_refuse(tmp_path: Path, version: int) -> None:
    (tmp_path / "file").write_text("x")
    emptied = restricted(
        version, lambda: os.open(tmp_path / "file", os.O_RDONLY | os.O_TRUNC), **{str(tmp_path): READ_FILE}
    )
    assert emptied == ("PermissionError" if version >= 3 else None)
    assert (tmp_path / "file").read_text() == ("x" if version >= 3 else "")


@pytest.mark.parametrize("version", VERSIONS)
def test_signals_to_outsiders_take_version_6_to_refuse(version: int) -> None:
    parent = os.getpid()
    assert restricted(version, lambda: os.kill(parent, 0)) == ("PermissionError" if version >= 6 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_connection_takes_version_4_to_refuse(version: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        error = restricted(version, lambda: socket.socket().connect(address))
    assert error == ("PermissionError" if version >= 4 else None)


def test_what_is_impossible_is_told() -> None:
    ruleset = Ruleset(read_abi_version())
    with pytest.raises(OSError, match="Landlock: "):
        ruleset.allow(-1, WRITE_FILE)
    ruleset.close()
    with pytest.raises(OSError, match="Landlock: "):
        restrict_self(ruleset.descriptor)
