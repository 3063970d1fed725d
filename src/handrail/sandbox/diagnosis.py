"""What the sandbox lacks on this machine, and what helps."""

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from handrail.kernel import landlock
from handrail.kernel.cgroup import find_parent_group
from handrail.kernel.landlock import describe_missing_rights, read_abi_version
from handrail.protocol.decisions import OVERLAY_TIER
from handrail.sandbox.bubblewrap import Bubblewrap

# § [sandbox.report] What a tier gives and what it does not, in words for people and for results.


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A better tier that does not work here."""

    tier: int
    reason: str
    fix: str | None
    """The one command that would help; None where none does."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How commands are confined here."""

    tier: int
    means: str
    """What confines them: the program and its version, or the kernel's own."""
    failures: tuple[Failure, ...]
    gaps: tuple[str, ...]
    """What the tier in use does not give."""
    per_process: tuple[str, ...]
    """The limits that hold for each process alone."""
    tree: tuple[str, ...]
    """The limits that hold for a command with everything it has started."""


NAMES = {1: "Landlock and seccomp", 0: "nothing"}

_PER_PROCESS = ("file size", "core dumps")
_TREE = ("time", "output", "memory", "processes")
_UNSIZED = "private folders such as /tmp have no limit of their own: bubblewrap is older than 0.5"


def build_report(
    tier: int, program: Bubblewrap | None, failures: tuple[Failure, ...], held_in_memory: int | None = None
) -> Report:
    """The whole account of a tier; `held_in_memory`: bytes that an overlay has, where it is not on the disk."""
    means = f"bubblewrap {program.version}" if program else NAMES[tier]
    held = () if held_in_memory is None else (describe_memory_overlay(held_in_memory),)
    return Report(
        tier=tier,
        means=f"{means} in an overlay over the workspace" if tier >= OVERLAY_TIER else means,
        failures=failures,
        gaps=(*_gaps(tier, program), *held),
        per_process=_PER_PROCESS,
        tree=_TREE,
    )


def describe_memory_overlay(size: int) -> str:
    """That an overlay has a limit, in words."""
    fits = f"{max(1, size >> 20):,} MB fit in"
    return f"what a command changes is held in memory, and {fits}: the disk of the state folder takes no overlays"


def _gaps(tier: int, program: Bubblewrap | None) -> tuple[str, ...]:
    if program is None:
        return list_gaps(tier)
    return () if "--size" in program.options else (_UNSIZED,)


# § [sandbox.probing.remedies] Why a tier does not work here, and the one command that would help.

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


# § [sandbox.probing.facts] What the kernel offers besides: facts for who wants to know why a tier is as it is.


def list_kernel_facts() -> tuple[str, ...]:
    """One clause each; they name nothing of the user's."""
    version = landlock.read_abi_version()
    return (
        f"Landlock: version {version} of its interface" if version else "Landlock: not in this kernel, or switched off",
        _control_groups(),
    )


def _control_groups() -> str:
    watched = "memory and processes of a command are watched"
    return f"control groups: {watched}" + (
        ", and held by the kernel" if find_parent_group() else "; none can be made here"
    )


# § [sandbox.supervision.gaps] What tiers 1 and 0 do not give: said in every result, since a command that is less
# § confined should look it.

TIER_1 = (
    "whether a file outside the roots exists, and its size, owner, times and extended attributes, can be seen",
    "that files outside the roots change can be watched",
    "outside the roots a command that may write can change the mode and the times of files of this user",
    "names and command lines of the machine's other processes can be seen; their variables and memory cannot",
    "the machine's mounts, network addresses and connections can be seen",
    "names of hidden files and folders can be seen; what is in the files cannot",
    "in a folder that holds something hidden or sealed nothing can be made, renamed or removed",
    "sockets cannot be opened, not even between the command's own processes",
    "/tmp, /dev/shm and terminals cannot be used: TMPDIR and HOME lead to a folder of the command's own",  # noqa: S108
    "what is written to that folder has no limit but each file's size",
    "a command that is another process every millisecond may outlive its call on a busy machine",
)
TIER_0 = (
    "nothing is confined: the command can do what this user can, the network included",
    "it can kill its supervisor, and what it has started then lives on",
)


def list_gaps(tier: int) -> tuple[str, ...]:
    """What the tier does not give on this kernel, a clause each."""
    return (*TIER_1, *describe_missing_rights(read_abi_version())) if tier else TIER_0
