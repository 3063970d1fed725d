"""Why a tier does not work here, and the one command that would help."""

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

_INSTALLERS = {
    "apt-get": "apt-get install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "yum": "yum install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "apk": "apk add bubblewrap",
    "zypper": "zypper install bubblewrap",
    "xbps-install": "xbps-install bubblewrap",
    "emerge": "emerge sys-apps/bubblewrap",
}


class Diagnosis(NamedTuple):
    """What is the matter, and what to type."""

    reason: str
    fix: str | None


class _Switch(NamedTuple):
    path: str
    off: str
    reason: str
    fix: str


_SWITCHES = (
    _Switch(
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "the kernel lets only root make user namespaces",
        "sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    _Switch(
        "/proc/sys/user/max_user_namespaces",
        "0",
        "the kernel lets nobody make user namespaces",
        "sysctl -w user.max_user_namespaces=15000",
    ),
    _Switch(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps programs without a profile from making user namespaces",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
_IN_DOCKER = " --security-opt ".join(
    ("docker run", "seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined")
)
_IN_PODMAN = " --security-opt ".join(("podman run", "seccomp=unconfined", "label=disable", "unmask=ALL"))


def diagnose_platform(platform: str) -> Diagnosis:
    """On a system without namespaces and Landlock."""
    return Diagnosis(f"commands are confined on Linux only, and this is {platform}", None)


def diagnose_missing_bubblewrap() -> Diagnosis:
    """Where the program is missing."""
    installer = next((command for program, command in _INSTALLERS.items() if shutil.which(program)), None)
    return Diagnosis("bubblewrap (bwrap) is not installed", _as_root(installer) if installer else None)


def diagnose_bubblewrap_failure(program: str, said: str) -> Diagnosis:
    """Where the program is there and does not do what it should; `said` is what was seen or printed."""
    if switch := next(_switched_off(), None):
        return Diagnosis(f"{switch.reason} ({said})", _as_root(switch.fix))
    if container := _container():
        return Diagnosis(f"this container does not let bubblewrap make namespaces ({said})", container)
    return Diagnosis(f"bubblewrap does not work ({said})", f"{program} --unshare-all --ro-bind / / true")


def diagnose_namespace_failure(said: str) -> Diagnosis:
    """Where namespaces cannot be made at all, by whatever program; `said` is what was seen or printed."""
    if switch := next(_switched_off(), None):
        return Diagnosis(f"{switch.reason} ({said})", _as_root(switch.fix))
    if container := _container():
        return Diagnosis(f"this container does not let namespaces be made ({said})", container)
    return Diagnosis(f"namespaces cannot be made ({said})", None)


def diagnose_landlock_failure(said: str) -> Diagnosis:
    """Where Landlock and seccomp do not confine."""
    listed = _content("/sys/kernel/security/lsm")
    if listed and "landlock" not in listed:
        fix = "grubby --update-kernel=ALL --args=lsm=landlock" if shutil.which("grubby") else None
        return Diagnosis(f"the kernel was started without Landlock ({said})", _as_root(fix) if fix else None)
    return Diagnosis(f"Landlock and seccomp do not confine here ({said})", None)


def _switched_off() -> Iterator[_Switch]:
    for switch in _SWITCHES:
        if _content(switch.path) == switch.off and not (os.geteuid() == 0 and "unprivileged" in switch.path):
            yield switch


def _container() -> str | None:
    if os.path.exists("/run/.containerenv"):
        return _IN_PODMAN
    return _IN_DOCKER if os.path.exists("/.dockerenv") else None


def _content(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(200).strip()
    except (OSError, ValueError):
        return ""


def _as_root(command: str) -> str:
    return command if os.geteuid() == 0 else f"sudo {command}"
