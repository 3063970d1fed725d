"""Why no overlay can be had here, and the one command that would help."""

import os

from handrail.sandbox.layer.fitness import keep_path_end
from handrail.sandbox.probing.remedies import Diagnosis, diagnose_namespace_failure

_NO_UPPER = frozenset({"overlay", "nfs", "nfs4", "cifs", "smb3", "vfat", "exfat", "9p", "fuse", "fuseblk", "virtiofs"})
"""File systems that are known not to take in what is changed."""
_NO_LOWER = frozenset({"vfat", "exfat", "ntfs", "ntfs3", "ecryptfs", "hfsplus"})
"""File systems that are known not to lie under an overlay."""
_ELSEWHERE = "export HANDRAIL_STATE_DIR=/var/tmp/handrail-state"


def diagnose_missing_programs() -> Diagnosis:
    """Where what mounts is missing."""
    return Diagnosis("the programs unshare and mount (of util-linux) are not installed", None)


def diagnose_mount_failure(said: str, state: str, kind: str, roots: list[tuple[str, str]]) -> Diagnosis:
    """Where it was tried in vain; `said` is what was seen or printed, `kind` the state folder's file system, and each
    root has its own."""
    if "unshare" in said:
        return diagnose_namespace_failure(said)
    for root, other in roots:
        if other in _NO_LOWER:
            return Diagnosis(f"{keep_path_end(root)} is on {other}, over which no overlay can lie ({said})", None)
    if kind in _NO_UPPER or kind.startswith("fuse."):
        where = f"the state folder {keep_path_end(state)} is on {kind}, which cannot take in what an overlay holds"
        return Diagnosis(f"{where}, and no other place can ({said})", _ELSEWHERE)
    if os.path.exists("/proc/sys") and "overlay" not in _known():
        return Diagnosis(f"the kernel has no overlayfs ({said})", "modprobe overlay" if os.geteuid() == 0 else None)
    return Diagnosis(f"overlays do not work here ({said})", None)


def _known() -> str:
    try:
        with open("/proc/filesystems", encoding="ascii") as file:
            return file.read()
    except OSError:
        return "overlay"
