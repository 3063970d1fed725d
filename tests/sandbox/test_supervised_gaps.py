"""What tier 1 does not give is exactly what is said: a test for each clause of TIER_1, in their order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from supervising import PYTHON, a_host, confined, run

from handrail.kernel.landlock import describe_missing_rights, read_abi_version
from handrail.sandbox.diagnosis import TIER_0, TIER_1, list_gaps

pytestmark = pytest.mark.skipif(read_abi_version() < 6, reason="tier 1 gives less without Landlock's newer rights")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside"
    file.write_text("secret\n")
    file.chmod(0o640)
    return file


def test_the_gaps_are_said_with_those_of_an_older_kernel() -> None:
    assert list_gaps(1) == (*TIER_1, *describe_missing_rights(read_abi_version()))
    assert list_gaps(0) == TIER_0


@pytest.mark.parametrize("trust", ["proven", "unasked", "approved"])
def test_files_outside_can_be_looked_up_and_not_read(
    tmp_path: Path, workspace: Path, outside: Path, trust: str
) -> None:
    outcome = run(confined(workspace, trust), a_host(tmp_path), f"stat -c '%s %a' {outside}; cat {outside}")
    assert outcome.output.startswith("7 640\n")
    assert "secret" not in outcome.output


def test_extended_attributes_outside_can_be_read_and_not_set(tmp_path: Path, workspace: Path, outside: Path) -> None:
    os.setxattr(outside, "user.note", b"seen")
    reading = f"import os; print(os.getxattr('{outside}', 'user.note'))"
    assert run(confined(workspace), a_host(tmp_path), f'{PYTHON} -ISc "{reading}"').output == "b'seen'\n"
    setting = f"import os; os.setxattr('{outside}', 'user.note', b'x')"
    assert run(confined(workspace), a_host(tmp_path), f'{PYTHON} -ISc "{setting}"').exit_code == 1
    assert os.getxattr(outside, "user.note") == b"seen"


def test_changes_outside_can_be_watched(tmp_path: Path, workspace: Path, outside: Path) -> None:
    watching = (
        f"import ctypes; c = ctypes.CDLL(None); print(c.inotify_add_watch(c.inotify_init(), b'{outside.parent}', 2))"
    )
    assert run(confined(workspace), a_host(tmp_path), f'{PYTHON} -ISc "{watching}"').output == "1\n"


@pytest.mark.parametrize("trust", ["proven", "unasked", "approved"])
def test_mode_and_times_outside_can_be_changed_unless_it_only_looks(
    tmp_path: Path, workspace: Path, outside: Path, trust: str
) -> None:
    outcome = run(confined(workspace, trust), a_host(tmp_path), f"chmod 604 {outside}; touch -cd @0 {outside}")
    changed = trust != "proven"
    assert (outside.stat().st_mode & 0o777 == 0o604) == changed
    assert (outside.stat().st_mtime == 0) == changed
    assert (outcome.output == "") == changed


@pytest.mark.parametrize(
    "attempt", ["chown 65534 {}", "chgrp 65534 {}", "chmod u+s {}", "chmod g+s {}", "chattr +i {}"]
)
def test_owner_and_privileges_outside_cannot_be_changed(
    tmp_path: Path, workspace: Path, outside: Path, attempt: str
) -> None:
    before = outside.stat()
    assert run(confined(workspace), a_host(tmp_path), attempt.replace("{}", str(outside))).exit_code != 0
    assert outside.stat() == before


def test_command_lines_of_others_can_be_seen(tmp_path: Path, workspace: Path) -> None:
    with subprocess.Popen([sys.executable, "-ISc", "input()", "seen-by-all"], stdin=subprocess.PIPE) as outsider:
        outcome = run(confined(workspace), a_host(tmp_path), f"tr '\\0' ' ' < /proc/{outsider.pid}/cmdline")
        outsider.kill()
    assert "seen-by-all" in outcome.output


def test_mounts_and_connections_can_be_seen(tmp_path: Path, workspace: Path) -> None:
    outcome = run(confined(workspace), a_host(tmp_path), "cat /proc/self/mounts /proc/net/tcp")
    assert outcome.exit_code == 0
    assert "local_address" in outcome.output


def test_names_of_what_is_hidden_can_be_seen(tmp_path: Path, workspace: Path) -> None:
    (workspace / "keys").mkdir()
    (workspace / "keys/inner").write_text("secret\n")
    confinement = confined(workspace, hidden_folders=(str(workspace / "keys"),))
    outcome = run(confinement, a_host(tmp_path), "ls; ls keys; cat keys/inner")
    assert outcome.output.startswith("keys\ninner\n")
    assert "secret" not in outcome.output


def test_beside_something_sealed_what_exists_can_be_changed_and_nothing_made(tmp_path: Path, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    for name in ("sealed", "file", "sub/file"):
        (workspace / name).write_text("old\n")
    confinement = confined(workspace, read_only_paths=(str(workspace / "sealed"),))
    text = "echo new > file; echo x > made; mkdir made; rm file; mv file sub/moved; echo new > sub/made; rm sub/file"
    outcome = run(confinement, a_host(tmp_path), text)
    assert outcome.output.count("ermission denied") + outcome.output.count("cross-device") >= 4
    files = {
        path.relative_to(workspace).as_posix(): path.read_text() for path in workspace.rglob("*") if path.is_file()
    }
    assert files == {"sealed": "old\n", "file": "new\n", "sub/made": "new\n"}


@pytest.mark.parametrize(
    "attempt",
    [
        "touch /tmp/made-at-tier-1",
        "ls /tmp",
        "touch /dev/shm/made-at-tier-1",
        "{python} -ISc 'import os; os.openpty()'",
        ": < /dev/tty",
    ],
)
def test_what_all_programs_share_cannot_be_used(tmp_path: Path, workspace: Path, attempt: str) -> None:
    assert run(confined(workspace), a_host(tmp_path), attempt.replace("{python}", PYTHON)).exit_code != 0


def test_tier_0_confines_nothing(tmp_path: Path, workspace: Path, outside: Path) -> None:
    outcome = run(confined(workspace), a_host(tmp_path), f"cat {outside}; echo x > {outside}", tier=0)
    assert outcome.output == "secret\n"
    assert outside.read_text() == "x\n"
