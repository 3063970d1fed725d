"""Permissions and the coarse kind that events carry."""

import pytest

from handrail.protocol.permission import Permission, PermissionType, permission_type


@pytest.mark.parametrize(
    ("permissions", "kind"),
    [
        (("proc.exec",), "command"),
        (("fs.write",), "write"),
        (("fs.delete",), "write"),
        (("git.write",), "write"),
        (("fs.write", "fs.delete", "git.write"), "write"),
        (("fs.read",), "read"),
        (("net.connect",), "all"),
        (("fs.read", "fs.write"), "write"),
        (("fs.write", "fs.read", "fs.delete"), "write"),
        (("fs.read", "proc.exec"), "all"),
        (("fs.read", "net.connect"), "all"),
        (("fs.read", "fs.write", "proc.exec"), "all"),
        (("fs.read", "fs.write", "net.connect"), "all"),
        ((), "all"),
    ],
)
def test_the_coarse_kind_follows_from_the_permissions(
    permissions: tuple[Permission, ...], kind: PermissionType
) -> None:
    assert permission_type(permissions) == kind
