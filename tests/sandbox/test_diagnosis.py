"""Why a tier does not work, and the one command that would help: by what the machine looks like."""

import pytest

from handrail.sandbox import diagnosis
from handrail.sandbox.diagnosis import (
    diagnose_bubblewrap_failure,
    diagnose_landlock_failure,
    diagnose_missing_bubblewrap,
    diagnose_platform,
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """A machine with these files and programs, for root or another user."""

    def make(files: dict[str, str] | None = None, programs: tuple[str, ...] = (), user: int = 1000) -> None:
        there = files or {}
        monkeypatch.setattr(diagnosis, "read_text", lambda path: there.get(path, ""))
        monkeypatch.setattr("os.path.exists", lambda path: path in there)
        monkeypatch.setattr("shutil.which", lambda name: name if name in programs else None)
        monkeypatch.setattr("os.geteuid", lambda: user)

    return make


@pytest.mark.parametrize(
    ("program", "fix"),
    [
        ("apt-get", "sudo apt-get install bubblewrap"),
        ("dnf", "sudo dnf install bubblewrap"),
        ("pacman", "sudo pacman -S bubblewrap"),
        ("apk", "sudo apk add bubblewrap"),
        ("zypper", "sudo zypper install bubblewrap"),
        ("nothing", None),
    ],
)
def test_a_missing_bubblewrap_is_installed_by_what_is_there(machine, program: str, fix: str | None) -> None:
    machine(programs=(program,))
    assert diagnose_missing_bubblewrap() == ("bubblewrap (bwrap) is not installed", fix)


def test_root_needs_no_sudo(machine) -> None:
    machine(programs=("apt-get",), user=0)
    assert diagnose_missing_bubblewrap().fix == "apt-get install bubblewrap"


@pytest.mark.parametrize(
    ("path", "value", "fix"),
    [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/.dockerenv", "", "docker run --security-opt seccomp=unconfined"),
        ("/run/.containerenv", "", "podman run --security-opt seccomp=unconfined"),
        ("/nothing", "", "/usr/bin/bwrap --unshare-all --ro-bind / / true"),
    ],
)
def test_what_keeps_bubblewrap_from_working_is_named_with_what_it_said(
    machine, path: str, value: str, fix: str
) -> None:
    machine({path: value})
    found = diagnose_bubblewrap_failure("/usr/bin/bwrap", "bwrap: No permissions")
    assert (found.fix or "").startswith(fix)
    assert "(bwrap: No permissions)" in found.reason


def test_a_switch_that_does_not_concern_root_is_not_blamed(machine) -> None:
    machine({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, user=0)
    assert "sysctl" not in (diagnose_bubblewrap_failure("/usr/bin/bwrap", "said").fix or "")


def test_elsewhere_than_on_linux_nothing_helps(machine) -> None:
    assert diagnose_platform("darwin") == ("commands are confined on Linux only, and this is darwin", None)


def test_a_kernel_without_landlock_is_named(machine) -> None:
    machine({"/sys/kernel/security/lsm": "capability,yama"}, programs=("grubby",))
    assert diagnose_landlock_failure("said").fix == "sudo grubby --update-kernel=ALL --args=lsm=landlock"
    machine({"/sys/kernel/security/lsm": "capability,landlock"})
    assert diagnose_landlock_failure("said").fix is None
