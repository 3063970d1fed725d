"""What the kernel offers besides: facts for who wants to know why a tier is as it is."""

from handrail.kernel import landlock
from handrail.kernel.cgroup import find_parent_group


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
