"""Permissions and the coarse kind that events carry."""

from typing import Literal

import msgspec
import pytest

from handrail.protocol.permissions import (
    Permission,
    PermissionRequest,
    classify_permissions,
)
from handrail.protocol.wire import encode

FolderKind = Literal["external_directory"]


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
def test_the_coarse_kind_follows_from_the_permissions(permissions: tuple[Permission, ...], kind: str) -> None:
    assert classify_permissions(permissions) == kind


def request(
    permissions: tuple[Permission, ...],
    kind: FolderKind | None = None,
    pattern: tuple[str, ...] = (),
) -> PermissionRequest:
    return PermissionRequest(
        id="ask_1",
        tool_call_id="call_1",
        tool_name="fetch",
        server_name="handrail",
        permission_type=classify_permissions(permissions),
        description="Fetch",
        rule="tool.custom",
        reason="it asks",
        permissions=permissions,
        answers=("once", "deny"),
        session_id="s",
        batch_id="call_1",
        kind=kind,
        pattern=pattern,
        access="read" if kind else None,
    )


@pytest.mark.parametrize(
    ("permissions", "kind", "name"),
    [
        (("proc.exec",), None, "bash"),
        (("fs.read", "proc.exec"), None, "bash"),
        (("fs.write",), None, "edit"),
        (("fs.read", "fs.write"), None, "edit"),
        (("fs.delete",), None, "edit"),
        (("git.write",), None, "edit"),
        (("fs.read",), None, "read"),
        (("net.connect",), None, "fetch"),
        (("fs.read", "net.connect"), None, "fetch"),
        ((), None, "fetch"),
        (("fs.read",), "external_directory", "external_directory"),
        (("fs.write",), "external_directory", "external_directory"),
        (("proc.exec",), "external_directory", "external_directory"),
    ],
)
def test_the_other_name_of_a_request(permissions: tuple[Permission, ...], kind: FolderKind | None, name: str) -> None:
    assert request(permissions, kind).s4_kind == name


def test_a_request_says_on_the_wire_which_folder_a_yes_opens() -> None:
    asked = request(("fs.read",), "external_directory", ("/data", "/data/*"))
    wire = msgspec.json.decode(encode(asked))
    assert (wire["kind"], wire["pattern"], wire["access"]) == ("external_directory", ["/data", "/data/*"], "read")
    assert msgspec.json.decode(encode(asked), type=PermissionRequest) == asked


def test_a_request_of_before_has_no_folder() -> None:
    before = msgspec.json.decode(encode(request(("fs.write",))))
    assert not {"kind", "pattern", "access"} & set(before)
    assert msgspec.convert(before, PermissionRequest).kind is None
