"""What the sandbox lacks on this machine, with the command that helps."""

import os
import shutil
from functools import lru_cache
from typing import NamedTuple

import msgspec

from handrail.kernel.cgroup import find_parent_group
from handrail.kernel.landlock import describe_missing_rights, read_abi_version
from handrail.protocol.results import OVERLAY_TIER
from handrail.sandbox.bubblewrap import Bubblewrap
from handrail.sandbox.view import read_text


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A better tier that does not work here."""

    tier: int
    reason: str
    fix: str | None
    """The one command that would help."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    tier: int
    means: str
    """The program and its version, or the parts of the kernel."""
    failures: tuple[Failure, ...]
    gaps: tuple[str, ...]
    """What the tier does not prevent."""
    per_process: tuple[str, ...]
    """Limits for each process."""
    tree: tuple[str, ...]
    """Limits for the whole process tree."""


class Diagnosis(NamedTuple):
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
        "the kernel forbids user namespaces",
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
_NO_UPPER = frozenset({"overlay", "nfs", "nfs4", "cifs", "smb3", "vfat", "exfat", "9p", "fuse", "fuseblk", "virtiofs"})
"""File systems that cannot hold the changes of an overlay."""
_NO_LOWER = frozenset({"vfat", "exfat", "ntfs", "ntfs3", "ecryptfs", "hfsplus"})
"""File systems that cannot lie under an overlay."""
_OTHER_STATE_FOLDER = "export HANDRAIL_STATE_DIR=/var/tmp/handrail-state"
_MAX_PATH_CHARACTERS = 200
_MEANS = {1: "Landlock and seccomp", 0: "nothing"}
_UNSIZED = "private folders such as /tmp have no limit of their own: bubblewrap is older than 0.5"
TIER_1 = (
    "a command can see whether a file outside the roots exists, and its size, owner, times and extended attributes",
    "a command can watch changes of files outside the roots",
    "a writing command can change the mode and times of this user's files outside the roots",
    "a command can see names and command lines of other processes, but not their variables and memory",
    "a command can see the machine's mounts, network addresses and connections",
    "a command can see names of hidden files and folders, but not their content",
    "in a folder with a hidden or sealed entry, a command cannot create, rename or remove anything",
    "sockets cannot be opened, not even between the command's own processes",
    "/tmp, /dev/shm and terminals cannot be used: TMPDIR and HOME lead to a folder of the command's own",  # noqa: S108
    "that folder has no limit except the size of each file",
    "a command that is another process every millisecond may outlive its call on a busy machine",
)
TIER_0 = (
    "no sandbox: a command can do everything that this user can, also use the network",
    "it can kill its supervisor, and its processes then survive",
)


@lru_cache(maxsize=16)
def build_report(
    tier: int, program: Bubblewrap | None, failures: tuple[Failure, ...], memory_bytes: int | None = None
) -> Report:
    """The report of a tier. `memory_bytes` is the room of an overlay that is held in memory."""
    means, gaps = (_MEANS[tier], list_gaps(tier)) if program is None else (f"bubblewrap {program.version}", ())
    if program and "--size" not in program.options:
        gaps = (_UNSIZED,)
    return Report(
        tier=tier,
        means=f"{means} in an overlay over the workspace" if tier >= OVERLAY_TIER else means,
        failures=failures,
        gaps=gaps if memory_bytes is None else (*gaps, describe_memory_gap(memory_bytes)),
        per_process=("file size", "core dumps"),
        tree=("time", "output", "memory", "processes"),
    )


def describe_memory_gap(memory_bytes: int) -> str:
    fits = f"{max(1, memory_bytes >> 20):,} MB fit in"
    return f"what a command changes is held in memory, and {fits}: the disk of the state folder takes no overlays"


def list_gaps(tier: int) -> tuple[str, ...]:
    """The gaps of tiers 1 and 0 on this kernel."""
    return (*TIER_1, *describe_missing_rights(read_abi_version())) if tier else TIER_0


def list_kernel_facts() -> tuple[str, ...]:
    """Facts about the kernel for `handrail doctor`. They name nothing of the user's."""
    version = read_abi_version()
    groups = "limits are held by the kernel" if find_parent_group() else "not available; limits are enforced by polling"
    return (
        f"Landlock: version {version} of its interface" if version else "Landlock: not in this kernel, or disabled",
        f"cgroups: {groups}",
    )


def diagnose_platform(platform: str) -> Diagnosis:
    return Diagnosis(f"commands are confined on Linux only, and this is {platform}", None)


def diagnose_missing_bubblewrap() -> Diagnosis:
    installer = next((command for program, command in _INSTALLERS.items() if shutil.which(program)), None)
    return Diagnosis("bubblewrap (bwrap) is not installed", _as_root(installer) if installer else None)


def diagnose_bubblewrap_failure(program: str, error: str) -> Diagnosis:
    return _diagnose_namespaces("bubblewrap make namespaces", error) or Diagnosis(
        f"bubblewrap does not work ({error})", f"{program} --unshare-all --ro-bind / / true"
    )


def diagnose_landlock_failure(error: str) -> Diagnosis:
    modules = read_text("/sys/kernel/security/lsm")
    if modules and "landlock" not in modules:
        fix = "grubby --update-kernel=ALL --args=lsm=landlock" if shutil.which("grubby") else None
        return Diagnosis(f"the kernel was started without Landlock ({error})", _as_root(fix) if fix else None)
    return Diagnosis(f"Landlock and seccomp do not confine here ({error})", None)


def diagnose_mount_failure(error: str, state: str, kind: str, roots: list[tuple[str, str]]) -> Diagnosis:
    """Why an overlay cannot be mounted. `kind` is the file system of the state folder, and each root has its own."""
    if "unshare" in error:
        return _diagnose_namespaces("namespaces be made", error) or Diagnosis(
            f"namespaces cannot be made ({error})", None
        )
    for root, other in roots:
        if other in _NO_LOWER:
            return Diagnosis(f"{clip_path_start(root)} is on {other}, which does not support overlays ({error})", None)
    if kind in _NO_UPPER or kind.startswith("fuse."):
        reason = f"the state folder {clip_path_start(state)} is on {kind}, which cannot store an overlay"
        return Diagnosis(f"{reason}, and no other folder can ({error})", _OTHER_STATE_FOLDER)
    known = read_text("/proc/filesystems")
    if os.path.exists("/proc/sys") and known and "overlay" not in known:
        return Diagnosis(f"the kernel has no overlayfs ({error})", "modprobe overlay" if os.geteuid() == 0 else None)
    return Diagnosis(f"overlays do not work here ({error})", None)


def clip_path_start(path: str) -> str:
    """The path on one line, or its last 200 characters. Unlike `clip_path`, it escapes only newlines and surrogates."""
    text = path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _MAX_PATH_CHARACTERS else f"…{text[-_MAX_PATH_CHARACTERS:]}"


def _diagnose_namespaces(forbidden: str, error: str) -> Diagnosis | None:
    """The setting of the kernel, or the container, that forbids namespaces."""
    for switch in _SWITCHES:
        if read_text(switch.path).strip() == switch.off and not (os.geteuid() == 0 and "unprivileged" in switch.path):
            return Diagnosis(f"{switch.reason} ({error})", _as_root(switch.fix))
    if os.path.exists("/run/.containerenv"):
        return Diagnosis(f"this container does not let {forbidden} ({error})", _IN_PODMAN)
    if os.path.exists("/.dockerenv"):
        return Diagnosis(f"this container does not let {forbidden} ({error})", _IN_DOCKER)
    return None


def _as_root(command: str) -> str:
    return command if os.geteuid() == 0 else f"sudo {command}"
