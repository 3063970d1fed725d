"""Sockets in what is shown of the machine."""

import socket
from pathlib import Path

from handrail.sandbox.profile import SandboxHost
from handrail.sandbox.view import build_base_view


def test_a_socket_in_a_toolchain_is_covered(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        listening.bind(str(tools / "with a blank"))
        listening.listen()
        bound.bind(str(tools / "datagrams"))
        host = SandboxHost(
            home=str(tmp_path / "home"), environ={}, state=str(tmp_path / "state"), toolchains=(str(tools),)
        )
        covered = {mount.place for mount in build_base_view(host).mounts if mount.kind == "no-file"}
    assert {str(tools / "with a blank"), str(tools / "datagrams")} <= covered
